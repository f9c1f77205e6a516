"""Export to C99: one file, static tables, no memory allocation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyplane._version import __version__
from polyplane.exports import literals
from polyplane.exports.view import FLOATS, ColumnView, View, column_names
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
    view = View.of(model, dtype, (*FLOATS, "int8"))
    view.refuse("C", ["text"])
    literals.check_c_identifier(name)
    compressed = Model.of(model)
    if compressed.projection is not None and dtype in (None, "int8"):
        writer = _Compressed(replace(view, dtype="int8"), name, compressed)
        if writer.is_array and (np.diff(compressed.features.source) > 0).all():
            return writer.text()
    return _CWriter(view, name).text()


class _Tables:
    """Constant tables as C code; counts the bytes of numbers (`n_bytes`) and of strings (`n_text`)."""

    def __init__(self) -> None:
        self.text = ""
        self.n_bytes = self.n_text = 0

    def add(self, name: str, kind: str, values: Any) -> None:
        """Add an array of numbers of the C type `kind`."""
        self.n_bytes += SIZES[kind] * len(values)
        formats = {"double": literals.real, "float": lambda v: f"{literals.real(v, 'float32')}f"}
        literal: Any = formats.get(kind, lambda v: str(int(v)))
        self.text += _array(f"static const {kind} ", name, [literal(value) for value in values])

    def add_texts(self, name: str, texts: Sequence[str]) -> None:
        """Add an array of strings."""
        self.text += _array("static const char *const ", name, [literals.c_string(text) for text in texts])
        self._count(texts)

    def add_labels(self, classes: np.ndarray) -> None:
        """Add the public array of labels."""
        kind, labels = _label_literals(classes)
        if kind.endswith("*const "):
            self._count(classes.tolist())
        else:
            self.n_bytes += 8 * len(labels)
        self.text += "\n" + _array(kind, "labels", labels)

    def _count(self, texts: Sequence[Any]) -> None:
        self.n_text += sum(len(str(text).encode()) + 1 + POINTER for text in texts)


def _array(kind: str, name: str, values: list[str]) -> str:
    return f"{kind}PREFIX_{name}[{len(values)}] = {{\n{literals.wrapped(values, '    ')}\n}};\n"


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
    """Writes the tables and functions of a view."""

    def __init__(self, view: View, name: str) -> None:
        self.view, self.name = view, name
        self.real = "double" if view.dtype == "float64" else "float"
        self.element = "signed char" if view.dtype == "int8" else self.real
        self.tables, self.parts = _Tables(), literals.sections("model.c")
        self.fields = literals.c_names(column.name for column in view.columns)
        self.kinds = {column.kind for column in view.columns}
        self.has_text = bool(self.kinds & {"category", "date"})
        #: Whether rows are arrays of numbers, with at most one feature each, and not structs.
        source, op = view.features.source, view.features.op
        self.is_array = not view.is_table and not op.any() and bool((np.diff(source) > 0).all())
        #: The features, by one-byte weights multiplied by their units.
        self.features = view.features
        self.has_limits = bool(np.isfinite([view.features.low, view.features.high]).any())
        #: Whether the planes have scales, which their sums are multiplied by.
        self.has_scales = view.dtype == "int8"
        self.buffers = ["SUM planes[NAME_PLANES];"]

    def text(self) -> str:
        """Return the text of the file."""
        self._add_weights()
        self._add_features()
        self._add_texts()
        self.tables.add_labels(self.view.model.classes)
        head = self._about() + self._declarations() + (self._part("sum") if self.view.dtype == "float32" else "")
        parts = (head, "\n", self.tables.text, self._functions(), self._predict(), self._part("end of file"))
        return self._filled("".join(parts))

    def _part(self, name: str) -> str:
        return "\n" * (name not in ("about", "declarations", "missing texts")) + self.parts[name].rstrip("\n") + "\n"

    def _filled(self, text: str) -> str:
        view = self.view
        words = {
            "PREFIX": self.name,
            "NAME": self.name.upper(),
            "REAL": self.real,
            # Weights in float32 are summed in double, since sums in float would lose one or two more digits.
            "SUM": f"{self.name.upper()}_SUM" if view.dtype == "float32" else self.real,
            "ELEMENT": self.element,
            "EDGE": _index_type(view.n_planes),
            "EXP": "exp" if self.real == "double" else "expf",
            "N_CLASSES": str(view.model.n_classes),
            "N_PLANES": str(view.n_planes),
            "N_MEMBERS": str(len(view.members)),
            "N_MISSING_TEXTS": str(len(view.missing_texts)),
            "TEMPERATURE": literals.real(view.model.temperature or 1.0),
        }
        # String literals may contain text of the model: they are not changed.
        pattern = re.compile(r'"(?:[^"\\]|\\.)*"|\b(PREFIX|NAME)_|\b(' + "|".join(words) + r")\b", flags=re.DOTALL)

        def replaced(found: re.Match[str]) -> str:
            if found[1]:
                return f"{words[found[1]]}_"
            return words[found[2]] if found[2] else found[0]

        return pattern.sub(replaced, text)

    # The comment and the declarations.

    def _about(self) -> str:
        view = self.view
        names = [column.name for column in view.columns] if view.is_table else column_names(view.model)
        shown = ", ".join(map(literals.c_comment, names[:SHOWN]))
        more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        words = {
            "LEARNER": view.model.learner,
            "VERSION": __version__,
            "EXAMPLE": self._example(),
            "CALL": f"{'' if self.is_array else '&'}row, NULL{', NULL' if view.model.has_probabilities else ''}",
            "COLUMNS": shown + more,
            "N_BYTES": str(self.tables.n_bytes),
            "DTYPE": view.dtype,
            "N_TEXT": str(self.tables.n_text),
            "N_STACK": str(self._stack()),
        }
        return re.sub("|".join(words), lambda found: words[found[0]], self._part("about"))

    def _stack(self) -> int:
        sums = SIZES["float" if self.view.dtype == "int8" else "double"]
        return self.view.n_planes * sums + self.view.model.n_classes * SIZES["double"]

    def _example(self) -> str:
        if self.is_array:
            return "REAL row[NAME_FEATURES] = {...};"
        shown = ", ".join(f".{field} = ..." for field in self.fields[:3])
        return f"struct PREFIX_row row = {{{shown}{', ...' if len(self.fields) > 3 else ''}}};"

    def _signature(self) -> str:
        rows = "const REAL *x" if self.is_array else "const struct PREFIX_row *row"
        third = ", REAL *probabilities" if self.view.model.has_probabilities else ""
        return f"int PREFIX_predict({rows}, REAL *scores{third})"

    def _declarations(self) -> str:
        labels = f"{_label_literals(self.view.model.classes)[0]}PREFIX_labels[NAME_CLASSES]"
        head, tail = self._part("declarations").split("GIVEN")
        return head + self._given() + tail.replace("LABELS", labels).replace("SIGNATURE", self._signature())

    def _given(self) -> str:
        """Return the declaration of rows: the number of features, or a struct."""
        if self.is_array:
            return f"#define NAME_FEATURES {self.view.model.n_columns}\n"
        pairs = list(zip(self.view.columns, self.fields, strict=True))
        types = {"category": "const char *", "date": "const char *"}
        lines = [(f"{types.get(column.kind, 'double ')}{field};", column) for column, field in pairs]
        width = max(len(line) for line, _ in lines)
        text = "\nstruct PREFIX_row {\n"
        for line, column in lines:
            expected = EXPECTED[column.kind].format(len(column.levels))
            if unit := getattr(column.format, "unit", ""):
                expected = expected.replace("a number", f"a number ({literals.c_comment(unit)})")
            text += f"    {line:<{width}} /* {literals.c_comment(column.name)}: {expected} */\n"
        return f"{text}}};\n"

    # Tables.

    def _add_weights(self) -> None:
        view, weights = self.view, self.view.weights
        if self.has_scales:
            weights, scales, self.features = view.quantized()
            self.tables.add("scales", self.real, scales)
        self.spans = view.spans(weights)
        self.tables.add("weights", self.element, weights.ravel() if self.spans is None else self.spans.values)
        if self.spans is not None:
            self.tables.add("offsets", _index_type(self.spans.offsets[-1]), self.spans.offsets)
            self.tables.add("starts", _index_type(view.n_planes), self.spans.starts)
        self._add_planes("double" if view.dtype == "float32" else self.real)

    def _add_planes(self, kind: str) -> None:
        self.tables.add("intercepts", kind, self.view.intercept)
        self.tables.add("edges", _index_type(self.view.n_planes), self.view.model.planes.indptr)
        if self.view.member_weights is not None:
            self.tables.add("member_weights", "double", self.view.member_weights)

    def _add_features(self, centre_type: str = "double") -> None:
        """Add the tables of the features; an array of numbers does not need those that have no effect."""
        features, tables = self.features, self.tables
        if not self.is_array:
            if features.n_features:
                tables.add("centres", centre_type, features.centre)
                tables.add("factors", self.real, features.factor)
            return
        if features.n_features < self.view.model.n_columns:
            bits = np.isin(np.arange(self.view.model.n_columns), features.source)
            tables.add("kept", "unsigned char", np.packbits(bits, bitorder="little"))
        if features.centre.any():
            tables.add("centres", centre_type, features.centre)
        if (features.factor != 1.0).any():
            tables.add("factors", self.real, features.factor)
        if self.has_limits:
            tables.add("lows", "double", [self._limit(value) for value in features.low])
            tables.add("highs", "double", [self._limit(value) for value in features.high])
        if self.view.columns[0].may_be_missing:
            tables.add("neutrals", "double", [column.numbers[0].neutral for column in self.view.columns])

    def _add_texts(self) -> None:
        if self.has_text and self.view.missing_texts:
            self.tables.add_texts("missing_texts", self.view.missing_texts)
        for column, field in zip(self.view.columns, self.fields, strict=True):
            if column.levels:
                self.tables.add_texts(f"levels_{field}", column.levels)

    def _limit(self, value: float) -> float:
        """Return a limit as a finite number, which sums in float can hold."""
        largest = 1.7e308 if self.real == "double" else 3e38
        return min(max(float(value), -largest), largest)

    # Functions.

    def _functions(self) -> str:
        parts = {
            "add": self.spans is None,
            "add spans": self.spans is not None,
            "features": not self.is_array and self.view.features.n_features > 0,
            "text": self.has_text,
            "category": "category" in self.kinds,
            "date": "date" in self.kinds,
            "max": not self.view.is_soft,
            "logsumexp": self.view.is_soft,
        }
        text = "".join(self._part(name) for name, is_used in parts.items() if is_used)
        weight = "" if self.view.member_weights is None else "PREFIX_member_weights[m] * "
        missing_texts = self._part("missing texts") if self.view.missing_texts else ""
        return text.replace("WEIGHT * ", weight).replace("MISSING_TEXTS", missing_texts, 1)

    def _predict(self) -> str:
        lines = [*self.buffers, "double classes[NAME_CLASSES];", "int k, c, winner = 0;"]
        if self.is_array:
            lines.append("int j, f = 0;")
        elif self.kinds & {"number", "boolean"}:
            lines.append("double x;")
        if "date" in self.kinds:
            lines += ["double parts[5]; /* days since 1970, year, month, day of week, hour */", "int missing;"]
        declared = "".join(f"    {line}\n" for line in lines)
        end = (self._part("end int8").lstrip("\n") if self.has_scales else "") + self._part("end")
        end += self._part("probabilities").lstrip("\n") if self.view.model.has_probabilities else ""
        begin = self._part("begin int8" if self.has_scales else "begin")
        return f"\n{self._signature()}\n{{\n{declared}{begin}{self._rows()}{end}    return winner;\n}}\n"

    def _rows(self) -> str:
        if self.is_array:
            return self._array_loop("PREFIX_add(planes, f, (SUM)u);")
        pairs = zip(self.view.columns, self.fields, strict=True)
        return "".join(self._category(*pair) if pair[0].kind == "category" else self._numbers(*pair) for pair in pairs)

    def _array_loop(self, add: str) -> str:
        """Return the loop over an array of numbers, which ends with the statement `add` for the feature u."""
        features, may_be_missing = self.features, self.view.columns[0].may_be_missing
        lines = ["double u = x[j];", "if (isinf(u))" if may_be_missing else "if (!isfinite(u))", "    return -1;"]
        if features.n_features < self.view.model.n_columns:
            lines += ["if (!(PREFIX_kept[j / 8] >> (j % 8) & 1))", "    continue;"]
        if may_be_missing:
            lines += ["if (isnan(u))", "    u = PREFIX_neutrals[f];"]
        if features.centre.any():
            lines.append("u -= PREFIX_centres[f];")
        if (features.factor != 1.0).any():
            lines.append("u *= PREFIX_factors[f];")
        if self.has_limits:
            lines.append("u = u < PREFIX_lows[f] ? PREFIX_lows[f] : u > PREFIX_highs[f] ? PREFIX_highs[f] : u;")
        body = "".join(f"        {line}\n" for line in (*lines, add, "f++;"))
        return f"    for (j = 0; j < NAME_FEATURES; j++) {{\n{body}    }}\n"

    def _category(self, column: ColumnView, field: str) -> str:
        levels = f"PREFIX_levels_{field}" if column.levels else "NULL"
        rows = ", ".join("-1" if row is None else str(row) for row in (column.first, column.other, column.missing))
        return f"\n    PREFIX_category(planes, row->{field}, {levels}, {len(column.levels)}, {rows});\n"

    def _numbers(self, column: ColumnView, field: str) -> str:
        if column.kind == "date":
            names = {number.part: f"parts[{DATE_PARTS.index(number.part)}]" for number in column.numbers}
            lines = [f"missing = PREFIX_date(row->{field}, parts);", "if (missing < 0)", "    return -1;"]
        else:
            names = {number.part: "x" for number in column.numbers}
            refused = (
                f"fabs(x) > {self.view.largest!r}" if column.kind == "number" else "!isnan(x) && x != 0.0 && x != 1.0"
            )
            refused += "" if column.may_be_missing else " || isnan(x)"
            lines = [f"x = row->{field};", f"if ({refused})", "    return -1;"]
        known = [(names[part], neutral) for part, neutral, _ in column.numbers if neutral is not None]
        filled = [f"    {name} = {literals.real(neutral)};" for name, neutral in known]
        if column.missing is not None:
            filled.append(f"    PREFIX_add(planes, {column.missing}, 1);")
        missing = "if (missing)" if column.kind == "date" else "if (isnan(x))"
        if filled:
            lines += [f"{missing} {{", *filled, "}"] if len(filled) > 1 else [missing, *filled]
        for number in column.numbers:
            for run in self.view.runs(number):
                low, high = literals.real(self._limit(run.low)), literals.real(self._limit(run.high))
                op = f"NAME_{run.op.replace(' ', '_').upper()}"
                given = f"{names[number.part]}, {op}, {run.start}, {run.stop}, {low}, {high}"
                lines.append(f"PREFIX_features(planes, {given});")
        return "\n" + "".join(f"    {line}\n" for line in lines)


class _Compressed(_CWriter):
    """Writes a model whose projection, and planes over projected features, are tables of bytes."""

    def __init__(self, view: View, name: str, model: Model) -> None:
        super().__init__(view, name)
        projection: Any = model.projection
        self.projection = projection
        self.coef, self.has_scales, self.spans = model.planes.coef, False, None
        if projection.matrix is not None:
            self.buffers.append("SUM projected[NAME_RANK];")

    def _add_weights(self) -> None:
        if self.projection.matrix is not None:
            self.tables.add("projection", "signed char", self.projection.matrix.T.ravel())
        self.tables.add("units", "float", self.projection.scale)
        self.tables.add("weights", "signed char", self.coef.T.ravel())
        self._add_planes("float")

    def _add_features(self, centre_type: str = "float") -> None:
        super()._add_features(centre_type)

    def _given(self) -> str:
        return f"{super()._given()}#define NAME_RANK {len(self.projection.scale)}\n"

    def _functions(self) -> str:
        functions = super()._functions()
        if self.projection.matrix is None:
            return functions
        words = {
            "planes": "values",
            "PREFIX_add": "PREFIX_project",
            "weights": "projection",
            "NAME_PLANES": "NAME_RANK",
        }
        project = re.sub("|".join(words), lambda found: words[found[0]], self._part("add"))
        comment = "/* Adds value times the projection of a feature to the projected values. */\n"
        return f"{functions}\n{comment}{project.partition('*/')[2].lstrip()}"

    def _stack(self) -> int:
        return super()._stack() + SIZES["float"] * len(self.projection.scale)

    def _rows(self) -> str:
        if self.projection.matrix is None:
            return self._array_loop("PREFIX_add(planes, f, (float)u * PREFIX_units[f]);")
        loop = self._array_loop("PREFIX_project(projected, f, (float)u);")
        return f"{self.parts['begin project']}{loop}{self.parts['project']}"
