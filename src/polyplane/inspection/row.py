"""Why a class is predicted for a row, and what would change that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane.base import class_index
from polyplane.committee import PlaneCommittee
from polyplane.geometry import Counterfactual, committee_counterfactual, counterfactual
from polyplane.inspection._estimators import refuse_given, table_classifier
from polyplane.inspection._explain_table_row import explain_table_row
from polyplane.inspection._row_explanation import Flip, RowExplanation
from polyplane.inspection._table_row_explanation import TableRowExplanation
from polyplane.inspection.rounding import influence_of
from polyplane.inspection.unscaled import UnscaledModel, unwrap
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
    """Why a class is predicted for a row, and the smallest change that leads to another class.

    The reasons are exact. So is the change, but for a committee of several machines: there it is found by local search,
    and not proven to be the smallest. A row of a table is explained in the columns of the table; changes of one or two
    of them are proven to be the smallest.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A `TableClassifier`, or what `unwrap` takes. The explanation is in the units of the data.
    x : array-like of shape (n_features,), or one row of a matrix or data frame
        The row; missing values are filled in when the pipeline does so. For a `TableClassifier` also a Series of pandas
        or a dict of column name to value.
    X : array-like or sparse matrix of shape (n_rows, n_features), default=None
        Rows to compare with, for instance those of the training.
    reference : array-like of shape (n_features,), default=None
        The row that shares are relative to. None: the mean of `X`; without it, what the scalers of a pipeline make 0,
        for a StandardScaler the mean of its training rows; without these, 0. For a `TableClassifier`, None is the row
        of medians and most frequent levels.
    target : label, default=None
        The class to change to; None: the nearest one.
    true_label : label, default=None
        The label that the row should have. Where another one is predicted, and there is no `target`, it is the one to
        change to.
    lower, upper : float, array-like of shape (n_features,), or dict of feature name to float, default=None
        Bounds of the changed row.
    frozen : sequence of feature names or numbers, or a mask, default=None
        Features that must not change.
    scale : array-like of shape (n_features,), default=None
        The change of each feature that counts as 1 when changes are compared. None: that of the pipeline's scalers;
        without these, the standard deviation in `X`; without it, 1.
    feature_names : sequence of str, default=None
        Names of the features; None: those seen in `fit`.
    increasing, decreasing : sequence of column names, default=None
        For a `TableClassifier`: columns that can only rise, or only fall.
    max_columns : int, default=None
        For a `TableClassifier`: the most columns that may change.
    search : bool, default=True
        Whether to look for a change at all; the reasons alone take a few milliseconds.

    Returns
    -------
    explanation : RowExplanation, or TableRowExplanation for a TableClassifier
        Print it, or take its `to_text`, `to_dict` or `to_frame`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.inspection import explain_row
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X, y = X[["mean radius", "mean texture"]], y.map({0: "malignant", 1: "benign"})
    >>> machine = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(X, y)
    >>> print(explain_row(machine, X.iloc[0], frozen=["mean texture"]))
    The predicted class is 'malignant' (its plane 1), ahead of class 'benign' (plane 1) by a score of 0.8464:
       +2.513  mean radius = 17.99 (reference 14.13)
       -1.164  mean texture = 10.38 (reference 19.29)
      -0.5022  at the reference row
    The smallest change that leads to class 'benign' (at a distance of 0.3695):
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
        refuse_given(of_planes, "a TableClassifier knows the names, ranges and spreads of its columns")
        allowed = {"lower": lower, "upper": upper, "frozen": frozen, "max_columns": max_columns, **of_tables}
        return explain_table_row(
            table, x, reference=reference, target=target, true_label=true_label, search=search, **allowed
        )
    refuse_given({**of_tables, "max_columns": max_columns}, "it is for a TableClassifier")
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
    """The plane by which the predicted class is ahead of the next best one, and the planes that it comes from."""

    coef: np.ndarray
    intercept: float
    c: int
    rival: int
    plane: int | None = None
    rival_plane: int | None = None

    @classmethod
    def of(cls, planes: PlaneSet | PlaneCommittee, row: np.ndarray) -> _Lead:
        """At a row; in a committee it is that of the mean planes there."""
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
    """One plane less another."""
    coef = planes.coef[p].astype(np.float64) - planes.coef[q]
    return coef, float(planes.intercept[p]) - float(planes.intercept[q])


def _flip(model: UnscaledModel, row: np.ndarray, target: int | None, allowed: dict[str, Any]) -> Flip | None:
    """The counterfactual by which the estimator itself is convinced: its scalers round otherwise than planes do."""
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
    """The row, missing values filled in, and which these were."""
    if sparse.issparse(x):
        x = x.toarray()
    given = x if hasattr(x, "columns") else np.atleast_2d(np.asarray(x))
    filled = model.rows(given)
    if filled.shape[0] != 1:
        raise ValueError(f"x must be one row, not {filled.shape[0]}.")
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
    """Features by number; names are looked up."""
    if given is None or not any(isinstance(item, str) for item in given):
        return given
    unknown = [name for name in given if name not in model.feature_names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of the features.")
    return [model.feature_names.index(name) for name in given]
