"""What `polyplane train` is asked to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from polyplane.cli._common import UserError
from polyplane.cli._data import Known, open_model
from polyplane.cli._learners import name_of


class Order(NamedTuple):
    """The options, as given."""

    data: str
    out: str
    test: str | None
    cv: int | None
    scale: str
    seed: int
    time_limit: float | None
    stream: bool
    passes: int
    batch_rows: int
    tune: bool
    classes: str | None
    n_features: int | None
    reading: dict[str, Any]
    as_json: bool


def check(order: Order, passes: int | None, resume: str | None) -> None:
    """Refuse what cannot be done, before any work is."""
    folder = Path(order.out).resolve().parent
    if not folder.is_dir():
        raise UserError(f"--out {order.out}: there is no folder {folder}.")
    if order.test is not None and order.test != "-":
        Path(order.test).open("rb").close()  # better now than after the training
    if order.time_limit is not None and order.time_limit <= 0:
        raise UserError(f"--time-limit {order.time_limit:g}: expected a positive number of seconds.")
    if passes is not None and not order.stream:
        raise UserError("--passes is for --stream; in memory it is --set max_iter=N.")
    if order.stream and (order.tune or order.cv):
        raise UserError(f"--{'tune' if order.tune else 'cv'} needs all rows in memory; leave out --stream.")
    if order.stream and order.data == "-" and order.passes > 1:
        raise UserError("--passes: standard input can be read only once.")
    if resume is not None and order.scale != "none":
        raise UserError("--scale: a model that is gone on with keeps the scaling that it began with.")
    if resume is not None and order.tune:
        raise UserError("--tune chooses parameters for a new model; leave out --resume.")


def taken_up(path: str, learner: str | None, order: Order) -> Known:
    """The model to go on with."""
    known = open_model(path)
    if learner is not None and learner != name_of(known.model):
        raise UserError(f"--learner {learner}: {path} was trained by {name_of(known.model)}.")
    if not hasattr(known.model, "_state"):
        raise UserError(f"--resume: {path} does not hold what training needs to go on.")
    if order.classes is not None:
        raise UserError("--classes: those of the model that is gone on with are taken.")
    return known


def reading(order: Order, before: Known | None) -> dict[str, Any]:
    """How to read the rows: as the model to go on with saw them, and as said."""
    expected = {} if before is None else before.expectations()
    if order.n_features is not None:
        expected["n_features"] = order.n_features
    return {**expected, **order.reading}
