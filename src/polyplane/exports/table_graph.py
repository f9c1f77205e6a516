"""The ONNX graph from the columns of a table to encoded rows."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from polyplane.exports.graph import DOUBLE, Graph
from polyplane.exports.literals import is_unicode
from polyplane.inputs.encoding import TableInputs, days
from polyplane.inputs.frames import BOOLEAN_WORDS, Cells, as_booleans, as_dates, as_levels, as_numbers, text_cells

#: Microseconds per day and per hour.
DAY, HOUR = 86_400_000_000, 3_600_000_000
#: Days from 1 March of the year 0 to 1970: years that start in March have their leap day at the end.
MARCH_OF_YEAR_0 = 719_468
#: Days of 400 years, and of 100, 4 and 1 years without a leap day at the end.
ERA, CENTURY, FOUR_YEARS, YEAR = 146_097, 36_524, 1_460, 365


class TableInput(NamedTuple):
    """An input of the graph: a column of the table, shape (rows, 1).

    Parameters
    ----------
    name : str
        Its name in the graph.
    column : Column
        The column.
    dtype : numpy.dtype
        object for strings, float64 or float32.
    """

    name: str
    column: Any
    dtype: np.dtype[Any]

    def array(self, cells: Cells) -> np.ndarray:
        """Convert the values of the column to the input, shape (n_rows, 1)."""
        if self.column.kind == "number":
            values: np.ndarray = as_numbers(cells, self.column.format)
        elif self.column.kind == "date":
            dates = as_dates(cells, self.column.format)
            values, whole = days(dates), days(dates.astype("datetime64[D]"))
            # Shortly before midnight, the nearest float may be the next day.
            values = np.where(np.floor(values) > whole, np.nextafter(values, -np.inf), values)
        else:
            if self.column.kind == "boolean":
                as_booleans(cells)  # an error for other values
            codes, levels = as_levels(cells)
            values = np.array([*levels, ""], dtype=object)[codes]
        return values.astype(self.dtype)[:, None]


def inputs_of(encoding: TableInputs, dtype: np.dtype[Any]) -> list[TableInput]:
    """Return the inputs, one for each used column; numbers have the given dtype, dates float64, others strings."""
    taken = {column.name for column in encoding.columns}
    inputs = []
    for column in encoding.columns:
        name = column.name
        if column.kind == "text":
            raise ValueError(f"Column {name!r} is free text, which ONNX models do not read: train without the column.")
        if not _is_possible(name):
            name = f"column {encoding.names.index(name)}"
            while name in taken:
                name += "_"
            taken.add(name)
        kind: Any = dtype if column.kind == "number" else DOUBLE if column.kind == "date" else np.dtype(object)
        inputs.append(TableInput(name, column, kind))
    return inputs


def _is_possible(name: str) -> bool:
    """Whether onnxruntime accepts this name of an input."""
    return name != "" and "\0" not in name and is_unicode(name)


def encode(graph: Graph, encoding: TableInputs, inputs: list[TableInput]) -> str:
    """Compute the encoded rows, in float64: first all numbers, in one block; finally they are reordered."""
    places = [range(place.start, place.stop) for place in encoding.places]
    numbers = [i for i, each in enumerate(inputs) if each.column.kind == "number"]
    blocks, order = [], []
    if numbers:
        filled, is_missing = _fill([inputs[i] for i in numbers], graph)
        blocks.append(filled)
        order += [places[i][0] for i in numbers]
        indicated = [k for k, i in enumerate(numbers) if inputs[i].column.has_gaps]
        if indicated:
            blocks.append(graph.cast(graph("Gather", is_missing, np.array(indicated), axis=1), DOUBLE))
            order += [places[numbers[k]][-1] for k in indicated]
    for i, each in enumerate(inputs):
        if each.column.kind != "number":
            is_date = each.column.kind == "date"
            blocks.append(_dates(each, graph) if is_date else _texts(each, encoding.gaps, graph))
            order += places[i]
    return graph("Gather", graph("Concat", *blocks, axis=1), np.argsort(order), axis=1)


def _fill(inputs: list[TableInput], graph: Graph) -> tuple[str, str]:
    """Replace missing numbers by their neutral values; return them and the missing mask, shape (rows, columns)."""
    values = graph("Concat", *(each.name for each in inputs), axis=1)
    if inputs[0].dtype != DOUBLE:
        values = graph.cast(values, DOUBLE)
    is_missing, columns = graph("IsNaN", values), [each.column for each in inputs]
    return graph("Where", is_missing, np.array([column.neutral for column in columns]), values), is_missing


def _dates(given: TableInput, graph: Graph) -> str:
    """Compute the features of a date column."""
    column = given.column
    filled, is_missing = _fill([given], graph)
    parts = _date_numbers(filled, column.parts, graph)
    return graph("Concat", *parts, *([graph.cast(is_missing, DOUBLE)] if column.has_gaps else []), axis=1)


def _texts(given: TableInput, gaps: tuple[str, ...], graph: Graph) -> str:
    """Compute the features of a string column by a lookup table: a row for each known string, and one for others."""
    texts, table = text_table(given.column, gaps)
    codes = graph(
        "LabelEncoder",
        given.name,
        domain="ai.onnx.ml",
        keys_strings=texts,
        values_int64s=list(range(len(texts))),
        default_int64=len(texts),
    )
    return graph("Squeeze", graph("Gather", table, codes, axis=0), np.array([1]))


def text_table(column: Any, gaps: tuple[str, ...]) -> tuple[list[str], np.ndarray]:
    """Return the known strings of a column, and the features of each; the last row is for all other strings."""
    if column.kind == "category":
        known = [level for level in column.levels if is_unicode(level)]
        other: str | None = max([*known, *gaps], key=len, default="") + "other"  # a string that is not one of them
    else:
        words = ("".join(t) for word in BOOLEAN_WORDS for t in product(*zip(word, word.upper(), strict=True)))
        known, other = [word for word in dict.fromkeys(words) if word not in gaps], None
    gaps = tuple(gap for gap in {*gaps, ""} if gap not in known and is_unicode(gap))
    texts = [*known, *sorted(gaps)]
    table = np.zeros((len(texts) + 1, len(column.features)))
    column.encode(text_cells(column.name, np.arange(len(table)), [*texts, other], gaps), table)
    return texts, table


def _date_numbers(days: str, parts: tuple[str, ...], graph: Graph) -> list[str]:
    """Compute the days since 1970, to the microsecond, and the requested calendar parts, all in float64."""
    day = np.array(float(DAY))
    moment = graph.cast(graph("Round", graph("Mul", days, day)), np.int64)
    date, found = _floor(moment, DAY, graph), {}
    if {"year", "month"} & set(parts):
        found["year"], found["month"] = _year_and_month(date, graph)
    if "day of week" in parts:
        found["day of week"] = graph("Add", _mod(graph("Add", date, np.array(3)), 7, graph), np.array(1))
    if "hour" in parts:
        found["hour"] = _floor(_mod(moment, DAY, graph), HOUR, graph)
    exact = graph("Div", graph.cast(moment, np.float64), day)
    return [exact, *(graph.cast(found[part], np.float64) for part in parts)]


def _mod(value: str, by: int, graph: Graph) -> str:
    """Compute the non-negative remainder."""
    return graph("Mod", value, np.array(by))


def _floor(value: str, by: int, graph: Graph) -> str:
    """Compute the quotient, rounded down also for negative values."""
    return graph("Div", graph("Sub", value, _mod(value, by, graph)), np.array(by))


def _year_and_month(date: str, graph: Graph) -> tuple[str, str]:
    """Compute the year and the month of a date, from eras of 400 years that start in March."""
    shifted = graph("Add", date, np.array(MARCH_OF_YEAR_0))
    era, day = _floor(shifted, ERA, graph), _mod(shifted, ERA, graph)
    leap_days = graph("Sub", _floor(day, FOUR_YEARS, graph), _floor(day, CENTURY, graph))
    leap_days = graph("Add", leap_days, _floor(day, ERA - 1, graph))
    year = _floor(graph("Sub", day, leap_days), YEAR, graph)
    before = graph("Sub", _floor(year, 4, graph), _floor(year, 100, graph))
    day_of_year = graph("Sub", graph("Sub", day, graph("Mul", year, np.array(YEAR))), before)
    from_march = _floor(graph("Add", graph("Mul", day_of_year, np.array(5)), np.array(2)), 153, graph)
    month = graph("Add", _mod(graph("Add", from_march, np.array(2)), 12, graph), np.array(1))
    is_next = graph.cast(graph("Less", month, np.array(3)), np.int64)  # January and February
    year = graph("Add", graph("Mul", era, np.array(400)), year)
    return graph("Add", year, is_next), month
