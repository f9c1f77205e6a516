"""Training for the command line: on a matrix or a table, in memory or on a stream, until a time limit or Ctrl-C."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from polyplane.cli.common import UserError, note
from polyplane.cli.data import LoadedModel, label_kind
from polyplane.cli.labels import (
    cell_counts,
    check_guess,
    check_label,
    find_label,
    guess_label,
    match_labels,
    parse_labels,
    read_labels,
    usual_label,
)
from polyplane.cli.learners import check_classes, name_of, set_known
from polyplane.cli.report import Error

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli.train_options import TrainOptions
    from polyplane.engine.data import AffineScaling, FeatureMoments
    from polyplane.engine.run import Limits
    from polyplane.readers import TableBatches

#: Number of rows that the encoder of a table is fitted to in a stream.
FIRST_ROWS = 50_000


class DataFacts(NamedTuple):
    """Facts about the training data.

    Parameters
    ----------
    n_rows, n_columns : int
        Number of rows with a label, and of features or feature columns.
    metadata : dict
        Reading options for the model file.
    class_counts : dict of label to int
        The number of rows of each class; in a stream of a matrix, 0.
    seconds : float
        Reading time.
    label, id : str or None
        The label column of a table, and the column that identifies the rows.
    index_columns : tuple of str
        Index columns of a table, written by pandas.
    n_unlabelled : int
        Number of rows without a label, which are ignored.
    decimal : str
        The decimal separator of a table.
    feature_names : tuple of str or None
        The features of a matrix.
    scaling : AffineScaling or None
        The scaling of a matrix.
    """

    n_rows: int
    n_columns: int
    metadata: Mapping[str, Any]
    class_counts: dict[Any, int]
    seconds: float = 0.0
    label: str | None = None
    id: str | None = None
    index_columns: tuple[str, ...] = ()
    n_unlabelled: int = 0
    decimal: str = "."
    feature_names: tuple[str, ...] | None = None
    scaling: AffineScaling | None = None

    @property
    def classes(self) -> np.ndarray:
        """The class labels."""
        import numpy as np

        return np.array(list(self.class_counts))


class TrainingRows(NamedTuple):
    """Training rows in memory: a matrix or a pyarrow.Table, the labels, and facts about the data."""

    X: Any
    y: np.ndarray
    facts: DataFacts

    def take(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the features and the labels of some rows."""
        return self.X.take(rows) if hasattr(self.X, "column_names") else self.X[rows], self.y[rows]


class Outcome(NamedTuple):
    """Training time in seconds, and whether training was interrupted by Ctrl-C."""

    seconds: float
    interrupted: bool


def train_in_memory(options: TrainOptions, model: Any, rows: TrainingRows) -> Outcome:
    """Train on all rows at once."""
    scaling = scaling_of(rows.X, options.scaling)
    outcome = _train(model, options, lambda limits: model._fit(rows.X, rows.y, None, limits, scaling))
    name_features(model, rows.facts.feature_names)
    return outcome


def train_on_stream(options: TrainOptions, model: Any, facts: DataFacts, batches: Callable[[], Any]) -> Outcome:
    """Train on rows in batches, pass by pass."""
    from polyplane._streaming import StreamOptions

    stream = StreamOptions(classes=facts.classes, passes=options.passes or 1, progressive=False)
    outcome = _train(model, options, lambda limits: model._fit_stream(batches, stream, limits, facts.scaling))
    name_features(model, facts.feature_names)
    return outcome


def _train(model: Any, options: TrainOptions, fit: Callable[[Limits], Any]) -> Outcome:
    """Train until the end, the time limit or the first Ctrl-C.

    If no step was finished, `KeyboardInterrupt` is raised.
    """
    from polyplane.engine.run import Interrupt, Limits

    planes, interrupt = getattr(model, "planes_", None), Interrupt()
    interrupted, began = False, time.perf_counter()
    with interrupt.watched():
        try:
            fit(Limits(options.time_limit, interrupt))
        except KeyboardInterrupt:
            if getattr(model, "planes_", None) is planes:
                raise
            interrupted = True
    return Outcome(time.perf_counter() - began, interrupted or interrupt.requested is not None)


