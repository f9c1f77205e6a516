"""Effects of the values of a column on the scores of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.explain._table_axes import column_axes
from polyplane.explain._table_scores import TableScores
from polyplane.explain._table_values import Value
from polyplane.inputs.cells import DATES, Cells
from polyplane.inputs.columns import Column

#: Number of plane scores that are computed at once.
BLOCK = 1 << 22
#: Quantiles of the rows between which a band around a curve extends.
BAND = (0.1, 0.9)


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """Effects of the values of a column on the scores of the classes, relative to its reference value.

    Parameters
    ----------
    column : str
        Name of the column.
    kind : str
        "number", "category", "boolean" or "date".
    part : str or None
        For dates: "days", "year", "month", "day of week" or "hour".
    values : tuple
        Numbers in increasing order (dates as days since 1970), or levels.
    reference : float or str
        The reference value: the median or the most frequent level.
    effect : ndarray of shape (n_values, n_classes)
        Change of the score of each class, minus the mean score of the other classes, relative to the reference value,
        in log-odds.
    low, high : ndarray of shape (n_values, n_classes) or None
        The 10th and the 90th percentile of the effect over the rows, if the column interacts with other columns.
    missing : ndarray of shape (n_classes,) or None
        Effect of a missing value, if the column had missing values in training.
    counts : tuple of int or None
        Number of training rows of each level.
    drawn : tuple of float
        The range that contains nearly all rows.
    deciles : tuple of float or None
        Deciles of the given rows.
    is_whole : bool
        Whether the values are integers.
    by_plane : ndarray of shape (n_values, n_planes) or None
        For a single member with several planes per class: contribution of the values to the score of each plane, minus
        the mean over all planes, which does not affect predictions.
    """

    column: str
    kind: str
    part: str | None
    values: tuple[Value, ...]
    reference: Value
    effect: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    missing: np.ndarray | None
    counts: tuple[int, ...] | None
    drawn: tuple[float, float]
    deciles: tuple[float, ...] | None
    is_whole: bool
    by_plane: np.ndarray | None = None

    @property
    def name(self) -> str:
        """Name of the column, with the part of a date."""
        return self.column if self.part in (None, "days") else f"{self.column} ({self.part})"

    @property
    def is_curve(self) -> bool:
        """Whether the values are numbers."""
        return self.counts is None and self.kind in ("number", "date")

    def at(self, value: float, c: int) -> float:
        """Return the effect of a number on class `c`."""
        return float(np.interp(value, np.array(self.values, dtype=float), self.effect[:, c]))


def drawn_levels(effect: ColumnEffect, most: int) -> tuple[list[str], np.ndarray, list[int], Any]:
    """Return names, effects, counts and bands of the most frequent levels, and of missing values."""
    counts = np.zeros(len(effect.values), dtype=int) if effect.counts is None else np.array(effect.counts)
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    names, rows = [str(effect.values[i]) for i in kept], counts[kept].tolist()
    ends = effect.effect, effect.low, effect.high
    sizes, low, high = (None if end is None else end[kept] for end in ends)
    if effect.missing is not None:
        names, rows = [*names, "missing"], [*rows, 0]
        sizes, low, high = (None if part is None else np.vstack([part, effect.missing]) for part in (sizes, low, high))
    assert sizes is not None
    return names, sizes, rows, None if low is None else (low, high)


def leads(scores: np.ndarray) -> np.ndarray:
    """Compute the scores of classes minus the mean of the other classes, along the last axis."""
    n_classes = scores.shape[-1]
    return (scores - scores.mean(axis=-1, keepdims=True)) * (n_classes / (n_classes - 1))


def column_effects(
    scores: TableScores, j: int, Z: np.ndarray | None = None, without: np.ndarray | None = None
) -> list[ColumnEffect]:
    """Compute the effects of column `j`: one, or one for each part of a date.

    Parameters
    ----------
    scores : TableScores
        Scores of the model.
    j : int
        Index of the column.
    Z : ndarray of shape (n_rows, n_features) or None
        Encoded rows; effects are means over them. If None, all other columns have their reference value.
    without : ndarray of shape (n_rows, n_planes) or None
        Scores of the planes for these rows, without the contribution of the column.
    """
    column, place = scores.model.encoding.columns[j], scores.model.encoding.places[j]
    seen = None if Z is None else _not_missing(column, Z[:, place])
    missing = None
    if column.has_gaps:
        missing = _mean_effect(scores, scores.column(j, _gap(column)), without)[0][0]
    effects = []
    for axis in column_axes(column, scores.model, place, seen):
        added = scores.column(j, axis.encoded)
        mean, low, high = _mean_effect(scores, added, without)
        effects.append(
            ColumnEffect(
                column=column.name,
                kind=column.kind,
                part=axis.part,
                values=axis.values,
                reference=axis.reference,
                effect=mean,
                low=low,
                high=high,
                missing=missing if axis.part in (None, "days") else None,
                counts=axis.counts,
                drawn=axis.drawn,
                deciles=axis.deciles,
                is_whole=axis.is_whole,
                by_plane=added - added.mean(axis=1, keepdims=True) if has_rules(scores) else None,
            )
        )
    return effects


def has_rules(scores: TableScores) -> bool:
    """Return whether there is a single member with several planes for some class."""
    return len(scores.model.members) == 1 and not scores.is_additive


def _mean_effect(
    scores: TableScores, added: np.ndarray, without: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Compute mean effects of values from their plane contributions and the plane scores of rows without the column."""
    if without is None or scores.is_additive:
        without = scores.at_reference[None]
    size = max(1, BLOCK // max(1, len(added) * added.shape[1]))
    blocks = []
    for start in range(0, len(without), size):
        rest = without[start : start + size, None]
        blocks.append(leads(scores.classes(rest + added)) - leads(scores.classes(rest)))
    changes = np.concatenate(blocks)
    if len(changes) == 1:
        return changes[0], None, None
    low, high = np.quantile(changes, BAND, axis=0)
    return changes.mean(axis=0), low, high


def _gap(column: Column) -> np.ndarray:
    """Return the features of a missing value, shape (1, n_features of the column)."""
    out = np.zeros((1, len(column.features)))
    form: Any = ("date", np.array(["NaT"], dtype=DATES)) if column.kind == "date" else ("number", np.array([np.nan]))
    column.encode(Cells(column.name, *form), out)
    return out


def _not_missing(column: Column, features: np.ndarray) -> np.ndarray:
    return features[features[:, -1] == 0] if column.has_gaps else features
