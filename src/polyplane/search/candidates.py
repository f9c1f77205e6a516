"""The candidates of a search, and the rungs of its race: the passes, rows and folds that candidates get."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline

from polyplane._plain import did_you_mean
from polyplane.base import PlaneClassifier, takes_matrix

ParameterValues = dict[str, Any]

#: Smallest fraction of the passes and of the rows on the first rung.
LEAST_SHARE = 1 / 9
#: Smallest number of passes, of row visits and of training rows that are enough to compare candidates.
LEAST_PASSES, LEAST_VISITS, LEAST_ROWS = 5, 20_000, 500
#: A rung is omitted if its cost exceeds this fraction of the cost of the next one, and rows are only reduced to less
#: than this fraction.
WORTH_A_RUNG = 0.7
#: Number of test rows of a fold from which early rungs have fewer folds. On six tables of 8,000 to 10,000 rows, where
#: halving needs 0.17 of the passes of a full search with them and 0.25 without, the error of the chosen setting was
#: 0.045 and 0.032 points above that of the best of 40, with standard errors of 0.1 to 0.5.
MANY_TESTED = 1500
#: Where passes are reduced by a factor, rows are reduced by its square root, but not below this number: short training
#: ranks settings much like long training, but few rows favour few planes. `benchmarks/peers/search_tables.py` compares
#: halving with a full search.
MANY_ROWS = 10_000


def learner_of(estimator: Any) -> tuple[str, Any]:
    """Return the parameter prefix and the classifier: ``("svm__", svm)`` for a pipeline that ends in ``svm``."""
    if isinstance(estimator, Pipeline):
        name, learner = estimator.steps[-1]
        return f"{name}__", learner
    return "", estimator


def declared_space(estimator: Any, classes: np.ndarray) -> dict[str, list[Any]]:
    """Return the default search space of a learner, without values that are invalid given its other parameters."""
    prefix, learner = learner_of(estimator)
    if not takes_matrix(learner):
        raise ValueError(
            f"param_distributions=None: {type(learner).__name__} does not declare default search parameters; specify "
            "them in param_distributions."
        )
    declared = learner._declaration.tuning.items()
    kept = {name: [v for v in values if _is_possible(learner, name, v, classes)] for name, values in declared}
    return {prefix + name: values for name, values in kept.items() if len(values) > 1}


def _is_possible(learner: PlaneClassifier, name: str, value: Any, classes: np.ndarray) -> bool:
    try:
        clone(learner).set_params(**{name: value})._method(classes)
    except ValueError:
        return False
    return True


def draw_candidates(estimator: Any, space: Any, n_iter: int, random_state: Any) -> list[ParameterValues]:
    """Return up to `n_iter` distinct settings: the current one of the estimator first, then random ones."""
    spaces = [space] if isinstance(space, Mapping) else list(space)
    known = estimator.get_params()
    names = sorted({name for one in spaces for name in one})
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f" Its parameters are {', '.join(known)}."
            raise ValueError(f"param_distributions: {name!r} is not a parameter of {type(estimator).__name__}.{hint}")
    are_lists = not any(hasattr(values, "rvs") for one in spaces for values in one.values())
    n_drawn = min(n_iter, len(ParameterGrid(spaces))) if are_lists else n_iter
    drawn = [{name: known[name] for name in names}, *ParameterSampler(spaces, n_drawn, random_state=random_state)]
    distinct: dict[str, ParameterValues] = {}
    for settings in drawn:
        distinct.setdefault(settings_key(settings), dict(settings))
    return list(distinct.values())[:n_iter]


def settings_key(settings: ParameterValues) -> str:
    """Return a text that is the same for equal settings."""
    return repr(sorted((name, repr(value)) for name, value in plain_numbers(settings).items()))


def plain_numbers(settings: ParameterValues) -> ParameterValues:
    """Convert NumPy scalars to Python numbers."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}


