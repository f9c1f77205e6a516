"""The smallest change of a table's row that makes it another class."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.geometry._table_candidates import value_of
from polyplane.geometry._table_effects import ModelEffects
from polyplane.geometry._table_limits import free_columns
from polyplane.geometry._table_pairs import SLACK, class_of
from polyplane.geometry._table_search import Reached, search
from polyplane.tables._columns import BooleanColumn, CategoryColumn, Column, DateColumn, NumberColumn
from polyplane.tables._model import TableModel


@dataclass(frozen=True, eq=False)
class TableCounterfactual:
    """A counterfactual of a table row: a changed row of another class.

    Parameters
    ----------
    changes : dict of str to tuple
        The values before and after of each changed column as a reader sees them: levels as text, numbers, True and
        False, dates as ISO text.
    target : int
        The class of the changed row.
    distance : float
        The sum of the changes. A number or date counts in units of the column's spread, the interquartile range of the
        training rows (the standard deviation where that is 0); a switched category or boolean counts 1.
    proven : bool
        Whether it is proven that no change of fewer columns leads to the target, and none of as many that is smaller:
        at all where one column of levels, whole numbers or days changes, and otherwise by more than a few thousandths,
        as numbers with decimals are given to a thousandth of the spread, and pairs of columns searched to that.
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

    The score of each plane is a sum over the columns. For ranges of values of a column, bounds of what they add to each
    score are known; ranges that cannot lead to the target are dropped, the others are split until a single value is
    left. For one and two columns this proves that the result is the smallest. Three columns or more are searched by
    adding columns one by one, and shortening the change two columns at a time, without proof.

    Parameters
    ----------
    model : TableModel
        The model, ``TableClassifier.model_``.
    z : ndarray of shape (n_features,)
        The row, encoded: a row of ``model.encode(table)``.
    target : int, default=None
        The class to get to, as its place in ``classes_``. None: any but the predicted one.
    bounds : dict of str to (low, high), default=None
        Bounds of numbers and dates that replace the range of the training data; None as low or high keeps that side.
        They apply only to columns that change.
    frozen : collection of str, default=()
        Columns that must not change.
    increasing, decreasing : collection of str, default=()
        Numbers and dates that can only increase, or only decrease.
    max_columns : int, default=None
        Maximum number of columns that may change. None: all.

    Returns
    -------
    found : TableCounterfactual or None
        None if no allowed change was found. A row of the target class is its own counterfactual, without changes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> from polyplane.geometry import table_counterfactual
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 80, 400), "member": rng.choice(["yes", "no"], 400)})
    >>> price = np.where((frame["age"] >= 60) | (frame["member"] == "yes"), "reduced", "full")
    >>> model = TableClassifier(random_state=0).fit(frame, price).model_
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
        raise ValueError(f"z is not finite in {model.encoding.features[int((~np.isfinite(row)).argmax())].name!r}.")
    return row


def _predicted(model: TableModel, z: np.ndarray) -> int:
    """The class of a row, by the model itself where the best two classes are near to a tie."""
    effects = ModelEffects.of(model)
    scores = effects.class_scores(effects.plane_scores(z)[None])[0]
    second, first = np.sort(scores)[-2:]
    return int(scores.argmax()) if first - second > SLACK else class_of(model, z)


def _readable(column: Column, features: np.ndarray) -> Any:
    """The value of a column as a reader sees it."""
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
