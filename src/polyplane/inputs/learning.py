"""Inference of the kind of a column, of its encoding, or of the reason to drop it."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np

from polyplane.inputs.cells import (
    Cells,
    as_booleans,
    as_dates,
    as_levels,
    as_numbers,
    looks_like_dates,
    looks_like_numbers,
    number_reader,
)
from polyplane.inputs.columns import (
    DATE_PARTS,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    Range,
    date_part,
    days,
)

#: Integers that differ in each row are an id if they fill this fraction of their range, like row numbers, also in a
#: sample of half of the rows. With fewer rows than the second number, values may be distinct by chance.
DENSE, ENOUGH_ROWS = 0.5, 100
#: Where at most this share of the different texts of a column are not numbers, the column may be meant as numeric.
FEW_TEXTS = 0.1
_ID_NAME = re.compile(r"(.*[_\W])?(id|uid|uuid|guid|key|index|row|rownum|row_number|unnamed: 0)", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """Conditions for a category level to get its own feature.

    Parameters
    ----------
    min_rows : int
        Smallest number of rows of a level; rarer levels share the feature "other".
    max_levels : int
        Largest number of levels; the most frequent ones are kept.
    """

    min_rows: int
    max_levels: int


def find_kind(cells: Cells, decimal: str) -> str:
    """Infer the kind of a column from its dtype or from its strings."""
    if cells.form != "text":
        return cells.form
    used = _used_levels(cells)
    if cells.is_declared or not used:
        return "category"
    if looks_like_numbers(used, decimal):
        numbers = set(map(number_reader(decimal), used))  # those of long ids may be equal
        return "category" if len(numbers) == 1 < len(used) else "number"
    if set(used) == {"true", "false"}:
        return "boolean"
    return "date" if looks_like_dates(used) else "category"


def _used_levels(cells: Cells) -> list[str]:
    return [cells.levels[i] for i in np.unique(cells.values[cells.values >= 0])]


def learn_column(cells: Cells, kind: str | None, decimal: str, limits: Limits) -> Column | str:
    """Return the fitted column, or the reason to drop it.

    Parameters
    ----------
    cells : Cells
        Values of the training rows.
    kind : str or None
        The kind of the column. If None, it is inferred, and the column is dropped if it is an id.
    decimal : str
        Decimal separator of numbers in strings.
    limits : Limits
        Conditions for a level to get its own feature.
    """
    found = find_kind(cells, decimal) if kind is None else kind
    is_gap = cells.is_gap
    if is_gap.all():
        return "it has no values"
    values = _VALUES[found](cells, decimal)
    different = np.unique(values[~is_gap])
    if len(different) == 1 and not is_gap.any():
        level = as_levels(cells)[1][as_levels(cells)[0][0]]
        return f"it is constant: all values are {level!r}"
    if kind is None and (reason := _id_reason(cells, found, values, len(different))) is not None:
        return reason
    if found == "category" or len(different) == 1:
        if kind is None and cells.form == "text" and not cells.is_declared:
            _warn_of_few_texts(cells, decimal)
        return _learn_category(cells, limits)
    return _learn_numbers(cells.name, found, values[~is_gap], bool(is_gap.any()), decimal)


_VALUES = {
    "number": as_numbers,
    "boolean": lambda cells, decimal: as_booleans(cells),
    "date": lambda cells, decimal: as_dates(cells),
    "category": lambda cells, decimal: as_levels(cells)[0],
}


def _warn_of_few_texts(cells: Cells, decimal: str) -> None:
    """Warn if a few texts keep a column from being numeric."""
    used = _used_levels(cells)
    other = [text for text in used if not looks_like_numbers([text], decimal)]
    if 0 < len(other) <= FEW_TEXTS * len(used):
        named = ", ".join(map(repr, other[:3])) + (", ..." if other[3:] else "")
        warnings.warn(
            f"Column {cells.name!r} is treated as a category: it is numeric except for {named}. If these are missing "
            "values, add them to `gaps`; to keep the category without this warning, set its kind with `kinds`.",
            UserWarning,
            stacklevel=2,
        )


def _id_reason(cells: Cells, kind: str, values: np.ndarray, n_different: int) -> str | None:
    """Return the reason why a column is an id; None if it is not."""
    n_rows = len(values)
    if n_different < n_rows or n_rows < 3:
        return None
    if kind == "category":
        return f"it is an id: its text is different in each of the {n_rows} rows"
    if kind != "number" or not (cells.is_whole or cells.form == "text") or (values % 1 != 0).any():
        return None
    is_dense = n_rows >= ENOUGH_ROWS and n_rows >= DENSE * (np.ptp(values) + 1)
    if is_dense or _ID_NAME.fullmatch(cells.name):
        return f"it is an id: its integer is different in each of the {n_rows} rows"
    return None


def _learn_category(cells: Cells, limits: Limits) -> Column | str:
    codes, levels = as_levels(cells)
    count = np.bincount(codes[codes >= 0], minlength=len(levels))
    order = np.argsort(-count, kind="stable")
    kept = order[count[order] >= limits.min_rows][: limits.max_levels]
    n_gaps = int((codes < 0).sum())
    has_other = int(count[kept].sum()) < len(codes) - n_gaps
    if not len(kept) and not n_gaps:
        return f"none of its {np.count_nonzero(count)} levels occurs in at least {limits.min_rows} rows (min_rows)"
    shown = sorted(kept.tolist(), key=lambda i: _by_size(levels[i]))
    counts = [int(count[i]) for i in shown]
    if has_other:
        counts.append(int(count.sum()) - sum(counts))
    return CategoryColumn(cells.name, n_gaps > 0, tuple(levels[i] for i in shown), has_other, tuple(counts))


def _learn_numbers(name: str, kind: str, values: np.ndarray, has_gaps: bool, decimal: str) -> Column:
    if kind == "number":
        is_whole = bool((values % 1 == 0).all())
        return NumberColumn(
            name,
            has_gaps,
            _middle(values) if is_whole else float(np.median(values)),
            decimal,
            Range.of(values),
            is_whole,
        )
    if kind == "boolean":
        return BooleanColumn(name, has_gaps, float(values.mean()))
    parts = tuple(part for part in DATE_PARTS if np.ptp(date_part(values, part)) > 0)
    return DateColumn(name, has_gaps, _middle(days(values)), parts, Range.of(days(values)))


def _middle(values: np.ndarray) -> float:
    """Return the lower median, which is one of the values: the mean of two integers or dates may be invalid."""
    return float(np.quantile(values, 0.5, method="lower"))


def _by_size(level: str) -> tuple[bool, float, str]:
    """Return the sort key of a level for display: numbers by value, then strings."""
    number = number_reader(".")(level)
    return number is None, number or 0.0, level
