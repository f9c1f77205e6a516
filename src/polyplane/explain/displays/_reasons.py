"""`ReasonsDisplay`: contributions of the columns to a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane.explain._estimators import table_classifier
from polyplane.explain._explain_table_row import explain_table_row
from polyplane.explain._table_row_explanation import TableRowExplanation
from polyplane.explain.displays._style import RIGHT, WRONG, axes, bare, short

#: Ticks of the probability axis, for a long and for a short axis.
COARSE = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
FINE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(kw_only=True, eq=False, repr=False)
class ReasonsDisplay:
    """Contributions of the columns to the prediction for a table row: a waterfall chart from the reference row.

    Each bar starts where the one above it ends; the last one ends at the log-odds of the predicted class against its
    rival. Blue bars increase the probability of the predicted class, orange bars that of the rival.

    Parameters
    ----------
    explanation : TableRowExplanation
        The result of `explain_row`.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import TableClassifier
    >>> from polyplane.explain import ReasonsDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TableClassifier(n_estimators=1, preparation="standard", random_state=0).fit(X, y)
    >>> display = ReasonsDisplay.from_estimator(model, X.iloc[0])
    >>> display.explanation.label
    0
    """

    explanation: TableRowExplanation

    @classmethod
    def from_estimator(cls, estimator: Any, x: Any, *, ax: Any = None, max_columns: int = 10, **kwargs: Any) -> Self:
        """Explain a row and draw the contributions.

        Parameters
        ----------
        estimator : TableClassifier
            The fitted classifier.
        x : dict, Series, or one row of a data frame
            The row.
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        max_columns : int, default=10
            Largest number of bars; smaller contributions are combined in one bar.
        **kwargs
            Keyword arguments of `explain_row`.

        Returns
        -------
        display : ReasonsDisplay
            The display, with the attributes `ax_` and `figure_`.
        """
        table = table_classifier(estimator)
        if table is None:
            raise TypeError(f"ReasonsDisplay requires a TableClassifier, not a {type(estimator).__name__}.")
        told = explain_table_row(table, x, **{"search": False, **kwargs})
        return cls(explanation=told).plot(ax=ax, max_columns=max_columns)

    def plot(self, ax: Any = None, *, max_columns: int = 10) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        max_columns : int, default=10
            Largest number of bars; smaller contributions are combined in one bar.

        Returns
        -------
        display : ReasonsDisplay
            The display itself.
        """
        told = self.explanation
        large, small = told.told(max_columns)
        names = ["reference row", *(short(told.reason(j), 60) for j in large)]
        sizes = [told.base, *told.contributions[large].tolist()]
        if small:
            names.append(f"{len(small)} other columns")
            sizes.append(float(told.contributions[small].sum()))
        self.ax_ = axes(ax, figsize=(8.4, 2.0 + 0.34 * (len(names) + 1)))
        self.figure_ = self.ax_.figure
        ends = np.cumsum(sizes)
        self._bars(np.array(sizes), ends)
        self.ax_.set_yticks(np.arange(len(names) + 1), [*names, "this row"])
        self.ax_.invert_yaxis()
        self._words()
        bare(self.ax_)
        return self

    def _bars(self, sizes: np.ndarray, ends: np.ndarray) -> None:
        rows, starts = np.arange(len(sizes)), ends - sizes
        colours = ["#777777", *(RIGHT if size > 0 else WRONG for size in sizes[1:])]
        self.ax_.barh(rows, sizes, left=starts, color=colours, height=0.66)
        self.ax_.barh(len(sizes), ends[-1], color="#222222", height=0.66)
        self.ax_.vlines(ends, rows, rows + 1, color="#888888", linewidth=0.8)
        self.ax_.axvline(0.0, color="#888888", linewidth=0.8, zorder=0)
        right = np.append(np.maximum(starts, ends), max(ends[-1], 0.0))
        for row, (place, size) in enumerate(zip(right, [*sizes, ends[-1]], strict=True)):
            self.ax_.annotate(f"{size:+.2f}", (place, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
        self.ax_.use_sticky_edges = False
        self.ax_.margins(x=0.12)

    def _words(self) -> None:
        told = self.explanation
        label, rival = short(str(told.label), 24), short(str(told.rival), 24)
        truth = "" if told.true_label is None else f"\nThe true class is {short(str(told.true_label), 24)}."
        self.ax_.set_title(f"Predicted class: {label}, with probability {told.probability:.2f}.{truth}", loc="left")
        self.ax_.set_xlabel(
            f"\N{LEFTWARDS ARROW} for {rival}    log-odds of {label}    for {label} \N{RIGHTWARDS ARROW}"
        )
        if len(told.classes) == 2:
            self._probabilities(f"probability of {label}")

    def _probabilities(self, name: str) -> None:
        """Add an axis of probabilities, for two classes."""
        low, high = self.ax_.get_xlim()
        second = self.ax_.secondary_xaxis("top", functions=(lambda x: x, lambda x: x))
        known = COARSE if high - low > 5.0 else FINE
        ticks = [p for p in known if low <= np.log(p / (1 - p)) <= high]
        second.set_xticks([np.log(p / (1 - p)) for p in ticks], [f"{p:g}" for p in ticks])
        second.set_xlabel(name, fontsize=9)
        second.spines["top"].set_visible(True)
