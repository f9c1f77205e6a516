"""`ImportanceDisplay`: importance of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane.explain.displays._style import RIGHT, axes, bare, short
from polyplane.explain.displays._table import table_explanation


@dataclass(kw_only=True, eq=False, repr=False)
class ImportanceDisplay:
    """Importance of the columns of a table, as bars.

    The importance of a column is the standard deviation of its contribution to the score of a class, see
    `TableExplanation`.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    importance : ndarray of shape (n_columns,)
        Importance of each column.
    subtitle : str, default=""
        Definition of the importance, as the label of the axis.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import TableClassifier
    >>> from polyplane.explain import ImportanceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TableClassifier(n_estimators=1, preparation="standard", random_state=0).fit(X, y)
    >>> display = ImportanceDisplay.from_estimator(model, X)
    >>> display.columns[int(display.importance.argmax())].startswith("petal")
    True
    """

    columns: Sequence[str]
    importance: np.ndarray
    subtitle: str = ""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Compute the importance and draw it.

        Parameters
        ----------
        estimator : TableClassifier or TableExplanation
            The fitted classifier, or the result of `explain_model`.
        X : data frame or array-like of shape (n_rows, n_columns), default=None
            Rows to compute the importance on. If None, it is estimated from the training rows.
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : ImportanceDisplay
            The display, with the attributes `ax_` and `figure_`.
        """
        told = table_explanation(estimator, X)
        rows = "estimated from training" if told.n_rows is None else f"over {told.n_rows:,} rows"
        text = f"standard deviation of its contribution to the log-odds, {rows}"
        return cls(columns=told.columns, importance=told.importance, subtitle=text).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, max_columns: int = 15) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        max_columns : int, default=15
            Largest number of bars; the most important columns are shown.

        Returns
        -------
        display : ImportanceDisplay
            The display itself.
        """
        order = np.argsort(-self.importance, kind="stable")[:max_columns][::-1]
        self.ax_ = axes(ax, figsize=(7.0, 1.2 + 0.3 * len(order)))
        self.figure_ = self.ax_.figure
        bars = self.ax_.barh(np.arange(len(order)), self.importance[order], color=RIGHT, height=0.7)
        self.ax_.bar_label(bars, fmt="%.2f", padding=3, fontsize=9)
        self.ax_.set_yticks(np.arange(len(order)), [short(self.columns[j]) for j in order])
        left = len(self.columns) - len(order)
        self.ax_.set_title("Importance of the columns" + (f" (without the last {left})" if left else ""), loc="left")
        self.ax_.set_xlabel(self.subtitle)
        self.ax_.margins(x=0.1)
        bare(self.ax_)
        return self