class Rung(NamedTuple):
    """A round of the race: the resources of each fit.

    Parameters
    ----------
    passes : int or None
        The `max_iter` of the fit. If None, that of the estimator.
    row_share : float
        Fraction of the training rows of a fold.
    n_visits : int
        Row visits of a fit: training rows times passes, or training rows if the number of passes is unknown.
    n_folds : int
        Number of folds that are used; these are the first ones.
    n_candidates : int
        Number of candidates that are tried.
    """

    passes: int | None
    row_share: float
    n_visits: int
    n_folds: int = 0
    n_candidates: int = 0


def plan_rungs(
    passes: int | None, n_rows: int, n_candidates: int, n_folds: int, factor: float | None, n_tested: int = 0
) -> list[Rung]:
    """Plan the rungs of a search: each has more passes, rows and folds than the one before, and the last has all.

    One in `factor` candidates advances. The number of rungs is such that at least about `factor` candidates have all
    passes. With few rows, rungs differ only in their folds. With many test rows in a fold, `n_tested`, the first rung
    needs only one fold, and one in `factor` of the candidates with all passes has more than some of the folds.
    """
    rungs = [_rung(passes, n_rows, 1.0)._replace(n_folds=n_folds)]
    if factor is None or n_candidates <= factor:
        return [rungs[0]._replace(n_candidates=n_candidates)]
    n_cuts = int(min(math.log(n_candidates / factor, factor), math.log(1 / LEAST_SHARE, factor)) + 1e-9)
    many = passes is not None and n_tested >= MANY_TESTED
    for k in range(1, n_cuts + 1):
        part = max(1 if many else 2, math.ceil(factor ** (-k if many else -k / 2) * n_folds - 1e-9))
        rung = _rung(passes, n_rows, factor**-k)
        shorter = rung if rung.n_visits < WORTH_A_RUNG * rungs[0].n_visits else rungs[0]
        rung = shorter._replace(n_folds=min(n_folds, part))
        if rung.n_visits * rung.n_folds < WORTH_A_RUNG * rungs[0].n_visits * rungs[0].n_folds:
            rungs.insert(0, rung)
    part = math.ceil(factor**-0.5 * n_folds - 1e-9)
    if many and rungs[-2:-1] and rungs[-2][:2] != rungs[-1][:2] and part < n_folds:
        rungs.insert(-1, rungs[-1]._replace(n_folds=part))
    counts = accumulate(rungs[1:], lambda n, _: math.ceil(n / factor), initial=n_candidates)
    return [rung._replace(n_candidates=n) for rung, n in zip(rungs, counts, strict=True)]


def full_passes(estimator: Any, candidates: Sequence[ParameterValues]) -> int | None:
    """Return the number of passes of an estimator; None if a stopping rule or the search determines it."""
    prefix, learner = learner_of(estimator)
    if not takes_matrix(learner) or any(f"{prefix}max_iter" in settings for settings in candidates):
        return None
    known = learner.get_params()
    return None if known.get("tol") is not None else known.get("max_iter")


def _rung(passes: int | None, n_rows: int, share: float) -> Rung:
    if passes is None:
        rows = min(n_rows, max(LEAST_ROWS, math.ceil(share * n_rows)))
        return Rung(None, rows / n_rows, rows)
    rows = min(n_rows, max(MANY_ROWS, math.ceil(share**0.5 * n_rows)))
    if rows > WORTH_A_RUNG * n_rows:
        rows = n_rows  # starts are then shared with the rungs that have all rows
    granted = min(passes, max(LEAST_PASSES, -(-LEAST_VISITS // rows), math.ceil(share * passes)))
    return Rung(None if granted == passes else granted, rows / n_rows, granted * rows)


def sample_rows(rows: np.ndarray, y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Draw a stratified fraction of the rows; with the same seed, a smaller sample is a subset of a larger one."""
    if share == 1.0:
        return rows
    rng, place = np.random.default_rng(seed), np.empty(len(rows))
    for label in np.unique(y[rows]):
        own = np.flatnonzero(y[rows] == label)
        place[own] = rng.permutation(len(own)) / len(own)
    return np.sort(rows[np.argsort(place, kind="stable")[: math.ceil(share * len(rows))]])
