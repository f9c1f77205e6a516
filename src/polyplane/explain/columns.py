"""The columns of a model as people see them: names, values of rows, reference row and ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from polyplane.engine.data import moments
from polyplane.explain.text import date_text, distinct, whole_number
from polyplane.inputs.encoding import BooleanColumn, CategoryColumn, Column, DateColumn, NumberColumn, Range, TextColumn
from polyplane.inputs.frames import Table, as_levels, as_table
from polyplane.model import Model

#: A value of a column: a number, a string (levels, dates, true and false), or None if missing.
CellValue = int | float | str | None
OTHER = "other levels"
#: A text without known words, which has no words itself.
NO_WORDS = "..."
#: Interquartile range of a normal distribution, in standard deviations.
NORMAL_SPREAD = 1.349


@dataclass(frozen=True, eq=False)
class Row:
    """One row: its encoded numbers, the value of each column, and notes about columns by their index."""

    z: np.ndarray
    values: Any
    notes: dict[int, str]


@dataclass(frozen=True, eq=False)
class ModelColumns:
    """Columns of a model. A matrix is a table whose columns are numbers, with ranges and means of given rows.

    Parameters
    ----------
    model : Model
        The model.
    names : list of str
        Names of the columns in use.
    Z : ndarray or sparse matrix of shape (n_rows, n_encoded) or None
        Encoded rows, for the ranges and the reference of a matrix.
    scale : ndarray of shape (n_encoded,)
        The unit of each encoded number in distances.
    """

    model: Model
    names: list[str]
    Z: Any
    scale: np.ndarray

    @classmethod
    def of(cls, model: Model, X: Any = None, feature_names: Any = None, scale: Any = None) -> ModelColumns:
        """Describe the columns of a model, given rows, names of the columns of a matrix, and their units."""
        inputs: Any = model.inputs
        Z = None if X is None else model.encode(X)
        if inputs.is_table:
            if feature_names is not None or scale is not None:
                name = "feature_names" if feature_names is not None else "scale"
                raise TypeError(f"{name} cannot be set: a table model knows the names and spreads of its columns.")
            deviation = np.ones(inputs.n_encoded) if Z is None else _deviations(Z)
            return cls(model, [column.name for column in inputs.columns], Z, deviation)
        names = list(inputs.names) if feature_names is None else [str(name) for name in feature_names]
        if feature_names is None and not inputs.is_named:
            names = [f"feature {j}" for j in range(inputs.n_columns)]
        if len(names) != inputs.n_columns:
            raise ValueError(f"feature_names has {len(names)} names, but the model has {inputs.n_columns} features.")
        factor = np.ones(inputs.n_columns)
        factor[model.features.source] = np.abs(model.features.factor)
        if scale is not None:
            factor = 1.0 / np.broadcast_to(np.asarray(scale, dtype=np.float64), inputs.n_columns)
        elif model.features.is_identity and Z is not None and Z.shape[0] > 1:
            deviation = _deviations(Z)
            factor = 1.0 / np.where(deviation > 0, deviation, 1.0)
        return cls(model, names, Z, 1.0 / factor)

    @property
    def inputs(self) -> Any:
        """The inputs of the model."""
        return self.model.inputs

    @property
    def influence(self) -> np.ndarray:
        """Typical size of each encoded number: its standard deviation over the rows; without rows, its unit."""
        return self.scale if self.Z is None or self.Z.shape[0] < 2 else _deviations(self.Z)

    @cached_property
    def reference(self) -> Row:
        """The reference row: medians and most frequent levels of a table, the mean row of a matrix.

        Without rows of a matrix, the row that the scalers map to 0.
        """
        inputs = self.inputs
        if inputs.is_table:
            z = inputs.reference
            values = [decoded(c, z[own]) for c, own in zip(inputs.columns, inputs.places, strict=True)]
            return Row(z, values, {})
        if self.Z is None:
            z = np.zeros(inputs.n_columns)
            z[self.model.features.source] = self.model.features.centre
        else:
            z = np.asarray(self.Z.mean(axis=0), dtype=np.float64).ravel()
        return Row(z, z, {})

    @cached_property
    def _seen(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The smallest and the largest number of each column of a matrix, and whether all are integers."""
        rows = self.Z
        if rows is None:
            far = 3.0 * self.scale
            return self.reference.z - far, self.reference.z + far, np.zeros(len(far), dtype=bool)
        if not sparse.issparse(rows):
            return rows.min(axis=0), rows.max(axis=0), (rows == np.round(rows)).all(axis=0)
        is_whole = np.ones(rows.shape[1], dtype=bool)
        is_whole[rows.indices[rows.data != np.round(rows.data)]] = False
        return rows.min(axis=0).toarray().ravel(), rows.max(axis=0).toarray().ravel(), is_whole

    def encoded(self, j: int) -> slice:
        """Return the indices of the encoded numbers of column `j`."""
        own: slice = self.inputs.places[j] if self.inputs.is_table else slice(j, j + 1)
        return own

    def column(self, j: int) -> Column:
        """Return a description of column `j`; that of a matrix is a number with the range of the rows."""
        if self.inputs.is_table:
            known: Column = self.inputs.columns[j]
            return known
        low, high, is_whole = (part[j] for part in self._seen)
        seen = Range(float(low), float(high), NORMAL_SPREAD * float(self.scale[j]))
        return NumberColumn(self.names[j], False, float(self.reference.z[j]), ".", seen, bool(is_whole))

    def read(self, x: Any) -> Row:
        """Read a dict, a Series of pandas, one row of a matrix or data frame, or a sequence of values."""
        inputs, is_series = self.inputs, hasattr(x, "items") and getattr(x, "ndim", 0) == 1
        if isinstance(x, Mapping) or (is_series and inputs.is_named):
            x = [dict(x.items())]
        elif not (sparse.issparse(x) or isinstance(x, Table) or hasattr(x, "columns")):
            x = np.asarray(x, dtype=object if inputs.is_table else None)
            x = x[None] if x.ndim == 1 else x
        if inputs.is_table:
            return self._read_cells(as_table(x, inputs.gaps))
        z: Any = inputs.read(x, self.model.learner)
        if z.shape[0] != 1:
            raise ValueError(f"x must be one row, not {z.shape[0]} rows.")
        z = z.toarray()[0] if sparse.issparse(z) else z[0]
        notes = {}
        if inputs.neutral is not None:
            kept = replace(inputs, neutral=np.full(inputs.n_columns, np.nan)).read(x, self.model.learner)
            missing = np.isnan(kept.toarray() if sparse.issparse(kept) else kept)[0]
            notes = dict.fromkeys(np.flatnonzero(missing).tolist(), "imputed")
        return Row(z, z, notes)

    def _read_cells(self, table: Table) -> Row:
        if table.n_rows != 1:
            raise ValueError(f"x must be one row, not {table.n_rows} rows.")
        inputs = self.inputs
        z = inputs.encode(table, self.model.learner)[0]
        names = table.names if table.is_named and inputs.is_named else inputs.names
        values: list[CellValue] = []
        notes = {}
        for j, column in enumerate(inputs.columns):
            cells = table.read(names.index(column.name))
            value = None if cells.is_gap[0] else decoded(column, z[self.encoded(j)])
            if value is not None and isinstance(column, CategoryColumn | TextColumn):
                codes, levels = as_levels(cells)
                value = levels[codes[0]]
                if isinstance(column, CategoryColumn) and value not in column.levels:
                    notes[j] = "rare or unknown level"
            values.append(value)
        return Row(z, values, notes)

    def shown(self, j: int, *values: Any) -> list[str]:
        """Format values of column `j`; different numbers with enough digits to tell them apart."""
        return distinct(values, lambda value, digits: self._shown(j, value, digits), 6 if self.inputs.is_table else 4)

    def _shown(self, j: int, value: Any, digits: int) -> str:
        if value is None:
            return "missing"
        if isinstance(value, bool | np.bool_):
            return str(bool(value)).lower()
        column = self.column(j)
        if not isinstance(value, int | float | np.number) or isinstance(column, CategoryColumn):
            return str(value)
        is_whole = self.inputs.is_table and isinstance(column, NumberColumn) and column.is_whole
        return whole_number(float(value), is_whole, digits)


def decoded(column: Column, z: np.ndarray) -> CellValue:
    """Decode the encoded numbers of a value."""
    if column.has_gaps and z[-1]:
        return None
    match column:
        case CategoryColumn():
            return (*column.levels, OTHER)[column.level_of(z)]
        case BooleanColumn():
            return "true" if z[0] > 0.5 else "false"
        case TextColumn(words=words):
            return " ".join(word for word, is_known in zip(words, z, strict=False) if is_known) or NO_WORDS
        case DateColumn():
            return date_text(float(z[0]))
    code = column.code_of(z) if isinstance(column, NumberColumn) else None
    value = float(z[0]) if code is None else code
    return int(value) if isinstance(column, NumberColumn) and column.is_whole and value.is_integer() else value


def _deviations(Z: Any) -> np.ndarray:
    return np.sqrt(moments(Z, np.ones(Z.shape[0]))[1])
