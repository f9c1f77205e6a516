"""The rows of a training file, matrix or table, in memory or as a stream; and the labels of tables."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane._plain import did_you_mean
from polyplane.cli.common import UserError, listed, note

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli.data import LoadedModel
    from polyplane.cli.train import TrainOptions
    from polyplane.engine.data import AffineScaling, FeatureMoments
    from polyplane.readers import TableBatches

#: A numeric column with more distinct values is not used as the label unless `--label` names it.
MOST_NUMBERS = 20
#: A column whose fraction of distinct values is larger contains ids or quantities, not classes.
MOST_DIFFERENT = 0.5
#: A longer string is not parsed as a number.
MOST_DIGITS = 400
#: Number of rows that the encoder of a table is fitted to in a stream.
FIRST_ROWS = 50_000
#: The strings that mark a missing label, among the usual ones.
MISSING_LABELS = ("", "?", "NA", "N/A", "NaN", "nan", "null")
#: As numbers, these strings would lose their leading zeros.
_LEADING_ZERO = re.compile(r"[+-]*0\d")


def missing_labels(gaps: Collection[str]) -> frozenset[str]:
    """Return the strings that mark a missing label: of the usual ones only a few, as "None" may be a class."""
    from polyplane.tables.encoder import GAPS

    return frozenset(gap for gap in gaps if gap in MISSING_LABELS or gap not in GAPS)


def count_labels(columns: Iterable[Any], missing: Collection[str]) -> tuple[dict[Any, int], int]:
    """Return the number of rows of each label in parts of an Arrow column, and of rows without a label."""
    import numpy as np

    cells: Counter[Any] = Counter()
    for column in columns:
        codes, values = _cells(column, missing)
        for cell, n in zip([None, *values], np.bincount(codes + 1, minlength=len(values) + 1).tolist(), strict=True):
            cells[cell] += n
    n_missing, counts = cells.pop(None, 0), Counter[Any]()
    cells = +cells
    for label, n in zip(parse_labels(list(cells)), cells.values(), strict=True):
        counts[label] += n
    return dict(sorted(counts.items())), n_missing


def parse_labels(cells: Sequence[Any]) -> list[Any]:
    """Convert labels to integers if all of them are integers of 64 bits; otherwise to strings. None are merged."""
    numbers = [_number(cell) for cell in cells]
    integers = [int(n) for n in numbers if n is not None and n == int(n) and -(2**63) <= n < 2**63]
    return integers if len(integers) == len(cells) else [str(cell) for cell in cells]


def match_labels(column: Any, missing: Collection[str], classes: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the labels as indices into `classes` (-1: missing, -2: unknown), and the first unknown label."""
    import numpy as np

    codes, cells = _cells(column, missing)
    key = _number if classes.dtype.kind in "iuf" else str
    known = {key(label): c for c, label in enumerate(classes.tolist())}
    found = np.array([*(-1 if cell is None else known.get(key(cell), -2) for cell in cells), -1])[codes]
    unknown = next((cells[code] for code in codes[found == -2][:1]), None)
    return found, unknown


def _cells(column: Any, missing: Collection[str]) -> tuple[np.ndarray, list[Any]]:
    """Return the index of each value, and the distinct values: strings or numbers; None if missing."""
    import numpy as np
    from pyarrow import types

    encoded = column.combine_chunks()
    if not types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    used = np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary)) > 0
    values = encoded.dictionary.to_pylist()
    return codes, [_cell(value, missing) if is_used else None for value, is_used in zip(values, used, strict=True)]


