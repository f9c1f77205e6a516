"""Why a class is predicted for a row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane.inspection._estimators import table_classifier
from polyplane.inspection._explain_table_row import explain_table_row
from polyplane.inspection._table_row_explanation import TableRowExplanation
from polyplane.inspection.displays._style import RIGHT, WRONG, axes, bare, short

#: Probabilities on the second axis, where it is long and where it is short.
COARSE = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
FINE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(kw_only=True, eq=False, repr=False)
class ReasonsDisplay:
    """The reasons for the predicted class of a row of a table: a waterfall from the reference row to the row.

    Each bar begins where the one above it ends; the last one ends at the log-odds of the predicted class against its
    rival. Blue bars speak for the predicted class, orange ones for the rival.

    Parameters
    ----------
    explanation : TableRowExplanation
        What `explain_row` told.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure, after `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import TableClassifier
    >>> from polyplane.inspection import ReasonsDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> machine = TableClassifier(n_estimators=1, preparation="standard", random_state=0).fit(X, y)
    >>> display = ReasonsDisplay.from_estimator(machine, X.iloc[0])
    >>> display.explanation.label
    0
    """

    explanation: TableRowExplanation

    @classmethod
    def from_estimator(cls, estimator: Any, x: Any, *, ax: Any = None, max_columns: int = 10, **kwargs: Any) -> Self:
        """Explain a row and draw the reasons.

        Parameters
        ----------
        estimator : TableClassifier
            The fitted classifier.
        x : dict, Series, or one row of a data frame
            The row.
        ax : Axes, default=None
            Where to draw.
        max_columns : int, default=10
            The largest contributions that bars are drawn for; the others are drawn together.
        **kwargs
            Passed on to `explain_row`.

        Returns
        -------
        display : ReasonsDisplay
            With `ax_` and `figure_`.
        """
        table = table_classifier(estimator)
        if table is None:
            raise TypeError(f"This display is for a TableClassifier, not for a {type(estimator).__name__}.")
        told = explain_table_row(table, x, **{"search": False, **kwargs})
        return cls(explanation=told).plot(ax=ax, max_columns=max_columns)

    def plot(self, ax: Any = None, *, max_columns: int = 10) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw.
        max_columns : int, default=10
            The largest contributions that bars are drawn for; the others are drawn together.

        Returns
        -------
        display : ReasonsDisplay
            Itself.
        """
        told = self.explanation
        large, small = told.told(max_columns)
        names = ["typical row (reference)", *(short(told.reason(j), 60) for j in large)]
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
        self.ax_.set_title(f"Class {label} is predicted, with probability {told.probability:.2f}.{truth}", loc="left")
        self.ax_.set_xlabel(
            f"\N{LEFTWARDS ARROW} for {rival}    log-odds of {label}    for {label} \N{RIGHTWARDS ARROW}"
        )
        if len(told.classes) == 2:
            self._probabilities(f"probability of {label}")

    def _probabilities(self, name: str) -> None:
        """A second axis, for two classes."""
        low, high = self.ax_.get_xlim()
        second = self.ax_.secondary_xaxis("top", functions=(lambda x: x, lambda x: x))
        known = COARSE if high - low > 5.0 else FINE
        ticks = [p for p in known if low <= np.log(p / (1 - p)) <= high]
        second.set_xticks([np.log(p / (1 - p)) for p in ticks], [f"{p:g}" for p in ticks])
        second.set_xlabel(name, fontsize=9)
        second.spines["top"].set_visible(True)
