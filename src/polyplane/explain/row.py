"""`explain_row`: explanation of a prediction, and the smallest change that leads to another class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane.base import class_index
from polyplane.committee import PlaneCommittee
from polyplane.explain._estimators import refuse_given, table_classifier
from polyplane.explain._explain_table_row import explain_table_row
from polyplane.explain._row_explanation import Flip, RowExplanation
from polyplane.explain._table_row_explanation import TableRowExplanation
from polyplane.explain.geometry import Counterfactual, committee_counterfactual, counterfactual
from polyplane.explain.rounding import influence_of
from polyplane.explain.unscaled import UnscaledModel, unwrap
from polyplane.planes import PlaneSet


def explain_row(
    estimator: Any,
    x: Any,
    *,
    X: Any = None,
    reference: Any = None,
    target: Any = None,
    true_label: Any = None,
    lower: Any = None,
    upper: Any = None,
    frozen: Any = None,
    scale: Any = None,
    feature_names: Any = None,
    increasing: Any = None,
    decreasing: Any = None,
    max_columns: int | None = None,
    search: bool = True,
) -> RowExplanation | TableRowExplanation:
    """Explain the prediction for a row, and find the smallest change that leads to another class.

    The contributions of the features are exact. The change is exact as well, except for a committee of several members,
    where it is found by local search and not proven to be the smallest. A row of a table is explained in terms of the
    columns of the table; changes of one or two columns are proven to be the smallest.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A `TableClassifier`, or any estimator that `unwrap` accepts. The explanation is in the units of the data.
    x : array-like of shape (n_features,), or one row of a matrix or data frame
        The row. Missing values are imputed if the pipeline has an imputer. For a `TableClassifier` also a Series of
        pandas or a dict of column name to value.
    X : array-like or sparse matrix of shape (n_rows, n_features), default=None
        Rows that determine the default of `reference` and `scale`, for example the training rows.
    reference : array-like of shape (n_features,), default=None
        The reference row, to which contributions are relative. If None, the mean of `X`. Without `X`, the row that the
        scalers of the pipeline map to 0 (for StandardScaler, the mean of the training rows); without scalers, 0. For a
        `TableClassifier`, the row of medians and most frequent levels.
    target : label, default=None
        The target class of the change. If None, the nearest one.
    true_label : label, default=None
        The true label of the row. If it is not predicted and `target` is None, it is the target class.
    lower, upper : float, array-like of shape (n_features,), or dict of feature name to float, default=None
        Bounds of the changed row.
    frozen : sequence of feature names or numbers, or a mask, default=None
        Features that must not change.
    scale : array-like of shape (n_features,), default=None
        Units of the features in distances. If None, those of the scalers of the pipeline; without scalers, the standard
        deviations in `X`; without `X`, 1 for all.
    feature_names : sequence of str, default=None
        Names of the features. If None, those seen during `fit`.
    increasing, decreasing : sequence of column names, default=None
        For a `TableClassifier`: columns that can only increase, or only decrease.
    max_columns : int, default=None
        For a `TableClassifier`: maximum number of columns that may change.
    search : bool, default=True
        Whether to search for a change. Without the search, an explanation takes a few milliseconds.

    Returns
    -------
    explanation : RowExplanation, or TableRowExplanation for a TableClassifier
        The explanation. Print it, or use its methods `to_text`, `to_dict` and `to_frame`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import explain_row
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X, y = X[["mean radius", "mean texture"]], y.map({0: "malignant", 1: "benign"})
    >>> model = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(X, y)
    >>> print(explain_row(model, X.iloc[0], frozen=["mean texture"]))
    The predicted class is 'malignant' (plane 1). Its score exceeds that of class 'benign' (plane 1) by 0.8464:
       +2.513  mean radius = 17.99 (reference 14.13)
       -1.164  mean texture = 10.38 (reference 19.29)
      -0.5022  at the reference row
    The smallest change that leads to class 'benign' (distance 0.3695):
      mean radius: 17.99 -> 16.69

    A row of a table, as a dict:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 80, 400), "member": rng.choice(["yes", "no"], 400)})
    >>> price = np.where((frame["age"] >= 60) | (frame["member"] == "yes"), "reduced", "full")
    >>> table = TableClassifier(random_state=0).fit(frame, price)
    >>> why = explain_row(table, {"age": 30, "member": "yes"}, frozen=["age"])
    >>> why.label, why.reason(1), why.flip.changes
    ('reduced', 'member = yes (reference no)', {'member': ('yes', 'no')})
    """
    table, of_tables = table_classifier(estimator), {"increasing": increasing, "decreasing": decreasing}
    if table is not None:
        of_planes = {"X": X, "scale": scale, "feature_names": feature_names}
        refuse_given(of_planes, "a TableClassifier uses the names, ranges and spreads of its columns")
        allowed = {"lower": lower, "upper": upper, "frozen": frozen, "max_columns": max_columns, **of_tables}
        return explain_table_row(
            table, x, reference=reference, target=target, true_label=true_label, search=search, **allowed
        )
    refuse_given({**of_tables, "max_columns": max_columns}, "it applies to a TableClassifier only")
    model = unwrap(estimator, feature_names)
    row, imputed = _one_row(model, x)
    rows = None if X is None else model.rows(X)
    r = _reference(model, reference, rows)
    lengths = _scale(model, scale, rows)
    allowed = {
        "lower": _by_name(model, lower, -np.inf),
        "upper": _by_name(model, upper, np.inf),
        "frozen": _numbers(model, frozen),
        "scale": lengths,
    }
    goal = None if target is None else class_index("target", target, model.classes)
    if goal is None and true_label is not None:
        truth = class_index("true_label", true_label, model.classes)
        goal = truth if truth != int(model.predict(row[None])[0]) else None
    flip = _flip(model, row, goal, allowed) if search else None
    lead = _Lead.of(model.planes, row.astype(np.float64))
    base, shares = float(lead.coef @ r) + lead.intercept, lead.coef * (row - r)
    return RowExplanation(
        label=model.label(lead.c),
        plane=lead.plane,
        rival=model.label(lead.rival),
        rival_plane=lead.rival_plane,
        difference=base + float(shares.sum()),
        base=base,
        shares=shares,
        values=row,
        reference=r,
        feature_names=model.feature_names,
        imputed=imputed,
        scale=lengths,
        flip=flip,
        searched=search,
        machines=model.planes.n_members if isinstance(model.planes, PlaneCommittee) else None,
    )


class _Lead(NamedTuple):
    """Difference of the planes of the predicted class and of the second-best class."""

    coef: np.ndarray
    intercept: float
    c: int
    rival: int
    plane: int | None = None
    rival_plane: int | None = None

    @classmethod
    def of(cls, planes: PlaneSet | PlaneCommittee, row: np.ndarray) -> _Lead:
        """Compute the difference at a row; in a committee, of the mean planes there."""
        if isinstance(planes, PlaneCommittee):
            local = planes.at(row)
            c, d = (-planes.class_scores(row[None])[0]).argsort(kind="stable")[:2].tolist()
            return cls(*_difference(local, c, d), c, d)
        scores, owners = planes.scores(row[None])[0], planes.owners
        winner = int(scores.argmax())
        c = int(owners[winner])
        rival = int(np.where(owners == c, -np.inf, scores).argmax())
        d = int(owners[rival])
        numbers = winner - int(planes.indptr[c]) + 1, rival - int(planes.indptr[d]) + 1
        return cls(*_difference(planes, winner, rival), c, d, *numbers)


def _difference(planes: PlaneSet, p: int, q: int) -> tuple[np.ndarray, float]:
    """Return one plane minus another."""
    coef = planes.coef[p].astype(np.float64) - planes.coef[q]
    return coef, float(planes.intercept[p]) - float(planes.intercept[q])


def _flip(model: UnscaledModel, row: np.ndarray, target: int | None, allowed: dict[str, Any]) -> Flip | None:
    """Return a counterfactual that the estimator itself confirms: its scalers round differently than the planes."""
    before = int(model.predict(row[None])[0])
    several = isinstance(model.planes, PlaneCommittee)
    search: Any = committee_counterfactual if several else counterfactual
    size = float(np.abs(model.planes.scores(row[None])).max()) + 1e-30
    for margin in (0.0, *(size * 10.0**power for power in range(-10, -2))):
        found: Counterfactual | None = search(model.planes, row, target, margin=margin, **allowed)
        if found is None:
            return None
        after = int(model.predict(found.point[None])[0])
        if after == target or (target is None and after != before):
            return Flip(model.label(after), found.point, found.change, found.distance, proven=not several)
    return None


def _one_row(model: UnscaledModel, x: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the row with missing values imputed, and which these are."""
    if sparse.issparse(x):
        x = x.toarray()
    given = x if hasattr(x, "columns") else np.atleast_2d(np.asarray(x))
    filled = model.rows(given)
    if filled.shape[0] != 1:
        raise ValueError(f"x must be one row, not {filled.shape[0]} rows.")
    missing = np.isnan(np.asarray(given, dtype=np.float64)[0])
    return filled[0], tuple(np.flatnonzero(missing).tolist())


def _reference(model: UnscaledModel, given: Any, rows: Any) -> np.ndarray:
    if given is not None:
        return _one_row(model, given)[0].astype(np.float64)
    if rows is None:
        return model.center.astype(np.float64)
    return np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()


def _scale(model: UnscaledModel, given: Any, rows: Any) -> np.ndarray:
    if given is not None:
        return np.broadcast_to(np.asarray(given, dtype=np.float64), model.planes.n_features)
    if model.scaled or rows is None:
        return model.scale
    deviation = influence_of(rows, model.scale)
    return np.where(deviation > 0, deviation, 1.0)


def _by_name(model: UnscaledModel, given: Any, otherwise: float) -> Any:
    if not isinstance(given, Mapping):
        return given
    bounds = np.full(model.planes.n_features, otherwise)
    bounds[_numbers(model, list(given))] = list(given.values())
    return bounds


def _numbers(model: UnscaledModel, given: Any) -> Any:
    """Return feature indices, given indices or names."""
    if given is None or not any(isinstance(item, str) for item in given):
        return given
    unknown = [name for name in given if name not in model.feature_names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a feature of the model.")
    return [model.feature_names.index(name) for name in given]
