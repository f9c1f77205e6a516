"""The ONNX graph of a `TableClassifier`, from the columns of a table to the class scores."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np

from polyplane.exports._date_graph import date_features
from polyplane.exports._expressions import Expressions
from polyplane.exports._graph import Sink, decide
from polyplane.inputs.cells import (
    BOOLEAN_WORDS,
    Cells,
    as_booleans,
    as_dates,
    as_levels,
    as_numbers,
    text_cells,
)
from polyplane.inputs.columns import BooleanColumn, CategoryColumn, Column, DateColumn, NumberColumn, days
from polyplane.inputs.encoding import TableInputs
from polyplane.inputs.frames import Table
from polyplane.planes import PlaneSet
from polyplane.tables._model import TableModel
from polyplane.tables._preparation import CLIP, LARGEST, RECIPES, Preparation
from polyplane.tables._probabilities import LEAST

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


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
    column: Column
    dtype: np.dtype[Any]


def inputs_of(encoding: TableInputs, dtype: np.dtype[Any]) -> list[TableInput]:
    """Return the inputs, one for each used column; numbers have the given dtype, dates float64, others strings."""
    taken = {column.name for column in encoding.columns}
    inputs = []
    for column in encoding.columns:
        name = column.name
        if not _is_possible(name):
            name = f"column {encoding.names.index(name)}"
            while name in taken:
                name += "_"
            taken.add(name)
        kind: Any = dtype if column.kind == "number" else DOUBLE if column.kind == "date" else np.dtype(object)
        inputs.append(TableInput(name, column, kind))
    return inputs


def feed(encoding: TableInputs, inputs: list[TableInput], table: Table, owner: str) -> dict[str, np.ndarray]:
    """Return the input arrays for a table."""
    positions = encoding._positions(table, owner)
    return {
        name: _array(column, table.read(position)).astype(dtype)[:, None]
        for (name, column, dtype), position in zip(inputs, positions, strict=True)
    }


def _array(column: Column, cells: Cells) -> np.ndarray:
    """Convert the values of a column to the type of its input."""
    match column:
        case NumberColumn():
            return as_numbers(cells, column.decimal)
        case DateColumn():
            return days(as_dates(cells))
        case BooleanColumn():
            values = as_booleans(cells)
            return np.array(["false", "true", ""], dtype=object)[np.where(np.isnan(values), 2, values).astype(int)]
    codes, levels = as_levels(cells)
    return np.array([*levels, ""], dtype=object)[codes]


def _is_possible(name: str) -> bool:
    """Whether onnxruntime accepts this name of an input."""
    return name != "" and "\0" not in name and _is_unicode(name)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def build_table_graph(
    model: TableModel, classes: np.ndarray, inputs: list[TableInput], sink: Sink
) -> dict[str, np.dtype[Any]]:
    """Build the graph from columns to the outputs; return the names and dtypes of the outputs."""
    encoded = _encode(model.encoding, inputs, sink)
    prepared: dict[int, str] = {}
    scored: dict[tuple[int, int], str] = {}
    for preparation, planes in model.members:
        if id(preparation) not in prepared:
            own = Expressions(f"preparation_{len(prepared)}", sink)
            prepared[id(preparation)] = _prepare(preparation, encoded, own)
        if (id(preparation), id(planes)) not in scored:
            own = Expressions(f"member_{len(scored)}", sink)
            scored[id(preparation), id(planes)] = _soft_class_scores(planes, prepared[id(preparation)], own)
    express, parts = Expressions("committee", sink), [scored[id(p), id(planes)] for p, planes in model.members]
    scores = express("Div", express("Sum", *parts), np.array(float(len(parts))))
    labels = decide(scores, classes, sink)
    sink.node("Softmax", [express("Div", scores, np.array(model.temperature))], "probabilities", axis=1)
    return {"label": labels.dtype, "scores": DOUBLE, "probabilities": DOUBLE}


def _encode(encoding: TableInputs, inputs: list[TableInput], sink: Sink) -> str:
    """Compute the encoded features: first those of all numbers, in one block; finally they are reordered."""
    express, places = Expressions("encoder", sink), [range(place.start, place.stop) for place in encoding.places]
    numbers = [i for i, each in enumerate(inputs) if each.column.kind == "number"]
    blocks, order = [], []
    if numbers:
        filled, is_missing = _fill([inputs[i] for i in numbers], express)
        blocks.append(filled)
        order += [places[i][0] for i in numbers]
        indicated = [k for k, i in enumerate(numbers) if inputs[i].column.has_gaps]
        if indicated:
            blocks.append(express.cast(express("Gather", is_missing, np.array(indicated), axis=1), DOUBLE))
            order += [places[numbers[k]][-1] for k in indicated]
    for i, each in enumerate(inputs):
        if each.column.kind != "number":
            is_date = each.column.kind == "date"
            blocks.append(_dates(each, express) if is_date else _texts(each, encoding.gaps, express))
            order += places[i]
    return express("Gather", express("Concat", *blocks, axis=1), np.argsort(order), axis=1)


def _fill(inputs: list[TableInput], express: Expressions) -> tuple[str, str]:
    """Replace missing numbers by their neutral values; return them and the missing mask, shape (rows, columns)."""
    values = express("Concat", *(each.name for each in inputs), axis=1)
    if inputs[0].dtype != DOUBLE:
        values = express.cast(values, DOUBLE)
    is_missing, columns = express("IsNaN", values), [cast("Any", each.column) for each in inputs]
    return express("Where", is_missing, np.array([column.neutral for column in columns]), values), is_missing


def _dates(given: TableInput, express: Expressions) -> str:
    """Compute the features of a date column."""
    column = cast("DateColumn", given.column)
    filled, is_missing = _fill([given], express)
    parts = date_features(filled, column.parts, express)
    return express("Concat", *parts, *([express.cast(is_missing, DOUBLE)] if column.has_gaps else []), axis=1)


def _texts(given: TableInput, gaps: tuple[str, ...], express: Expressions) -> str:
    """Compute the features of a string column by a lookup table: a row for each known string, and one for others."""
    texts, table = text_table(given.column, gaps)
    codes = express(
        "LabelEncoder",
        given.name,
        domain="ai.onnx.ml",
        keys_strings=texts,
        values_int64s=list(range(len(texts))),
        default_int64=len(texts),
    )
    return express("Squeeze", express("Gather", table, codes, axis=0), np.array([1]))


def text_table(column: Column, gaps: tuple[str, ...]) -> tuple[list[str], np.ndarray]:
    """Return the known strings of a column, and the features of each; the last row is for all other strings."""
    if isinstance(column, CategoryColumn):
        known = [level for level in column.levels if _is_unicode(level)]
        other: str | None = max([*known, *gaps], key=len, default="") + "other"  # a string that is not one of them
    else:
        words = ("".join(t) for word in BOOLEAN_WORDS for t in product(*zip(word, word.upper(), strict=True)))
        known, other = [word for word in dict.fromkeys(words) if word not in gaps], None
    gaps = tuple(gap for gap in {*gaps, ""} if gap not in known and _is_unicode(gap))
    texts = [*known, *sorted(gaps)]
    table = np.zeros((len(texts) + 1, len(column.features)))
    column.encode(text_cells(column.name, np.arange(len(table)), [*texts, other], gaps), table)
    return texts, table


def _prepare(preparation: Preparation, encoded: str, express: Expressions) -> str:
    """Apply `Preparation.transform`: in float64, with a result in float32."""
    recipe, numbers = RECIPES[preparation.name], np.flatnonzero(preparation.is_number)
    scaled = express.affine(encoded, preparation.centre, preparation.factor)
    if recipe.is_robust:
        roots = express("Div", scaled, np.array(CLIP))
        roots = express("Sqrt", express("Add", express("Mul", roots, roots), np.array(1.0)))
        scaled = express("Where", preparation.is_number, express("Div", scaled, roots), scaled)
    more = [_bins(preparation, encoded, express)] if any(map(len, preparation.knots)) else []
    if recipe.has_squares or recipe.has_norm:
        squares = express("Mul", scaled, scaled)
        more += [express("Gather", squares, numbers, axis=1)] if recipe.has_squares and len(numbers) else []
        more += [express("MatMul", squares, preparation.is_number[:, None].astype(DOUBLE))] if recipe.has_norm else []
    parts = [scaled]
    if more:
        joined = express("Concat", *more, axis=1)
        parts.append(express.affine(joined, preparation.more_centre, preparation.more_factor))
    limited = express("Clip", express("Concat", *parts, axis=1), np.array(-LARGEST), np.array(LARGEST))
    gain = np.append(preparation.gain, 1.0)[[j for j, _ in preparation.sources]].astype(SINGLE)
    return express("Mul", express.cast(limited, SINGLE), gain)


def _bins(preparation: Preparation, encoded: str, express: Expressions) -> str:
    """Compute the fraction of each bin that lies below its number."""
    knots = [each for each in preparation.knots if len(each)]
    sources = [j for j, how in preparation.sources if how.startswith("bin")]
    above = express(
        "Sub", express("Gather", encoded, np.array(sources), axis=1), np.concatenate([each[:-1] for each in knots])
    )
    parts = express("Div", above, np.concatenate([np.diff(each) for each in knots]))
    return express("Clip", parts, np.array(0.0), np.array(1.0))


def _soft_class_scores(planes: PlaneSet, prepared: str, express: Expressions) -> str:
    """Compute the log-sum-exp of the scores of the planes of each class, in float64."""
    dtype = planes.coef.dtype
    rows = prepared if dtype == SINGLE else express.cast(prepared, dtype)
    scores = express("Add", express("MatMul", rows, np.ascontiguousarray(planes.coef.T)), np.array(planes.intercept))
    most = express.largest(scores)
    owners = (planes.owners[:, None] == np.arange(planes.n_classes)).astype(dtype)
    sums = express.cast(express("MatMul", express("Exp", express("Sub", scores, most)), owners), DOUBLE)
    return express("Add", express("Log", express("Max", sums, np.array(LEAST))), express.cast(most, DOUBLE))
