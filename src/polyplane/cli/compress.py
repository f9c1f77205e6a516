"""`polyplane compress`: a model within a budget of bytes."""

from __future__ import annotations

from typing import Annotated, Any

from polyplane.cli.common import AsJson, UserError, command, option, present_facts, refuse_overwriting
from polyplane.cli.data import (
    DataPath,
    FileOptions,
    ModelPath,
    SeedOption,
    class_indices,
    load_model,
    refuse_table_options,
)


@command(
    "polyplane compress model.safetensors train.csv --max-bytes 16000 -o small.safetensors",
    "polyplane export small.safetensors -o small.c",
)
def compress(
    model: ModelPath,
    data: DataPath,
    reading: FileOptions,
    max_bytes: Annotated[int, option("BYTES", min=1)],
    out: Annotated[str, option("FILE", "--out", "-o")] = "small.safetensors",
    seed: SeedOption = 0,
    as_json: AsJson = False,
) -> None:
    """Compress a model: the best planes with one-byte weights that fit into a budget of bytes.

    The model is trained again on the rows it was trained on; how many features, projected features and planes it has
    is chosen on held-out rows. The result is a model file like others: `polyplane export -o model.c` writes its tables.

    Parameters
    ----------
    max_bytes : int
        The most bytes that the tables of the model may take in C.
    out : str
        Model file to write.
    """
    import polyplane
    from polyplane.readers import read

    refuse_overwriting(out, model, data)
    found = load_model(model)
    if found.is_table:
        raise UserError("A model of `--learner table` cannot be compressed; export it with --dtype int8.")
    refuse_table_options(reading.given)
    rows = read(data, **{**found.reading(), **reading.given})
    labels = found.model.classes[class_indices(rows, found.model.classes, data)]
    small: Any = polyplane.compress(found.estimator, rows.X, labels, max_bytes=max_bytes, random_state=seed)
    names = getattr(found.estimator, "feature_names_in_", None)
    if names is not None:
        small.feature_names_in_ = names
    polyplane.save(small, out, metadata=found.metadata)
    fitted: Any = small.model_
    trials = small.trials_
    chosen = zip(trials["error"], trials["passes"], strict=True)  # among those with the most passes
    facts: dict[str, Any] = {
        "model": model,
        "out": out,
        "bytes": small.n_bytes_,
        "features": fitted.features.n_features,
        "rank": fitted.projection.rank,
        "planes": fitted.planes.n_planes,
        "held_out_error_percent": round(100 * min(e for e, passes in chosen if passes == max(trials["passes"])), 4),
    }
    present_facts("Compressed", facts, as_json)
