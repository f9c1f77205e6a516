"""Reading data for a command: as the model saw them in training."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from polyplane.cli._common import UserError
from polyplane.cli._learners import TABLE, learner_of, name_of
from polyplane.cli._table_data import LoadedTable

if TYPE_CHECKING:
    import numpy as np

    from polyplane.io import Batches, Rows

DATA_HELP = "Data file in svmlight, CSV/TSV, Parquet or npz format, optionally gz/bz2/xz; - for standard input."
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
        help="svmlight, csv, parquet or npz. Default: detected from content and extension.",
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
    """A model, and what its file says about the data that it was trained on."""

    model: Any
    metadata: Mapping[str, Any]

    @property
    def planes(self) -> Any:
        """The planes, over rows as the scalers of a pipeline leave them."""
        return learner_of(self.model).planes_

    def scaled(self, X: Any) -> Any:
        """Rows as the planes take them."""
        if not hasattr(self.model, "steps"):
            return X
        return self.model[:-1].transform(X)

    def reading(self) -> dict[str, Any]:
        """How to read rows for the model: options of `polyplane.io.read`."""
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
        """Rows of a file to predict, in parts; `options` are those of the command line."""
        from polyplane.io import batches

        refuse_table_options(options)
        expected = {**self.reading(), "part": "test"} | ({} if labels else {"labels": "ignore"})
        return batches(data, n_rows, **{**expected, **options})

    def feature_names(self, rows: Rows | None) -> list[str]:
        """Names of the features: those of the training, those of the file, or svmlight's own numbers."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None and rows is not None:
            names = rows.feature_names
        if names is not None:
            return [str(name) for name in names]
        first = int(self.metadata.get("zero_based") is False)
        return [f"feature {first + j}" for j in range(self.model.n_features_in_)]

    def predict(self, rows: Rows) -> np.ndarray:
        """The class of each row, as an index."""
        found: np.ndarray = self.planes.predict(self.scaled(rows.X))
        return found

    def outcome(self, rows: Rows, wanted: Collection[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The class of each row, and what else is wanted: "score", "proba", "winner"."""
        X = self.scaled(rows.X) if {"score", "winner"} & set(wanted) else rows.X
        figures: dict[str, Callable[[], np.ndarray]] = {
            "score": lambda: self.planes.class_scores(X),
            "proba": lambda: self.model.predict_proba(rows.X),
            "winner": lambda: self.planes.winners(X)[:, None],
        }
        return self.predict(rows), {name: figures[name]() for name in wanted}

    def labelled(self, rows: Rows, name: str) -> tuple[np.ndarray, Rows]:
        """The classes of rows, as indices, and the rows."""
        return class_indices(rows, self.model.classes_, name), rows

    def predicting(self, threads: int | None) -> AbstractContextManager[Any]:
        """Predict in this number of threads; None: as many as the model was trained with."""
        from joblib import parallel_config

        return parallel_config("threading", n_jobs=threads or getattr(learner_of(self.model), "n_jobs", None) or 1)


def load_model(path: str) -> LoadedModel | LoadedTable:
    """Read a model file."""
    from polyplane.io import read_model

    found = read_model(path)
    return loaded(found.model, found.metadata)


def loaded(model: Any, metadata: Mapping[str, Any]) -> LoadedModel | LoadedTable:
    """A model with what is known of its data."""
    if name_of(model) != TABLE:
        return LoadedModel(model, metadata)
    if hasattr(model, "steps"):
        raise UserError("The model is a pipeline that ends in a TableClassifier; save only the TableClassifier.")
    return LoadedTable(model, metadata)


def reading_options(
    format: str | None, label: str | None, zero_based: bool | None, encoding: str | None = None, id: str | None = None
) -> dict[str, Any]:
    """What the command line says about a data file: options of `polyplane.io.read`, and those of tables."""
    given = {"format": format, "label": label, "zero_based": zero_based, "encoding": encoding, "id": id}
    return {name: value for name, value in given.items() if value is not None}


def refuse_table_options(options: Mapping[str, Any]) -> None:
    """Refuse what only tables have."""
    for name in ("encoding", "id"):
        if name in options:
            raise UserError(f"--{name} applies to `--learner table` only; this model takes numeric features only.")


def label_kind(classes: np.ndarray) -> str:
    """How to read labels such as these."""
    return "text" if classes.dtype.kind in "UO" else "number"


def class_indices(rows: Rows, classes: np.ndarray, name: str) -> np.ndarray:
    """The labels as indices into `classes`; an unknown one is refused with its line."""
    import numpy as np

    known = classes.astype(str) if classes.dtype.kind == "O" else classes
    found = np.minimum(np.searchsorted(known, rows.y), len(known) - 1)
    unknown = known[found] != rows.y
    if unknown.any():
        first = int(unknown.argmax())
        shown = ", ".join(str(label) for label in known[:10]) + (", ..." if len(known) > 10 else "")
        label = rows.y.tolist()[first]
        raise UserError(f"{name}, line {rows.lines[first]}: unknown label {label!r}; the model's classes are {shown}.")
    return found
