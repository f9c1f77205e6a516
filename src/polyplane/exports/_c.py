"""Export to C99: one file, static tables, no memory allocation."""

from __future__ import annotations

import re
from itertools import groupby

import numpy as np

from polyplane.exports import _c_cells as cells
from polyplane.exports import _c_parts as parts
from polyplane.exports._c_head import about, declarations, signature
from polyplane.exports._c_tables import Tables, index_type
from polyplane.exports._program import LARGEST_CELL, LEAST, Input, Program
from polyplane.exports._quantized import quantize
from polyplane.exports._text import c_names, check_c_identifier, real

#: The parts of a date, in the order in which the C code writes them.
_DATE_PARTS = ("days", "year", "month", "day of week", "hour")


def write_c(program: Program, name: str) -> str:
    """Return the text of a C file; all identifiers start with `name`."""
    check_c_identifier(name)
    return _Writer(program, name).text()


class _Writer:
    """Writes the tables and functions of a program."""

    def __init__(self, program: Program, name: str) -> None:
        self.program, self.name = program, name
        self.real = "double" if program.dtype == "float64" else "float"
        self.element = "signed char" if program.dtype == "int8" else self.real
        #: The type of sums: float32 weights are summed in double, since float sums would lose one or two more digits.
        self.sum = f"{name.upper()}_SUM" if program.dtype == "float32" else self.real
        self.tables = Tables()
        self.fields = c_names(item.name for item in program.inputs)

    def text(self) -> str:
        """Return the text of the file."""
        labels = self._tables()
        head = parts.SUM if self.program.dtype == "float32" else ""
        body = "\n" + self.tables.text + labels + self._functions() + self._predict() + parts.END_OF_FILE
        return self._fill(
            about(self.program, self.fields, self.tables) + declarations(self.program, self.fields) + head + body
        )

    def _fill(self, text: str) -> str:
        program, is_double = self.program, self.real == "double"
        words = {
            "PREFIX": self.name,
            "NAME": self.name.upper(),
            "REAL": self.real,
            "SUM": self.sum,
            "ELEMENT": self.element,
            "EDGE": index_type(program.n_planes),
            "LEASTR": real(LEAST),
            "EXP": "exp" if is_double else "expf",
            "N_CLASSES": str(len(program.classes)),
            "N_PLANES": str(program.n_planes),
            "N_MEMBERS": str(len(program.members)),
            "N_MISSING_TEXTS": str(len(program.missing_texts)),
            "TEMPERATURE": real(program.temperature or 1.0),
        }
        # String literals may contain text of the model: they are not changed.
        pattern = re.compile(r'"(?:[^"\\]|\\.)*"|\b(PREFIX|NAME)_|\b(' + "|".join(words) + r")\b", flags=re.DOTALL)

        def replaced(found: re.Match[str]) -> str:
            if found[1]:
                return f"{words[found[1]]}_"
            return words[found[2]] if found[2] else found[0]

        return pattern.sub(replaced, text)

    # Tables.

    def _tables(self) -> str:
        program = self.program
        weights, intercept = program.weights, program.intercept
        if program.dtype == "int8":
            quantized = quantize(program)
            weights = quantized.weights
            self.tables.add("scales", self.real, quantized.planes)
            if quantized.features is not None:
                self.tables.add("units", self.real, quantized.features)
        self.tables.add("weights", self.element, np.concatenate([row.values for row in weights]))
        if not program.is_uniform:
            offsets = np.cumsum([0, *(len(row.values) for row in weights)])
            self.tables.add("offsets", index_type(int(offsets[-1])), offsets)
            self.tables.add("starts", index_type(program.n_planes), [row.start for row in weights])
        self.tables.add("intercepts", "double" if program.dtype == "float32" else self.real, intercept)
        self.tables.add("edges", index_type(program.n_planes), [edge for edges in program.members for edge in edges])
        if program.of_table and program.terms:
            self.tables.add("centres", "double", [term.centre for term in program.terms])
            self.tables.add("factors", self.real, [term.factor for term in program.terms])
            if any(term.kind == "square" for term in program.terms):
                self.tables.add("limits", self.real, [min(term.most, 3e38) for term in program.terms])
        if program.is_scaled:
            self._add_scalers()
        if self._has_text and program.missing_texts:
            self.tables.add_texts("missing_texts", program.missing_texts)
        for item, field in zip(program.inputs, self.fields, strict=True):
            if item.levels:
                self.tables.add_texts(f"levels_{field}", item.levels)
        return self.tables.labels(program.classes)

    def _add_scalers(self) -> None:
        """Add the tables of the scalers before a learner."""
        terms, inputs = self.program.terms, self.program.inputs
        self.tables.add("centres", "double", [term.centre for term in terms])
        if any(term.kind == "limited" for term in terms):
            self.tables.add("lows", "double", [term.least for term in terms])
            self.tables.add("highs", "double", [term.most for term in terms])
        if inputs[0].may_be_missing:
            self.tables.add("neutrals", "double", [item.values[0].neutral for item in inputs])
        if len(inputs) < self.program.n_columns:
            self.tables.add("columns", index_type(self.program.n_columns), [item.position for item in inputs])

    # Functions.

    def _functions(self) -> str:
        program = self.program
        text = parts.ADD_UNIFORM if program.is_uniform else parts.ADD_RANGES
        kinds = {term.kind for term in program.terms} - {"value"}
        text += "".join(part for kind, part in parts.TERMS.items() if kind in kinds)
        kinds = {item.kind for item in program.inputs}
        if self._has_text:
            text += cells.TEXT if program.missing_texts else _without_missing_texts(cells.TEXT)
        text += cells.CATEGORY if "category" in kinds else ""
        text += cells.DATE if "date" in kinds else ""
        return text + (parts.SOFT if program.is_soft else parts.HARD)

    @property
    def _has_text(self) -> bool:
        return any(item.kind in ("category", "date") for item in self.program.inputs)

    def _predict(self) -> str:
        program = self.program
        kinds = {item.kind for item in program.inputs}
        lines = ["SUM planes[NAME_PLANES];", "double classes[NAME_CLASSES];", "int k, c, winner = 0;"]
        if not program.of_table:
            lines.append("int j;")
        if kinds & {"number", "boolean"} and program.of_table:
            lines.append("double x;")
        if "date" in kinds:
            lines += ["double parts[5]; /* days since 1970, year, month, day of week, hour */", "int missing;"]
        declared = "".join(f"    {line}\n" for line in lines)
        begin, end = (parts.BEGIN_INT8, parts.END_INT8) if program.dtype == "int8" else (parts.BEGIN, "")
        end += parts.END + (parts.PROBABILITIES if program.temperature is not None else "")
        return f"\n{signature(program)}\n{{\n{declared}\n{begin}{self._inputs()}{end}    return winner;\n}}\n"

    def _inputs(self) -> str:
        if not self.program.of_table:
            return self._features()
        pairs = zip(self.program.inputs, self.fields, strict=True)
        return "".join(self._category(*pair) if pair[0].kind == "category" else self._numbers(*pair) for pair in pairs)

    def _features(self) -> str:
        """Return the loop over the features of a learner."""
        unit = " * PREFIX_units[j]" if self.program.dtype == "int8" else ""
        if not self.program.is_scaled:
            return (
                "    for (j = 0; j < NAME_FEATURES; j++) {\n        if (!isfinite(x[j]))\n            return -1;\n"
                f"        PREFIX_add(planes, j, x[j]{unit});\n    }}\n"
            )
        inputs, kinds = self.program.inputs, {term.kind for term in self.program.terms}
        place = "j" if len(inputs) == self.program.n_columns else "PREFIX_columns[j]"
        lines = [f"double u = x[{place}];"]
        if inputs[0].may_be_missing:
            lines += ["if (isnan(u))", "    u = PREFIX_neutrals[j];"]
        lines += ["if (!isfinite(u))", "    return -1;", "u -= PREFIX_centres[j];"]
        if "limited" in kinds:
            lines.append("u = u < PREFIX_lows[j] ? PREFIX_lows[j] : u > PREFIX_highs[j] ? PREFIX_highs[j] : u;")
        lines.append(f"PREFIX_add(planes, j, (SUM)(u{unit}));")
        body = "".join(f"        {line}\n" for line in lines)
        return f"    for (j = 0; j < {len(inputs)}; j++) {{\n{body}    }}\n"

    def _category(self, item: Input, field: str) -> str:
        levels = f"PREFIX_levels_{field}" if item.levels else "NULL"
        rows = ", ".join("-1" if row is None else str(row) for row in (item.first, item.other, item.missing))
        return f"\n    PREFIX_category(planes, row->{field}, {levels}, {len(item.levels)}, {rows});\n"

    def _numbers(self, item: Input, field: str) -> str:
        if item.kind == "date":
            names = {value.part: f"parts[{_DATE_PARTS.index(value.part)}]" for value in item.values}
            lines = [f"missing = PREFIX_date(row->{field}, parts);", "if (missing < 0)", "    return -1;"]
        else:
            names = {value.part: "x" for value in item.values}
            refused = f"fabs(x) > {LARGEST_CELL:g}" if item.kind == "number" else "!isnan(x) && x != 0.0 && x != 1.0"
            lines = [f"x = row->{field};", f"if ({refused})", "    return -1;"]
        filled = [f"    {names[value.part]} = {real(value.neutral)};" for value in item.values]
        if item.missing is not None:
            filled.append(f"    PREFIX_add(planes, {item.missing}, 1);")
        missing = "if (missing)" if item.kind == "date" else "if (isnan(x))"
        lines += [f"{missing} {{", *filled, "}"] if len(filled) > 1 else [missing, *filled]
        for value in item.values:
            for kind, run in groupby(value.terms, key=lambda j: self.program.terms[j].kind):
                rows = list(run)
                called = f"PREFIX_{kind.replace(' ', '_')}"
                lines.append(f"{called}(planes, {names[value.part]}, {rows[0]}, {rows[-1] + 1});")
        return "\n" + "".join(f"    {line}\n" for line in lines)


def _without_missing_texts(text: str) -> str:
    """Return the function without the loop over the texts of missing values."""
    head, _, tail = text.partition("    for (i = 0; i < N_MISSING_TEXTS")
    return head.replace("size_t n, k, i;", "size_t n, k;") + tail[tail.index("    return text;") :]
