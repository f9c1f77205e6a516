"""`polyplane train` on a table as it comes."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import UserError, note
from polyplane.cli._data import loaded
from polyplane.cli._errors import Error
from polyplane.cli._labels import check_label, find_label, guess_label, read_labels
from polyplane.cli._learners import TABLE, make, set_known
from polyplane.cli._report import most_frequent, stratified_folds, tested
from polyplane.cli._table_report import TableReport

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli._train_options import TrainOptions

#: Why options of other learners do not go with this one, in a sentence each.
_NOT_FOR_TABLES = {
    "tune": "`table` chooses its preparation and its planes on held-out rows by itself; leave out --tune, or name "
    "another learner",
    "scale": "`table` scales each column by itself; leave out --scale, or name another learner",
    "stream": "`table` needs all rows in memory; a table of numbers can be streamed by another learner, as in "
    "--learner multi-hyperplane",
    "resume": "the training of `table` cannot go on; train anew on all rows",
    "time_limit": "`table` cannot be stopped in time; --set max_iter=N makes its training shorter",
    "n_features": "tables have as many columns as they have; leave out --features",
    "classes": "classes are found in the label column; leave out --classes",
}


class TrainingTable(NamedTuple):
    """A table to learn from.

    Parameters
    ----------
    X : pyarrow.Table
        The features.
    y : ndarray of shape (n_rows,)
        The labels.
    label : str
        The label column.
    id : str or None
        The column that names the rows.
    index_columns : tuple of str
        Columns that are an index of pandas.
    n_unlabelled : int
        Rows without a label, which are left out.
    format : str
        CSV or Parquet.
    decimal : str
        The decimal sign.
    seconds : float
        Time that reading took.
    """

    X: Any
    y: np.ndarray
    label: str
    id: str | None
    index_columns: tuple[str, ...]
    n_unlabelled: int
    format: str
    decimal: str
    seconds: float


def takes_table(options: TrainOptions) -> bool:
    """Whether the learner is `table`: it is named, or none is and the data are a table."""
    if options.learner is not None or options.resume is not None:
        return options.learner == TABLE
    if (options.reading.get("format") or options.source.format()) not in ("csv", "parquet"):
        return False
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        note('pip install "polyplane[tables]" trains on tables as they come; without it, all columns must be numbers.')
        return False
    return True


def train_table(options: TrainOptions, settings: dict[str, Any]) -> None:
    """Read, train, write, test, and report."""
    from polyplane.io import save

    _check(options)
    model = make(TABLE, settings, options.seed, options.threads)
    data = read_training_table(options, model, is_decimal_given="decimal" in settings)
    model.set_params(decimal=data.decimal)
    report = TableReport(options, data)
    report.show_read()
    if options.cv is not None:
        report.cv_errors = _cross_validate(options, model, data)
    set_known(model, verbose=int(report.is_live))
    began = time.perf_counter()
    model.fit(data.X, data.y)
    report.seconds = time.perf_counter() - began
    set_known(model, verbose=0)
    facts = {"format": data.format, "label": data.label, "id": data.id}
    facts = {name: value for name, value in facts.items() if value is not None}
    save(model, options.out, metadata=facts)
    report.show_trained(model)
    if options.test is not None:
        report.test_error = tested(loaded(model, facts), options)
    report.finish()


def _check(options: TrainOptions) -> None:
    for name, why in _NOT_FOR_TABLES.items():
        if getattr(options, name):
            shown = {"n_features": "features"}.get(name, name.replace("_", "-"))
            raise UserError(f"--{shown}: {why}.")
    if options.reading.get("format") in ("svmlight", "npz"):
        raise UserError(f"--format {options.reading['format']}: `table` takes CSV, TSV and Parquet files.")


def read_training_table(options: TrainOptions, model: Any, is_decimal_given: bool) -> TrainingTable:
    """The features and the labels of a file."""
    import numpy as np

    from polyplane.io import table_batches
    from polyplane.io._tables import whole_table
    from polyplane.io._typed import find_decimal, typed

    began = time.perf_counter()
    reading = {name: options.reading[name] for name in ("format", "encoding") if name in options.reading}
    parts = table_batches(options.source, None, keep_index=True, **reading)
    table, gaps, name = whole_table(parts), frozenset(model.gaps), parts.input_file.name
    if not table.num_rows:
        raise UserError(f"{name} has no rows.")
    id_column = _named(table, options.reading.get("id"), "id")
    label = _named(table, options.reading.get("label"), "label")
    index = tuple(column for column in parts.index if column not in (label, id_column))
    table = table.drop_columns([*index, *([] if id_column is None else [id_column])])
    if label is None:
        label = guess_label(table, gaps, name)
    if id_column == label:
        raise UserError(f"--id {id_column}: this is the label.")
    labels = read_labels(table.column(label), gaps)
    check_label(labels, label, f"--label {label}")
    X = table.drop_columns([label])
    if not X.num_columns:
        raise UserError(f"{name} has no column besides the label.")
    decimal = model.decimal if is_decimal_given else find_decimal(X, gaps)
    X = typed(X, set(X.column_names) - set(model.kinds or ()), decimal, gaps)
    has_label = labels.codes >= 0
    n_unlabelled = int((~has_label).sum())
    if n_unlabelled:
        X = X.filter(has_label)
        note(f"{name}: {n_unlabelled:,} rows without a label in {label!r} are ignored.")
    y = np.array(labels.values)[labels.codes[has_label]]
    seconds = time.perf_counter() - began
    return TrainingTable(X, y, label, id_column, index, n_unlabelled, parts.format, decimal, seconds)


def _named(table: Any, wanted: str | None, option: str) -> str | None:
    if wanted is None:
        return None
    try:
        return find_label(table.column_names, wanted)
    except UserError as error:
        raise UserError(f"--{option} {wanted}: {error}") from None


def _cross_validate(options: TrainOptions, model: Any, data: TrainingTable) -> list[Error]:
    """The error of each fold."""
    from sklearn.base import clone

    errors, majority = [], most_frequent(data.y)
    for training, test in stratified_folds(data.y, options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say was said of all rows
            fold = clone(model).fit(data.X.take(training), data.y[training])
        errors.append(Error.of_labels(fold.predict(data.X.take(test)), data.y[test], majority))
    return errors
