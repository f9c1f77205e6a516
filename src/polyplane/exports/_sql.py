"""Export to SQL: one SELECT, for SQLite, DuckDB or PostgreSQL."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from polyplane._version import __version__
from polyplane.exports._program import LARGEST_CELL, LEAST, Input, Program
from polyplane.exports._sql_dialects import DIALECTS, Dialect
from polyplane.exports._sql_parts import feature_of, legend
from polyplane.exports._sql_text import GROUP, listed, literal, sum_of
from polyplane.exports._text import check_text, label_value, sql_comment, sql_name, sql_string

#: Maximum length of a column name in bytes; PostgreSQL truncates names to 63 bytes.
LONGEST_NAME = 60


def write_sql(program: Program, dialect: str, table: str, key: Sequence[str]) -> str:
    """Return the text of a query over a table; its result includes the columns `key`."""
    if dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r} must be one of {', '.join(DIALECTS)}.")
    return _Writer(program, DIALECTS[dialect], table, key).text()


class _Writer:
    """Writes the query as a sequence of common table expressions: cells, numbers, features, planes and scores."""

    def __init__(self, program: Program, dialect: Dialect, table: str, key: Sequence[str]) -> None:
        self.program, self.dialect, self.table, self.key = program, dialect, table, list(key)
        names = [item.name for item in program.inputs]
        dialect.check_names(names)
        dialect.check_names(self.key)
        if "label" in (name.lower() for name in self.key):
            raise ValueError("key has a column 'label', which is also a column of the result: rename it.")
        self.prefix = "model_"
        while table.lower().startswith(self.prefix):
            self.prefix = f"_{self.prefix}"
        self.keys = [f"k{i}" for i in range(len(self.key))]
        #: The columns that steps before the planes pass on: the strings of categories.
        self.texts = [f"c{j}" for j, item in enumerate(program.inputs) if item.kind == "category"]
        #: Whether features are computed from numbers, and are not the numbers themselves.
        self.has_features = program.of_table or program.is_scaled

    def text(self) -> str:
        """Return the query."""
        source = f"{self._name(self.table)} AS r"
        steps = []
        if any(item.kind != "number" or self.dialect.name == "sqlite" for item in self.program.inputs):
            steps.append(self._step("whitespace", [self._column(self.dialect.whitespace, "characters")]))
            source += f" CROSS JOIN {self.prefix}whitespace AS w"
        steps.append(self._step("cells", self._cells(), source))
        steps.append(self._step("known", [*self._kept(), *self._known()], "cells"))
        if self.has_features:
            steps.append(self._step("numbers", [*self._kept(self.texts), *self._numbers()], "known"))
            steps.append(self._step("features", [*self._kept(self.texts), *self._features()], "numbers"))
        features = "features" if self.has_features else "known"
        steps.append(self._step("planes", [*self._kept(), *self._usable(), *self._planes()], features))
        scored = [f"s{c}" for c in range(len(self.program.classes))]
        if self.program.is_soft:
            planes = [f"p{k}" for k in range(self.program.n_planes)]
            steps.append(self._step("peaks", [*self._kept(planes), *self._peaks()], "planes"))
        steps.append(
            self._step("scores", [*self._kept(), *self._scores()], "peaks" if self.program.is_soft else "planes")
        )
        best = self._column(self._greatest(scored), "best", "the largest score")
        steps.append(self._step("best", [*self._kept(scored), best], "scores"))
        if self.program.temperature is not None:
            steps.append(self._step("exponentials", [*self._kept([*scored, "best"]), *self._exponentials()], "best"))
        last = self._result() + f"\nFROM {self.prefix}{'best' if self.program.temperature is None else 'exponentials'}"
        return f"{self._about()}WITH\n" + ",\n".join(steps) + "\n" + last + "\n"

    def _about(self) -> str:
        title = f"A {self.program.learner} as a query for {self.dialect.title}, written by polyplane {__version__}."
        lines = [title]
        if self.program.of_table:
            lines.append("NULL, strings that denote missing values, and invalid numbers and dates are missing values.")
        lines += ["", *textwrap.wrap("Columns: " + "; ".join(legend(self.program, bool(self.key))) + ".", 110)]
        return "".join(f"-- {line}".rstrip() + "\n" for line in lines)

    def _step(self, name: str, columns: Iterable[str], source: str = "") -> str:
        source = source if " AS r" in source or not source else f"{self.prefix}{source}"
        text = f"  SELECT\n{listed(columns)}" + (f"\n  FROM {source}" if source else "")
        return f"{self.prefix}{name} AS MATERIALIZED (\n{text}\n)"

    def _kept(self, more: Iterable[str] = ()) -> list[str]:
        names = ", ".join((*self.keys, *more))
        return [f"    {names}"] if names else []

    @staticmethod
    def _column(expression: str, name: str, comment: str = "") -> str:
        return f"    {expression} AS {name}" + (f"\0{sql_comment(comment)}" if comment else "")

    def _name(self, text: str) -> str:
        return sql_name(text, self.dialect.name)

    # The steps.

    def _cells(self) -> list[str]:
        """Select the keys, and the cells as numbers or as strings without leading and trailing whitespace."""
        columns = [f"    r.{self._name(name)} AS {k}" for name, k in zip(self.key, self.keys, strict=True)]
        for j, item in enumerate(self.program.inputs):
            cell = f"r.{self._name(item.name)}"
            if item.kind == "number":
                columns.append(self._column(self.dialect.number(cell, item.decimal), f"c{j}"))
            elif item.kind == "boolean":
                columns.append(self._column(self.dialect.boolean(cell), f"c{j}"))
            else:
                columns.append(self._column(self.dialect.text(cell, item.levels), f"c{j}"))
        return columns

    def _known(self) -> list[str]:
        """Replace missing values, numbers out of range and invalid dates by NULL."""
        columns = []
        for j, item in enumerate(self.program.inputs):
            cell = f"c{j}"
            if item.kind == "number":
                cell = f"CASE WHEN {cell} BETWEEN {-LARGEST_CELL:g} AND {LARGEST_CELL:g} THEN {cell} END"
            elif item.kind != "boolean" and self.program.missing_texts:
                missing = ", ".join(map(sql_string, self.program.missing_texts))
                cell = f"CASE WHEN {cell} NOT IN ({missing}) THEN {cell} END"
            if item.kind == "date":
                cell = self.dialect.timestamp(cell)
            columns.append(self._column(cell, f"c{j}", item.name))
        return columns

    def _numbers(self) -> list[str]:
        """Compute the numbers of each column, with missing values replaced, and indicators of missing values."""
        columns = []
        for j, item in enumerate(self.program.inputs):
            for i, value in enumerate(item.values):
                part = f"c{j}" if item.kind in ("number", "boolean") else self.dialect.part(f"c{j}", value.part)
                filled = part
                if value.neutral is not None:
                    filled = f"CASE WHEN c{j} IS NULL THEN {self.dialect.literal(value.neutral)} ELSE {part} END"
                name = item.name if item.kind == "number" else f"{item.name} ({value.part})"
                columns.append(self._column(filled, f"v{j}_{i}", name))
            if item.values and item.missing is not None:
                missing = f"CASE WHEN c{j} IS NULL THEN 1.0 ELSE 0.0 END"
                columns.append(self._column(missing, f"m{j}", f"{item.name} is missing"))
        return columns

    def _features(self) -> list[str]:
        columns = []
        for j, item in enumerate(self.program.inputs):
            for i, value in enumerate(item.values):
                for t in value.terms:
                    feature = feature_of(self.dialect, f"v{j}_{i}", self.program.terms[t])
                    columns.append(self._column(feature, f"f{t}", f"{item.name}, {self.program.terms[t].kind}"))
            if item.values and item.missing is not None:
                columns.append(f"    m{j}")
        return columns

    def _usable(self) -> list[str]:
        """Compute whether no number is missing; not needed if missing values are replaced."""
        if all(item.may_be_missing for item in self.program.inputs):
            return []
        numbers = [f"{'f' if self.has_features else 'c'}{j}" for j in range(len(self.program.inputs))]
        return [self._column(f"{sum_of(numbers)} IS NOT NULL", "usable", "no number is missing")]

    def _planes(self) -> list[str]:
        program = self.program
        owner = {
            k: (c, m) for c in range(len(program.classes)) for m, own in enumerate(program.planes_of(c)) for k in own
        }
        columns = []
        for k, intercept in enumerate(program.intercept):
            c, m = owner[k]
            comment = f"a plane of {label_value(program.classes.tolist()[c])!s}"
            if len(program.members) > 1:
                comment += f", member {m + 1}"
            terms = [
                self.dialect.literal(intercept),
                *(term for j in range(len(program.inputs)) for term in self._terms(j, k)),
            ]
            columns.append(self._column(sum_of(terms), f"p{k}", comment))
        return columns

    def _terms(self, j: int, k: int) -> list[str]:
        """Return the terms of input j in the score of plane k."""
        item, terms = self.program.inputs[j], []
        digits = partial(self.dialect.literal, dtype=self.program.dtype)
        for t in (t for value in item.values for t in value.terms):
            if weight := self._weight(t, k):
                terms.append(f"{digits(weight)} * {f'f{t}' if self.has_features else f'c{j}'}")
        missing = 0.0 if item.missing is None else self._weight(item.missing, k)
        if item.kind != "category":
            return terms + ([f"{digits(missing)} * m{j}"] if missing else [])
        return self._choice(item, f"c{j}", k, missing)

    def _choice(self, item: Input, cell: str, k: int, missing: float) -> list[str]:
        """Return the term of a category in the score of plane k; empty if all its weights are 0."""
        other = 0.0 if item.other is None else self._weight(item.other, k)
        weights = [self._weight((item.first or 0) + i, k) for i in range(len(item.levels))]
        digits = partial(self.dialect.literal, dtype=self.program.dtype)
        levels = zip(item.levels, weights, strict=True)
        cases = "".join(f" WHEN {sql_string(level)} THEN {digits(weight)}" for level, weight in levels)
        if not any([missing, other, *weights]):
            return []
        choice = f"CASE {cell}{cases} ELSE {digits(other)} END" if cases else digits(other)
        return [choice if missing == other else f"CASE WHEN {cell} IS NULL THEN {digits(missing)} ELSE {choice} END"]

    def _weight(self, row: int, k: int) -> float:
        start, values = self.program.weights[row]
        return float(values[k - start]) if 0 <= k - start < len(values) else 0.0

    def _peaks(self) -> list[str]:
        """Compute the largest plane score of each member, which is subtracted before exponentiation."""
        members = enumerate(self.program.members)
        return [
            self._column(self._greatest([f"p{k}" for k in range(edges[0], edges[-1])]), f"b{m}") for m, edges in members
        ]

    def _scores(self) -> list[str]:
        columns = []
        for c, label in enumerate(self.program.classes.tolist()):
            parts = [self._member_score(m, own) for m, own in enumerate(self.program.planes_of(c))]
            score = parts[0] if len(parts) == 1 else f"({sum_of(parts)}) / {len(parts)}.0"
            if self._usable():
                score = f"CASE WHEN usable THEN {score} END"
            columns.append(self._column(score, f"s{c}", str(label_value(label))))
        return columns

    def _member_score(self, m: int, own: range) -> str:
        if not self.program.is_soft:
            return self._greatest([f"p{k}" for k in own])
        total = sum_of([f"exp({self.dialect.no_underflow(f'p{k} - b{m}')})" for k in own])
        return f"ln({self.dialect.greatest}({total}, {LEAST:g})) + b{m}"

    def _exponentials(self) -> list[str]:
        temperature = self.program.temperature or 1.0
        return [
            self._column(
                f"exp({self.dialect.no_underflow(f'(s{c} - best) / {self.dialect.literal(temperature)}')})", f"e{c}"
            )
            for c in range(len(self.program.classes))
        ]

    def _result(self) -> str:
        labels = [label_value(label) for label in self.program.classes.tolist()]
        cases = "\n".join(f"      WHEN s{c} THEN {literal(label)}" for c, label in enumerate(labels))
        columns = [f"    {k} AS {self._name(name)}" for k, name in zip(self.keys, self.key, strict=True)]
        columns.append(f"    CASE best\n{cases}\n    END AS label")
        names = self._class_names(labels)
        columns += [f"    s{c} AS {self._name(f'score_{name}')}" for c, name in enumerate(names)]
        if self.program.temperature is not None:
            total = sum_of([f"e{c}" for c in range(len(labels))])
            columns += [f"    e{c} / ({total}) AS {self._name(f'probability_{name}')}" for c, name in enumerate(names)]
        return f"SELECT\n{listed(columns)}"

    def _class_names(self, labels: list[Any]) -> list[str]:
        """Return the labels, or the class indices if the labels are not suitable as column names."""
        names = [check_text(str(label), "SQL") for label in labels]
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
