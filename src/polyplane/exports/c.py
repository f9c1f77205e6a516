"""Export to C99: one file, static tables, no memory allocation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyplane._version import __version__
from polyplane.exports import literals
from polyplane.exports.view import FLOATS, ColumnNumber, ColumnView, View, column_names
from polyplane.model import Model

#: Bytes of a pointer on a 32-bit microcontroller, and of the number types.
POINTER = 4
SIZES = {"double": 8, "float": 4, "signed char": 1, "unsigned char": 1, "unsigned short": 2, "unsigned long": 4}
#: The parts of a date, in the order in which the C code writes them.
DATE_PARTS = ("days", "year", "month", "day of week", "hour")
#: What a field holds, by the kind of its column.
EXPECTED = {
    "category": "a string, {} of which are known; NULL if missing",
    "date": "a date like 2024-05-31 or 2024-05-31 17:30; NULL if missing",
    "boolean": "1 or 0; NAN if missing",
    "number": "a number; NAN if missing",
}
#: Number of columns that the first comment names.
SHOWN = 20


def to_c(model: Any, dtype: str | None = None, *, name: str = "model") -> str:
    """Export a fitted model as C99: a single file with static tables and no memory allocation.

    Parameters
    ----------
    model : estimator, Pipeline or Model
        A fitted estimator of Polyplane, a pipeline of scalers, as `polyplane.save` takes it, that ends in one, or a
        model.
    dtype : {"float32", "float64", "int8"} or None, default=None
        Data type of the weights. None: float32 for tables, int8 for compressed models, otherwise that of the planes.
        With "int8", a weight takes one byte, with one scale factor per plane.
    name : str, default="model"
        Prefix of all names.

    Returns
    -------
    text : str
        The code. Its first comment gives a usage example and the memory requirements.

    See Also
    --------
    polyplane.export : Write the file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports import to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> text = to_c(PegasosSVC(random_state=0).fit(X, y), "int8", name="iris")
    >>> [line for line in text.splitlines() if line.startswith("int iris_predict")]
    ['int iris_predict(const float *x, float *scores);', 'int iris_predict(const float *x, float *scores)']
    """
    view, whole = View.of(model, dtype, (*FLOATS, "int8")), Model.of(model)
    view.refuse("C", ["text"])
    literals.check_c_identifier(name)
    is_compressed = whole.projection is not None and dtype in (None, "int8") and _is_array(view)
    if is_compressed and (np.diff(whole.features.source) > 0).all():
        return _CWriter(replace(view, dtype="int8"), name, whole).text()
    return _CWriter(view, name).text()


class _Tables:
    """Constant tables as C code; keeps their names, and counts the bytes of numbers and of strings."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.text = prefix, ""
        self.names: set[str] = set()
        self.n_bytes = self.n_text = 0

    def add(self, name: str, kind: str, values: Any) -> None:
        """Add an array of numbers of the C type `kind`."""
        self.n_bytes += SIZES[kind] * len(values)
        formats = {"double": literals.real, "float": lambda v: f"{literals.real(v, 'float32')}f"}
        literal: Any = formats.get(kind, lambda v: str(int(v)))
        self._add(f"static const {kind} ", name, [literal(value) for value in values])

    def add_texts(self, name: str, texts: Sequence[str]) -> None:
        """Add an array of strings."""
        self._add("static const char *const ", name, [literals.c_string(text) for text in texts])
        self._count(texts)

    def add_labels(self, classes: np.ndarray) -> None:
        """Add the public array of labels."""
        kind, labels = _label_literals(classes)
        if kind.endswith("*const "):
            self._count(classes.tolist())
        else:
            self.n_bytes += 8 * len(labels)
        self.text += "\n"
        self._add(kind, "labels", labels)

    def _add(self, kind: str, name: str, values: list[str]) -> None:
        self.names.add(name)
        self.text += f"{kind}{self.prefix}_{name}[{len(values)}] = {{\n{literals.wrapped(values, '    ')}\n}};\n"

    def _count(self, texts: Sequence[Any]) -> None:
        self.n_text += sum(len(str(text).encode()) + 1 + POINTER for text in texts)


