"""`polyplane train` on a raw table."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import UserError, note
from polyplane.cli._errors import Error
from polyplane.cli._labels import check_label, guess_label, read_labels
from polyplane.cli._learners import TABLE, make, set_known
from polyplane.cli._report import most_frequent, stratified_folds
from polyplane.cli._table_report import TableReport, keep_and_test
from polyplane.cli._table_source import NamedColumns, TableFacts, open_table
from polyplane.cli._table_stream import train_table_on_stream

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli._train_options import TrainOptions

#: Options that `table` does not support, each with the reason and a remedy.
_NOT_FOR_TABLES = {
    "tune": "`table` selects its preparation and number of planes on held-out rows; omit --tune, or use "
    "another learner",
    "scale": "`table` scales each column itself; omit --scale, or use another learner",
    "resume": "`table` cannot resume training; train again on all rows",
    "time_limit": "`table` supports a time limit with --stream only; use --set max_iter=N to shorten its training",
    "n_features": "the columns of a table are its features; omit --features",
    "classes": "the classes are taken from the label column; --classes is for streaming from standard input",
}


class TrainingTable(NamedTuple):
    """A training table: features as a pyarrow.Table, labels, and facts for the report."""

    X: Any
    y: np.ndarray
    facts: TableFacts


def takes_table(options: TrainOptions) -> bool:
    """Whether the learner is `table`: it is given, or no learner is given and the data are a table."""
    if options.learner is not None or options.resume is not None:
        return options.learner == TABLE
    if (options.reading.get("format") or options.source.format()) not in ("csv", "parquet"):
        return False
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        note('pip install "polyplane[tables]" to train on raw tables; without it, all columns must be numeric.')
        return False
    return True


def train_table(options: TrainOptions, settings: dict[str, Any]) -> None:
    """Read the data, train, write the model, test it, and report."""
    _check(options)
    model = make(TABLE, settings, options.seed, options.threads)
    if options.stream:
        train_table_on_stream(options, model, is_decimal_given="decimal" in settings)
        return
    data = read_training_table(options, model, is_decimal_given="decimal" in settings)
    model.set_params(decimal=data.facts.decimal)
    report = TableReport(options)
    report.show_read(data.facts)
    if options.cv is not None:
        report.cv_errors = _cross_validate(options, model, data)
    set_known(model, verbose=int(report.is_live))
    began = time.perf_counter()
    model.fit(data.X, data.y)
    report.seconds = time.perf_counter() - began
    set_known(model, verbose=0)
    keep_and_test(model, data.facts, report)


def _check(options: TrainOptions) -> None:
    for name, why in _NOT_FOR_TABLES.items():
        if getattr(options, name) and not (options.stream and name in ("time_limit", "classes")):
            shown = {"n_features": "features"}.get(name, name.replace("_", "-"))
            raise UserError(f"--{shown}: {why}.")
    if options.reading.get("format") == "svmlight":
        raise UserError("--format svmlight: `table` takes CSV, TSV and Parquet files.")


def read_training_table(options: TrainOptions, model: Any, is_decimal_given: bool) -> TrainingTable:
    """Read the features and the labels of a file."""
    import numpy as np

    from polyplane.readers.tables import find_decimal, typed, whole_table

    began = time.perf_counter()
    parts = open_table(options)
    table, gaps, name = whole_table(parts), frozenset(model.gaps), parts.input_file.name
    if not table.num_rows:
        raise UserError(f"{name} has no rows.")
    named = NamedColumns.of(table, options, parts.index)
    label = named.label or guess_label(table.drop_columns(list(named.others)), gaps, name)
    if label == named.id:
        raise UserError(f"--id {label}: this is the label column.")
    labels = read_labels(table.column(label), gaps)
    check_label(labels, label, f"--label {label}")
    X = named.features(table, label)
    decimal = model.decimal if is_decimal_given else find_decimal(X, gaps)
    X = typed(X, set(X.column_names) - set(model.kinds or ()), decimal, gaps)
    has_label = labels.codes >= 0
    n_unlabelled = int((~has_label).sum())
    if n_unlabelled:
        X = X.filter(has_label)
        note(f"{name}: {n_unlabelled:,} rows without a label in {label!r} are ignored.")
    y = np.array(labels.values)[labels.codes[has_label]]
    counts = dict(zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True))
    facts = TableFacts(
        len(y), X.num_columns, label, named.id, named.index_columns, n_unlabelled, counts, parts.format, decimal,
        time.perf_counter() - began,
    )  # fmt: skip
    return TrainingTable(X, y, facts)


def _cross_validate(options: TrainOptions, model: Any, data: TrainingTable) -> list[Error]:
    """Return the error of each fold."""
    from sklearn.base import clone

    errors, majority = [], most_frequent(data.y)
    for training, test in stratified_folds(data.y, options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same warnings are shown for the fit on all rows
            fold = clone(model).fit(data.X.take(training), data.y[training])
        errors.append(Error.of_labels(fold.predict(data.X.take(test)), data.y[test], majority))
    return errors
