"""Averages of states that were trained on different partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane.engine.kinds import Array, Many, Maybe, Record, Tuple
from polyplane.engine.state import kinds_of


def mix(states: Sequence[Any], share: np.ndarray) -> Any:
    """The average, weighted by `share`, of the fields declared as mixed; the states come from a common one."""
    first = states[0]
    kinds = kinds_of(first.__class__)
    mixed = {
        name: _mix(kind, [getattr(state, name) for state in states], share, states) for name, kind in kinds.items()
    }
    for name, kind in kinds.items():
        if isinstance(kind, Array) and kind.scaled_by is not None:
            mixed[name] = mixed[name] * mixed[name].dtype.type(mixed[kind.scaled_by])
    return first.replace(**mixed).without_workspaces()


def _mix(kind: Any, values: Sequence[Any], share: np.ndarray, states: Sequence[Any]) -> Any:
    if isinstance(kind, Maybe):
        return None if any(value is None for value in values) else _mix(kind.kind, values, share, states)
    if isinstance(kind, Tuple):
        parts = zip(kind.kinds, zip(*values, strict=True), strict=True)
        return kind.build(*(_mix(inner, part, share, states) for inner, part in parts))
    if isinstance(kind, Many):
        return [_mix(kind.kind, part, share, states) for part in zip(*values, strict=True)]
    if isinstance(kind, Record):
        return mix(values, share)
    if not getattr(kind, "mixed", False):
        return values[0]
    if isinstance(kind, Array) and kind.scaled_by is not None:
        values = [value / getattr(state, kind.scaled_by) for value, state in zip(values, states, strict=True)]
    return _average(values, share)


def _average(values: Sequence[Any], share: np.ndarray) -> Any:
    """The average of arrays or numbers, in float64; integers are rounded."""
    first = values[0]
    total = sum(s * np.asarray(value, dtype=np.float64) for s, value in zip(share, values, strict=True))
    if isinstance(first, np.ndarray):
        return (np.rint(total) if first.dtype.kind == "i" else total).astype(first.dtype)
    return round(float(total)) if isinstance(first, int) else float(total)
