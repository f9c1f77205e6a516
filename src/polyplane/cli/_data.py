"""Reading data for a command, with the options used in training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from polyplane.cli._common import UserError, listed
from polyplane.cli._learners import TABLE, learner_of, name_of
from polyplane.cli._table_data import LoadedTable

if TYPE_CHECKING:
    import numpy as np

    from polyplane.readers import Batches, Rows

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


class LoadedModel(NamedTuple):
    """A model, and the metadata of its file about the training data."""

    model: Any
    metadata: Mapping[str, Any]

    @property
    def planes(self) -> Any:
        """The planes; in a pipeline, they take scaled rows."""
        return learner_of(self.model).planes_

    def scaled(self, X: Any) -> Any:
        """Apply the scalers of a pipeline to rows."""
        if not hasattr(self.model, "steps"):
            return X
        return self.model[:-1].transform(X)

    def reading(self) -> dict[str, Any]:
        """Options of `polyplane.readers.read` for data of this model."""
        import numpy as np

        names = getattr(self.model, "feature_names_in_", None)
        zero_based = self.metadata.get("zero_based")
        return {
            "n_features": self.model.n_features_in_,
            "feature_names": None if names is None else [str(name) for name in names],
            "labels": label_kind(self.model.classes_),
            "label": self.metadata.get("label"),
            "zero_based": "auto" if zero_based is None else bool(zero_based),
            "dtype": np.dtype(self.planes.coef.dtype),
        }

    def batches(
        self, data: str, options: Mapping[str, Any], n_rows: int | None = None, *, labels: bool = True
    ) -> Batches:
        """Read the rows of a file in batches; `options` are those of the command line."""
        from polyplane.readers import batches

        refuse_table_options(options)
        expected = self.reading() | ({} if labels else {"labels": "ignore"})
        return batches(data, n_rows, **{**expected, **options})

    def feature_names(self, rows: Rows | None) -> list[str]:
        """Return the feature names: those of the training data, those of the file, or svmlight indices."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None and rows is not None:
            names = rows.feature_names
        if names is not None:
            return [str(name) for name in names]
        first = int(self.metadata.get("zero_based") is False)
        return [f"feature {first + j}" for j in range(self.model.n_features_in_)]

    def predict(self, rows: Rows) -> np.ndarray:
        """Predict the class of each row, as an index."""
        found: np.ndarray = self.planes.predict(self.scaled(rows.X))
        return found

    def outcome(self, rows: Rows, wanted: Collection[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Predict the class of each row, and the `wanted` columns: "score", "proba", "winner"."""
        X = self.scaled(rows.X) if {"score", "winner"} & set(wanted) else rows.X
        figures: dict[str, Callable[[], np.ndarray]] = {
            "score": lambda: self.planes.class_scores(X),
            "proba": lambda: self.model.predict_proba(rows.X),
            "winner": lambda: self.planes.winners(X)[:, None],
        }
        return self.predict(rows), {name: figures[name]() for name in wanted}

    def labelled(self, rows: Rows, name: str) -> tuple[np.ndarray, Rows]:
        """Return the true classes of rows, as indices, and the rows."""
        return class_indices(rows, self.model.classes_, name), rows

    def predicting(self, threads: int | None) -> AbstractContextManager[Any]:
        """Set the number of threads for prediction; None: that of training."""
        from joblib import parallel_config

        return parallel_config("threading", n_jobs=threads or getattr(learner_of(self.model), "n_jobs", None) or 1)


def load_model(path: str) -> LoadedModel | LoadedTable:
    """Read a model file."""
    from polyplane.loading import read_model

    found = read_model(path)
    return loaded(found.model, found.metadata)


def loaded(model: Any, metadata: Mapping[str, Any]) -> LoadedModel | LoadedTable:
    """Combine a model with the metadata of its file."""
    if name_of(model) != TABLE:
        return LoadedModel(model, metadata)
    if hasattr(model, "steps"):
        raise UserError("The model is a pipeline that ends in a TableClassifier; save only the TableClassifier.")
    return LoadedTable(model, metadata)


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
