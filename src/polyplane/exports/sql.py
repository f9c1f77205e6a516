"""Export to SQL: one SELECT, for SQLite, DuckDB or PostgreSQL."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from polyplane._version import __version__
from polyplane.exports.literals import check_text, label_value, real, sections, sql_comment, sql_name, sql_string
from polyplane.exports.view import ColumnView, FeatureRange, View, is_number
from polyplane.features import SMOOTH_BOUND

#: Maximum length of a column name in bytes; PostgreSQL truncates names to 63 bytes.
LONGEST_NAME = 60
#: Maximum number of terms in a group: databases limit the depth of expressions and the number of arguments.
GROUP = 50
#: The meanings of the first letters of columns, in the order of the steps.
LEGEND = (
    "k: key; c: cells; v: numbers; m: missing-value indicators; f: features; p: scores of planes; b: largest plane "
    "score of a class; s: scores of classes; e: exponentials of the scores"
)


def to_sql(
    model: Any,
    dtype: str | None = None,
    *,
    dialect: str = "duckdb",
    table: str = "rows",
    key: str | Sequence[str] = (),
) -> str:
    """Export a fitted model as SQL: a SELECT that computes the label, scores and probabilities of each row.

    Parameters
    ----------
    model : estimator, Pipeline or Model
        A fitted estimator of Polyplane, a pipeline of scalers, as `polyplane.save` takes it, that ends in one, or a
        model.
    dtype : {"float32", "float64"} or None, default=None
        Data type of the weights. None: float32 for tables, otherwise that of the planes. Sums are computed in float64.
    dialect : {"sqlite", "duckdb", "postgresql"}, default="duckdb"
        The database. SQLite must be 3.35 or newer, with its mathematical functions, and PostgreSQL 12 or newer.
    table : str, default="rows"
        The table to read the rows from.
    key : str or sequence of str, default=()
        Columns of the table to keep in the result, to identify its rows.

    Returns
    -------
    text : str
        The query. Its result has the columns `key`, "label", and for each class "score_LABEL" and, if the model has
        probabilities, "probability_LABEL". (Labels that are too long for column names, or differ in case only, are
        replaced by class numbers.)

    See Also
    --------
    polyplane.export : Write the query to a file.

    Examples
    --------
    >>> import sqlite3
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports import to_sql
    >>> model = PegasosSVC(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE rows AS SELECT 7 AS id, 1.5 AS x0")
    >>> database.execute(to_sql(model, dialect="sqlite", key="id")).fetchone()[:2]
    (7, 'yes')
    """
    view = View.of(model, dtype)
    view.refuse("SQL", ["text"], formats=True)
    if dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r} must be one of {', '.join(DIALECTS)}.")
    return _SqlWriter(view, DIALECTS[dialect], table, (key,) if isinstance(key, str) else tuple(key)).text()


#: A selected column: its expression, its name (empty if unchanged), and a comment.
Selected = tuple[str, str, str]


@dataclass(frozen=True)
class Dialect:
    """The SQL dialect of a database; how it reads cells is in a file of its name in the folder `runtime`.

    Parameters
    ----------
    name, title : str
        The value of the parameter `dialect`, and the name of the database.
    least, greatest : str
        The functions for the minimum and the maximum of their arguments.
    is_case_sensitive : bool
        Whether column names are case-sensitive.
    exponent : str
        The end of a number without exponent. Without one, DuckDB reads a decimal.
    """

    name: str
    title: str
    least: str = "least"
    greatest: str = "greatest"
    is_case_sensitive: bool = False
    exponent: str = ""

    def __call__(self, part: str, cell: str, levels: Sequence[str] = ()) -> str:
        """Return how a part of a cell is read, as an expression; `levels` are those of a category."""
        parts = sections(f"{self.name}.sql")
        # Integers are in digits already.
        numbers = {level: float(level) for level in levels if is_number(level) and not level.lstrip("-").isdigit()}
        cases = "".join(
            f"\n               WHEN {parts['level'].strip()} = {self.literal(number)} THEN {sql_string(level)}"
            for level, number in numbers.items()
        )
        template = parts[part].strip().replace("LEVELS", cases).replace("STRING", parts["text"].strip())
        return template.replace("CELL", cell)

    def literal(self, value: Any, dtype: str = "float64") -> str:
        """Return a number."""
        text = real(value, dtype)
        return text if "e" in text else f"{text}{self.exponent}"

    def check_names(self, names: Sequence[str]) -> None:
        """Raise an error for column names that the database does not distinguish."""
        seen: dict[str, str] = {}
        for name in names:
            twin = seen.setdefault(name if self.is_case_sensitive else name.lower(), name)
            if twin is not name and twin != name:
                raise ValueError(f"{self.title} does not distinguish the columns {twin!r} and {name!r}: rename one.")


DIALECTS: dict[str, Dialect] = {
    "sqlite": Dialect("sqlite", "SQLite", "min", "max"),
    "duckdb": Dialect("duckdb", "DuckDB", exponent="e0"),
    "postgresql": Dialect("postgresql", "PostgreSQL", is_case_sensitive=True),
}


class _SqlWriter:
    """Writes the query as a sequence of common table expressions: cells, numbers, features, planes and scores."""

    def __init__(self, view: View, dialect: Dialect, table: str, key: Sequence[str]) -> None:
        self.view, self.dialect, self.table, self.key = view, dialect, table, list(key)
        dialect.check_names([column.name for column in view.columns])
        dialect.check_names(self.key)
        if "label" in (name.lower() for name in self.key):
            raise ValueError("key has a column 'label', which is also a column of the result: rename it.")
        self.prefix = "model_"
        while table.lower().startswith(self.prefix):
            self.prefix = f"_{self.prefix}"
        self.keys = [f"k{i}" for i in range(len(self.key))]
        self.steps: list[str] = []
        self.source = ""
        #: The columns that steps before the planes pass on: the strings of categories.
        self.texts = [f"c{j}" for j, column in enumerate(view.columns) if column.kind == "category"]
        self.labels = [label_value(label) for label in view.model.classes.tolist()]

    def text(self) -> str:
        """Return the query."""
        view, rows = self.view, f"{self._name(self.table)} AS r"
        if any(column.kind != "number" or self.dialect.name == "sqlite" for column in view.columns):
            self._add("whitespace", [], [(self.dialect("whitespace", ""), "characters", "")])
            rows += f" CROSS JOIN {self.source} AS w"
        self.source = rows
        self._add("cells", [], self._cells())
        self._add("known", self.keys, self._known())
        self._add("numbers", self.keys + self.texts, self._numbers())
        self._add("features", self.keys + self.texts, self._features())
        self._add("planes", self.keys, self._planes())
        if view.is_soft:
            # The largest plane score of a class in a member is subtracted before exponentiation.
            several = [own for edges in view.members for own in pairwise(edges) if own[1] - own[0] > 1]
            best = ((self._greatest([f"p{k}" for k in range(*own)]), f"b{own[0]}", "") for own in several)
            planes = [f"p{k}" for k in range(view.n_planes)] + ["usable"] * (not view.is_table)
            self._add("peaks", self.keys + planes, best)
        self._add("scores", self.keys, self._scores())
        scored = [f"s{c}" for c in range(len(self.labels))]
        self._add("best", self.keys + scored, [(self._greatest(scored), "best", "the largest score")])
        if view.model.has_probabilities:
            self._add("exponentials", [*self.keys, *scored, "best"], self._exponentials())
        steps = ",\n".join(self.steps)
        return f"{self._about()}WITH\n{steps}\n{self._select([], self._result())}\n"

    def _about(self) -> str:
        title = f"A {self.view.model.learner} as a query for {self.dialect.title}, written by polyplane {__version__}."
        lines = [title]
        if self.view.is_table:
            lines.append("NULL, strings that denote missing values, and invalid numbers and dates are missing values.")
        lines += ["", *textwrap.wrap(f"Columns: {LEGEND}.", 110)]
        return "".join(f"-- {line}".rstrip() + "\n" for line in lines)

    def _add(self, name: str, kept: Sequence[str], columns: Iterable[Selected]) -> None:
        """Add a step, which selects from the one before it: columns that are kept, and new ones."""
        self.steps.append(f"{self.prefix}{name} AS MATERIALIZED (\n  {self._select(kept, columns, '  ')}\n)")
        self.source = f"{self.prefix}{name}"

    def _select(self, kept: Sequence[str], columns: Iterable[Selected], indent: str = "") -> str:
        lines = [f"    {', '.join(kept)}"] if kept else []
        for expression, name, comment in columns:
            alias = f" AS {name}" if name else ""
            lines.append(f"    {expression}{alias}" + (f" {sql_comment(comment)}" if comment else ""))
        return "SELECT\n" + ",\n".join(lines) + (f"\n{indent}FROM {self.source}" if self.source else "")

    def _name(self, text: str) -> str:
        return sql_name(text, self.dialect.name)

    # The steps.

    def _cells(self) -> Iterator[Selected]:
        """Select the keys, and the cells as numbers, after an imputer those that are missing as well, or as strings."""
        yield from ((f"r.{self._name(name)}", k, "") for name, k in zip(self.key, self.keys, strict=True))
        for j, column in enumerate(self.view.columns):
            cell = f"r.{self._name(column.name)}"
            if column.kind == "number":
                neutral = column.numbers[0].neutral
                expression = self.dialect("comma" if getattr(column.format, "decimal", ".") == "," else "number", cell)
                if neutral is not None and not self.view.is_table:
                    missing, literal = self.dialect("missing", cell), self.dialect.literal(neutral)
                    expression = f"CASE WHEN {missing} THEN {literal} ELSE {expression} END"
            elif column.kind == "boolean":
                expression = self.dialect("boolean", self.dialect("category", cell))
            else:
                expression = self.dialect("text" if column.kind == "date" else "category", cell, column.levels)
            yield expression, f"c{j}", ""

    def _known(self) -> Iterator[Selected]:
        """Replace missing values, invalid numbers and invalid dates by NULL."""
        largest = repr(self.view.largest)
        for j, column in enumerate(self.view.columns):
            cell = f"c{j}"
            if column.kind == "number":
                cell = f"CASE WHEN {cell} BETWEEN -{largest} AND {largest} THEN {cell} END"
            elif column.kind != "boolean" and self.view.missing_texts:
                missing = ", ".join(map(sql_string, self.view.missing_texts))
                cell = f"CASE WHEN {cell} NOT IN ({missing}) THEN {cell} END"
            if column.kind == "date":
                cell = self.dialect("timestamp", cell)
            yield cell, f"c{j}", column.name

    def _numbers(self) -> Iterator[Selected]:
        """Compute the numbers of each column, with missing values replaced, and indicators of missing values."""
        for j, column in enumerate(self.view.columns):
            for i, number in enumerate(column.numbers):
                part = self.dialect(number.part, f"c{j}") if column.kind == "date" else f"c{j}"
                if column.kind == "category":
                    pairs = zip(column.levels, number.by_level, strict=True)
                    cases = "".join(f" WHEN {sql_string(own)} THEN {self.dialect.literal(v)}" for own, v in pairs)
                    part = f"CASE c{j}{cases} ELSE {self.dialect.literal(0.0)} END"
                filled = part
                if self.view.is_table:
                    codes = ", ".join(map(self.dialect.literal, column.special))
                    unusual = f"c{j} IS NULL OR c{j} IN ({codes})" if codes else f"c{j} IS NULL"
                    filled = f"CASE WHEN {unusual} THEN {self.dialect.literal(number.neutral)} ELSE {part} END"
                name = column.name if column.kind == "number" else f"{column.name} ({number.part})"
                yield filled, f"v{j}_{i}", name
            if column.numbers and column.missing is not None and column.kind != "category":
                yield f"CASE WHEN c{j} IS NULL THEN 1.0 ELSE 0.0 END", f"m{j}", f"{column.name} is missing"
            for i, code in enumerate(map(self.dialect.literal, column.special)):
                yield f"CASE WHEN c{j} = {code} THEN 1.0 ELSE 0.0 END", f"x{j}_{i}", f"{column.name} = {code}"

    def _features(self) -> Iterator[Selected]:
        for j, column in enumerate(self.view.columns):
            for i, number in enumerate(column.numbers):
                for run in self.view.runs(number):
                    for f in range(run.start, run.stop):
                        yield self._feature(f"v{j}_{i}", f, run), f"f{f}", f"{column.name}, {run.op}"
            if column.numbers and column.missing is not None and column.kind != "category":
                yield f"m{j}", "", ""
            yield from ((f"x{j}_{i}", "", "") for i in range(len(column.special)))

    def _feature(self, number: str, f: int, run: FeatureRange) -> str:
        """Return a feature of a number as an expression."""
        centre, factor = (float(part[f]) for part in (self.view.features.centre, self.view.features.factor))
        u = number if centre == 0.0 else f"{number} - {self.dialect.literal(centre)}".replace("- -", "+ ")
        if factor != 1.0:
            u = f"({u}) * {self.dialect.literal(factor)}"
        bound = SMOOTH_BOUND**2
        value = {
            "value": u,
            "square": f"({u}) * ({u})",
            "smooth": f"({u}) / sqrt(1.0 + ({u}) * ({u}) / {bound})",
            "smooth square": f"({u}) * ({u}) / (1.0 + ({u}) * ({u}) / {bound})",
        }[run.op]
        low, high = self.dialect.literal(run.low), self.dialect.literal(run.high)
        is_limited = [abs(limit) != float("inf") for limit in (run.low, run.high)]
        if self.view.is_table:
            value = f"{self.dialect.greatest}({value}, {low})" if is_limited[0] else value
            return f"{self.dialect.least}({value}, {high})" if is_limited[1] else value
        # Numbers of a matrix may be NULL, which these functions ignore in some databases.
        cases = (
            f" WHEN {value} < {low} THEN {low}" * is_limited[0] + f" WHEN {value} > {high} THEN {high}" * is_limited[1]
        )
        return f"CASE{cases} ELSE {value} END" if cases else value

    def _planes(self) -> Iterator[Selected]:
        """Compute the scores of the planes, and for a matrix whether all numbers are valid."""
        view, planes = self.view, self.view.model.planes
        if not view.is_table:  # invalid cells of tables are missing values
            numbers = [f"f{f}" for f in range(view.features.n_features)]
            yield f"{_sum_of(numbers)} IS NOT NULL", "usable", "all numbers are valid"
        for k, intercept in enumerate(view.intercept):
            comment = f"a plane of {self.labels[planes.owners[k]]!s}"
            if planes.n_members > 1:
                comment += f", member {sum(k >= edges[-1] for edges in view.members) + 1}"
            own = [term for j in range(len(view.columns)) for term in self._terms(j, k)]
            yield _sum_of([self.dialect.literal(intercept), *own]), f"p{k}", comment

    def _terms(self, j: int, k: int) -> list[str]:
        """Return the terms of column j in the score of plane k."""
        column = self.view.columns[j]
        terms = [
            f"{self._digits(weight)} * f{f}"
            for number in column.numbers
            for f in number.features
            if (weight := self._weight(f, k))
        ]
        for i in range(len(column.special)):
            if weight := self._weight((column.first or 0) + i, k):
                terms.append(f"{self._digits(weight)} * x{j}_{i}")
        missing = self._weight(column.missing, k)
        if column.kind != "category":
            return terms + ([f"{self._digits(missing)} * m{j}"] if missing else [])
        return terms + self._choice(column, f"c{j}", k, missing)

    def _choice(self, column: ColumnView, cell: str, k: int, missing: float) -> list[str]:
        """Return the term of a category in the score of plane k; empty if all its weights are 0."""
        other = self._weight(column.other, k)
        weights = [self._weight((column.first or 0) + i, k) for i in range(column.n_own)]
        levels = zip(column.levels, weights, strict=False)
        cases = "".join(f" WHEN {sql_string(level)} THEN {self._digits(weight)}" for level, weight in levels)
        if not any([missing, other, *weights]):
            return []
        choice = f"CASE {cell}{cases} ELSE {self._digits(other)} END" if cases else self._digits(other)
        if missing == other:
            return [choice]
        return [f"CASE WHEN {cell} IS NULL THEN {self._digits(missing)} ELSE {choice} END"]

    def _weight(self, row: int | None, k: int) -> float:
        return 0.0 if row is None else float(self.view.weights[row, k])

    def _digits(self, weight: float) -> str:
        return self.dialect.literal(weight, self.view.dtype)

    def _scores(self) -> Iterator[Selected]:
        members, weights = self.view.members, self.view.member_weights
        for c, label in enumerate(self.labels):
            parts = [self._member_score(range(*edges[c : c + 2])) for edges in members]
            if weights is not None:
                parts = [f"{self.dialect.literal(w)} * ({part})" for w, part in zip(weights, parts, strict=True)]
            score = parts[0] if len(parts) == 1 else f"({_sum_of(parts)}) / {len(parts)}.0"
            yield score if self.view.is_table else f"CASE WHEN usable THEN {score} END", f"s{c}", str(label)

    def _member_score(self, own: range) -> str:
        if not self.view.is_soft or len(own) == 1:
            return self._greatest([f"p{k}" for k in own])
        total = _sum_of([self.dialect("exponential", f"p{k} - b{own.start}") for k in own])
        return f"ln({total}) + b{own.start}"

    def _exponentials(self) -> Iterator[Selected]:
        temperature = self.dialect.literal(self.view.model.temperature)
        for c in range(len(self.labels)):
            yield self.dialect("exponential", f"(s{c} - best) / {temperature}"), f"e{c}", ""

    def _result(self) -> Iterator[Selected]:
        cases = "\n".join(f"      WHEN s{c} THEN {_label(label)}" for c, label in enumerate(self.labels))
        yield from ((k, self._name(name), "") for k, name in zip(self.keys, self.key, strict=True))
        yield f"CASE best\n{cases}\n    END", "label", ""
        names = self._class_names()
        yield from ((f"s{c}", self._name(f"score_{name}"), "") for c, name in enumerate(names))
        if self.view.model.has_probabilities:
            total = _sum_of([f"e{c}" for c in range(len(names))])
            for c, name in enumerate(names):
                yield f"e{c} / ({total})", self._name(f"probability_{name}"), ""

    def _class_names(self) -> list[str]:
        """Return the labels, or the class indices if the labels are not suitable as column names."""
        names = [check_text(str(label), "SQL") for label in self.labels]
        longest = max(len(f"probability_{name}".encode()) for name in names)
        if longest > LONGEST_NAME or len({name.lower() for name in names}) < len(names):
            return [str(c) for c in range(len(names))]
        return names

    def _greatest(self, names: list[str]) -> str:
        """Return the largest of some columns; a maximum of a single argument would be an aggregate over all rows."""
        while len(names) > 1:
            parts = [names[i : i + GROUP] for i in range(0, len(names), GROUP)]
            names = [f"{self.dialect.greatest}({', '.join(part)})" if len(part) > 1 else part[0] for part in parts]
        return names[0]


def _label(label: Any) -> str:
    """Return a label as a literal."""
    if isinstance(label, bool):
        return str(label).upper()
    if isinstance(label, int) and not -(2**63) <= label < 2**63:
        raise ValueError(f"The label {label} does not fit into a signed 64-bit integer: rename it.")
    return sql_string(label) if isinstance(label, str) else repr(label)


def _sum_of(terms: list[str], width: int = 100) -> str:
    """Return the sum of terms, in nested groups if there are many."""
    while len(terms) > GROUP:
        groups = [terms[i : i + GROUP] for i in range(0, len(terms), GROUP)]
        terms = [f"({_sum_of(group)})" if len(group) > 1 else group[0] for group in groups]
    text, used = terms[0], len(terms[0])
    for term in terms[1:]:
        fits = used + len(term) < width
        shown = f" - {term[1:]}" if term.startswith("-") else f" + {term}"
        text += shown if fits else f"\n     {shown}"
        used = used + len(shown) if fits else len(shown)
    return text
