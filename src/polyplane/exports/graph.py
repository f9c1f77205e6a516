"""The ONNX graph of a model, from the columns of a table or encoded rows to labels, scores and probabilities."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from polyplane._version import __version__
from polyplane.exports.literals import check_text, is_unicode
from polyplane.exports.view import default_dtype
from polyplane.features import SMOOTH_BOUND, Features
from polyplane.inputs.encoding import TableInputs, days
from polyplane.inputs.frames import BOOLEAN_WORDS, Cells, as_booleans, as_dates, as_levels, as_numbers, text_cells
from polyplane.model import Model
from polyplane.planes import PlaneSet

#: Version of the operator set for machine learning, which supports strings.
ML_OPSET = 2
DOUBLE = np.dtype(np.float64)
#: Microseconds per day and per hour.
DAY, HOUR = 86_400_000_000, 3_600_000_000
#: Days from 1 March of the year 0 to 1970: years that start in March have their leap day at the end.
MARCH_OF_YEAR_0 = 719_468
#: Days of 400 years, and of 100, 4 and 1 years without a leap day at the end.
ERA, CENTURY, FOUR_YEARS, YEAR = 146_097, 36_524, 1_460, 365


def import_package(name: str) -> Any:
    """Import a package of the extra "onnx"."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f'{name} is required for ONNX export: pip install "polyplane[onnx]"') from error


def element_type(dtype: Any) -> int:
    """Return the ONNX number of a dtype."""
    number: int = import_package("onnx").helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return number


