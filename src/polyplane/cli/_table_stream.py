"""`polyplane train --stream` on a table: the encoder is fitted to the first rows, and rows are read in batches."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from polyplane.cli._common import UserError
from polyplane.cli._labels import cell_counts, match_labels, parse_labels, usual_label
from polyplane.cli._learners import set_known
from polyplane.cli._table_report import TableReport, keep_and_test
from polyplane.cli._table_source import NamedColumns, TableFacts, open_table

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli._train_options import TrainOptions

#: Number of rows that the encoder is fitted to.
FIRST_ROWS = 50_000


def train_table_on_stream(options: TrainOptions, model: Any, is_decimal_given: bool) -> None:
    """Survey the file, train on its batches, write the model, test it, and report."""
    report = TableReport(options)
    if options.data == "-":
        facts = _given(options, model)
    else:
        facts = _survey(options, model, is_decimal_given)
        report.show_read(facts)
    model.set_params(decimal=facts.decimal)
    set_known(model, verbose=int(report.is_live))
    classes, began = _array(list(facts.class_counts)), time.perf_counter()
    try:
        model.fit_stream(
            lambda: _parts(options, model, facts.label, classes),
            classes=classes,
            passes=options.passes or 1,
            first_rows=FIRST_ROWS,
            time_limit=options.time_limit,
        )
    except KeyboardInterrupt:
        if not hasattr(model, "table_model_"):
            raise
        report.interrupted = True
    report.seconds = time.perf_counter() - began
    set_known(model, verbose=0)
    if options.data == "-":
        report.show_read(facts._replace(n_rows=int(model.history_["rows"][-1]), n_columns=model.n_features_in_))
    keep_and_test(model, facts, report)


def _survey(options: TrainOptions, model: Any, is_decimal_given: bool) -> TableFacts:
    """Read the columns from the first rows, and the labels from all rows."""
    from polyplane.readers.tables import find_decimal

    began, gaps = time.perf_counter(), frozenset(model.gaps)
    parts = open_table(options, options.batch_rows)
    first = next(iter(parts))
    named = NamedColumns.of(first, options, parts.index)
    label = named.label or usual_label(first.column_names) or _refuse()
    X = named.features(first, label)
    counts: Counter = Counter()
    for part in open_table(options, None, {label}):
        counts.update(cell_counts(part.column(label), gaps))
    n_unlabelled = counts.pop(None, 0)
    if not counts:
        raise UserError(f"{options.data} has no rows with a label in the column {label!r}.")
    labels = parse_labels(list(counts))
    found: Counter = Counter()
    for value, n in zip(labels, counts.values(), strict=True):
        found[value] += n
    if len(found) < 2:
        raise UserError(
            f"The label column {label!r} contains a single class, {labels[0]!r}; at least two classes are required."
        )
    decimal = model.decimal if is_decimal_given else find_decimal(X, gaps)
    return TableFacts(
        found.total(), X.num_columns, label, named.id, named.index_columns, n_unlabelled, dict(sorted(found.items())),
        parts.format, decimal, time.perf_counter() - began,
    )  # fmt: skip


def _given(options: TrainOptions, model: Any) -> TableFacts:
    """Take the facts about a table that can be read only once from the command line."""
    label = options.reading.get("label")
    if options.classes is None or label is None:
        raise UserError("Standard input can be read only once: with --stream, also specify --classes and --label.")
    classes = parse_labels([text.strip() for text in options.classes.split(",")])
    counts = dict.fromkeys(sorted(classes), 0)
    return TableFacts(0, 0, label, options.reading.get("id"), (), 0, counts, "csv", model.decimal, 0.0)


def _refuse() -> str:
    raise UserError("--stream: specify the label column with --label COLUMN.")


def _array(classes: list[Any]) -> np.ndarray:
    import numpy as np

    return np.array(classes)


def _parts(options: TrainOptions, model: Any, label: str, classes: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the labelled rows in batches; columns that are numeric in the first rows are parsed as numbers."""
    from polyplane.readers.tables import typed

    gaps, first_row = frozenset(model.gaps), 0
    numbers: set[str] | None = None
    parts = open_table(options, options.batch_rows)
    for table in _with_first(parts, FIRST_ROWS):
        named = NamedColumns.of(table, options, parts.index)
        if label not in table.column_names:
            raise UserError(
                f"--label {label}: {options.data} has no such column; with --stream, the label column needs a name."
            )
        found, unknown = match_labels(table.column(label), gaps, classes)
        if unknown is not None:
            row = first_row + int((found == -2).argmax())
            raise UserError(f"{options.data}, row {row}: the label {unknown!r} is not in --classes.")
        X = named.features(table, label)
        is_first = numbers is None
        tried = set(X.column_names) - set(model.kinds or ()) if numbers is None else numbers
        X = typed(X, tried, model.decimal, gaps)
        if is_first:
            numbers = {field.name for field in X.schema if str(field.type) in ("int64", "double")}
        first_row += table.num_rows
        if (found >= 0).any():
            yield X.filter(found >= 0), classes[found[found >= 0]]


def _with_first(parts: Any, n_rows: int) -> Iterator[Any]:
    """Yield the batches; the first ones are joined until they have `n_rows` rows."""
    import pyarrow

    held: list[Any] = []
    is_begun = False
    for part in parts:
        held.append(part)
        if is_begun or sum(map(len, held)) >= n_rows:
            yield pyarrow.concat_tables(held)
            held, is_begun = [], True
    if held:
        yield pyarrow.concat_tables(held)
