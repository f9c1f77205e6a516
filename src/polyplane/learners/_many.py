"""Many machines fitted together, each on its own rows of one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from polyplane._array_api import is_foreign, take_rows
from polyplane._threads import in_threads
from polyplane.base import PlaneClassifier
from polyplane.learners._smooth_multi_hyperplane import SmoothMultiHyperplane
from polyplane.learners._stack import Job, train_stacked
from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier


def fit_many(
    estimators: Sequence[PlaneClassifier],
    X: Any,
    y: np.ndarray,
    rows: Sequence[np.ndarray],
    *,
    sample_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> list[PlaneClassifier]:
    """Fit a copy of each estimator to its own rows.

    What is returned is ``[clone(e).fit(X[r], y[r], sample_weight[r]) for e, r in zip(estimators, rows)]``: in threads,
    or on a device, where X is an array of PyTorch, CuPy or the like, as a stack of machines in one matrix product. On a
    device they visit all rows, as with ``backoff=0``, and cannot go on with training.

    Parameters
    ----------
    estimators : sequence of PlaneClassifier
        The machines; they are left as they are.
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows that all machines share.
    y : ndarray of shape (n_rows,)
        Their labels.
    rows : sequence of ndarray of int
        For each machine the indices of its rows.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows.
    n_jobs : int or None, default=None
        Threads; they share the rows.

    Returns
    -------
    fitted : list of PlaneClassifier
        A fitted machine for each estimator.
    """
    if is_foreign(X):
        return _fit_stacked(estimators, X, y, rows, sample_weight, n_jobs)

    def fit(k: int) -> PlaneClassifier:
        own = rows[k]
        weight = None if sample_weight is None else sample_weight[own]
        return clone(estimators[k]).fit(take_rows(X, own), y[own], weight)

    return in_threads(fit, range(len(estimators)), n_jobs)


def _fit_stacked(
    estimators: Sequence[PlaneClassifier],
    X: Any,
    y: np.ndarray,
    rows: Sequence[np.ndarray],
    sample_weight: np.ndarray | None,
    n_jobs: int | None,
) -> list[PlaneClassifier]:
    """Multi-hyperplane machines in stacks, the others one after the other."""
    fitted: dict[int, PlaneClassifier] = {}
    stacked: dict[str, list[int]] = {}
    for k, (estimator, own) in enumerate(zip(estimators, rows, strict=True)):
        if (
            isinstance(estimator, MultiHyperplaneClassifier)
            and estimator.loss == "log"
            and not estimator.early_stopping
        ):
            estimator._validate_params()
            stacked.setdefault(repr(estimator.class_weight), []).append(k)
        else:
            weight = None if sample_weight is None else sample_weight[own]
            fitted[k] = clone(estimator).fit(take_rows(X, own), y[own], weight)
    for members in stacked.values():
        drafts = [clone(estimators[k]) for k in members]
        data = drafts[0]._take(X, y, sample_weight, classes=None)
        jobs = []
        own_rows: dict[int, np.ndarray] = {}  # machines on the same rows share what is drawn for these
        for draft, k in zip(drafts, members, strict=True):
            method = draft._method(drafts[0].classes_)
            assert isinstance(method, SmoothMultiHyperplane)
            jobs.append(Job(method, draft._seed(), own_rows.setdefault(id(rows[k]), rows[k][data.weight[rows[k]] > 0])))
        for draft, k, planes in zip(drafts, members, train_stacked(data, jobs, n_jobs), strict=True):
            draft.__dict__.update(classes_=drafts[0].classes_, n_features_in_=drafts[0].n_features_in_)
            draft.planes_, draft.n_iter_ = planes.to(X), draft.max_iter
            fitted[k] = draft
    return [fitted[k] for k in range(len(estimators))]
