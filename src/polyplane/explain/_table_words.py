"""Effects of the values of a column as text."""

from __future__ import annotations

import numpy as np

from polyplane.explain._table_effects import ColumnEffect
from polyplane.explain._table_values import date_text, shown_number

#: Number of levels and numbers of a column that are printed, and smallest fraction of the rows of a level.
PRINTED_VALUES, LEAST_SHARE = 5, 0.005
#: Smallest width of a range of effects that is printed, as a fraction of the largest effect of the column.
WIDE = 0.5


def weights(effect: ColumnEffect) -> np.ndarray:
    """Return the weight of each value: the frequency of levels, and equal weights of numbers in the main range."""
    if effect.counts is not None:
        counts = np.array(effect.counts, dtype=float)
        return counts / max(1.0, counts.sum())
    if not effect.is_curve:
        return np.full(len(effect.values), 1.0 / len(effect.values))
    inside = [effect.drawn[0] <= float(value or 0.0) <= effect.drawn[1] for value in effect.values]
    return np.array(inside, dtype=float) / max(1, sum(inside))


def effects_text(effect: ColumnEffect, sizes: np.ndarray, c: int | None = None) -> str:
    """Format the effects of a few values: the levels that matter in most rows, or numbers over the whole range.

    For class `c`, the range over rows is added in brackets if it is wide.
    """
    prefix = f"{effect.part} " if effect.part not in (None, "days") else ""
    if effect.is_curve:
        return prefix + ", ".join(
            f"{signed(sizes[i])} at {shown_value(effect, i)}{_range(effect, i, c)}" for i in shown_positions(effect)
        )
    share = weights(effect)
    order = np.argsort(-np.abs(sizes) * share, kind="stable")
    told = [i for i in order if share[i] >= LEAST_SHARE and effect.values[i] != effect.reference][:PRINTED_VALUES]
    levels = [f"{signed(sizes[i])} {effect.values[i]}{_range(effect, i, c)}" for i in told]
    return ", ".join([*levels, f"0 {effect.reference} (reference)"])


def _range(effect: ColumnEffect, i: int, c: int | None) -> str:
    if c is None or effect.low is None or effect.high is None:
        return ""
    low, high = effect.low[i, c], effect.high[i, c]
    return f" ({signed(low)} to {signed(high)})" if high - low > WIDE * np.abs(effect.effect[:, c]).max() else ""


def shown_positions(effect: ColumnEffect) -> list[int]:
    """Return the indices of a few values of a curve: the ends of the main range, the reference, and values between."""
    values = np.array(effect.values, dtype=float)
    (low, high), middle = effect.drawn, float(effect.reference or 0.0)
    wanted = [low, 0.5 * (low + middle), middle, 0.5 * (middle + high), high]
    return sorted({int(np.abs(values - value).argmin()) for value in wanted})


def shown_value(effect: ColumnEffect, i: int) -> str:
    """Format a value of a column."""
    value = effect.values[i]
    if not isinstance(value, float):
        return str(value)
    return date_text(value) if effect.part == "days" else shown_number(value, effect.is_whole, 3)


def signed(value: float) -> str:
    """Format an effect with its sign."""
    return "0" if abs(value) < 0.005 else f"{value:+.2f}"
