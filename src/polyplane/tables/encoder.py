"""`TableEncoder`: the columns of a table as numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from polyplane.tables._columns import COLUMNS, Feature
from polyplane.tables._encoding import Encoding
from polyplane.tables._frames import Table, read_table
from polyplane.tables._learning import Limits

#: Texts that stand for a missing value, as they are found in files.
GAPS = ("", "?", "NA", "N/A", "NaN", "nan", "null")


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of numbers, texts, booleans, dates and gaps into a matrix of numbers, column by column.

    * **Numbers** stay as they are; texts that all are numbers are numbers.
    * **Categories** become indicators, one for each level. Rare levels, those beyond the most frequent ones, and levels
      that were not seen in fitting share one indicator, "other". The labels of the rows play no part in it, and each
      feature has one reading.
    * **Booleans** become 0 and 1.
    * **Dates** become days since 1970 and, where they vary, the year, the month, the day of the week (Monday is 1) and
      the hour. Times are those on the wall, whatever the time zone.
    * **Gaps** become a neutral value (the median, no level) and, in columns that had gaps in fitting, an indicator.
    * Columns that are constant, or an id (a text or an integer that is different in each row), are **dropped**; the
      attribute ``dropped_`` says which and why. Integers are an id where they fill half of their range, as the numbers
      of rows do, or where the column is named so.

    Columns are known by their names: they may come in another order, and with others between them. What is learned
    is plain data, see `to_dict`.

    Parameters
    ----------
    kinds : dict of str to str or None, default=None
        Kinds of columns that are not to be guessed: "number", "category", "boolean" or "date" by the name of the
        column ("x0", "x1" and so on for arrays).
    min_rows : int, default=5
        Levels with fewer rows are rare. What is learned from fewer rows is hardly more than their noise; a larger limit
        costs small tables levels that count.
    max_levels : int, default=50
        At most so many levels of a column get a feature of their own, the most frequent ones: more are no longer read
        by anybody, and each costs a weight in every plane.
    decimal : {".", ","}, default="."
        The decimal sign of numbers that are texts.
    gaps : collection of str, default=("", "?", "NA", "N/A", "NaN", "nan", "null")
        Texts that stand for a missing value.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the matrix.

    Attributes
    ----------
    encoding_ : Encoding
        What was learned of the columns: plain data.
    features_ : tuple of Feature
        The column, the part of it and the level that each feature stands for.
    kinds_ : dict of str to str
        The kind of each column that is used.
    dropped_ : dict of str to str
        The columns that are not used, with the reason.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Their names, where they have names.

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
        """Learn what the columns hold.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table.
        y : None
            Not used.

        Returns
        -------
        self : object
            The fitted encoder.
        """
        return self._fit_table(self._read(X))

    def transform(self, X: Any) -> np.ndarray:
        """The numbers of a table.

        Parameters
        ----------
        X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
            The table: the columns of fitting, in any order, and maybe others, which are ignored. Columns of arrays,
            which have no names, are known by their positions.

        Returns
        -------
        Z : ndarray of shape (n_rows, n_features)
            The features, as `get_feature_names_out` names them.
        """
        check_is_fitted(self)
        return self.encoding_.encode(read_table(X, self.encoding_.gaps), type(self).__name__, self._checked_dtype())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, as a reader would say them: "age", "age is missing", "work = Private".

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            The names of the columns, if they are to be checked.

        Returns
        -------
        names : ndarray of shape (n_features,)
            One for each column of what `transform` gives.
        """
        check_is_fitted(self)
        if input_features is not None and tuple(map(str, input_features)) != self.encoding_.names:
            raise ValueError("input_features is not equal to feature_names_in_, the columns in fitting.")
        return np.array([feature.name for feature in self.features_], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """What was learned as plain data, which JSON can hold.

        Returns
        -------
        value : dict
            For `from_dict`.
        """
        check_is_fitted(self)
        return self.encoding_.to_dict()

    @classmethod
    def from_dict(cls, value: Any) -> Self:
        """A fitted encoder from plain data.

        Parameters
        ----------
        value : dict
            What `to_dict` gave. Anything else is refused with a sentence.

        Returns
        -------
        encoder : TableEncoder
            It transforms as the one that the data are from.
        """
        return cls()._keep(Encoding.from_dict(value))

    @property
    def features_(self) -> tuple[Feature, ...]:
        """The column, the part of it and the level that each feature stands for."""
        return self.encoding_.features

    @property
    def kinds_(self) -> dict[str, str]:
        """The kind of each column that is used."""
        return {column.name: column.kind for column in self.encoding_.columns}

    @property
    def dropped_(self) -> dict[str, str]:
        """The columns that are not used, with the reason."""
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
        """See X as a table, with checked parameters."""
        self._validate_params()
        self._checked_dtype()
        return read_table(X, frozenset(self.gaps))

    def _fit_table(self, table: Table) -> Self:
        return self._learn(table.names, lambda *how: Encoding.learn(table, *how))

    def _learn(self, names: Collection[str], learn: Callable[..., Encoding]) -> Self:
        """Keep what `learn` finds for checked kinds, gaps, decimal sign and limits of columns of some names."""
        kinds = dict(self.kinds or {})
        for name, kind in kinds.items():
            if kind not in COLUMNS:
                raise ValueError(f"kinds[{name!r}] is {kind!r}; it must be one of {', '.join(COLUMNS)}.")
            if name not in names:
                raise ValueError(f"kinds names the column {name!r}, which the table does not have.")
        limits = Limits(self.min_rows, self.max_levels)
        return self._keep(learn(kinds, tuple(sorted(self.gaps)), self.decimal, limits))

    def _keep(self, encoding: Encoding) -> Self:
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
