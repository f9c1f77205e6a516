"""Reading data for a command: as the model saw them in training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from polyplane.cli._common import UserError

if TYPE_CHECKING:
    import numpy as np

    from polyplane.io import Rows

DATA_HELP = "Rows in svmlight, CSV/TSV, Parquet or npz format, plain or gz/bz2/xz; - for standard input."
DataFile = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
ModelFile = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model file that `polyplane train` wrote.", show_default=False)
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The label column of a table, by name or by place (0 is the first, -1 the last). Default: the one called "
        "label, class, target or y, else the last.",
        rich_help_panel="The data",
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="If the first feature of an svmlight file is 0 or 1. Default: as in training, or as the file suggests.",
        show_default=False,
        rich_help_panel="The data",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="svmlight, csv, parquet or npz. Default: what content and extension say.",
        rich_help_panel="The data",
    ),
]


class Known(NamedTuple):
    """A model, and what its file says about the data that it was trained on."""

    model: Any
    metadata: Mapping[str, Any]

    def expectations(self) -> dict[str, Any]:
        """How to read rows for the model: options of `polyplane.io.read`."""
        import numpy as np

        names = getattr(self.model, "feature_names_in_", None)
        zero_based = self.metadata.get("zero_based")
        return {
            "n_features": self.model.n_features_in_,
            "feature_names": None if names is None else [str(name) for name in names],
            "labels": "text" if self.model.classes_.dtype.kind in "UO" else "number",
            "label": self.metadata.get("label"),
            "zero_based": "auto" if zero_based is None else bool(zero_based),
            "dtype": np.dtype(self.model.planes_.coef.dtype),
        }


def open_model(path: str) -> Known:
    """Read a model file."""
    from polyplane.io import read_model

    found = read_model(path)
    return Known(found.model, found.metadata)


def options(format: str | None, label: str | None, zero_based: bool | None) -> dict[str, Any]:
    """What was said on the command line about a data file."""
    said = {"format": format, "label": label, "zero_based": zero_based}
    return {name: value for name, value in said.items() if value is not None}


def codes(rows: Rows, classes: np.ndarray, name: str) -> np.ndarray:
    """The labels as indices into `classes`; an unknown one is refused with its line."""
    import numpy as np

    known = classes.astype(str) if classes.dtype.kind == "O" else classes
    found = np.minimum(np.searchsorted(known, rows.y), len(known) - 1)
    unknown = known[found] != rows.y
    if unknown.any():
        at = int(unknown.argmax())
        shown = ", ".join(str(label) for label in known[:10]) + (", ..." if len(known) > 10 else "")
        label = rows.y.tolist()[at]
        raise UserError(f"{name}, line {rows.lines[at]}: the label {label!r} is not one of the model's: {shown}.")
    return found


def labelled(parts: Iterator[Rows], classes: np.ndarray, name: str) -> Iterator[tuple[Any, np.ndarray]]:
    """Rows with their classes as indices."""
    for part in parts:
        yield part.X, codes(part, classes, name)