def _cell(value: Any, missing: Collection[str]) -> Any:
    """Return a label as a string or a number; None if it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = str(value).strip()
    return None if text in missing else text


def _number(cell: Any) -> int | float | None:
    """Return a label as a number, exact if it is an integer; None if it is not one, or would lose its leading zeros."""
    if not isinstance(cell, str):
        return cell if cell - cell == 0 else None
    if len(cell) > MOST_DIGITS or "_" in cell or not cell.isascii() or _LEADING_ZERO.match(cell):
        return None
    for read in (int, float):
        try:
            number: int | float = read(cell)
        except ValueError:
            continue
        return number if number - number == 0 else None
    return None


def label_kind(classes: np.ndarray) -> str:
    """Return the value of `labels` for `polyplane.readers.read`: "number" or "text"."""
    return "text" if classes.dtype.kind in "UO" else "number"


def open_table(
    source: Any, given: Mapping[str, Any], n_rows: int | None = None, columns: set[str] | None = None
) -> TableBatches:
    """Open a table file with the options of the command line."""
    from polyplane.readers import table_batches

    reading = {name: given[name] for name in ("format", "encoding", "table") if name in given}
    return table_batches(source, n_rows, keep_index=True, columns=columns, **reading)


def find_column(names: Sequence[str], option: str, wanted: str | None) -> str | None:
    """Return the column that ``--label`` or ``--id`` gives by name or index."""
    if wanted is None or wanted in names:
        return wanted
    if wanted.lstrip("-").isdigit() and -len(names) <= int(wanted) < len(names):
        return names[int(wanted)]
    hint = did_you_mean(wanted, names) or f" The columns are {listed(names)}."
    raise UserError(f"--{option} {wanted}: the table has no column {wanted!r}.{hint}")


def usual_label(names: Sequence[str]) -> str | None:
    """Return the only column with a common label name."""
    from polyplane.readers.rows import USUAL_LABELS

    usual = [name for name in names if name.lower() in USUAL_LABELS]
    return usual[0] if len(usual) == 1 else None


def check_guess(name: str | None, counts: Mapping[Any, int], data: str, names: Sequence[str] = ()) -> None:
    """Raise an error if a label column that was not named, the last one of a table, may not contain classes."""
    are_numbers = all(_number(label) is not None for label in counts)
    has_too_many = _are_too_many(counts) or (are_numbers and len(counts) > MOST_NUMBERS)
    if name is None or usual_label([name]) is not None or not has_too_many:
        return
    columns = f" The columns are {listed(names, 20)}." if names else ""
    raise UserError(
        f"{data}: the label column is ambiguous: the last one, {name!r}, has {len(counts):,} different "
        f"{'numbers' if are_numbers else 'strings'}. Specify it with --label COLUMN.{columns}"
    )


def check_label(counts: Mapping[Any, int], name: str, option: str) -> None:
    """Raise an error if a column does not contain classes."""
    if not counts:
        raise UserError(f"{option}: the column {name!r} contains no labels.")
    _refuse_single(list(counts), name)
    are_fractions = all(isinstance(label, str) and _number(label) is not None for label in counts)
    if _are_too_many(counts) or (are_fractions and len(counts) > MOST_NUMBERS):
        raise UserError(
            f"{option}: the column {name!r} has {len(counts):,} different values in {sum(counts.values()):,} rows, too "
            "many for classes; specify another column, or group its values into a few classes first."
        )


def _are_too_many(counts: Mapping[Any, int]) -> bool:
    return len(counts) > max(2, MOST_DIFFERENT * sum(counts.values()))


def _refuse_single(classes: Sequence[Any], name: str) -> None:
    if len(classes) == 1:
        raise UserError(
            f"The label column {name!r} contains a single class, {classes[0]!r}; at least two classes are required."
        )


# Training rows.


@dataclass(frozen=True)
class DataFacts:
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
    index_columns : tuple of str
        Index columns of a table, written by pandas.
    n_unlabelled : int
        Number of rows without a label, which are ignored.
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
    index_columns: tuple[str, ...] = ()
    n_unlabelled: int = 0
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


def count(labels: Any) -> dict[Any, int]:
    """Return the number of rows of each class."""
    import numpy as np

    classes, counts = np.unique(labels, return_counts=True)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def scaling_by(moments: FeatureMoments, method: str) -> AffineScaling | None:
    """Return the scaling of a method of ``--scale``."""
    return None if method == "none" else moments.standard() if method == "standard" else moments.maxabs()


class MatrixSource:
    """Training data as a matrix; `resumed` is the model whose training is resumed."""

    def __init__(self, options: TrainOptions, resumed: Any) -> None:
        self.options, self.resumed = options, resumed
        self.reading = ({} if resumed is None else resumed.reading()) | options.given
        if options.features is not None:
            self.reading["n_features"] = options.features

    def read(self) -> TrainingRows:
        """Read all rows."""
        from polyplane.readers import read
        from polyplane.readers.rows import NotNumbersError

        try:
            rows = read(self.options.source, **self.reading)
        except NotNumbersError as error:
            if self.resumed is not None:
                raise
            raise UserError(f"{str(error).rstrip('.')}; --learner table accepts such columns.") from error
        counts = count(rows.y)
        if self.resumed is None and "label" not in self.reading:
            check_guess(rows.facts.get("label"), counts, self.options.source.name)
        facts = DataFacts(len(rows.y), rows.X.shape[1], rows.facts, counts, feature_names=rows.feature_names)
        return TrainingRows(rows.X, rows.y, facts)

    def stream(self) -> tuple[DataFacts, Callable[[], Any]]:
        """Return facts about the data, and a function that reads it in batches."""
        from polyplane.readers import batches

        facts = self._given() if self.options.data == "-" else self._surveyed()
        if self.resumed is not None:
            facts = replace(facts, class_counts=dict.fromkeys(self.resumed.model.classes.tolist(), 0))
        zero_based = facts.metadata.get("zero_based")
        reading = self.reading | ({} if zero_based is None else {"zero_based": zero_based})
        reading |= {"n_features": facts.n_columns, "labels": label_kind(facts.classes)}
        parts = batches(self.options.source, self.options.batch_rows, **reading)
        return facts, lambda: ((part.X, part.y) for part in parts)

    def _surveyed(self) -> DataFacts:
        """Read a stream to find its labels, its features and their scales."""
        import numpy as np

        from polyplane.engine.data import FeatureMoments, refuse_extremes
        from polyplane.readers import batches

        moments, classes, part = FeatureMoments(), None, None
        for part in batches(self.options.source, self.options.batch_rows, **self.reading):
            found = np.unique(part.y)
            if classes is None and len(found) == 1:
                note(f"The first {len(part.lines)} rows all have the class {found.tolist()[0]!r}; shuffle the data.")
            classes = found if classes is None else np.union1d(classes, found)
            if self.options.scaling != "none":
                refuse_extremes(part.X)
                moments.add(part.X)
        assert part is not None  # the reader raises an error for an empty stream
        assert classes is not None
        counts, scaling = dict.fromkeys(classes.tolist(), 0), scaling_by(moments, self.options.scaling)
        return DataFacts(0, part.X.shape[1], part.facts, counts, feature_names=part.feature_names, scaling=scaling)

    def _given(self) -> DataFacts:
        """Take the facts about standard input from the command line, or from the model to resume."""
        options, resumed, n_features = self.options, self.resumed, self.reading.get("n_features")
        classes = None if resumed is None else resumed.model.classes.tolist()
        if options.classes is not None:
            classes = given_labels(options.classes)
        if classes is None or n_features is None or options.scaling != "none":
            raise UserError(
                "Standard input can be read only once: with --stream, also specify --classes and --features, and omit "
                "--scale."
            )
        return DataFacts(0, n_features, {} if resumed is None else resumed.metadata, dict.fromkeys(classes, 0))


def given_labels(classes: str) -> list[Any]:
    """Return the labels of ``--classes``."""
    return sorted(set(parse_labels([text.strip() for text in classes.split(",")])))


class TableSource:
    """Training data as a table."""

    def __init__(self, options: TrainOptions, model: Any) -> None:
        self.options, self.model = options, model
        self.missing = missing_labels(model.gaps)

    def read(self) -> TrainingRows:
        """Read all rows; those without a label are ignored."""
        from polyplane.readers.tables import whole_table

        began, parts = time.perf_counter(), open_table(self.options.source, self.options.given)
        table, name = whole_table(parts), parts.input_file.name
        if not table.num_rows:
            raise UserError(f"{name} has no rows.")
        columns = NamedColumns.of(table, self.options.given, parts.index)
        names = [own for own in table.column_names if own not in columns.others]
        label = columns.label or usual_label(names) or names[-1]
        if label == columns.id:
            raise UserError(f"--id {label}: this is the label column.")
        counts, n_unlabelled = count_labels([table.column(label)], self.missing)
        if columns.label is None:
            check_guess(label, counts, name, names)
        check_label(counts, label, f"--label {label}")
        X = columns.features(table, label)
        X = self._typed(X, set(X.column_names))
        facts = self._facts(columns, X, label, counts, parts.format, began, n_unlabelled)
        found, _ = match_labels(table.column(label), self.missing, facts.classes)
        if n_unlabelled:
            X = X.filter(found >= 0)
            note(f"{name}: {n_unlabelled:,} rows without a label in {label!r} are ignored.")
        return TrainingRows(X, facts.classes[found[found >= 0]], facts)

    def stream(self) -> tuple[DataFacts, Callable[[], Any]]:
        """Return facts about the data, and a function that reads it in batches."""
        facts = self._given() if self.options.data == "-" else self._surveyed()
        return facts, lambda: self._batches(facts.metadata["label"], facts.classes)

    def _surveyed(self) -> DataFacts:
        """Read the columns from the first rows, and the labels from all rows."""
        began, source, given = time.perf_counter(), self.options.source, self.options.given
        parts = open_table(source, given, self.options.batch_rows)
        first = next(iter(parts))
        columns = NamedColumns.of(first, given, parts.index)
        label = columns.label or usual_label(first.column_names)
        if label is None:
            raise UserError("--stream: specify the label column with --label COLUMN.")
        X = columns.features(first, label)
        labels = (part.column(label) for part in open_table(source, given, columns={label}))
        counts, n_unlabelled = count_labels(labels, self.missing)
        if not counts:
            raise UserError(f"{self.options.data} has no rows with a label in the column {label!r}.")
        _refuse_single(list(counts), label)
        return self._facts(columns, X, label, counts, parts.format, began, n_unlabelled)

    def _given(self) -> DataFacts:
        """Take the facts about standard input, which can be read only once, from the command line."""
        given, classes = self.options.given, self.options.classes
        if classes is None or "label" not in given:
            raise UserError("Standard input can be read only once: with --stream, also specify --classes and --label.")
        metadata = {"format": "csv"} | {name: given[name] for name in ("label", "id") if name in given}
        return DataFacts(0, 0, metadata, dict.fromkeys(given_labels(classes), 0))

    def _facts(
        self, columns: NamedColumns, X: Any, label: str, counts: dict[Any, int], format: str, began: float, n: int
    ) -> DataFacts:
        recorded = {"format": format, "label": label, "id": columns.id}
        metadata = {name: value for name, value in recorded.items() if value is not None}
        return DataFacts(
            sum(counts.values()), X.num_columns, metadata, counts, time.perf_counter() - began,
            columns.index_columns, n,
        )  # fmt: skip

    def _typed(self, X: Any, columns: set[str]) -> Any:
        from polyplane.readers.tables import typed

        own = {} if self.model.date_format is None else self.model.date_format
        as_text = columns if isinstance(own, str) or self.model.decimal == "," else {*own, *(self.model.kinds or ())}
        return typed(X, columns - as_text, self.model.gaps)

    def _batches(self, label: str, classes: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield the labelled rows in batches; columns that are numeric in the first rows are parsed as numbers."""
        first_row, numbers, data = 0, None, self.options.data
        parts = open_table(self.options.source, self.options.given, self.options.batch_rows)
        for table in _first_joined(parts, FIRST_ROWS):
            columns = NamedColumns.of(table, self.options.given, parts.index)
            if label not in table.column_names:
                raise UserError(
                    f"--label {label}: {data} has no such column; with --stream, the label column needs a name."
                )
            found, unknown = match_labels(table.column(label), self.missing, classes)
            if unknown is not None:
                row = first_row + int((found == -2).argmax())
                raise UserError(f"{data}, row {row}: the label {unknown!r} is not in --classes.")
            X = columns.features(table, label)
            X = self._typed(X, set(X.column_names) if numbers is None else numbers)
            if numbers is None:
                numbers = {field.name for field in X.schema if str(field.type) in ("int64", "double")}
            first_row += table.num_rows
            if (found >= 0).any():
                yield X.filter(found >= 0), classes[found[found >= 0]]


