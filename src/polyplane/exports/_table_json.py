"""Export of a `TableClassifier` as readable JSON, for programs without Polyplane."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane._plain import plain
from polyplane._version import __version__
from polyplane.exports._json import FORM, dump, planes_of_class
from polyplane.exports._names import unique_names
from polyplane.tables._model import Member
from polyplane.tables._preparation import Preparation
from polyplane.tables.classifier import TableClassifier


def table_to_json(model: TableClassifier) -> str:
    """Export a fitted `TableClassifier` as JSON; see `to_json`."""
    encoding, members = model.table_model_.encoding, model.members_
    features = unique_names([feature.name for feature in encoding.features])
    preparations = list({id(member.preparation): member.preparation for member in members}.values())
    head = {
        "form": FORM,
        "polyplane": __version__,
        "learner": type(model).__name__,
        "parameters": plain(model.get_params(deep=False)),
        "dtype": members[0].planes.coef.dtype.name,
        "gaps": list(encoding.gaps),
        "dropped": dict(encoding.dropped),
        "features": features,
        "temperature": model.temperature_,
    }
    names = [_prepared_names(preparation, features) for preparation in preparations]
    described = [{**p.to_dict(), "features": own} for p, own in zip(preparations, names, strict=True)]
    places = {id(preparation): i for i, preparation in enumerate(preparations)}
    entries = [
        _member(member, place := places[id(member.preparation)], names[place], model.classes_) for member in members
    ]
    lines = [f" {dump(name)}: {dump(value)}," for name, value in head.items()]
    lines += _list("columns", [f"  {dump(column.to_dict())}" for column in encoding.columns], ",")
    lines += _list("preparations", [f"  {dump(each)}" for each in described], ",")
    return "\n".join(["{", *lines, *_list("machines", entries, ""), "}"])


def _list(name: str, items: list[str], end: str) -> list[str]:
    return [f' "{name}": [', ",\n".join(items), f" ]{end}"]


def _prepared_names(preparation: Preparation, features: list[str]) -> list[str]:
    """Return the names of the prepared features: scaled features, bins, squares and the squared norm of all numbers."""
    names = [
        how if j < 0 else features[j] if how == "scaled" else f"{features[j]}, {how}" for j, how in preparation.sources
    ]
    return unique_names(names)


def _member(member: Member, place: int, names: list[str], classes: np.ndarray) -> str:
    quoted: Any = [dump(name) for name in names]
    parts = [
        f'   {{"label": {dump(label)}, "planes": [{planes_of_class(member.planes, c, quoted)}]}}'
        for c, label in enumerate(classes.tolist())
    ]
    return f'  {{"preparation": {place}, "classes": [\n' + ",\n".join(parts) + "\n  ]}"
