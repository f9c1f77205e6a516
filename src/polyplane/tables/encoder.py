"""`TableEncoder`: encoding of the columns of a table as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from polyplane._sklearn import BaseEstimator, TransformerMixin
from polyplane.inputs.encoding import COLUMNS, Column, DateColumn, EncoderParameters, Feature, NumberColumn, TableInputs
from polyplane.inputs.evidence import Labels
from polyplane.inputs.formats import date_reader
from polyplane.inputs.frames import LARGEST, Table, as_table, text_of

#: Strings that mark missing values in files written by pandas, R, SAS and spreadsheets.
GAPS = (
    *("", "?", "-", ".", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "NULL", "null", "None", "NaN", "nan"),
    *("-NaN", "-nan", "NaT", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
#: Number of columns that a warning lists.
MOST_LISTED = 100
#: A column that separates the classes of fewer rows than this may do so by chance, and so may one with more values, as
#: a share of the rows.
ENOUGH_ROWS, FEW_VALUES = 100, 0.05


class ColumnsWarning(UserWarning):
    """Columns are dropped, reduced to a part of their levels or words, or read as something other than written."""


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table of numbers, text, booleans, dates and missing values as a numeric matrix.

    * **Numbers** are passed through. Text columns in which all values are numbers are parsed as numbers, also with a
      common currency or unit, thousands separators, decimal commas, k, M or B, or negative numbers in parentheses:
      "$8,797.47", "43.2%", "12 kg", "1.2M", "(1 234,5)". Numbers that can be read in two ways, such as "8,797" if no
      other value of the column decides, are not: set `decimal`.
    * **Categories** are one-hot encoded. Rare levels, levels beyond the `max_levels` most frequent ones, and levels not
      seen during fit share one indicator, "other". The encoding does not use the class labels, except within
      `TableClassifier`, where the levels of wide categories have evidence for the classes. Levels of ordered categories
      keep their order.
    * **Booleans** are encoded as 0 and 1.
    * **Dates** are encoded as days since 1970 and, if they vary, the year, the month, the day of the week (Monday is 1)
      and the hour. Times are local times; time zones are ignored. In text columns, dates are recognised in ISO 8601
      and in common formats, such as "05/15/2021", "15.05.2021", "May 15, 2021 2:30 PM", "2021-W05" and "2021Q1", if
      all values have the same format. If no value decides the order of day and month, set `date_format`.
    * **Free text**, text columns of mostly different values with several words, is encoded as an indicator for each of
      the most frequent words.
    * **Missing values** are imputed (the median of numbers and dates, the mean of booleans, no level of a category),
      and columns with missing values during fit get an additional indicator.
    * Constant columns and ids (text or integers that differ in each row) are **dropped**. Integers are considered an id
      if they fill at least half of their range, like row numbers, or if the name of the column says so.

    Columns that are dropped, reduced or read as something other than written are listed in a `ColumnsWarning`, and all
    columns in ``report_``. Named columns are matched by name: their order does not matter, and additional columns are
    ignored. The fitted state is plain data, see `to_dict`.

    Parameters
    ----------
    kinds : dict of str to str or list of str, or None, default=None
        Kinds of columns that should not be inferred: "number", "category", "boolean", "date" or "text" by column name
        ("x0", "x1" and so on for arrays), or the list of the levels of an ordered category. Ordered categories of
        pandas, Polars (Enum) and Arrow keep their order.
    special_codes : dict of str to list of float, or None, default=None
        Numbers that are codes, such as ``{"income": [-999, -998]}``: each gets an indicator, and is outside of the
        order of the column, like a missing value.
    min_rows : int, default=5
        Minimum number of rows of a category level or a word; less frequent levels are rare and encoded as "other".
        Smaller values add noise; larger values can remove informative levels of small tables.
    max_levels : int, default=50
        Maximum number of levels per column that get their own indicator; the most frequent ones are kept.
    max_words : int, default=300
        Maximum number of words per column of free text; 0: texts are categories.
    decimal : {".", ","} or None, default=None
        Decimal separator of text columns whose numbers can be read in two ways. None: they are categories.
    date_format : str, dict of str to str, or None, default=None
        Format of dates in text columns, of all columns or by column name, with the directives of Python's `strptime`,
        such as "%d/%m/%Y". None: recognised.
    gaps : collection of str
        Strings that mark missing values. The default is what pandas, R and spreadsheets write, such as "", "NA", "n/a",
        "#N/A", "null", "None", "?", "-" and ".".
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
    report_ : pandas.DataFrame
        How each column is read: "column", "read as", "features", "known values", "missing" and "note". Needs pandas;
        ``encoding_.report()`` returns the same as a list.
    n_features_in_ : int
        Number of columns seen during fit.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns seen during fit. Defined only if the columns have names.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from polyplane import TableEncoder
    >>> frame = pd.DataFrame(
    ...     {"age": [39, None, 38, 53], "work": ["State", "Private", "Private", "State"], "country": ["US"] * 4}
    ... )
    >>> with warnings.catch_warnings(action="ignore"):  # of the constant column
    ...     encoder = TableEncoder(min_rows=2).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age is missing', 'work = Private', 'work = State']
    >>> encoder.dropped_
    {'country': "it is constant: all values are 'US'"}
    >>> encoder.transform(pd.DataFrame({"work": ["Private", "Navy"], "age": [40, None]}))
    array([[40.,  0.,  1.,  0.],
           [39.,  1.,  0.,  0.]])
    """

    kinds: Mapping[str, str | Sequence[str]] | None = None
    _: KW_ONLY
    special_codes: Mapping[str, Sequence[float]] | None = None
    min_rows: int = 5
    max_levels: int = 50
    max_words: int = 300
    decimal: str | None = None
    date_format: str | Mapping[str, str] | None = None
    gaps: Collection[str] = GAPS
    dtype: Any = np.float64

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kinds": [dict, None],
        "special_codes": [dict, None],
        "min_rows": [Interval(Integral, 1, None, closed="left")],
        "max_levels": [Interval(Integral, 1, None, closed="left")],
        "max_words": [Interval(Integral, 0, None, closed="left")],
        "decimal": [StrOptions({".", ","}), None],
        "date_format": [str, dict, None],
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
            as_table(X, self.encoding_.gaps, is_typed=False), type(self).__name__, self._checked_dtype()
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

    @property
    def report_(self) -> Any:
        """How each column is read, as a frame of pandas."""
        check_is_fitted(self)
        try:
            import pandas
        except ImportError:
            raise ImportError("report_ needs pandas: pip install pandas, or use encoding_.report().") from None
        return pandas.DataFrame(self.encoding_.report())

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
        if not all(isinstance(gap, str) for gap in self.gaps):
            raise ValueError(f"gaps={self.gaps!r} must be strings.")
        return as_table(X, frozenset(self.gaps))

    def _fit_table(self, table: Table, labels: Labels | None = None) -> Self:
        return self._learn(table.names, lambda gaps, rules: TableInputs.learn(table, gaps, rules, labels))

    def _learn(self, names: Collection[str], learn: Callable[..., TableInputs]) -> Self:
        """Fit the encoding with `learn`, after validating the parameters; list what happens to columns in a warning."""
        kinds: dict[str, Any] = dict(self.kinds or {})
        dates = self.date_format
        by_name = {} if dates is None or isinstance(dates, str) else dict(dates)
        orders = {name: [str(text_of(level)) for level in own] for name, own in kinds.items() if isinstance(own, list)}
        kinds |= dict.fromkeys(orders, "category")
        for name, kind in kinds.items():
            if kind not in COLUMNS:
                known = ", ".join(COLUMNS)
                raise ValueError(
                    f"kinds[{name!r}] is {kind!r}; it must be one of {known}, or a list of levels in order."
                )
        special = {name: _codes(name, codes) for name, codes in (self.special_codes or {}).items()}
        for parameter, given in {"kinds": kinds, "date_format": by_name, "special_codes": special}.items():
            for name in given:
                if name not in names:
                    raise ValueError(f"{parameter} contains {name!r}, which is not a column of the table.")
        for format in [dates] if isinstance(dates, str) else by_name.values():
            date_reader(format)  # an error if it is invalid
        rules = EncoderParameters(
            kinds, orders, self.min_rows, self.max_levels, self.max_words, self.decimal, dates, special
        )
        encoding = learn(tuple(sorted(self.gaps)), rules)
        _warn(encoding)
        return self._keep(encoding)

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


