"""Dates in an ONNX graph: from days since 1970 to calendar parts, with integer arithmetic."""

from __future__ import annotations

import numpy as np

from polyplane.exports._expressions import Expressions

#: Microseconds per day and per hour.
DAY, HOUR = 86_400_000_000, 3_600_000_000
#: Days from 1 March of the year 0 to 1970: years that start in March have their leap day at the end.
MARCH_OF_YEAR_0 = 719_468
#: Days of 400 years, and of 100, 4 and 1 years without a leap day at the end.
ERA, CENTURY, FOUR_YEARS, YEAR = 146_097, 36_524, 1_460, 365


def date_features(days: str, parts: tuple[str, ...], express: Expressions) -> list[str]:
    """Compute the days since 1970, to the microsecond, and the requested calendar parts, all in float64."""
    day = np.array(float(DAY))
    moment = express.cast(express("Round", express("Mul", days, day)), np.int64)
    date, found = _floor(moment, DAY, express), {}
    if {"year", "month"} & set(parts):
        found["year"], found["month"] = _year_and_month(date, express)
    if "day of week" in parts:
        found["day of week"] = express("Add", _mod(express("Add", date, np.array(3)), 7, express), np.array(1))
    if "hour" in parts:
        found["hour"] = _floor(_mod(moment, DAY, express), HOUR, express)
    exact = express("Div", express.cast(moment, np.float64), day)
    return [exact, *(express.cast(found[part], np.float64) for part in parts)]


def _mod(value: str, by: int, express: Expressions) -> str:
    """Compute the non-negative remainder."""
    return express("Mod", value, np.array(by))


def _floor(value: str, by: int, express: Expressions) -> str:
    """Compute the quotient, rounded down also for negative values."""
    return express("Div", express("Sub", value, _mod(value, by, express)), np.array(by))


def _year_and_month(date: str, express: Expressions) -> tuple[str, str]:
    """Compute the year and the month of a date, from eras of 400 years that start in March."""
    shifted = express("Add", date, np.array(MARCH_OF_YEAR_0))
    era, day = _floor(shifted, ERA, express), _mod(shifted, ERA, express)
    leap_days = express("Sub", _floor(day, FOUR_YEARS, express), _floor(day, CENTURY, express))
    leap_days = express("Add", leap_days, _floor(day, ERA - 1, express))
    year = _floor(express("Sub", day, leap_days), YEAR, express)
    before = express("Sub", _floor(year, 4, express), _floor(year, 100, express))
    day_of_year = express("Sub", express("Sub", day, express("Mul", year, np.array(YEAR))), before)
    from_march = _floor(express("Add", express("Mul", day_of_year, np.array(5)), np.array(2)), 153, express)
    month = express("Add", _mod(express("Add", from_march, np.array(2)), 12, express), np.array(1))
    is_next = express.cast(express("Less", month, np.array(3)), np.int64)  # January and February
    year = express("Add", express("Mul", era, np.array(400)), year)
    return express("Add", year, is_next), month
