"""How numbers and dates are read from strings, and which columns are ambiguous."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplane.inputs.formats import Ambiguous, NumberFormat, date_reader, find_date_format, find_number_format

NUMBERS = {
    "$8,797.47 $12 -$3 $-4": [8797.47, 12, -3, -4],
    "8,797 1,234,567": [8797, 1234567],
    "8.797,47 12": [8797.47, 12],
    "8,797 12,5": [8.797, 12.5],
    "0,123 4,567": [0.123, 4.567],
    "43.2% 5%": [43.2, 5],
    "12_kg 3.5_kg": [12, 3.5],
    "1.2M 300k 7 2.3B": [1.2e6, 3e5, 7, 2.3e9],
    "€110.5M €565K €0": [110.5e6, 565e3, 0],
    "(1,234.50) 12 7-": [-1234.5, 12, -7],
    "1_234,5 2": [1234.5, 2],
    "1'234.5 2": [1234.5, 2],
    "€_12 1.234,5_€": [12, 1234.5],
    "1.234 0.5": [1.234, 0.5],
    "−5 3": [-5, 3],  # noqa: RUF001
    "1e3 2": [1000, 2],
    "20_°C -3_°C": [20, -3],
}
OTHERS = [
    *("12_kg 500_g", "A12 A13", "00501 123", "1,2,3 4", "$5 5", "12 x", "5__kg 3", "(1) (2)", "1_23 4", "+-5 3"),
    *(
        "2e3M 5k",
        "(-5) 3",
        "(5 3",
        "5- -3-",
        "1.2.3 4",
        "1,23,4 5",
        "٣ 4",
        "12½ 3",
        "1_000_ 5_x",
        "€5 $3",
        "5_" + "k" * 101,
    ),
]


def texts(line):
    return [text.replace("_", " ") for text in line.split(" ")]


@pytest.mark.parametrize("line", NUMBERS)
def test_numbers_are_read_if_all_values_agree(line):
    format = find_number_format(texts(line))
    assert [format.read(text) for text in texts(line)] == NUMBERS[line]


@pytest.mark.parametrize("line", OTHERS)
def test_other_strings_are_no_numbers(line):
    assert find_number_format(texts(line)) is None


@pytest.mark.parametrize("line", ["8,797", "8,797 1,234 5", "12_€ 1.000_€", "(1,234) 5", "8,797 1.234"])
def test_what_can_be_read_in_two_ways_is_not(line):
    found = find_number_format(texts(line))
    assert isinstance(found, Ambiguous)
    assert "set decimal" in str(found)
    readings = [find_number_format(texts(line), decimal).read(found.text) for decimal in ".,"]
    assert [f"{value:g}" for value in readings] == list(found.readings)


def test_a_decimal_point_is_not_ambiguous_unless_a_comma_is_asked_for():
    assert find_number_format(["1.234", "5.678"]) == NumberFormat()
    assert find_number_format(["1.234", "5.678"], ",").read("1.234") == 1234
    assert find_number_format(["1.23", "5.678"], ",").read("5.678") == 5.678


@given(
    st.lists(st.integers(-(10**12), 10**12), min_size=2),
    st.sampled_from([(".", ","), (",", "."), (",", " "), (".", "'"), (".", "")]),
    st.sampled_from(["", "$", "kg", "%", "CHF"]),
)
def test_what_is_written_is_read(cents, marks, unit):
    """Two decimals in each value leave no doubt; the oracle is Python's own formatting."""
    written = []
    for value in cents:
        text = f"{value // 100:,}.{value % 100:02d}" if value >= 0 else f"-{-value // 100:,}.{-value % 100:02d}"
        text = text.translate(str.maketrans({",": marks[1], ".": marks[0]}))
        written.append(f"{text} {unit}".strip())
    format = find_number_format(written)
    assert [format.read(text) for text in written] == [value / 100 for value in cents]


DATES = {
    "05/15/2021|1/2/2021": "%m/%d/%Y",
    "15/05/2021 10:30|1/2/2021": "%d/%m/%Y",
    "15.05.2021|2.1.2021": "%d.%m.%Y",
    "May 15, 2021|September 2, 2021": "%b %d, %Y",
    "2021-05-15|2021-01-02 10:30": "",
    "1/12/1994 0:00:00|2/13/1994 0:00:00": "%m/%d/%Y",
    "5/15/21 2:30 PM|1/2/21 12:00 am": "%m/%d/%y",
    "2021-W05|2020-W53": "%G-W%V",
    "2021Q1|2020Q4": "%YQ%q",
    "2021-05|2020-12": "%Y-%m",
    "Tue Sep 18 18:22:55 +0000 2012|Wed Sep 19 18:22:55 +0000 2012": "%a %b %d %H:%M:%S %z %Y",
}


@pytest.mark.parametrize("line", DATES)
def test_dates_are_recognised(line):
    assert find_date_format(line.split("|")) == DATES[line]


NO_DATES = ["05/13/2021|13/05/2021", "02/30/2021", "2021-W54", "1.2.13", "12:30", "5|7", "2021Q5"]


@pytest.mark.parametrize("line", NO_DATES)
def test_other_strings_are_no_dates(line):
    assert find_date_format(line.split("|")) is None


def test_the_order_of_day_and_month_is_decided_by_the_column_or_not_at_all():
    found = find_date_format(["05/04/2021", "01/01/2021"])
    assert str(found) == (
        "'05/04/2021' may be 2021-05-04 or 2021-04-05: set date_format='%m/%d/%Y' or date_format='%d/%m/%Y'"
    )
    assert find_date_format(["05/04/2021", "05/14/2021"]) == "%m/%d/%Y"
    assert find_date_format(["01/01/2021", "02/02/2021"]) == "%m/%d/%Y"  # the same in both


FORMATS = [
    *("%m/%d/%Y", "%d.%m.%Y %H:%M", "%b %d, %Y", "%d-%b-%y", "%Y%m%d", "%d %B %Y %I:%M %p", "%a, %d %b %Y %H:%M:%S")
]


@pytest.mark.parametrize("format", FORMATS)
def test_dates_are_those_of_strptime(format):
    read, rng = date_reader(format), np.random.default_rng(0)
    for minutes in rng.integers(0, 24 * 60 * 365 * 60, 200).tolist():
        text = (datetime(1970, 1, 1) + timedelta(minutes=minutes)).strftime(format)
        assert read(text) == np.datetime64(datetime.strptime(text, format))


def test_weeks_are_those_of_iso_8601():
    read = date_reader("%G-W%V")
    for year in range(1990, 2030):
        for week in range(1, 54):
            try:
                expected = np.datetime64(datetime.fromisocalendar(year, week, 1), "us")
            except ValueError:
                expected = None
            assert read(f"{year}-W{week:02d}") == expected


@pytest.mark.parametrize("format", ["%d/%m", "%Y-%Y", "%Y-%x", "%d/%m/%Y%", "%Y %y", "%Y" + " " * 200])
def test_wrong_formats_are_refused(format):
    with pytest.raises(ValueError, match=r"date_format=.* must have a year"):
        date_reader(format)
