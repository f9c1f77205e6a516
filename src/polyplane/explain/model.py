"""`explain_model`: a model as rules in the units of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from polyplane.committee import PlaneCommittee
from polyplane.explain._committee_explanation import CommitteeExplanation
from polyplane.explain._estimators import refuse_given, table_classifier
from polyplane.explain._explain_table import explain_table
from polyplane.explain._model_explanation import ModelExplanation, PlaneRule
from polyplane.explain._table_explanation import TableExplanation
from polyplane.explain.rounding import influence_of, round_planes
from polyplane.explain.rules import inequalities, single_sided
from polyplane.explain.unscaled import UnscaledModel, unwrap

#: A committee is evaluated at evenly spaced rows: largest number of rows, and of weights of their planes.
MOST_ROWS, MOST_WEIGHTS = 1000, 1 << 28


def explain_model(
    estimator: Any,
    X: Any = None,
    *,
    tolerance: float = 0.0,
    digits: int | None = None,
    n_typical: int = 3,
    feature_names: Any = None,
) -> ModelExplanation | CommitteeExplanation | TableExplanation:
    """Explain a model: its planes as rules, or the importance of its features or columns.

    If one of two classes owns a single plane (linear SVMs, polyhedra), the rules are inequalities, each divided by the
    weight of its leading feature. For other models, the rules are the scores of the planes; the plane with the largest
    score determines the class. A committee of several members has no rules; its explanation is the importance of the
    features. The explanation of a `TableClassifier` consists of the importance of the columns of its table and the
    effects of their values; for a single member with several planes per class, also of the planes. The parameters
    after `X` apply to rules only.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A `TableClassifier`, or any estimator that `unwrap` accepts.
    X : array-like, data frame or sparse matrix of shape (n_rows, n_features), default=None
        Rows to evaluate the rules on. If given, numbers are rounded to the fewest digits (at least two), and small
        terms are omitted, as long as the predictions do not change; and the percentage of rows is given for each plane.
    tolerance : float, default=0.0
        Fraction of the rows for which the rounded rules may predict a different class than the model.
    digits : int, default=None
        Number of significant digits. If None, chosen as described for `X`.
    n_typical : int, default=3
        Number of typical rows to list for each plane.
    feature_names : sequence of str, default=None
        Names of the features. If None, those seen during `fit`.

    Returns
    -------
    explanation : ModelExplanation, CommitteeExplanation or TableExplanation
        The explanation. Print it, or use its methods `to_text`, `to_dict` and `to_frame`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import explain_model
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X, y = X[["mean radius", "mean texture", "mean symmetry"]], y.map({0: "malignant", 1: "benign"})
    >>> model = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(X, y)
    >>> print(explain_model(model, X, tolerance=0.01))
    Class 'malignant' if mean radius + 51 x mean symmetry + 0.2 x mean texture > 28, otherwise class 'benign'.
    Class 'malignant' is predicted for 35.1 % of the rows, such as rows 156, 408 and 337.
    Class 'benign' is predicted for 64.9 % of the rows, such as rows 367, 188 and 285.
    <BLANKLINE>
    Numbers are rounded to 2 digits: for 99.1 % of the 569 rows, the prediction is that of the exact model.
    """
    if not 0 <= tolerance <= 1:
        raise ValueError(f"tolerance={tolerance!r} must be a fraction of the rows, from 0 to 1.")
    if digits is not None and not 1 <= digits <= 17:
        raise ValueError(f"digits={digits!r} must be from 1 to 17.")
    table = table_classifier(estimator)
    if table is not None:
        given = {"tolerance": tolerance or None, "digits": digits, "feature_names": feature_names}
        given["n_typical"] = None if n_typical == 3 else n_typical
        refuse_given(given, "it applies to rules, which a TableClassifier does not have")
        return explain_table(table, X)
    model = unwrap(estimator, feature_names)
    rows = None if X is None else model.rows(X)
    influence = influence_of(rows, model.scale)
    if isinstance(model.planes, PlaneCommittee):
        if tolerance or digits is not None:
            raise ValueError("tolerance and digits apply to rules, which a committee does not have: omit them.")
        return _explain_committee(model, model.planes, rows, influence, n_typical)
    inside = single_sided(model.planes)
    exact = model.planes if inside is None else inequalities(model.planes, inside, influence)
    rounded = round_planes(exact, rows, influence, tolerance, digits, apart=inside is not None)
    winners = None if rows is None else model.planes.winners(rows)
    shares, typical = _usage(winners, model.planes.n_planes, rows, influence, n_typical)
    owners, starts = model.planes.owners, model.planes.indptr
    rules = tuple(
        PlaneRule(
            label=model.label(int(owners[p])),
            number=p - int(starts[owners[p]]) + 1,
            plane=p,
            coef=rounded.planes.coef[p],
            intercept=float(rounded.planes.intercept[p]),
            share=None if shares is None else float(shares[p]),
            typical=typical[p],
        )
        for p in range(model.planes.n_planes)
    )
    return ModelExplanation(
        learner=type(model.learner).__name__,
        classes=model.classes.tolist(),
        feature_names=model.feature_names,
        inside=inside,
        rules=rules,
        planes=model.planes,
        rounded=rounded,
        n_rows=None if rows is None else int(rows.shape[0]),
        influence=influence,
    )


def _explain_committee(
    model: UnscaledModel, planes: PlaneCommittee, rows: Any, influence: np.ndarray, n_typical: int
) -> CommitteeExplanation:
    predicted = None if rows is None else planes.predict(rows)
    shares, typical = _usage(predicted, planes.n_classes, rows, influence, n_typical)
    if shares is None:
        importance = planes.coef.std(axis=0, dtype=np.float64) * influence
        owners = np.repeat(np.arange(planes.together.n_classes) % planes.n_classes, np.diff(planes.together.indptr))
        weights = np.array([planes.coef[owners == c].mean(axis=0) for c in range(planes.n_classes)])
    else:
        leads, weights = _local_planes(planes, rows)
        importance = leads * influence
    return CommitteeExplanation(
        learner=type(model.learner).__name__,
        classes=model.classes.tolist(),
        feature_names=model.feature_names,
        planes=planes,
        importance=importance,
        weights=weights,
        n_rows=None if shares is None else int(rows.shape[0]),
        shares=shares,
        typical=typical,
    )


def _local_planes(planes: PlaneCommittee, rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Compute the mean absolute weights of the lead of predicted classes, and the mean plane of each class."""
    size = planes.n_members * planes.n_classes * planes.n_features
    n_rows = min(rows.shape[0], MOST_ROWS, max(1, MOST_WEIGHTS // size))
    lead = np.zeros(planes.n_features)
    weights, counts = np.zeros((planes.n_classes, planes.n_features)), np.zeros(planes.n_classes)
    for i in np.linspace(0, rows.shape[0] - 1, n_rows).astype(np.intp):
        x = rows[[i]].toarray()[0] if sparse.issparse(rows) else rows[i]
        local, scores = planes.at(x), planes.class_scores(x[None])[0]
        first, second = (-scores).argsort(kind="stable")[:2]
        lead += np.abs(local.coef[first] - local.coef[second])
        weights[first] += local.coef[first]
        counts[first] += 1
    return lead / n_rows, weights / np.maximum(counts, 1)[:, None]


def _usage(
    winners: np.ndarray | None, n_winners: int, rows: Any, influence: np.ndarray, n_typical: int
) -> tuple[np.ndarray | None, list[tuple[int, ...]]]:
    """Return the fraction of the rows that each plane or class wins, and the rows nearest to their mean."""
    if winners is None or not len(winners):
        return None, [()] * n_winners
    shares = np.bincount(winners, minlength=n_winners) / len(winners)
    factor = np.divide(1.0, influence, out=np.zeros_like(influence), where=influence > 0)
    return shares, [_typical(rows, np.flatnonzero(winners == p), factor, n_typical) for p in range(n_winners)]


def _typical(rows: Any, won: np.ndarray, factor: np.ndarray, count: int) -> tuple[int, ...]:
    if not len(won):
        return ()
    own = rows[won]
    center = np.asarray(own.mean(axis=0), dtype=np.float64).ravel() * factor**2
    # |x - m|^2 minus |m|^2, so that sparse rows stay sparse.
    square = own.multiply(own) @ factor**2 if sparse.issparse(own) else np.square(own) @ factor**2
    nearest = np.argsort(square - 2.0 * (own @ center), kind="stable")[:count]
    return tuple(won[nearest].tolist())
