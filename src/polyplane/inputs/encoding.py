"""`TableInputs` and `MatrixInputs`: from the rows that a user has to encoded numbers, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from polyplane._array_api import as_matrix, is_sparse
from polyplane.inputs.cells import LARGEST, as_numbers
from polyplane.inputs.columns import FLAG, TEXTS, Column, Entry, Feature, NumberColumn, column_from_dict, read_entries
from polyplane.inputs.frames import Table, positions_of, read_table
from polyplane.inputs.learning import Limits, learn_column

_ENTRIES = {
    "names": TEXTS,
    "is_named": FLAG,
    "gaps": TEXTS,
    "columns": Entry(
        "a list", lambda value: isinstance(value, list), lambda value: tuple(map(column_from_dict, value))
    ),
    "dropped": Entry(
        "a dict of strings",
        lambda value: isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair),
        dict,
    ),
}


@dataclass(frozen=True)
class TableInputs:
    """Columns of a table, and how each is encoded as numbers: the fitted state of a `TableEncoder`.

    Parameters
    ----------
    names : tuple of str
        All columns seen during fit, in order.
    is_named : bool
        Whether the columns had names; otherwise they are matched by position.
    gaps : tuple of str
        Strings that mark missing values.
    columns : tuple of Column
        The encoded columns.
    dropped : dict of str to str
        The dropped columns, with the reason.
    """

    names: tuple[str, ...]
    is_named: bool
    gaps: tuple[str, ...]
    columns: tuple[Column, ...]
    dropped: Mapping[str, str]

    #: Whether rows are tables with columns of any type, not matrices.
    is_table: ClassVar[bool] = True

    @property
    def n_columns(self) -> int:
        """Number of columns seen in training, including those not in use."""
        return len(self.names)

    @property
    def n_encoded(self) -> int:
        """Number of encoded numbers."""
        return sum(self._sizes)

    def read(self, X: Any, owner: str) -> np.ndarray:
        """Encode the rows of a table; `owner` is the name of the estimator, for messages."""
        return self.encode(read_table(X, self.gaps, is_typed=False), owner)

    @classmethod
    def learn(
        cls, table: Table, kinds: Mapping[str, str], gaps: tuple[str, ...], decimal: str, limits: Limits
    ) -> TableInputs:
        """Fit the encoding to a table."""
        columns: list[Column] = []
        dropped: dict[str, str] = {}
        for j, name in enumerate(table.names):
            found = learn_column(table.read(j), kinds.get(name), decimal, limits)
            if isinstance(found, str):
                dropped[name] = found
            else:
                columns.append(found)
        if not columns:
            name, reason = next(iter(dropped.items()))
            raise ValueError(
                f"All columns were dropped (n_samples = {table.n_rows}): {name!r} because {reason}"
                + (f", and {len(dropped) - 1} others for similar reasons." if len(dropped) > 1 else ".")
            )
        return cls(table.names, table.is_named, gaps, tuple(columns), dropped)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The encoded features."""
        return tuple(feature for column in self.columns for feature in column.features)

    @cached_property
    def is_indicator(self) -> np.ndarray:
        """Whether each feature is an indicator, shape (n_features,)."""
        return np.array([feature.is_indicator for feature in self.features])

    @cached_property
    def reference(self) -> np.ndarray:
        """Encoded reference row: the median or the most frequent level of each column, shape (n_features,)."""
        return np.concatenate([column.reference for column in self.columns])

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Positions of the features of each column."""
        stops = np.cumsum(self._sizes).tolist()
        return tuple(slice(stop - size, stop) for stop, size in zip(stops, self._sizes, strict=True))

    @cached_property
    def column_of_encoded(self) -> np.ndarray:
        """Index in `columns` of the column that each encoded number belongs to, shape (n_encoded,)."""
        return np.repeat(np.arange(len(self.columns)), self._sizes)

    @cached_property
    def _sizes(self) -> list[int]:
        return [len(column.features) for column in self.columns]

    def encode(self, table: Table, owner: str, dtype: Any = np.float64) -> np.ndarray:
        """Encode a table, shape (n_rows, n_features); `owner` is the name of the estimator, for messages."""
        positions = self.positions(table, owner)
        out = np.zeros((table.n_rows, sum(self._sizes)), dtype=dtype)
        with np.errstate(over="ignore"):
            if not self._encode_numbers(table, positions, out):
                for column, position, place in zip(self.columns, positions, self.places, strict=True):
                    column.encode(table.read(position), out[:, place])
        if out.dtype == np.float32 and not np.isfinite(out).all():
            name = self.features[int(np.argmax(~np.isfinite(out).all(axis=0)))].column
            raise ValueError(f"Column {name!r} contains numbers too large for float32: use dtype=numpy.float64.")
        return out

    def _encode_numbers(self, table: Table, positions: list[int], out: np.ndarray) -> bool:
        """Encode a table of numbers only in one step; return False if this is not possible."""
        numbers = [column for column in self.columns if isinstance(column, NumberColumn)]
        if table.matrix is None or len(numbers) < len(self.columns):
            return False
        values = table.matrix[:, positions]
        is_gap = np.isnan(values)
        if not (is_gap | (np.abs(values) <= LARGEST)).all():
            return False
        first = [place.start for place in self.places]
        out[:, first] = np.where(is_gap, [column.neutral for column in numbers], values)
        marked = [j for j, column in enumerate(numbers) if column.has_gaps]
        out[:, [first[j] + 1 for j in marked]] = is_gap[:, marked]
        return True

    def positions(self, table: Table, owner: str) -> list[int]:
        """Return the positions of the columns in a table."""
        return positions_of([column.name for column in self.columns], self.names, self.is_named, table, owner)

    def to_dict(self) -> dict[str, Any]:
        """Convert the encoding to plain data that can be stored as JSON."""
        return {
            "names": list(self.names),
            "is_named": self.is_named,
            "gaps": list(self.gaps),
            "columns": [column.to_dict() for column in self.columns],
            "dropped": dict(self.dropped),
        }

    @classmethod
    def from_dict(cls, value: Any) -> TableInputs:
        """Create an encoding from the output of `to_dict`; invalid data raise a ValueError."""
        fields = read_entries("The encoding", value, _ENTRIES)
        names, columns, dropped = fields["names"], fields["columns"], fields["dropped"]
        encoded = [column.name for column in columns]
        if not encoded or len(set(encoded)) < len(encoded) or set(encoded) & set(dropped):
            raise ValueError(
                "The encoding must have at least one column, without duplicates, and none of them can also be dropped."
            )
        if set(encoded) | set(dropped) != set(names):
            raise ValueError(
                "The encoding must list each of its names either as an encoded column or as a dropped one."
            )
        return cls(**fields)


@dataclass(frozen=True, eq=False)
class MatrixInputs:
    """Rows of numbers: a matrix whose columns are the encoded numbers themselves.

    Parameters
    ----------
    n_columns : int
        Number of columns.
    given_names : tuple of str or None, default=None
        Names of the columns seen in training; None if they had no names.
    neutral : ndarray of shape (n_columns,) or None, default=None
        Replacement of missing values (NaN). None: values must not be missing.
    """

    n_columns: int
    given_names: tuple[str, ...] | None = None
    neutral: np.ndarray | None = None

    #: Whether rows are tables with columns of any type, not matrices.
    is_table: ClassVar[bool] = False

    @property
    def n_encoded(self) -> int:
        """Number of encoded numbers."""
        return self.n_columns

    @property
    def is_named(self) -> bool:
        """Whether the columns had names in training."""
        return self.given_names is not None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns: those seen in training, or x0, x1 and so on."""
        return self.given_names or tuple(f"x{j}" for j in range(self.n_columns))

    @property
    def column_of_encoded(self) -> np.ndarray:
        """Index of the column that each encoded number belongs to, shape (n_encoded,)."""
        return np.arange(self.n_columns)

    def read(self, X: Any, owner: str) -> Any:
        """Return the rows as a matrix of float32 or float64 without missing values; sparse matrices stay sparse.

        Parameters
        ----------
        X : ndarray, sparse matrix, data frame, dict of columns, list of dicts, or array-like
            The rows. Named columns are selected by name, if the columns had names in training.
        owner : str
            Name of the estimator, for messages.
        """
        rows = self._matrix(X, owner)
        if rows.shape[1] != self.n_columns:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {owner} is expecting {self.n_columns} features as input."
            )
        values = rows.data if is_sparse(rows) else rows
        if np.isfinite(values).all():
            return rows
        if np.isinf(values).any():
            raise ValueError("Input X contains infinity or a value too large for its dtype.")
        if self.neutral is None:
            raise ValueError(
                f"Input X contains NaN, which {owner} does not accept: train a pipeline with SimpleImputer."
            )
        rows = rows.toarray() if is_sparse(rows) else rows
        return np.where(np.isnan(rows), self.neutral.astype(rows.dtype), rows)

    def _matrix(self, X: Any, owner: str) -> Any:
        if is_sparse(X):
            rows = X.tocsr()
            return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
        of_rows = isinstance(X, list) and len(X) > 0 and isinstance(X[0], Mapping)
        has_names = of_rows or isinstance(X, Mapping) or hasattr(X, "columns")
        rows = self._by_name(X, owner) if has_names else as_matrix(X)
        if rows.dtype == np.float16:
            raise ValueError("X is float16, which is not precise enough; convert it with X.astype(numpy.float32).")
        try:
            return np.ascontiguousarray(rows, rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64)
        except OverflowError:  # of Python's integers
            raise ValueError("Input X contains infinity or a value too large for its dtype.") from None

    def _by_name(self, X: Any, owner: str) -> np.ndarray:
        """Return the columns of a frame or of dicts, in the order of training."""
        table = read_table(X)
        known = self.given_names or table.names
        positions = positions_of(known, known, True, table, owner)
        matrix = np.column_stack([as_numbers(table.read(j), ".", np.inf) for j in positions])
        is_narrow = {str(dtype).lower() for dtype in getattr(X, "dtypes", ())} == {"float32"}
        return matrix.astype(np.float32) if is_narrow else matrix