class MoreRows:
    """New rows of a table, for the model whose training is resumed: its columns, and its classes."""

    def __init__(self, options: TrainOptions, resumed: LoadedModel) -> None:
        self.options, self.resumed = options, resumed

    def stream(self) -> tuple[DataFacts, Callable[[], Any]]:
        """Return facts about the data, and a function that reads it in batches."""
        counts = dict.fromkeys(self.resumed.model.classes.tolist(), 0)
        return DataFacts(0, 0, self.resumed.metadata, counts), self._batches

    def _batches(self) -> Iterator[tuple[Any, np.ndarray]]:
        options, classes = self.options, self.resumed.model.classes
        for part in self.resumed.batches(options.data, options.given, options.batch_rows):
            rows = part.labelled(options.data)
            if rows.n_rows:
                yield rows.X, classes[rows.truth]


class NamedColumns(NamedTuple):
    """The label and id columns given on the command line, and index columns written by pandas."""

    label: str | None
    id: str | None
    index_columns: tuple[str, ...]

    @classmethod
    def of(cls, table: Any, given: Mapping[str, Any], index: tuple[str, ...]) -> NamedColumns:
        """Find the columns in a table."""
        label, id = (find_column(table.column_names, option, given.get(option)) for option in ("label", "id"))
        return cls(label, id, tuple(name for name in index if name not in (label, id)))

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
