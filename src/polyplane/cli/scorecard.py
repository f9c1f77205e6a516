"""`polyplane scorecard`: the points of an additive model, and the stability of new rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from polyplane.cli.common import AsJson, PrintedTable, UserError, command, option, present
from polyplane.cli.data import DataPath, FileOptions, LoadedModel, ModelPath, load_model
from polyplane.cli.report import facts_table

if TYPE_CHECKING:
    import numpy as np


@command(
    "polyplane train loans.csv --learner table --set n_estimators=1 --set n_planes=1 --set preparation=steps",
    "polyplane scorecard loans.safetensors loans.csv --event default",
    "polyplane scorecard loans.safetensors loans.csv --event default --compare new_loans.csv",
)
def scorecard(
    model: ModelPath,
    data: DataPath,
    reading: FileOptions,
    event: Annotated[str | None, option("LABEL")] = None,
    points: Annotated[float, option("NUMBER")] = 600.0,
    odds: Annotated[float, option("NUMBER")] = 1 / 19,
    pdo: Annotated[float, option("NUMBER")] = 50.0,
    exact: Annotated[bool, option(None, "--exact")] = False,
    compare: Annotated[str | None, option("FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Print an additive table model as a scorecard: points by column and bin, with figures of labelled rows.

    The model must be one of two classes, trained by `--learner table` with n_estimators=1, n_planes=1 and
    preparation=steps. A higher score means a lower probability of the event.

    Parameters
    ----------
    event : str or None
        The class whose probability falls as the score grows. Default: the second one.
    points : float
        The score at the odds given by --odds.
    odds : float
        Odds of the event.
    pdo : float
        The number of points that halve the odds.
    exact : bool
        Do not round points to integers.
    compare : str or None
        Also print the population stability index of the score and of each column in these rows, which need no labels.
    """
    from polyplane.explain.scorecards import gini_and_ks, population_stability
    from polyplane.explain.scorecards import scorecard as scorecard_of

    loaded = load_model(model)
    c = loaded.class_index("event", event)
    label = None if c is None else loaded.model.classes[c]
    try:
        card = scorecard_of(loaded.model, event=label, points=points, odds=odds, pdo=pdo, is_rounded=not exact)
    except TypeError as error:
        raise UserError(str(error)) from None
    rows, truth = _rows(loaded, data, reading.given, labels=True)
    table = card.table(rows, loaded.model.classes[truth])
    score = card.score_points(rows)
    if len({*truth.tolist()}) < 2:
        raise UserError(f"{data} has rows of one class only.")
    gini, ks = gini_and_ks(score, truth == card.event)
    named = str(loaded.model.classes[card.event])
    facts = {"event": named, "rows": len(score), "gini": gini, "ks": ks, "mean score": float(score.mean())}
    content: dict[str, Any] = {"model": model, "data": data, **facts, "scorecard": table.to_dict("records")}
    tables = [facts_table("Scorecard", facts), _shown("Points", table)]
    if compare is not None:
        found = population_stability(loaded.model, rows, _rows(loaded, compare, reading.given, labels=False)[0])
        content["stability"] = found.to_dict("records")
        tables.append(_shown("Population stability index", found))
    present(content, tables, as_json)


def _rows(loaded: LoadedModel, data: str, given: dict[str, Any], labels: bool) -> tuple[Any, np.ndarray]:
    """Read the rows of a file, and their classes as indices."""
    import numpy as np
    import pyarrow as pa

    if not loaded.is_table:
        raise UserError("a scorecard requires a model of a table (train --learner table).")
    parts = [part.labelled(data) if labels else part for part in loaded.batches(data, given, labels=labels)]
    truth = [np.zeros(0, dtype=np.intp) if part.truth is None else part.truth for part in parts]
    return pa.concat_tables([part.X for part in parts], promote_options="permissive"), np.concatenate(truth)


def _shown(title: str, frame: Any) -> PrintedTable:
    return PrintedTable(title, list(frame.columns), frame.astype(object).values.tolist())