def _codes(name: str, codes: Any) -> tuple[float, ...]:
    """Validate the special codes of a column."""
    is_list = isinstance(codes, list | tuple | set | frozenset | np.ndarray)
    for code in codes if is_list else [codes]:
        if not is_list or isinstance(code, bool) or not isinstance(code, Real) or not abs(float(code)) <= LARGEST:
            raise ValueError(f"special_codes[{name!r}] is {codes!r}; it must be a list of finite numbers.")
    return tuple(dict.fromkeys(map(float, codes)))


def _warn(encoding: TableInputs) -> None:
    """List the columns that are dropped, reduced or read as something other than written."""
    lines = [f"{name!r} is dropped: {encoding.dropped[name]}" for name in encoding.names if name in encoding.dropped]
    lines += [f"{name!r}: {note}" for name, note in encoding.notes.items()]
    if lines:
        more = [f"and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
        shown = "".join(f"\n  {line}" for line in lines[:MOST_LISTED] + more)
        warnings.warn(f"How columns are read (all columns: encoder.report_):{shown}", ColumnsWarning, stacklevel=2)


def warn_of_telling_columns(encoding: TableInputs, Z: np.ndarray, y: np.ndarray) -> None:
    """Warn of columns that alone tell the class of each row, as those that are computed from the label do.

    These are numbers and dates of which each class has an interval of its own, and others with few values, each of
    which has one class.
    """
    if len(y) < ENOUGH_ROWS:
        return
    sample = np.random.default_rng(0).permutation(len(y))[: 2 * ENOUGH_ROWS]
    telling = []
    for column, own in zip(encoding.columns, encoding.places, strict=True):
        is_ordered = isinstance(column, NumberColumn | DateColumn)
        if column.kind != "text" and all(
            _tells(Z[rows, own], y[rows], column, is_ordered) for rows in (sample, slice(None))
        ):
            telling.append(column.name)
    if telling:
        warnings.warn(
            f"The class of each row follows from {' alone, and from '.join(map(repr, telling[:5]))} alone: leave such "
            "columns out if they are not known before the label.",
            ColumnsWarning,
            stacklevel=2,
        )


def _tells(encoded: np.ndarray, y: np.ndarray, column: Column, is_ordered: bool) -> bool:
    """Whether each value of a column has one class, and the values are few, or each class has an interval of them."""
    if is_ordered:
        values = np.where(encoded[:, -1] > 0, np.inf, encoded[:, 0]) if column.has_gaps else encoded[:, 0]
    else:
        values = encoded @ np.arange(1, encoded.shape[1] + 1)
    different, index = np.unique(values, return_inverse=True)
    low, high = np.full(len(different), y.max()), np.full(len(different), y.min())
    np.minimum.at(low, index, y)
    np.maximum.at(high, index, y)
    if (low != high).any():
        return False
    is_few = len(different) <= max(2.0, FEW_VALUES * len(y))
    return is_few or (is_ordered and 1 + int((np.diff(low) != 0).sum()) <= len(np.unique(y)))
