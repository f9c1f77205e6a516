"""Counterfactuals of table rows: the smallest change that leads to another class."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.explain.geometry._table_candidates import value_of
from polyplane.explain.geometry._table_effects import ModelEffects
from polyplane.explain.geometry._table_limits import free_columns
from polyplane.explain.geometry._table_pairs import SLACK, class_of
from polyplane.explain.geometry._table_search import Reached, search
from polyplane.inputs.columns import BooleanColumn, CategoryColumn, Column, DateColumn, NumberColumn
from polyplane.tables._model import TableModel


@dataclass(frozen=True, eq=False)
class TableCounterfactual:
    """A counterfactual of a table row: a changed row of another class.

    Parameters
    ----------
    changes : dict of str to tuple
        Values before and after, by the name of each changed column: levels as strings, numbers, booleans, and dates as
        ISO strings.
    target : int
        Class index of the changed row.
    distance : float
        Sum of the changes. The change of a number or a date is measured in units of the column's spread: the
        interquartile range of the training rows, or their standard deviation if that is 0. The change of a category or
        a boolean counts 1.
    proven : bool
        Whether the change is proven to be optimal: no change of fewer columns leads to the target, and no change of as
        many columns is smaller. If a single column of levels, integers or dates changes, this is exact. Otherwise,
        "smaller" means by more than a few thousandths: non-integer numbers are resolved to a thousandth of the spread.
    z : ndarray of shape (n_features,)
        The changed row, encoded.
    """

    changes: dict[str, tuple[Any, Any]]
    target: int
    distance: float
    proven: bool
    z: np.ndarray


def table_counterfactual(
    model: TableModel,
    z: np.ndarray,
    target: int | None = None,
    *,
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    frozen: Collection[str] = (),
    increasing: Collection[str] = (),
    decreasing: Collection[str] = (),
    max_columns: int | None = None,
) -> TableCounterfactual | None:
    r"""Find the smallest change of a table row that leads to another class.

    Only plausible changes are considered: a category changes to another of its levels, integers remain integers, dates
    move by whole days, and numbers and dates stay within the range of the training data. Missing values remain missing,
    and no value becomes missing or a rare level. Among all changes that lead to the target, those of the fewest columns
    are preferred, and among these the one with the smallest sum of changes.

    The score of each plane is a sum over the columns. For each range of values of a column, the search computes bounds
    of its contribution to the scores. Ranges that cannot lead to the target are discarded, and the others are split
    until single values remain. For one and two columns, this proves that the result is the smallest change. For three
    columns or more, the search adds columns one by one and then reduces the change two columns at a time, without
    proof.

    Parameters
    ----------
    model : TableModel
        The model, ``TableClassifier.table_model_``.
    z : ndarray of shape (n_features,)
        The encoded row: a row of ``model.encode(table)``.
    target : int, default=None
        Index of the target class in ``classes_``. If None, any class other than the predicted one.
    bounds : dict of str to (low, high), default=None
        Bounds of numbers and dates that replace the range of the training data; None as low or high keeps that side.
        They apply only to columns that change.
    frozen : collection of str, default=()
        Columns that must not change.
    increasing, decreasing : collection of str, default=()
        Numbers and dates that can only increase, or only decrease.
    max_columns : int, default=None
        Maximum number of columns that may change. If None, all.

    Returns
    -------
    found : TableCounterfactual or None
        None if no allowed change was found. For a row of the target class, a result without changes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> from polyplane.explain.geometry import table_counterfactual
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 80, 400), "member": rng.choice(["yes", "no"], 400)})
    >>> price = np.where((frame["age"] >= 60) | (frame["member"] == "yes"), "reduced", "full")
    >>> model = TableClassifier(random_state=0).fit(frame, price).table_model_
    >>> row = model.encode(pd.DataFrame({"age": [57], "member": ["no"]}))[0]
    >>> found = table_counterfactual(model, row)
    >>> found.changes, found.proven
    ({'age': (57, 60)}, True)
    >>> table_counterfactual(model, row, frozen=["age"]).changes
    {'member': ('no', 'yes')}
    """
    z = _checked_row(model, z)
    if target is not None and not 0 <= target < model.n_classes:
        raise ValueError(f"target={target!r} is not one of the classes 0 to {model.n_classes - 1}.")
    if max_columns is not None and max_columns < 1:
        raise ValueError(f"max_columns={max_columns!r} must be 1 or more, or None.")
    columns = free_columns(model, z, bounds, frozen, increasing, decreasing)
    before = _predicted(model, z)
    if target == before:
        return TableCounterfactual({}, before, 0.0, True, z.copy())
    goals = [c for c in range(model.n_classes) if c != before] if target is None else [target]
    if not columns:
        return None
    found = search(model, z, columns, goals, max_columns or len(columns))
    return None if found is None else _as_read(model, z, found)


def _as_read(model: TableModel, z: np.ndarray, found: Reached) -> TableCounterfactual:
    changes, distance = {}, 0.0
    for j, value in sorted(found.values.items()):
        column, place = model.encoding.columns[j], model.encoding.places[j]
        changes[column.name] = _readable(column, z[place]), _readable(column, found.z[place])
        distance += _distance(column, z[place], value)
    return TableCounterfactual(changes, found.target, distance, found.is_proven, found.z)


def _checked_row(model: TableModel, z: Any) -> np.ndarray:
    row = np.asarray(z, dtype=np.float64)
    n_features = len(model.encoding.features)
    if row.shape != (n_features,):
        raise ValueError(f"z has shape {row.shape}; it must be one encoded row of {n_features} features.")
    if not np.isfinite(row).all():
        feature = model.encoding.features[int((~np.isfinite(row)).argmax())].name
        raise ValueError(f"z must be finite, but its feature {feature!r} is not.")
    return row


def _predicted(model: TableModel, z: np.ndarray) -> int:
    """Return the class of a row; if the best two classes are nearly tied, the model itself decides."""
    effects = ModelEffects.of(model)
    scores = effects.class_scores(effects.plane_scores(z)[None])[0]
    second, first = np.sort(scores)[-2:]
    return int(scores.argmax()) if first - second > SLACK else class_of(model, z)


def _readable(column: Column, features: np.ndarray) -> Any:
    """Return the value of a column for display."""
    value = value_of(column, features)
    match column:
        case _ if np.isnan(value):
            return None
        case CategoryColumn(levels=levels):
            return levels[int(value)] if value < len(levels) else "other"
        case BooleanColumn():
            return value > 0.5
        case DateColumn():
            date = np.datetime64(0, "us") + np.timedelta64(round(value * 86_400e6), "us")
            return str(date.astype("datetime64[D]") if value == round(value) else date.astype("datetime64[s]"))
        case NumberColumn(is_whole=True) if value == round(value):
            return int(value)
    return value


def _distance(column: Column, features: np.ndarray, after: float) -> float:
    if isinstance(column, NumberColumn | DateColumn):
        return abs(after - value_of(column, features)) / column.range.spread
    return 1.0
