"""The label column of a table: finding it, and reading its values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli.common import UserError, did_you_mean, listed

if TYPE_CHECKING:
    import numpy as np

#: A numeric column with more distinct values is not used as the label unless `--label` names it.
MOST_NUMBERS = 20
#: A column whose fraction of distinct values is larger contains ids or quantities, not classes.
MOST_DIFFERENT = 0.5
#: A longer string is not parsed as a number.
MOST_DIGITS = 400
#: As numbers, these strings would lose their leading zeros.
_LEADING_ZERO = re.compile(r"[+-]*0\d")


class Labels(NamedTuple):
    """The values of a label column.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        The index of each label; -1 if it is missing.
    values : list of str or int
        The distinct labels.
    """

    codes: np.ndarray
    values: list[Any]

    @property
    def are_numbers(self) -> bool:
        """Whether all labels are numbers, fractions among them."""
        return all(_number(value) is not None for value in self.values)

    @property
    def n_rows(self) -> int:
        """The number of rows with a label."""
        return int((self.codes >= 0).sum())


def read_labels(column: Any, gaps: Collection[str]) -> Labels:
    """Read the labels of an Arrow column: as integers if all values are integers, otherwise as strings."""
    import numpy as np

    codes, cells = _cells(column, gaps)
    values = iter(parse_labels([cell for cell in cells if cell is not None]))
    known: dict[Any, int] = {}
    new = [-1 if cell is None else known.setdefault(next(values), len(known)) for cell in cells]
    return Labels(np.array([*new, -1], dtype=np.intp)[codes], list(known))


def parse_labels(cells: Sequence[Any]) -> list[Any]:
    """Convert labels to integers if all of them are integers of 64 bits; otherwise to strings. None are merged."""
    numbers = [_number(cell) for cell in cells]
    integers = [int(n) for n in numbers if n is not None and n == int(n) and -(2**63) <= n < 2**63]
    return integers if len(integers) == len(cells) else [str(cell) for cell in cells]


def cell_counts(column: Any, gaps: Collection[str]) -> dict[Any, int]:
    """Count each value of a label column; None is a missing value."""
    import numpy as np

    codes, cells = _cells(column, gaps)
    counts: dict[Any, int] = {None: int((codes < 0).sum())}
    for cell, n in zip(cells, np.bincount(codes[codes >= 0], minlength=len(cells)).tolist(), strict=True):
        if n:
            counts[cell] = counts.get(cell, 0) + n
    return counts


def match_labels(column: Any, gaps: Collection[str], classes: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return the labels as indices into `classes` (-1: missing, -2: unknown), and the first unknown label."""
    import numpy as np

    codes, cells = _cells(column, gaps)
    key = _number if classes.dtype.kind in "iuf" else str
    known = {key(label): c for c, label in enumerate(classes.tolist())}
    found = np.array([*(-1 if cell is None else known.get(key(cell), -2) for cell in cells), -1])[codes]
    unknown = next((cells[code] for code in codes[found == -2][:1]), None)
    return found, unknown


def _cells(column: Any, gaps: Collection[str]) -> tuple[np.ndarray, list[Any]]:
    """Return the index of each value, and the distinct values: strings or numbers; None if missing."""
    import numpy as np
    from pyarrow import types

    encoded = column.combine_chunks()
    if not types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
    used = np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary)) > 0
    values = encoded.dictionary.to_pylist()
    return codes, [_cell(value, gaps) if is_used else None for value, is_used in zip(values, used, strict=True)]


def _cell(value: Any, gaps: Collection[str]) -> Any:
    """Return a label as a string or a number; None if it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = str(value).strip()
    return None if text in gaps else text


def _number(cell: Any) -> int | float | None:
    """Return a label as a number, exact if it is an integer; None if it is not one, or would lose its leading zeros."""
    if not isinstance(cell, str):
        return cell if cell - cell == 0 else None
    if len(cell) > MOST_DIGITS or "_" in cell or _LEADING_ZERO.match(cell):
        return None
    for read in (int, float):
        try:
            number: int | float = read(cell)
        except ValueError:
            continue
        return number if number - number == 0 else None
    return None


def find_label(names: Sequence[str], wanted: str) -> str:
    """Return the column that ``--label`` or ``--id`` gives by name or index."""
    if wanted in names:
        return wanted
    if wanted.lstrip("-").isdigit() and -len(names) <= int(wanted) < len(names):
        return names[int(wanted)]
    hint = did_you_mean(wanted, names) or f" The columns are {listed(names)}."
    raise UserError(f"the table has no column {wanted!r}.{hint}")


def guess_label(table: Any, gaps: Collection[str], data: str) -> str:
    """Return the only column with a common label name, or else the last one if it clearly contains classes."""
    names = table.column_names
    usual = usual_label(names)
    if usual is not None:
        return usual
    last = read_labels(table.column(len(names) - 1), gaps)
    _refuse_guess(names[-1], len(last.values), last.n_rows, last.are_numbers, data, names)
    return str(names[-1])


def usual_label(names: Sequence[str]) -> str | None:
    """Return the only column with a common label name."""
    usual = [name for name in names if _is_usual(name)]
    return usual[0] if len(usual) == 1 else None


def check_guess(name: str | None, y: np.ndarray, data: str) -> None:
    """Raise an error if the last column of a numeric table may not contain classes."""
    import numpy as np

    if name is not None and not _is_usual(name):
        _refuse_guess(name, len(np.unique(y)), len(y), y.dtype.kind in "iuf", data, [])


def _is_usual(name: str) -> bool:
    from polyplane.readers.rows import USUAL_LABELS

    return name.lower() in USUAL_LABELS


def _refuse_guess(name: str, n_different: int, n_rows: int, are_numbers: bool, data: str, names: Sequence[str]) -> None:
    if n_different <= max(2, MOST_DIFFERENT * n_rows) and not (are_numbers and n_different > MOST_NUMBERS):
        return
    columns = f" The columns are {listed(names, 20)}." if names else ""
    raise UserError(
        f"{data}: the label column is ambiguous: the last one, {name!r}, has {n_different:,} different "
        f"{'numbers' if are_numbers else 'strings'}. Specify it with --label COLUMN.{columns}"
    )


def check_label(labels: Labels, name: str, option: str) -> None:
    """Raise an error if a column does not contain classes."""
    n_different, n_rows = len(labels.values), labels.n_rows
    if n_different == 0:
        raise UserError(f"{option}: the column {name!r} contains no labels.")
    if n_different == 1:
        only = labels.values[0]
        raise UserError(
            f"The label column {name!r} contains a single class, {only!r}; at least two classes are required."
        )
    are_fractions = labels.are_numbers and any(isinstance(value, str) for value in labels.values)
    if n_different > max(2, MOST_DIFFERENT * n_rows) or (are_fractions and n_different > MOST_NUMBERS):
        raise UserError(
            f"{option}: the column {name!r} has {n_different:,} different values in {n_rows:,} rows, too many for "
            "classes; specify another column, or group its values into a few classes first."
        )
