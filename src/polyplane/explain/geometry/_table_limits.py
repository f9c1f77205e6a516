"""Validation of the allowed changes of table columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from polyplane.explain.geometry._table_candidates import Limits, MovingColumn, RowColumn, SwitchingColumn, value_of
from polyplane.explain.geometry._table_effects import ModelEffects
from polyplane.inputs.columns import Column, DateColumn, NumberColumn, days
from polyplane.inputs.encoding import TableInputs
from polyplane.tables._model import TableModel

Bounds = Mapping[str, tuple[Any, Any]]
#: Levels have no bounds.
ANYWHERE = Limits(-np.inf, np.inf)


def free_columns(
    model: TableModel,
    z: np.ndarray,
    bounds: Bounds | None,
    frozen: Collection[str],
    increasing: Collection[str],
    decreasing: Collection[str],
) -> list[RowColumn]:
    """Return the columns of a row that may change, with their bounds."""
    encoding, bounds = model.encoding, bounds or {}
    groups = {"bounds": bounds, "frozen": frozen, "increasing": increasing, "decreasing": decreasing}
    for parameter, names in groups.items():
        _check_names(encoding, parameter, names)
    both = sorted(set(increasing) & set(decreasing))
    if both:
        raise ValueError(f"increasing and decreasing both name {both[0]!r}: put it in frozen if it must not change.")
    free: list[RowColumn] = []
    for position, (effect, place) in enumerate(zip(ModelEffects.of(model).columns, encoding.places, strict=True)):
        column, features = effect.column, z[place]
        value = value_of(column, features)
        if column.name in frozen or np.isnan(value):
            continue
        if isinstance(column, NumberColumn | DateColumn):
            limits = _limits(column, bounds.get(column.name), column.name in increasing, column.name in decreasing)
            limits = _in_steps(limits, value % 1.0 if column.kind == "date" else 0.0) if effect.is_whole else limits
            free.append(MovingColumn(position, effect, features, limits, column.range.spread))
        else:
            free.append(SwitchingColumn(position, effect, features, ANYWHERE))
    return free


def _check_names(encoding: TableInputs, parameter: str, names: Collection[str]) -> None:
    if not names:
        return
    if isinstance(names, str):
        raise ValueError(f"{parameter}={names!r} must be a list of columns: use [{names!r}].")
    ordered = {column.name for column in encoding.columns if isinstance(column, NumberColumn | DateColumn)}
    for name in names:
        if name not in encoding.names:
            near = get_close_matches(str(name), encoding.names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{parameter} names {name!r}, which is not a column of the table.{hint}")
        if parameter != "frozen" and name not in ordered and name not in encoding.dropped:
            raise ValueError(f"{parameter} names {name!r}, which is not a number or a date.")


def _limits(column: NumberColumn | DateColumn, given: Any, rises: bool, falls: bool) -> Limits:
    ends = [column.range.low, column.range.high]
    if given is not None and (isinstance(given, str) or np.size(given) != 2):
        raise ValueError(f"bounds of {column.name!r} must be a pair (low, high), not {given!r}.")
    for side, bound in enumerate(given or ()):
        if bound is not None:
            ends[side] = _bound(column, bound)
    if ends[0] > ends[1]:
        raise ValueError(f"The lower bound of {column.name!r}, {ends[0]:g}, is above its upper bound, {ends[1]:g}.")
    return Limits(ends[0], ends[1], may_fall=not rises, may_rise=not falls)


def _in_steps(limits: Limits, offset: float) -> Limits:
    """Round bounds to integers, or to days with the same time of day."""
    low, high = np.ceil(limits.low - offset) + offset, np.floor(limits.high - offset) + offset
    return limits._replace(low=float(low), high=float(high))


def _bound(column: Column, bound: Any) -> float:
    try:
        is_date = isinstance(column, DateColumn) and not isinstance(bound, int | float)
        value = float(days(np.array([bound], dtype="datetime64[us]"))[0]) if is_date else float(bound)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        kind = "a date such as '2024-05-31'" if isinstance(column, DateColumn) else "a number"
        raise ValueError(f"bounds of {column.name!r} must be {kind} or None, not {bound!r}.")
    return value