def _is_array(view: View) -> bool:
    """Whether rows are arrays of numbers, with at most one feature each, and not structs."""
    return not view.is_table and not view.features.op.any() and bool((np.diff(view.features.source) > 0).all())


def _index_type(largest: int) -> str:
    """Return the smallest unsigned type for integers up to `largest`."""
    return "unsigned char" if largest < 256 else "unsigned short" if largest < 65536 else "unsigned long"


def _label_literals(classes: np.ndarray) -> tuple[str, list[str]]:
    """Return the C type of the labels, and their literals."""
    labels = [literals.label_value(label) for label in classes.tolist()]
    if isinstance(labels[0], str):
        return "const char *const ", [literals.c_string(str(label)) for label in labels]
    if isinstance(labels[0], float):
        return "const double ", [literals.real(label) for label in labels]
    if max(labels) >= 2**63:
        raise ValueError(f"The label {max(labels)} does not fit into a signed 64-bit integer: rename it.")
    # C has no literal for the smallest 64-bit integer.
    return "const long long ", [f"{int(v)}LL" if v > -(2**63) else "(-9223372036854775807LL - 1)" for v in labels]


class _CWriter:
    """Writes a view as the tables and words that the program in the folder `runtime` needs.

    The projection of a `compressed` model, and its planes over projected features, are written as tables of bytes.
    """

    def __init__(self, view: View, name: str, compressed: Model | None = None) -> None:
        self.view, self.name, self.compressed = view, name, compressed
        self.real = "double" if view.dtype == "float64" else "float"
        # Weights in float32 are summed in double, since sums in float would lose one or two more digits.
        self.sums = "double" if view.dtype == "float32" else self.real
        self.tables, self.is_array = _Tables(name), _is_array(view)
        self.fields = literals.c_names(column.name for column in view.columns)
        #: The features, by one-byte weights multiplied by their units.
        self.features = view.features

    def text(self) -> str:
        """Return the text of the file."""
        view, tables = self.view, self.tables
        self._add_planes()
        self._add_features()
        kinds = {column.kind for column in view.columns}
        if kinds & {"category", "date"} and view.missing_texts:
            tables.add_texts("missing_texts", view.missing_texts)
        for column, field in zip(view.columns, self.fields, strict=True):
            if column.levels:
                tables.add_texts(f"levels_{field}", column.levels)
            if column.levels and column.numbers:
                tables.add(f"evidence_{field}", "double", [v for number in column.numbers for v in number.by_level])
        tables.add_labels(view.model.classes)
        facts = {*tables.names, *kinds, view.dtype, "array" if self.is_array else "struct"}
        facts |= {"logsumexp"} if view.is_soft else set()
        facts |= {"evidence" for column in view.columns if column.levels and column.numbers}
        facts |= {"probabilities"} if view.model.has_probabilities else set()
        words, program = self._words(), literals.selected("model.c", facts)
        return re.sub(r"\b(?:PREFIX|NAME)(?=_)|\b[A-Z_]+\b", lambda found: words.get(found[0], found[0]), program)

    def _words(self) -> dict[str, str]:
        """Return what the words in capitals of the program stand for."""
        view, tables, prefix, upper = self.view, self.tables, self.name, self.name.upper()
        names = [column.name for column in view.columns] if view.is_table else column_names(view.model)
        more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        example, row = f"{self.real} row[{upper}_FEATURES] = {{...}};", f"const {self.real} *x"
        if not self.is_array:
            fields = ", ".join([f".{field} = ..." for field in self.fields[:3]] + ["..."] * (len(self.fields) > 3))
            example, row = f"struct {prefix}_row row = {{{fields}}};", f"const struct {prefix}_row *row"
        third, outputs = view.model.has_probabilities, f"{self.real} *scores"
        outputs += f", {self.real} *probabilities" * third
        pairs = list(zip(view.columns, self.fields, strict=True))
        rank = 0 if self.compressed is None else self.compressed.planes.n_features
        stack = view.n_planes * SIZES["float" if view.dtype == "int8" else "double"] + rank * SIZES["float"]
        return {
            "PREFIX": prefix,
            "NAME": upper,
            "REAL": self.real,
            "SUM": f"{upper}_SUM" if view.dtype == "float32" else self.real,
            "ELEMENT": "signed char" if view.dtype == "int8" else self.real,
            "EDGE": _index_type(view.n_planes),
            "EXP": "exp" if self.real == "double" else "expf",
            "N_CLASSES": str(view.model.n_classes),
            "N_PLANES": str(view.n_planes),
            "N_FEATURES": str(view.model.n_columns),
            "N_RANK": str(rank),
            "N_MEMBERS": str(len(view.members)),
            "N_MISSING_TEXTS": str(len(view.missing_texts)),
            "TEMPERATURE": literals.real(view.model.temperature or 1.0),
            "LEARNER": view.model.learner,
            "VERSION": __version__,
            "EXAMPLE": example,
            "CALL": f"{'' if self.is_array else '&'}row, NULL{', NULL' * third}",
            "COLUMNS": ", ".join(map(literals.c_comment, names[:SHOWN])) + more,
            "N_BYTES": str(tables.n_bytes),
            "DTYPE": view.dtype,
            "N_TEXT": str(tables.n_text),
            "N_STACK": str(stack + view.model.n_classes * SIZES["double"]),
            "TABLES": tables.text.rstrip("\n"),
            "LABELS": f"{_label_literals(view.model.classes)[0]}{prefix}_labels[{upper}_CLASSES]",
            "SIGNATURE": f"int {prefix}_predict({row}, {outputs})",
            "STRUCT": "" if self.is_array else self._struct(),
            "ROWS": "" if self.is_array else "\n".join(self._row(*pair) for pair in pairs),
        }

    # Tables.

    def _add_planes(self) -> None:
        view, tables, weights = self.view, self.tables, self.view.weights
        if self.compressed is not None:
            projection: Any = self.compressed.projection
            if projection.matrix is not None:
                tables.add("projection", "signed char", projection.matrix.T.ravel())
            tables.add("units", "float", projection.scale)
            weights, spans = self.compressed.planes.coef.T, None
        else:
            if view.dtype == "int8":
                weights, scales, self.features = view.quantized()
                tables.add("scales", self.real, scales)
            spans = view.spans(weights)
        element = "signed char" if view.dtype == "int8" else self.real
        tables.add("weights", element, weights.ravel() if spans is None else spans.values)
        if spans is not None:
            tables.add("offsets", _index_type(spans.offsets[-1]), spans.offsets)
            tables.add("starts", _index_type(view.n_planes), spans.starts)
        tables.add("intercepts", self.sums, view.intercept)
        tables.add("edges", _index_type(view.n_planes), view.model.planes.indptr)
        if view.member_weights is not None:
            tables.add("member_weights", "double", view.member_weights)

    def _add_features(self) -> None:
        """Add the tables of the features; an array of numbers does not need those that have no effect."""
        features, tables, n_columns = self.features, self.tables, self.view.model.n_columns
        if self.is_array and features.n_features < n_columns:
            bits = np.isin(np.arange(n_columns), features.source)
            tables.add("kept", "unsigned char", np.packbits(bits, bitorder="little"))
        if features.centre.any() if self.is_array else features.n_features:
            tables.add("centres", "double" if self.compressed is None else "float", features.centre)
        if (features.factor != 1.0).any() if self.is_array else features.n_features:
            tables.add("factors", self.real, features.factor)
        if self.is_array and np.isfinite([features.low, features.high]).any():
            tables.add("lows", "double", [self._limit(value) for value in features.low])
            tables.add("highs", "double", [self._limit(value) for value in features.high])
        if self.is_array and self.view.columns[0].may_be_missing:
            tables.add("neutrals", "double", [column.numbers[0].neutral for column in self.view.columns])

    def _limit(self, value: float) -> float:
        """Return a limit as a finite number, which sums in float can hold."""
        largest = 1.7e308 if self.real == "double" else 3e38
        return min(max(float(value), -largest), largest)

    # Rows with a field for each column.

    def _struct(self) -> str:
        pairs = list(zip(self.view.columns, self.fields, strict=True))
        types = {"category": "const char *", "date": "const char *"}
        lines = [(f"{types.get(column.kind, 'double ')}{field};", column) for column, field in pairs]
        width = max(len(line) for line, _ in lines)
        text = f"struct {self.name}_row {{\n"
        for line, column in lines:
            expected = EXPECTED[column.kind].format(len(column.levels))
            if unit := getattr(column.format, "unit", ""):
                expected = expected.replace("a number", f"a number ({literals.c_comment(unit)})")
            text += f"    {line:<{width}} /* {literals.c_comment(column.name)}: {expected} */\n"
        return f"{text}}};"

    def _row(self, column: ColumnView, field: str) -> str:
        """Return the statements that add a field to the scores of the planes."""
        if column.kind == "category":
            levels = f"{self.name}_levels_{field}" if column.levels else "NULL"
            rows = ", ".join("-1" if row is None else str(row) for row in (column.first, column.other, column.missing))
            sizes = f"{len(column.levels)}, {column.n_own}"
            lines = [f"{self.name}_category(planes, row->{field}, {levels}, {sizes}, {rows});"]
            if column.numbers:
                lines[0] = f"level = {lines[0]}"
            for i, number in enumerate(column.numbers):
                at = f"{i * len(column.levels)} + level" if i else "level"
                lines.append(f"x = level < 0 ? 0.0 : {self.name}_evidence_{field}[{at}];")
                lines += self._runs(number, "x")
            return "\n" + "\n".join(f"    {line}" for line in lines)
        if column.kind == "date":
            names = {number.part: f"parts[{DATE_PARTS.index(number.part)}]" for number in column.numbers}
            lines = [f"missing = {self.name}_date(row->{field}, parts);", "if (missing < 0)", "    return -1;"]
        else:
            names = {number.part: "x" for number in column.numbers}
            refused = (
                f"fabs(x) > {self.view.largest!r}" if column.kind == "number" else "!isnan(x) && x != 0.0 && x != 1.0"
            )
            refused += "" if column.may_be_missing else " || isnan(x)"
            lines = [f"x = row->{field};", f"if ({refused})", "    return -1;"]
        known = [(names[number.part], number.neutral) for number in column.numbers if number.neutral is not None]
        filled = [f"    {name} = {literals.real(neutral)};" for name, neutral in known]
        if column.missing is not None:
            filled.append(f"    {self.name}_add(planes, {column.missing}, 1);")
        missing = "if (missing)" if column.kind == "date" else "if (isnan(x))"
        for i, code in enumerate(column.special):
            lines += [
                f"if (x == {literals.real(code)}) {{",
                f"    {self.name}_add(planes, {(column.first or 0) + i}, 1);",
            ]
            lines += [*filled[: len(known)], "} else"]
        if filled:
            lines += [f"{missing} {{", *filled, "}"] if len(filled) > 1 else [missing, *filled]
        lines += [line for number in column.numbers for line in self._runs(number, names[number.part])]
        return "\n" + "\n".join(f"    {line}" for line in lines)

    def _runs(self, number: ColumnNumber, name: str) -> list[str]:
        """Return the statements that add the features of a number."""
        lines = []
        for run in self.view.runs(number):
            low, high = literals.real(self._limit(run.low)), literals.real(self._limit(run.high))
            op = f"{self.name.upper()}_{run.op.replace(' ', '_').upper()}"
            lines.append(f"{self.name}_features(planes, {name}, {op}, {run.start}, {run.stop}, {low}, {high});")
        return lines