class Graph:
    """A graph to which operators are added.

    Parameters
    ----------
    opset : int
        Version of the operator set.
    inputs : sequence of (name, dtype, number of columns)
        The inputs of the graph.
    """

    def __init__(self, opset: int, inputs: Sequence[tuple[str, np.dtype[Any], int]]) -> None:
        self.opset, self.inputs = opset, inputs
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = {name for name, *_ in inputs}
        self._prefix = "_" * max((len(name) - len(name.lstrip("_")) + 1 for name in self._taken), default=0)

    def __call__(self, op: str, *inputs: str | np.ndarray, output: str | None = None, **attributes: Any) -> str:
        """Add an operator, whose inputs that are arrays become constants; return the name of its output."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        return self.several(op, names, [output], **attributes)[0]

    def cast(self, value: str, dtype: Any) -> str:
        """Cast to another type."""
        return self("Cast", value, to=element_type(dtype))

    def reduce(self, op: str, values: str, axis: int, *, keepdims: int) -> str:
        """Add a maximum or mean over an axis, which is an input or an attribute, depending on the operator set."""
        if self.opset < 18:
            return self(op, values, axes=[axis], keepdims=keepdims)
        return self(op, values, np.array([axis]), keepdims=keepdims)

    def _output(self, name: str) -> str:
        """Return a name of an output that differs from those of the inputs."""
        while name in self._taken:
            name += "_"
        return name

    def constant(self, array: np.ndarray) -> str:
        """Add an array; return its name."""
        name = f"{self._prefix}constant_{len(self.constants)}"
        self.constants.append(import_package("onnx").numpy_helper.from_array(array, name))
        return name

    def several(self, op: str, inputs: list[str], outputs: Sequence[str | None], **attributes: Any) -> list[str]:
        """Add an operator with several outputs, each with a name or without one; return their names."""
        own = f"{self._prefix}{len(self.nodes)}"
        names = [
            f"{own}_{i}_{op.lower()}" if output is None else self._output(output) for i, output in enumerate(outputs)
        ]
        self.nodes.append(import_package("onnx").helper.make_node(op, inputs, names, name=names[0], **attributes))
        return names

    def finish(self, name: str, outputs: dict[str, np.dtype[Any]], about: dict[str, Any]) -> Any:
        """Return the model of ONNX: outputs by name and dtype, and the metadata of the file."""
        onnx = import_package("onnx")
        n_classes, info = len(about["classes"]), onnx.helper.make_tensor_value_info
        n_scores = [] if n_classes == 2 else [n_classes]
        shapes: dict[str, list[Any]] = {"label": ["rows"], "scores": ["rows", *n_scores]}
        graph = onnx.helper.make_graph(
            self.nodes,
            name,
            [info(each, element_type(dtype), ["rows", width]) for each, dtype, width in self.inputs],
            [
                info(self._output(each), element_type(dtype), shapes.get(each, ["rows", n_classes]))
                for each, dtype in outputs.items()
            ],
            self.constants,
        )
        domains = {node.domain: ML_OPSET for node in self.nodes if node.domain} | {"": self.opset}
        imports = [onnx.helper.make_opsetid(*each) for each in sorted(domains.items())]
        # The oldest sufficient version of the file format: runtimes reject newer versions than they know.
        proto = onnx.helper.make_model(
            graph,
            opset_imports=imports,
            ir_version=onnx.helper.find_min_ir_version_for(imports),
            producer_name="polyplane",
            producer_version=__version__,
        )
        onnx.helper.set_model_props(proto, {key: json.dumps(value) for key, value in about.items()})
        onnx.checker.check_model(proto, full_check=True)
        return proto


# From the columns of a table to encoded rows.


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
        if name == "" or "\0" in name or not is_unicode(name):  # onnxruntime does not accept this name
            name = f"column {encoding.names.index(name)}"
            while name in taken:
                name += "_"
            taken.add(name)
        kind: Any = dtype if column.kind == "number" else DOUBLE if column.kind == "date" else np.dtype(object)
        inputs.append(TableInput(name, column, kind))
    return inputs


def encode(graph: Graph, encoding: TableInputs, inputs: list[TableInput]) -> str:
    """Compute the encoded rows, in float64: first all numbers, in one block; finally they are reordered."""
    places = [range(place.start, place.stop) for place in encoding.places]
    numbers = [i for i, each in enumerate(inputs) if each.column.kind == "number"]
    blocks, order = [], []
    if numbers:
        filled, is_missing = _fill([inputs[i] for i in numbers], graph)
        blocks.append(filled)
        order += [places[i][0] for i in numbers]
        for i in numbers:
            if inputs[i].column.special:
                blocks.append(graph.cast(_is_code(inputs[i], graph), DOUBLE))
                order += places[i][1 : 1 + len(inputs[i].column.special)]
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
    unusual = is_missing
    if any(getattr(column, "special", ()) for column in columns):
        each_is = [_any_code(each, graph) for each in inputs]
        unusual = graph("Or", is_missing, graph("Concat", *each_is, axis=1))
    return graph("Where", unusual, np.array([column.neutral for column in columns]), values), is_missing


def _is_code(given: TableInput, graph: Graph) -> str:
    """Compute whether a number is each of its special codes, shape (rows, codes)."""
    return graph("Equal", given.name, np.array([given.column.special], dtype=given.dtype))


def _any_code(given: TableInput, graph: Graph) -> str:
    """Compute whether a number is a special code, shape (rows, 1)."""
    codes = given.column.special or (np.nan,)  # which equals nothing
    found = graph.cast(graph("Equal", given.name, np.array([codes], dtype=given.dtype)), np.int32)
    return graph.cast(graph.reduce("ReduceMax", found, 1, keepdims=1), bool)


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


# From encoded rows to the outputs.


def output_types(model: Model, dtype: Any) -> dict[str, np.dtype[Any]]:
    """Return the dtypes of the outputs for encoded rows of this dtype."""
    precise = np.result_type(dtype, model.planes.coef.dtype)
    types = {"label": label_array(model.classes).dtype, "scores": precise}
    return types | ({"probabilities": precise} if model.has_probabilities else {})


def add_outputs(graph: Graph, model: Model, encoded: str, dtype: np.dtype[Any]) -> dict[str, np.dtype[Any]]:
    """Add the graph from encoded rows of this dtype to the outputs; return their dtypes."""
    model, types = model.unprojected(), output_types(model, dtype)
    precise = types["scores"]
    labels = label_array(model.classes)
    features = _features(graph, model.features, encoded, dtype)
    if not (model.features.is_identity and dtype == precise):
        features = graph.cast(features, precise)
    planes = model.planes
    coef = graph.constant(np.ascontiguousarray(planes.coef.T, dtype=default_dtype(model)))
    if default_dtype(model) != precise:
        coef = graph.cast(coef, precise)
    plane_scores = graph("Add", graph("MatMul", features, coef), planes.intercept.astype(precise))
    best = _class_scores(graph, planes, plane_scores, precise)
    graph("Gather", labels, graph("ArgMax", best, axis=1, keepdims=0), output="label", axis=0)
    if model.n_classes == 2:
        first, second = (graph("Gather", best, np.array(c), axis=1) for c in (0, 1))
        graph("Sub", second, first, output="scores")
    else:
        graph("Identity", best, output="scores")
    if model.temperature is not None:
        scaled = best if model.temperature == 1.0 else graph("Div", best, np.array(model.temperature, dtype=precise))
        graph("Softmax", scaled, output="probabilities", axis=1)
    return types


def _features(graph: Graph, features: Features, encoded: str, dtype: np.dtype[Any]) -> str:
    """Compute the features, in float64 if they are not the encoded columns themselves."""
    if features.is_identity:
        return encoded
    u = encoded
    if not np.array_equal(features.source, np.arange(features.n_inputs)):
        u = graph("Gather", u, features.source.astype(np.int64), axis=1)
    if dtype != DOUBLE:
        u = graph.cast(u, DOUBLE)
    u = graph("Mul", graph("Sub", u, features.centre), features.factor)
    is_smooth, is_square = features.op >= 2, features.op % 2 == 1
    if is_smooth.any():
        parts = graph("Div", u, np.array(SMOOTH_BOUND))
        roots = graph("Sqrt", graph("Add", graph("Mul", parts, parts), np.array(1.0)))
        u = graph("Where", is_smooth, graph("Div", u, roots), u)
    if is_square.any():
        u = graph("Where", is_square, graph("Mul", u, u), u)
    if np.isfinite([features.low, features.high]).any():
        u = graph("Min", graph("Max", u, features.low), features.high)
    return u


def _class_scores(graph: Graph, planes: PlaneSet, scores: str, dtype: np.dtype[Any]) -> str:
    """Compute the scores of the classes: those of all members, and their mean."""
    counts = np.diff(planes.indptr).astype(np.int64)
    best = pooled = _largest(graph, scores, counts)
    if planes.pooling == "logsumexp" and (counts > 1).any():
        owners = np.repeat(np.arange(len(counts)), counts)
        parts = graph("Exp", graph("Sub", scores, graph("Gather", best, owners, axis=1)))
        sums = graph("MatMul", parts, (owners[:, None] == np.arange(len(counts))).astype(dtype))
        pooled = graph("Add", graph("Log", sums), best)
    if planes.n_members == 1:
        return pooled
    pooled = graph("Reshape", pooled, np.array([0, planes.n_members, planes.n_classes]))
    weight = planes.member_weight
    if (weight != weight[0]).any():
        pooled = graph("Mul", pooled, (weight * len(weight)).astype(dtype)[:, None])
    return graph.reduce("ReduceMean", pooled, 1, keepdims=0)


def _largest(graph: Graph, scores: str, counts: np.ndarray) -> str:
    """Compute the largest score of the planes of each class in each member, given their numbers."""
    if (counts == 1).all():
        return scores
    if (counts == counts[0]).all():
        by_class = graph("Reshape", scores, np.array([0, len(counts), counts[0]]))
        return graph.reduce("ReduceMax", by_class, 2, keepdims=0)
    parts = graph.several("Split", [scores, graph.constant(counts)], [None] * len(counts), axis=1)
    best = [
        part if count == 1 else graph.reduce("ReduceMax", part, 1, keepdims=1)
        for part, count in zip(parts, counts, strict=True)
    ]
    return graph("Concat", *best, axis=1)


def label_array(classes: np.ndarray) -> np.ndarray:
    """Convert the labels to an ONNX type: string, bool, float64 or int64."""
    if classes.dtype.kind in "UO":
        for label in classes.tolist():
            check_text(str(label), "ONNX", nul=True)
        return classes.astype(object)
    if classes.dtype.kind == "u" and classes.max() >= 2**63:
        raise ValueError(f"The label {classes.max()} does not fit into a signed 64-bit integer, which ONNX requires.")
    return classes.astype({"b": np.bool_, "f": np.float64}.get(classes.dtype.kind, np.int64))
