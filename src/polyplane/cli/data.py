"""A model file and the rows of a data file for it, with the options used in training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from polyplane.cli.common import UserError, listed, note
from polyplane.cli.labels import find_label, match_labels
from polyplane.cli.learners import learner_of

if TYPE_CHECKING:
    import numpy as np

    from polyplane.model import Model
    from polyplane.readers import Rows

DATA_HELP = "Data file in svmlight, CSV/TSV or Parquet format, optionally gz/bz2/xz; - for standard input."
DataFile = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
ModelFile = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model file written by `polyplane train`.", show_default=False)
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Label column of a table, by name or index (0 is the first, -1 the last). Default: the column used in "
        "training; for `train`, a column named label, class, target or y, or else the last one if it holds classes.",
        rich_help_panel="The data",
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Whether feature indices in svmlight files start at 0 or 1. Default: as in training; for `train`, 1 "
        "unless index 0 occurs.",
        show_default=False,
        rich_help_panel="The data",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="svmlight, csv or parquet. Default: detected from content and extension.",
        rich_help_panel="The data",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Encoding of a CSV file, such as latin-1. Default: UTF-8, or as indicated by a byte order mark.",
        rich_help_panel="The data",
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column that identifies the rows of a table: not used as a feature, and written next to each prediction.",
        rich_help_panel="The data",
    ),
]


#: Number of rows of a table that are read at once.
TABLE_ROWS = 65_536


class Part(NamedTuple):
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

    def labelled(self, data: str) -> Part:
        """Return the rows with a label; the others are ignored, with a note."""
        import numpy as np

        assert self.truth is not None
        kept = np.flatnonzero(self.truth >= 0)
        if len(kept) == self.n_rows:
            return self
        note(f"{data}: {self.n_rows - len(kept):,} rows without a label are ignored.")
        ids = None if self.ids is None else [self.ids[i] for i in kept]
        return self._replace(X=self.X.take(kept), truth=self.truth[kept], ids=ids)


@dataclass
class Parts:
    """The rows of a file in batches; it can be iterated over repeatedly."""

    read: Callable[[], Iterator[Part]]

    def __iter__(self) -> Iterator[Part]:
        return self.read()


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
    ) -> Parts:
        """Read the rows of a file in batches; `options` are those of the command line."""
        read = self._table_parts if self.is_table else self._matrix_parts
        return Parts(lambda: read(data, options, n_rows, labels))

    def _matrix_parts(self, data: str, options: Mapping[str, Any], n_rows: int | None, labels: bool) -> Iterator[Part]:
        from polyplane.readers import batches

        refuse_table_options(options)
        expected, first = self.reading() | ({} if labels else {"labels": "ignore"}), 0
        for rows in batches(data, n_rows, **{**expected, **options}):
            truth = class_indices(rows, self.model.classes, data) if labels else None
            yield Part(rows.X, truth, first, rows.feature_names)
            first += rows.X.shape[0]

    def _table_parts(
        self, data: str, options: Mapping[str, Any], n_rows: int | None, needs_label: bool
    ) -> Iterator[Part]:
        import numpy as np

        from polyplane.readers import table_batches

        wanted = {option: options.get(option, self.metadata.get(option)) for option in ("label", "id")}
        if needs_label and wanted["label"] is None:
            raise UserError("the model file does not record the label column; specify it with --label COLUMN.")
        is_by_number = any(option in options for option in wanted)  # an index counts all columns
        known = [column.name for column in self.inputs.columns]
        columns = None if is_by_number else {*known, *(name for name in wanted.values() if name is not None)}
        reading = {name: options[name] for name in ("format", "encoding") if name in options}
        first, classes = 0, self.model.classes
        for table in table_batches(data, n_rows or TABLE_ROWS, columns=columns, keep_index=True, **reading):
            if not table.num_rows:
                raise UserError(f"{data} has no rows.")
            label = self._column(table, "label", wanted["label"], needs_label)
            id_name = self._column(table, "id", wanted["id"], is_needed=False)
            truth = None
            if label is not None:
                truth, unknown = match_labels(table.column(label), self.inputs.gaps, classes)
                if unknown is not None and needs_label:
                    row, labels = first + int(np.argmax(truth == -2)), classes.tolist()
                    raise UserError(
                        f"{data}, row {row}: unknown label {unknown!r}; the model's classes are {listed(labels)}."
                    )
                truth = np.maximum(truth, -1)
            cells = None if id_name is None else table.column(id_name).to_pylist()
            ids = None if cells is None else ["" if cell is None else str(cell) for cell in cells]
            yield Part(self._columns(table, data), truth, first, None, id_name, ids)
            first += table.num_rows

    def _column(self, table: Any, option: str, wanted: str | None, is_needed: bool) -> str | None:
        """Return the name of a column; None if it is optional and missing."""
        is_recorded = wanted == self.metadata.get(option)
        if wanted is None or (not is_needed and is_recorded and wanted not in table.column_names):
            return None
        try:
            return find_label(table.column_names, wanted)
        except UserError as error:
            raise UserError(f"--{option} {wanted}: {error}") from None

    def _columns(self, table: Any, data: str) -> Any:
        """Select the columns of the model, and parse numeric strings; missing columns are an error that names them."""
        from polyplane.readers.tables import typed

        inputs, found = self.inputs, set(table.column_names)
        missing = [column.name for column in inputs.columns if column.name not in found]
        if missing:
            names = listed(map(repr, missing), 5)
            raise UserError(f"{data} has no column{'s' if missing[1:] else ''} {names}, which the model requires.")
        table = table.select([column.name for column in inputs.columns])
        for decimal in (".", ","):
            numbers = {c.name for c in inputs.columns if c.kind == "number" and c.decimal == decimal}
            table = typed(table, numbers, decimal, inputs.gaps)
        return table

    def feature_names(self, part: Part | None) -> list[str] | None:
        """Return the names of a matrix's features, as in training or in the file, or svmlight indices; else None."""
        if self.is_table:
            return None
        if self.inputs.is_named:
            return list(self.inputs.names)
        if part is not None and part.names is not None:
            return [str(name) for name in part.names]
        first = int(self.metadata.get("zero_based") is False)
        return [f"feature {first + j}" for j in range(self.model.n_columns)]

    def predict(self, part: Part) -> np.ndarray:
        """Predict the class of each row, as an index."""
        return self.outcome(part, ())[0]

    def outcome(self, part: Part, wanted: Collection[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Predict the class of each row, and the `wanted` columns: "score", "proba", "winner"."""
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
        return scores.argmax(axis=1), {name: metrics[name]() for name in wanted}

    def predicting(self, threads: int | None) -> AbstractContextManager[Any]:
        """Set the number of threads for prediction; None: that of training."""
        from joblib import parallel_config

        return parallel_config("threading", n_jobs=threads or getattr(learner_of(self.estimator), "n_jobs", None) or 1)


def load_model(path: str) -> LoadedModel:
    """Read a model file."""
    from polyplane.loading import read_model

    found = read_model(path)
    return LoadedModel(found.model, found.metadata)


def reading_options(
    format: str | None, label: str | None, zero_based: bool | None, encoding: str | None = None, id: str | None = None
) -> dict[str, Any]:
    """Collect the options about a data file: those of `polyplane.readers.read`, and those of tables."""
    given = {"format": format, "label": label, "zero_based": zero_based, "encoding": encoding, "id": id}
    return {name: value for name, value in given.items() if value is not None}


def refuse_table_options(options: Mapping[str, Any]) -> None:
    """Raise an error for options that apply to tables only."""
    for name in ("encoding", "id"):
        if name in options:
            raise UserError(f"--{name} applies to `--learner table` only; this model takes numeric features only.")


def label_kind(classes: np.ndarray) -> str:
    """Return the value of `labels` for `polyplane.readers.read`: "number" or "text"."""
    return "text" if classes.dtype.kind in "UO" else "number"


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
