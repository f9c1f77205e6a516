"""`polyplane evaluate`: how well a model does on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyplane.cli._common import AsJson, command, present
from polyplane.cli._data import DataFile, Format, Known, Label, ModelFile, ZeroBased, labelled, open_model, options
from polyplane.cli._metrics import Score, score

if TYPE_CHECKING:
    from typing import Any


@command(
    "polyplane evaluate model.safetensors a9a.t",
    "polyplane evaluate model.safetensors test.csv --label income",
    "xzcat test.svm.xz | polyplane evaluate model.safetensors - --json",
)
def evaluate(
    model: ModelFile,
    data: DataFile,
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads to predict with.")] = None,
    as_json: AsJson = False,
) -> None:
    """Test a model on labelled rows: accuracy, precision and recall of each class, and what is confused with what.

    Rows are read in parts, so that files may be larger than memory. A label that the model does not know is refused.
    """
    known = open_model(model)
    if threads is not None:
        known.model.n_jobs = threads
    found = test(known, data, options(format, label, zero_based))
    present({"model": model, "data": data, **found.content()}, found.tables(), as_json)


def test(known: Known, data: str, said: dict[str, Any]) -> Score:
    """Try a model on a file."""
    from polyplane.io import batches

    parts = batches(data, None, **{**known.expectations(), "part": "test", **said})
    return score(known.model, labelled(iter(parts), known.model.classes_, data))
