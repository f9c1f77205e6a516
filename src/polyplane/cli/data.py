"""A model file and the rows of a data file for it, with the options used in training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from polyplane.cli.common import UserError, listed, note, option
from polyplane.cli.rows import find_column, label_kind, match_labels, missing_labels, open_table
from polyplane.learners import LEARNERS

if TYPE_CHECKING:
    import numpy as np

    from polyplane.model import Model
    from polyplane.readers import Rows

#: The panel of options about the data.
PANEL = "The data"
DATA_HELP = (
    "Data file: svmlight, CSV/TSV, Parquet, Arrow, Excel, JSON (also gz/bz2/xz), SQLite, DuckDB; - for standard input."
)
DataPath = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="Model file written by `polyplane train`.")]
SeedOption = Annotated[int, option("N", min=0, help="Seed of the random number generator.")]
PredictingThreads = Annotated[int | None, option(min=1, help="Threads for prediction.")]


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options about a data file.

    Parameters
    ----------
    label : str or None
        Label column of a table, by name or index (0 is the first, -1 the last). Default: the column used in training;
        for `train`, a column named label, class, target or y, or else the last one if it holds classes.
    zero_based : bool or None
        Whether feature indices in svmlight files start at 0 or 1. Default: as in training; for `train`, 1 unless index
        0 occurs.
    format : str or None
        svmlight, csv, parquet, arrow, excel, json, sqlite or duckdb. Default: detected from content and extension.
    encoding : str or None
        Encoding of a CSV file, such as latin-1. Default: UTF-8, or as indicated by a byte order mark.
    table : str or None
        Sheet of an Excel file, or table of a database. Default: the first sheet, or the only table.
    """

    label: Annotated[str | None, option("COLUMN", panel=PANEL)] = None
    zero_based: Annotated[bool | None, option(None, "--zero-based/--one-based", show_default=False, panel=PANEL)] = None
    format: Annotated[str | None, option("FORMAT", panel=PANEL)] = None
    encoding: Annotated[str | None, option("NAME", panel=PANEL)] = None
    table: Annotated[str | None, option("NAME", panel=PANEL)] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that are given: those of `polyplane.readers.read`, and those of tables."""
        names = ("format", "label", "zero_based", "encoding", "table", "id")
        found = {name: getattr(self, name, None) for name in names}
        return {name: value for name, value in found.items() if value is not None}


#: Number of rows of a table that are read at once.
TABLE_ROWS = 65_536


class FileRows(NamedTuple):
    """Some rows of a data file.

    Parameters
    ----------
    X : matrix or pyarrow.Table
        The columns of the model.
    truth : ndarray of shape (n_rows,) or None
        The class of each row, as an index; -1 if it has no label. None if labels were not read.
    first : int
        The index of the first row in the file.
    names : tuple of str or None
        The feature names of a matrix, if the file has any.
    id_name : str or None
        The column of ids of a table.
    ids : list of str or None
        The id of each row.
    """

    X: Any
    truth: np.ndarray | None
    first: int
    names: tuple[str, ...] | None = None
    id_name: str | None = None
    ids: list[str] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def labelled(self, data: str) -> FileRows:
        """Return the rows with a label; the others are ignored, with a note."""
        import numpy as np

        assert self.truth is not None
        kept = np.flatnonzero(self.truth >= 0)
        if len(kept) == self.n_rows:
            return self
        note(f"{data}: {self.n_rows - len(kept):,} rows without a label are ignored.")
        ids = None if self.ids is None else [self.ids[i] for i in kept]
        return self._replace(X=self.X.take(kept), truth=self.truth[kept], ids=ids)


@dataclass(frozen=True, kw_only=True)
class FileOptionsWithId(FileOptions):
    """Options about a data file whose rows can be identified.

    Parameters
    ----------
    id : str or None
        Column that identifies the rows of a table: not used as a feature, and written next to each prediction.
    """

    id: Annotated[str | None, option("COLUMN", "--id", panel=PANEL)] = None


@dataclass
class LoadedModel:
    """An estimator, and the metadata of its file about the training data."""

    estimator: Any
    metadata: Mapping[str, Any]

    @cached_property
    def model(self) -> Model:
        """The model of the estimator."""
        from polyplane.model import Model

        try:
            return Model.of(self.estimator)
        except TypeError as error:
            raise UserError(str(error)) from error

    @property
    def inputs(self) -> Any:
        """The columns of the model."""
        return self.model.inputs

    @property
    def is_table(self) -> bool:
        """Whether the rows of the model are those of a table."""
        return bool(self.inputs.is_table)

    def reading(self) -> dict[str, Any]:
        """Options of `polyplane.readers.read` for matrices."""
        inputs, zero_based = self.inputs, self.metadata.get("zero_based")
        return {
            "n_features": inputs.n_columns,
            "feature_names": list(inputs.names) if inputs.is_named else None,
            "labels": label_kind(self.model.classes),
            "label": self.metadata.get("label"),
            "zero_based": "auto" if zero_based is None else bool(zero_based),
            "dtype": self.model.planes.coef.dtype,
        }

    def batches(
        self, data: str, options: Mapping[str, Any], n_rows: int | None = None, *, labels: bool = True
    ) -> Iterator[FileRows]:
        """Yield the rows of a file in batches; `options` are those of the command line."""
        return (self._table_parts if self.is_table else self._matrix_parts)(data, options, n_rows, labels)

    def _matrix_parts(
        self, data: str, options: Mapping[str, Any], n_rows: int | None, labels: bool
    ) -> Iterator[FileRows]:
        from polyplane.readers import batches

        refuse_table_options(options)
        expected, first = self.reading() | ({} if labels else {"labels": "ignore"}), 0
        for rows in batches(data, n_rows, **{**expected, **options}):
            truth = class_indices(rows, self.model.classes, data) if labels else None
            yield FileRows(rows.X, truth, first, rows.feature_names)
            first += rows.X.shape[0]

    def _table_parts(
        self, data: str, options: Mapping[str, Any], n_rows: int | None, needs_label: bool
    ) -> Iterator[FileRows]:
        import numpy as np

        wanted = {option: options.get(option, self.metadata.get(option)) for option in ("label", "id")}
        if needs_label and wanted["label"] is None:
            raise UserError("the model file does not record the label column; specify it with --label COLUMN.")
        is_by_number = any(option in options for option in wanted)  # an index counts all columns
        known = [column.name for column in self.inputs.columns]
        columns = None if is_by_number else {*known, *(name for name in wanted.values() if name is not None)}
        first, classes = 0, self.model.classes
        for table in open_table(data, options, n_rows or TABLE_ROWS, columns):
            if not table.num_rows:
                raise UserError(f"{data} has no rows.")
            label = self._column(table, "label", wanted["label"], needs_label)
            id_name = self._column(table, "id", wanted["id"], is_needed=False)
            truth = None
            if label is not None:
                truth, unknown = match_labels(table.column(label), missing_labels(self.inputs.gaps), classes)
                if unknown is not None and needs_label:
                    row, labels = first + int(np.argmax(truth == -2)), classes.tolist()
                    raise UserError(
                        f"{data}, row {row}: unknown label {unknown!r}; the model's classes are {listed(labels)}."
                    )
                truth = np.maximum(truth, -1)
            cells = [] if id_name is None else table.column(id_name).to_pylist()
            ids = None if id_name is None else ["" if cell is None else str(cell) for cell in cells]
            yield FileRows(self._columns(table, data), truth, first, None, id_name, ids)
            first += table.num_rows

    def _column(self, table: Any, option: str, wanted: str | None, is_needed: bool) -> str | None:
        """Return the name of a column; None if it is optional and missing."""
        is_recorded = wanted == self.metadata.get(option)
        if not is_needed and is_recorded and wanted not in table.column_names:
            return None
        return find_column(table.column_names, option, wanted)

    def _columns(self, table: Any, data: str) -> Any:
        """Select the columns of the model, and parse numeric strings; missing columns are an error that names them."""
        from polyplane.readers.tables import typed

        inputs, found = self.inputs, set(table.column_names)
        missing = [column.name for column in inputs.columns if column.name not in found]
        if missing:
            names = listed(map(repr, missing), 5)
            raise UserError(f"{data} has no column{'s' if missing[1:] else ''} {names}, which the model requires.")
        table = table.select([column.name for column in inputs.columns])
        numbers = {c.name for c in inputs.columns if c.kind == "number" and c.decimal == "." and c.format.is_plain}
        return typed(table, numbers, inputs.gaps)

    def class_index(self, option: str, label: str | None) -> int | None:
        """Return the index of the class that an option gives by its label."""
        labels = [str(known) for known in self.model.classes.tolist()]
        if label is not None and label not in labels:
            raise UserError(f"--{option}: unknown label {label!r}; expected one of {', '.join(labels)}.")
        return None if label is None else labels.index(label)

    def feature_names(self, part: FileRows | None) -> list[str] | None:
        """Return the names of a matrix's features, as in training or in the file, or svmlight indices; else None."""
        if self.is_table:
            return None
        if self.inputs.is_named:
            return list(self.inputs.names)
        if part is not None and part.names is not None:
            return [str(name) for name in part.names]
        first = int(self.metadata.get("zero_based") is False)
        return [f"feature {first + j}" for j in range(self.model.n_columns)]

    def outcome(
        self, part: FileRows, wanted: Collection[str], more: Mapping[str, Callable[[Any], np.ndarray]] | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Predict the class of each row, and the `wanted` columns: "score", "proba", "winner".

        `more` are functions of the encoded rows, by name.
        """
        model = self.model
        try:
            Z = model.encode(part.X)
        except ValueError as error:
            counted = f" (counting from row {part.first} of the file)" if part.first else ""
            raise UserError(f"{error}{counted}") from error
        scores = model.class_scores(Z)
        metrics: dict[str, Callable[[], np.ndarray]] = {
            "score": lambda: scores,
            "proba": lambda: model.probabilities(scores),
            "winner": lambda: model.planes.winners(model.transform(Z))[:, None],
        }
        found = {name: metrics[name]() for name in wanted} | {name: f(Z) for name, f in (more or {}).items()}
        return scores.argmax(axis=1), found

    def predicting(self, threads: int | None) -> AbstractContextManager[Any]:
        """Set the number of threads for prediction; None: that of training."""
        from joblib import parallel_config

        own = getattr(learner_of(self.estimator), "n_jobs", None)
        return parallel_config("threading", n_jobs=threads or own or 1)


def learner_of(estimator: Any) -> Any:
    """Return the estimator of Polyplane: the estimator, or the last step of a pipeline."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def name_of(estimator: Any) -> str:
    """Return the name of an estimator on the command line; of a `Model`, that of the estimator that it was."""
    own = learner_of(estimator)
    name = str(getattr(own, "learner", type(own).__name__))
    others = {"TableClassifier": "table", "CompressedClassifier": "compressed"}
    return others.get(name) or LEARNERS.get(name, name).replace("_", "-")


def load_model(path: str) -> LoadedModel:
    """Read a model file."""
    from polyplane.loading import read_model

    found = read_model(path)
    return LoadedModel(found.model, found.metadata)


def refuse_table_options(options: Mapping[str, Any]) -> None:
    """Raise an error for options that apply to tables only."""
    for name in ("encoding", "table", "id"):
        if name in options:
            raise UserError(f"--{name} applies to `--learner table` only; this model takes numeric features only.")


def class_indices(rows: Rows, classes: np.ndarray, name: str) -> np.ndarray:
    """Return the labels as indices into `classes`; an unknown label is an error that names its line."""
    import numpy as np

    known = classes.astype(str) if classes.dtype.kind == "O" else classes
    found = np.minimum(np.searchsorted(known, rows.y), len(known) - 1)
    unknown = known[found] != rows.y
    if unknown.any():
        first = int(unknown.argmax())
        where, label = f"{name}, line {rows.lines[first]}", rows.y.tolist()[first]
        raise UserError(f"{where}: unknown label {label!r}; the model's classes are {listed(known)}.")
    return found
