"""Candidates of a search: the parameter settings to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline

from polyplane.base import PlaneClassifier, takes_matrix

Settings = dict[str, Any]


def machine_of(estimator: Any) -> tuple[str, Any]:
    """Return the parameter prefix and the classifier: ``("svm__", svm)`` for a pipeline that ends in ``svm``."""
    if isinstance(estimator, Pipeline):
        name, machine = estimator.steps[-1]
        return f"{name}__", machine
    return "", estimator


def declared_space(estimator: Any, classes: np.ndarray) -> dict[str, list[Any]]:
    """Return the default search space of a learner, without values that are invalid given its other parameters."""
    prefix, machine = machine_of(estimator)
    if not takes_matrix(machine):
        raise ValueError(
            f"param_distributions=None: {type(machine).__name__} does not declare default search parameters; specify "
            "them in param_distributions."
        )
    declared = machine._declaration.tuning.items()
    kept = {name: [v for v in values if _is_possible(machine, name, v, classes)] for name, values in declared}
    return {prefix + name: values for name, values in kept.items() if len(values) > 1}


def _is_possible(machine: PlaneClassifier, name: str, value: Any, classes: np.ndarray) -> bool:
    try:
        clone(machine).set_params(**{name: value})._method(classes)
    except ValueError:
        return False
    return True


def draw_candidates(estimator: Any, space: Any, n_iter: int, random_state: Any) -> list[Settings]:
    """Return up to `n_iter` distinct settings: the current one of the estimator first, then random ones."""
    spaces = [space] if isinstance(space, Mapping) else list(space)
    own = _own_setting(estimator, spaces)
    n_drawn = n_iter if any(_has_distribution(one) for one in spaces) else min(n_iter, len(ParameterGrid(spaces)))
    candidates = {_key(own): own}
    for drawn in ParameterSampler(spaces, n_drawn, random_state=random_state):
        candidates.setdefault(_key(drawn), dict(drawn))
    return list(candidates.values())[:n_iter]


def _own_setting(estimator: Any, spaces: Sequence[Any]) -> Settings:
    known = estimator.get_params()
    names = dict.fromkeys(name for one in spaces for name in one)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else f" Its parameters are {', '.join(known)}."
            raise ValueError(f"param_distributions: {name!r} is not a parameter of {type(estimator).__name__}.{hint}")
    return {name: known[name] for name in sorted(names)}


def _has_distribution(space: Mapping[str, Any]) -> bool:
    return any(hasattr(values, "rvs") for values in space.values())


def _key(settings: Settings) -> str:
    values = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
    return repr(sorted((name, repr(value)) for name, value in values.items()))
