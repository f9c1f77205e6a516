"""The label and feature columns of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from polyplane.readers._rows import ReadOptions

#: Common names of label columns.
USUAL_LABELS = ("label", "class", "target", "y")
LABEL, SKIPPED = -1, -2
#: Maximum number of columns: names need memory, and a compressed header of commas only needs almost no space.
MOST_COLUMNS = 1 << 20


class Columns(NamedTuple):
    """The columns of a table.

    Parameters
    ----------
    header : list of str
        All names, in the order of the file.
    uses : ndarray of int64
        The use of each column: the index of a feature, `LABEL` or `SKIPPED`.
    names : tuple of str
        The names of the features, by index.
    label : str or None
        The name of the label column, if there is one.
    """

    header: list[str]
    uses: np.ndarray
    names: tuple[str, ...]
    label: str | None


def choose_columns(header: Sequence[str], options: ReadOptions, name: str) -> Columns:
    """Find the label and the features in a header.

    The label is the column that `options.label` gives by name or index; else the only one with a common label name;
    else the last one. If features are matched by name, they can be in any order, and other columns are skipped.
    """
    header = list(header)
    check_number_of_columns(len(header), name)
    places = {cell: j for j, cell in enumerate(header)}
    if len(places) < len(header):
        twice = next(cell for j, cell in enumerate(header) if places[cell] != j)
        raise ValueError(f"{name}: the column {twice!r} occurs twice in the header.")
    label = _label_column(header, options, name)
    features = [j for j in range(len(header)) if j != label]
    names = tuple(header[j] for j in features)
    if options.feature_names is not None:
        names = tuple(str(feature) for feature in options.feature_names)
        _check_names(places, names, label, name)
    if options.n_features is not None and len(names) != options.n_features:
        raise ValueError(f"{name} has {len(names)} feature columns where {options.n_features} are expected.")
    if not names:
        raise ValueError(f"{name} has no columns other than the label.")
    uses = np.full(len(header), SKIPPED, dtype=np.int64)
    uses[[places[feature] for feature in names]] = np.arange(len(names))
    if label is not None and options.labels != "ignore":
        uses[label] = LABEL
    return Columns(header, uses, names, None if label is None else header[label])


def check_number_of_columns(n_columns: int, name: str) -> None:
    """Raise an error if there are too many columns."""
    if n_columns > MOST_COLUMNS:
        raise ValueError(f"{name} has {n_columns:,} columns; at most {MOST_COLUMNS:,} are supported.")


def _label_column(header: list[str], options: ReadOptions, name: str) -> int | None:
    """Return the index of the label column; None if labels are optional and missing."""
    wanted, optional = options.label, options.labels == "ignore"
    if isinstance(wanted, int) or (isinstance(wanted, str) and wanted not in header and _is_place(wanted)):
        place = int(wanted)
        if not -len(header) <= place < len(header):
            raise ValueError(f"{name} has {len(header)} columns; the column index {place} is out of range.")
        return place % len(header)
    if wanted is not None and wanted in header:
        return header.index(wanted)
    if wanted is not None and not optional:
        raise ValueError(f"{name} has no column {wanted!r}; its columns are {', '.join(header[:10])}.")
    usual = [j for j, cell in enumerate(header) if cell.lower() in USUAL_LABELS]
    if optional:
        return _unexpected_column(header, options, usual)
    return usual[0] if len(usual) == 1 else len(header) - 1


def _unexpected_column(header: list[str], options: ReadOptions, usual: list[int]) -> int | None:
    """If labels are optional: return the additional column with a common label name, or the only additional one."""
    expected = set(options.feature_names or ())
    usual = [j for j in usual if header[j] not in expected]
    if len(usual) == 1:
        return usual[0]
    one_too_many = options.feature_names is None and options.n_features == len(header) - 1
    return len(header) - 1 if one_too_many else None


def _is_place(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _check_names(places: Mapping[str, int], names: tuple[str, ...], label: int | None, name: str) -> None:
    missing = [feature for feature in names if places.get(feature, label) == label]
    if missing:
        raise ValueError(f"{name} has no column {missing[0]!r}, which the model requires.")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise ValueError(f"{name}: feature names must be unique to match columns by name, but {twice!r} occurs twice.")