def name_features(model: Any, names: tuple[str, ...] | None) -> None:
    """Name the features of a matrix as in its file."""
    import numpy as np

    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def cross_validate(options: TrainOptions, model: Any, rows: TrainingRows) -> list[Error]:
    """Return the error of each fold; it is scaled by its own training rows, or like the model to resume."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from polyplane.engine.run import Limits

    assert options.cv is not None
    labels, counts = np.unique(rows.y, return_counts=True)
    if counts.min() < options.cv:
        raise UserError(
            f"--cv {options.cv}: the smallest class has only {counts.min()} rows; use at most that many folds."
        )
    errors, majority = [], labels.tolist()[counts.argmax()]
    folds = StratifiedKFold(options.cv, shuffle=True, random_state=options.seed)
    for training, test in folds.split(np.empty(len(rows.y)), rows.y):
        fold = clone(model)
        set_known(fold, warm_start=False)
        (X, y), (X_test, y_test) = rows.take(training), rows.take(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same warnings are shown for the fit on all rows
            fold._fit(X, y, None, Limits(options.time_limit), model._scaling or scaling_of(X, options.scaling))
        errors.append(Error.of_labels(fold.predict(X_test), y_test, majority))
    return errors


# Matrices.


def read_matrix(options: TrainOptions, model: Any, resumed: LoadedModel | None) -> TrainingRows:
    """Read all rows of a matrix."""
    import numpy as np

    from polyplane.readers import read
    from polyplane.readers.rows import NotNumbersError

    try:
        rows = read(options.source, **options.reading_for(resumed))
    except NotNumbersError as error:
        if resumed is not None:
            raise
        raise UserError(f"{str(error).rstrip('.')}; --learner table accepts such columns.") from error
    if resumed is None and "label" not in options.reading:
        check_guess(rows.facts.get("label"), rows.y, options.source.name)
    classes, counts = np.unique(rows.y, return_counts=True)
    check_classes(model, classes)
    found = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    n_rows, n_features = rows.X.shape
    return TrainingRows(
        rows.X, rows.y, DataFacts(n_rows, n_features, rows.facts, found, feature_names=rows.feature_names)
    )


def matrix_stream(
    options: TrainOptions, model: Any, resumed: LoadedModel | None
) -> tuple[DataFacts, Callable[[], Any]]:
    """Return facts about a matrix that is read in batches, and a function that reads it."""
    from polyplane.readers import batches

    if not model._declaration.streams:
        raise UserError(f"--stream: {name_of(model)} needs all rows in memory; omit --stream, or use another learner.")
    reading = options.reading_for(resumed)
    facts = _given_matrix(options, resumed) if options.data == "-" else _survey_matrix(options, reading)
    if resumed is not None:
        facts = facts._replace(class_counts=dict.fromkeys(resumed.model.classes.tolist(), 0))
    check_classes(model, facts.classes)
    zero_based = facts.metadata.get("zero_based")
    reading |= {} if zero_based is None else {"zero_based": zero_based}
    reading |= {"n_features": facts.n_columns, "labels": label_kind(facts.classes)}
    parts = batches(options.source, options.batch_rows, **reading)
    return facts, lambda: ((part.X, part.y) for part in parts)


def _survey_matrix(options: TrainOptions, reading: dict[str, Any]) -> DataFacts:
    """Read a stream to find its labels, its features and their scales."""
    import numpy as np

    from polyplane.engine.data import FeatureMoments, refuse_extremes
    from polyplane.readers import batches

    moments, classes, part = FeatureMoments(), None, None
    for part in batches(options.source, options.batch_rows, **reading):
        found = np.unique(part.y)
        if classes is None and len(found) == 1:
            note(f"The first {len(part.lines)} rows all have the class {found.tolist()[0]!r}; shuffle the data.")
        classes = found if classes is None else np.union1d(classes, found)
        if options.scaling != "none":
            refuse_extremes(part.X)
            moments.add(part.X)
    assert part is not None  # the reader raises an error for an empty stream
    assert classes is not None
    counts, scaling = dict.fromkeys(classes.tolist(), 0), _scaling_by(moments, options.scaling)
    return DataFacts(0, part.X.shape[1], part.facts, counts, feature_names=part.feature_names, scaling=scaling)


def _given_matrix(options: TrainOptions, resumed: LoadedModel | None) -> DataFacts:
    """Take the facts about a stream from standard input from the command line, or from the model to resume."""
    classes = None if resumed is None else resumed.model.classes.tolist()
    n_features = options.n_features if resumed is None else resumed.model.n_columns
    if options.classes is not None:
        import numpy as np

        classes = np.unique(np.array([_integer_or_text(text) for text in options.classes.split(",")])).tolist()
    if classes is None or n_features is None or options.scaling != "none":
        raise UserError(
            "Standard input can be read only once: with --stream, also specify --classes and --features, and omit "
            "--scale."
        )
    return DataFacts(0, n_features, {} if resumed is None else resumed.metadata, dict.fromkeys(classes, 0))


def _integer_or_text(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text.strip()


def scaling_of(X: Any, method: str) -> AffineScaling | None:
    """Fit the scaling of a method of ``--scale`` to the features."""
    from polyplane.engine.data import FeatureMoments, refuse_extremes

    moments = FeatureMoments()
    if method != "none":
        refuse_extremes(X)
        moments.add(X)
    return _scaling_by(moments, method)


def _scaling_by(moments: FeatureMoments, method: str) -> AffineScaling | None:
    return {"none": lambda: None, "standard": moments.standard, "maxabs": moments.maxabs}[method]()


# Tables.


class NamedColumns(NamedTuple):
    """The label and id columns given on the command line, and index columns written by pandas."""

    label: str | None
    id: str | None
    index_columns: tuple[str, ...]

    @classmethod
    def of(cls, table: Any, options: TrainOptions, index: tuple[str, ...]) -> Self:
        """Find the columns in a table."""
        found: dict[str, str | None] = {"label": None, "id": None}
        for option in found:
            wanted = options.reading.get(option)
            if wanted is not None:
                try:
                    found[option] = find_label(table.column_names, wanted)
                except UserError as error:
                    raise UserError(f"--{option} {wanted}: {error}") from None
        return cls(**found, index_columns=tuple(name for name in index if name not in found.values()))

    @property
    def others(self) -> tuple[str, ...]:
        """Columns that are neither features nor the label."""
        return self.index_columns if self.id is None else (*self.index_columns, self.id)

    def features(self, table: Any, label: str) -> Any:
        """Select the feature columns."""
        X = table.drop_columns([*self.others, label])
        if not X.num_columns:
            raise UserError("The table has no columns other than the label.")
        return X

    def facts(self, X: Any, label: str, counts: Mapping[Any, int], format: str, **others: Any) -> DataFacts:
        """Describe a table with these feature columns and numbers of rows of each class."""
        recorded = {"format": format, "label": label, "id": self.id}
        metadata = {name: value for name, value in recorded.items() if value is not None}
        return DataFacts(
            sum(counts.values()), X.num_columns, metadata, dict(sorted(counts.items())), label=label, id=self.id,
            index_columns=self.index_columns, **others,
        )  # fmt: skip


def _open_table(options: TrainOptions, n_rows: int | None = None, columns: set[str] | None = None) -> TableBatches:
    from polyplane.readers import table_batches

    reading = {name: options.reading[name] for name in ("format", "encoding") if name in options.reading}
    return table_batches(options.source, n_rows, keep_index=True, columns=columns, **reading)


def read_table(options: TrainOptions, model: Any, is_decimal_given: bool) -> TrainingRows:
    """Read all rows of a table; rows without a label are ignored."""
    import numpy as np

    from polyplane.readers.tables import find_decimal, typed, whole_table

    began = time.perf_counter()
    parts = _open_table(options)
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
    model.set_params(decimal=decimal)
    X = typed(X, set(X.column_names) - set(model.kinds or ()), decimal, gaps)
    has_label = labels.codes >= 0
    n_unlabelled = int((~has_label).sum())
    if n_unlabelled:
        X = X.filter(has_label)
        note(f"{name}: {n_unlabelled:,} rows without a label in {label!r} are ignored.")
    y = np.array(labels.values)[labels.codes[has_label]]
    counts = dict(zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True))
    seconds = time.perf_counter() - began
    facts = named.facts(X, label, counts, parts.format, seconds=seconds, n_unlabelled=n_unlabelled, decimal=decimal)
    return TrainingRows(X, y, facts)


def table_stream(options: TrainOptions, model: Any, is_decimal_given: bool) -> tuple[DataFacts, Callable[[], Any]]:
    """Return facts about a table that is read in batches, and a function that reads it."""
    facts = _given_table(options, model) if options.data == "-" else _survey_table(options, model, is_decimal_given)
    model.set_params(decimal=facts.decimal)
    return facts, lambda: _table_batches(options, model, str(facts.label), facts.classes)


def _survey_table(options: TrainOptions, model: Any, is_decimal_given: bool) -> DataFacts:
    """Read the columns from the first rows, and the labels from all rows."""
    from polyplane.readers.tables import find_decimal

    began, gaps = time.perf_counter(), frozenset(model.gaps)
    parts = _open_table(options, options.batch_rows)
    first = next(iter(parts))
    named = NamedColumns.of(first, options, parts.index)
    label = named.label or usual_label(first.column_names)
    if label is None:
        raise UserError("--stream: specify the label column with --label COLUMN.")
    X = named.features(first, label)
    cells: Counter = Counter()
    for part in _open_table(options, None, {label}):
        cells.update(cell_counts(part.column(label), gaps))
    n_unlabelled = cells.pop(None, 0)
    if not cells:
        raise UserError(f"{options.data} has no rows with a label in the column {label!r}.")
    labels, counts = parse_labels(list(cells)), Counter[Any]()
    for value, n in zip(labels, cells.values(), strict=True):
        counts[value] += n
    if len(counts) < 2:
        raise UserError(
            f"The label column {label!r} contains a single class, {labels[0]!r}; at least two classes are required."
        )
    decimal = model.decimal if is_decimal_given else find_decimal(X, gaps)
    seconds = time.perf_counter() - began
    return named.facts(X, label, counts, parts.format, seconds=seconds, n_unlabelled=n_unlabelled, decimal=decimal)


def _given_table(options: TrainOptions, model: Any) -> DataFacts:
    """Take the facts about a table that can be read only once from the command line."""
    label, id = options.reading.get("label"), options.reading.get("id")
    if options.classes is None or label is None:
        raise UserError("Standard input can be read only once: with --stream, also specify --classes and --label.")
    classes = parse_labels([text.strip() for text in options.classes.split(",")])
    metadata = {"format": "csv", "label": label} | ({} if id is None else {"id": id})
    return DataFacts(0, 0, metadata, dict.fromkeys(sorted(classes), 0), label=label, id=id, decimal=model.decimal)


def _table_batches(
    options: TrainOptions, model: Any, label: str, classes: np.ndarray
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the labelled rows in batches; columns that are numeric in the first rows are parsed as numbers."""
    from polyplane.readers.tables import typed

    gaps, first_row = frozenset(model.gaps), 0
    numbers: set[str] | None = None
    parts = _open_table(options, options.batch_rows)
    for table in _first_joined(parts, FIRST_ROWS):
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


def _first_joined(parts: Any, n_rows: int) -> Iterator[Any]:
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
