"""`polyplane compress`: a model within a budget of bytes."""

from __future__ import annotations

from typing import Annotated

import typer

from polyplane.cli.common import AsJson, Table, UserError, command, present, refuse_overwriting
from polyplane.cli.data import (
    DataFile,
    Format,
    Label,
    ModelFile,
    ZeroBased,
    class_indices,
    load_model,
    reading_options,
)

MaxBytes = Annotated[
    int,
    typer.Option(
        "--max-bytes",
        min=1,
        metavar="BYTES",
        help="The most bytes that the tables of the model may take in C.",
    ),
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")]


@command(
    "polyplane compress model.safetensors train.csv --max-bytes 16000 -o small.safetensors",
    "polyplane export small.safetensors -o small.c",
)
def compress(
    model: ModelFile,
    data: DataFile,
    max_bytes: MaxBytes,
    out: Out = "small.safetensors",
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compress a model: the best planes with one-byte weights that fit into a budget of bytes.

    The model is trained again on the rows it was trained on; how many features, projected features and planes it has
    is chosen on held-out rows. The result is a model file like others: `polyplane export -o model.c` writes its tables.
    """
    import polyplane
    from polyplane.readers import read

    refuse_overwriting(out, model, data)
    found = load_model(model)
    if found.is_table:
        raise UserError("A model of `--learner table` cannot be compressed; export it with --dtype int8.")
    rows = read(data, **{**found.reading(), **reading_options(format, label, zero_based)})
    labels = found.model.classes[class_indices(rows, found.model.classes, data)]
    small = polyplane.compress(found.estimator, rows.X, labels, max_bytes=max_bytes, random_state=seed)
    names = getattr(found.estimator, "feature_names_in_", None)
    if names is not None:
        small.feature_names_in_ = names
    polyplane.save(small, out, metadata=found.metadata)
    tables, trials = small.tables_, small.trials_
    facts = {
        "model": model,
        "out": out,
        "bytes": small.n_bytes_,
        "features": len(tables.kept),
        "rank": None if tables.projection is None else tables.rank,
        "planes": len(tables.weights),
        "held_out_error_percent": round(100 * min(_of_last(trials)), 4),
    }
    present(facts, [Table("Compressed", (), list(facts.items()))], as_json)


def _of_last(trials: dict[str, list[float]]) -> list[float]:
    """The errors of the trials with the most passes, the best of which was chosen."""
    most = max(trials["passes"])
    return [error for error, n_passes in zip(trials["error"], trials["passes"], strict=True) if n_passes == most]
