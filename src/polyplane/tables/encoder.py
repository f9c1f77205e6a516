"""`TableEncoder`: encoding of the columns of a table as numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from polyplane.inputs.encoding import COLUMNS, Feature, Limits, TableInputs
from polyplane.inputs.frames import Table, read_table

#: Strings that usually mark missing values in files.
GAPS = ("", "?", "NA", "N/A", "NaN", "nan", "null")


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table of numbers, text, booleans, dates and missing values as a numeric matrix.

    * **Numbers** are passed through. Text columns in which all values are numbers are parsed as numbers.
    * **Categories** are one-hot encoded. Rare levels, levels beyond the `max_levels` most frequent ones, and levels not
      seen during fit share one indicator, "other". The encoding does not use the class labels.
    * **Booleans** are encoded as 0 and 1.
    * **Dates** are encoded as days since 1970 and, if they vary, the year, the month, the day of the week (Monday is 1)
      and the hour. Times are local times; time zones are ignored.
    * **Missing values** are imputed (the median of numbers and dates, the mean of booleans, no level of a category),
      and columns with missing values during fit get an additional indicator.
    * Constant columns and ids (text or integers that differ in each row) are **dropped**; the attribute ``dropped_``
      gives the reasons. Integers are considered an id if they fill at least half of their range, like row numbers, or
      if the name of the column says so.

    Named columns are matched by name: their order does not matter, and additional columns are ignored. The fitted state
    is plain data, see `to_dict`.

    Parameters
    ----------
    kinds : dict of str to str or None, default=None
        Kinds of columns that should not be inferred: "number", "category", "boolean" or "date" by column name ("x0",
        "x1" and so on for arrays).
    min_rows : int, default=5
        Minimum number of rows of a category level; less frequent levels are rare and encoded as "other". Smaller values
        add noise; larger values can remove informative levels of small tables.
    max_levels : int, default=50
        Maximum number of levels per column that get their own indicator; the most frequent ones are kept.
    decimal : {".", ","}, default="."
        Decimal separator of numbers in text columns.
    gaps : collection of str, default=("", "?", "NA", "N/A", "NaN", "nan", "null")
        Strings that mark missing values.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Data type of the matrix.

    Attributes
    ----------
    encoding_ : TableInputs
        The fitted state of all columns, as plain data.
    features_ : tuple of Feature
        The column, part and level of each encoded feature.
    kinds_ : dict of str to str
        The kind of each encoded column.
    dropped_ : dict of str to str
        The dropped columns, with the reason.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns seen during fit. Defined only if the columns have names.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyplane import TableEncoder
    >>> frame = pd.DataFrame(
    ...     {"age": [39, None, 38, 53], "work": ["State", "Private", "Private", "State"], "country": ["US"] * 4}
    ... )
    >>> encoder = TableEncoder(min_rows=2).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age is missing', 'work = Private', 'work = State']
    >>> encoder.dropped_
    {'country': "it is constant: all values are 'US'"}
    >>> encoder.transform(pd.DataFrame({"work": ["Private", "Navy"], "age": [40, None]}))
    array([[40.,  0.,  1.,  0.],
           [39.,  1.,  0.,  0.]])
    """

    kinds: Mapping[str, str] | None = None
    _: KW_ONLY
    min_rows: int = 5
    max_levels: int = 50
    decimal: str = "."
    gaps: Collection[str] = GAPS
    dtype: Any = np.float64

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kinds": [dict, None],
        "min_rows": [Interval(Integral, 1, None, closed="left")],
        "max_levels": [Interval(Integral, 1, None, closed="left")],
        "decimal": [StrOptions({".", ","})],
        "gaps": ["array-like", set, frozenset],
        "dtype": "no_validation",
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the encoder to a table.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        return self._fit_table(self._read(X))

    def transform(self, X: Any) -> np.ndarray:
        """Encode a table.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table. Named columns are matched by name, and additional ones are ignored; columns of arrays are matched
            by position.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_features)
            The encoded features, in the order of `get_feature_names_out`.
        """
        check_is_fitted(self)
        return self.encoding_.encode(
            read_table(X, self.encoding_.gaps, is_typed=False), type(self).__name__, self._checked_dtype()
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Get the names of the encoded features, such as "age", "age is missing" or "work = Private".

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            If given, it must match ``feature_names_in_``.

        Returns
        -------
        names : ndarray of shape (n_features,)
            Names of the encoded features.
        """
        check_is_fitted(self)
        if input_features is not None and tuple(map(str, input_features)) != self.encoding_.names:
            raise ValueError("input_features is not equal to feature_names_in_.")
        return np.array([feature.name for feature in self.features_], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Convert the fitted encoder to plain data that can be stored as JSON.

        Returns
        -------
        value : dict
            Input for `from_dict`.
        """
        check_is_fitted(self)
        return self.encoding_.to_dict()

    @classmethod
    def from_dict(cls, value: Any) -> Self:
        """Create a fitted encoder from plain data.

        Parameters
        ----------
        value : dict
            Output of `to_dict`. Invalid data raise a ValueError.

        Returns
        -------
        encoder : TableEncoder
            A fitted encoder, equivalent to the original one.
        """
        return cls()._keep(TableInputs.from_dict(value))

    @property
    def features_(self) -> tuple[Feature, ...]:
        """The column, part and level of each encoded feature."""
        return self.encoding_.features

    @property
    def kinds_(self) -> dict[str, str]:
        """The kind of each encoded column."""
        return {column.name: column.kind for column in self.encoding_.columns}

    @property
    def dropped_(self) -> dict[str, str]:
        """The dropped columns, with the reason."""
        return dict(self.encoding_.dropped)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoding_")

    def _read(self, X: Any) -> Table:
        """Validate the parameters, and convert X to a table."""
        self._validate_params()
        self._checked_dtype()
        return read_table(X, frozenset(self.gaps))

    def _fit_table(self, table: Table) -> Self:
        return self._learn(table.names, lambda *how: TableInputs.learn(table, *how))

    def _learn(self, names: Collection[str], learn: Callable[..., TableInputs]) -> Self:
        """Fit the encoding with `learn`, after validating the parameters."""
        kinds = dict(self.kinds or {})
        for name, kind in kinds.items():
            if kind not in COLUMNS:
                raise ValueError(f"kinds[{name!r}] is {kind!r}; it must be one of {', '.join(COLUMNS)}.")
            if name not in names:
                raise ValueError(f"kinds contains {name!r}, which is not a column of the table.")
        limits = Limits(self.min_rows, self.max_levels)
        return self._keep(learn(kinds, tuple(sorted(self.gaps)), self.decimal, limits))

    def _keep(self, encoding: TableInputs) -> Self:
        self.encoding_ = encoding
        self.n_features_in_ = len(encoding.names)
        self.__dict__.pop("feature_names_in_", None)
        if encoding.is_named:
            self.feature_names_in_ = np.array(encoding.names, dtype=object)
        return self

    def _checked_dtype(self) -> Any:
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be numpy.float32 or numpy.float64, not {self.dtype!r}.")
        return np.dtype(self.dtype)
