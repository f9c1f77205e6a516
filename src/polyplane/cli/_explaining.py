"""Functions for all explanations on the command line: rows of a file, labels and feature names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from polyplane.cli._common import UserError, did_you_mean, note

#: Maximum number of rows on which rules are checked.
MOST_ROWS = 1 << 16


class Page(NamedTuple):
    """An HTML report that was written."""

    data: str
    rows: int
    page: str


def check_frozen(freeze: Sequence[str] | None, names: Sequence[str]) -> None:
    """Raise an error for unknown feature names."""
    for name in freeze or ():
        if name not in names:
            raise UserError(f"--freeze: unknown feature {name!r}.{did_you_mean(name, names)}")


def class_of(target: str | None, model: Any) -> Any:
    """Return the class label that ``--target`` names."""
    labels = {str(label): label for label in model.classes_.tolist()}
    if target is not None and target not in labels:
        raise UserError(f"--target: unknown label {target!r}; expected one of {', '.join(labels)}.")
    return None if target is None else labels[target]


def first_rows(parts: Iterable[Any], data: str) -> Any:
    """Return the rows for the explanation of the model; the rest of a longer file is ignored, with a note."""
    iterator = iter(parts)
    first = next(iterator)
    if next(iterator, None) is not None:
        note(f"{data}: only the first {first.X.shape[0]:,} rows are used.")
    return first


def row_of(parts: Iterable[Any], first: Any, row: int, data: str) -> Any:
    """Return a row of the file, which may lie beyond the first ones."""
    part, place = part_with(parts, first, row, data)
    return part.X[[place]]


def part_with(parts: Iterable[Any], first: Any, row: int, data: str) -> tuple[Any, int]:
    """Return the batch of a file that contains a row, and the index of the row in it."""
    seen = first.X.shape[0]
    if row < seen:
        return first, row
    if data == "-":
        raise UserError(f"--row {row}: only the first {MOST_ROWS:,} rows of standard input can be explained.")
    for part in islice(parts, 1, None):
        if row < seen + part.X.shape[0]:
            return part, row - seen
        seen += part.X.shape[0]
    raise UserError(f"--row {row}: {data} has {seen} rows, numbered from 0 to {seen - 1}.")
