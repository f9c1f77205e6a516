"""Many classifiers fitted together, each on its own rows of one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from polyplane._array_api import is_foreign, take_rows
from polyplane._threads import in_threads
from polyplane.base import PlaneClassifier
from polyplane.engine.run import Limits
from polyplane.learners._stack import Job, shared_starts, train_stacked
from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier


def fit_many(
    estimators: Sequence[PlaneClassifier],
    X: Any,
    y: np.ndarray,
    rows: Sequence[np.ndarray],
    *,
    sample_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    memory: dict[Any, Any] | None = None,
) -> list[PlaneClassifier]:
    """Fit a copy of each estimator to its own rows.

    The result is ``[clone(e).fit(X[r], y[r], sample_weight[r]) for e, r in zip(estimators, rows)]``, up to rounding.
    `MultiHyperplaneClassifier` does not copy the rows, and classifiers with the same rows and seed share their start.
    They are trained in threads. If X is an array on a device (PyTorch, CuPy, ...), they are trained as a stack with
    common matrix products; they then visit all rows, as with ``backoff=0``, and cannot continue training.

    Parameters
    ----------
    estimators : sequence of PlaneClassifier
        The classifiers; they are not changed.
    X : array or CSR matrix of shape (n_rows, n_features)
        The matrix that all classifiers share.
    y : ndarray of shape (n_rows,)
        The labels.
    rows : sequence of ndarray of int
        The indices of the rows of each classifier.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows.
    n_jobs : int or None, default=None
        Number of threads.
    memory : dict or None, default=None
        A cache of starts, for several calls with the same X and the same array objects in `rows`.

    Returns
    -------
    fitted : list of PlaneClassifier
        A fitted classifier for each estimator.
    """
    codes = np.unique(y, return_inverse=True)[1]
    together = {k for k, own in enumerate(rows) if _shares(estimators[k]) and _has_all(codes, own)}

    def fit_alone(k: int) -> PlaneClassifier:
        own = rows[k]
        weight = None if sample_weight is None else sample_weight[own]
        return clone(estimators[k]).fit(take_rows(X, own), y[own], weight)

    alone = [k for k in range(len(rows)) if k not in together]
    fitted = dict(zip(alone, in_threads(fit_alone, alone, n_jobs), strict=True))
    if together:
        members = sorted(together)
        chosen, own = [estimators[k] for k in members], [rows[k] for k in members]
        machines = _fit_together(chosen, X, y, own, sample_weight, n_jobs, memory)
        fitted |= zip(members, machines, strict=True)
    return [fitted[k] for k in range(len(rows))]


def _shares(estimator: PlaneClassifier) -> bool:
    """Whether an estimator can be trained together with others."""
    if not isinstance(estimator, MultiHyperplaneClassifier):
        return False
    plain = estimator.class_weight is None and estimator.tol is None and not estimator.early_stopping
    return plain and estimator.loss == "log" and not estimator.verbose


def _has_all(codes: np.ndarray, rows: np.ndarray) -> bool:
    """Whether all classes occur in the rows."""
    return bool(np.bincount(codes[rows], minlength=int(codes.max()) + 1).all())


def _fit_together(
    estimators: Sequence[Any],
    X: Any,
    y: np.ndarray,
    rows: Sequence[np.ndarray],
    sample_weight: np.ndarray | None,
    n_jobs: int | None,
    memory: dict[Any, Any] | None,
) -> list[PlaneClassifier]:
    first = clone(estimators[0])
    data = first._take(X, y, sample_weight, classes=None)
    learned = {name: value for name, value in vars(first).items() if name not in first.get_params()}
    drafts = [clone(estimator) for estimator in estimators]
    own_rows: dict[int, np.ndarray] = {}  # classifiers with the same rows are recognised by the identity of this array
    jobs = []
    for draft, own in zip(drafts, rows, strict=True):
        draft._validate_params()
        draft.__dict__.update(learned)
        if id(own) not in own_rows:
            used = data.weight[own] > 0
            own_rows[id(own)] = own if used.all() else own[used]
        jobs.append(Job(draft._method(first.classes_), draft._seed(), own_rows[id(own)]))
    if is_foreign(X):
        for draft, planes in zip(drafts, train_stacked(data, jobs, n_jobs), strict=True):
            draft.planes_, draft.n_iter_ = planes.to(X), draft.max_iter
        return drafts
    starts = shared_starts(data, jobs, n_jobs, memory)

    def train(k: int) -> PlaneClassifier:
        own = replace(data, train=jobs[k].rows)
        return drafts[k]._train(own, Limits(), jobs[k].method, starts[k])

    return in_threads(train, range(len(jobs)), n_jobs)
