"""Displays of the columns of a model: their importance, effects of their values, and contributions to a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from textwrap import fill
from typing import Any, Self

import numpy as np

from polyplane.base import class_index
from polyplane.explain.displays import COLOURS, MARKERS, RIGHT, WRONG, axes, bare, colour, panels
from polyplane.explain.effects import ColumnEffect
from polyplane.explain.model import ModelExplanation, explain_model
from polyplane.explain.row import RowExplanation, explain_row
from polyplane.explain.text import cut

#: Largest number of levels of a column that are drawn (the most frequent ones are kept), and of letters of a name.
MAX_LEVELS, LETTERS = 12, 28
#: Ticks of the probability axis, for a long and for a short axis.
COARSE = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
FINE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: Style of the marker of the reference value.
REFERENCE: dict[str, Any] = {
    "marker": "o",
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "linestyle": "none",
    "markersize": 6,
    "zorder": 5,
}


@dataclass(kw_only=True, eq=False, repr=False)
class ImportanceDisplay:
    """Importance of the columns of a model, as bars.

    The importance of a column is the standard deviation of its contribution to the score of a class, see
    `ModelExplanation`.

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
        estimator : classifier, Pipeline, Model or ModelExplanation
            The fitted model, or the result of `explain_model`.
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
        told = _explained(estimator, X)
        rows = "estimated from training" if told.n_rows is None else f"over {told.n_rows:,} rows"
        text = f"standard deviation of its contribution to the {told.score_name}, {rows}"
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
        self.ax_.set_yticks(np.arange(len(order)), [cut(self.columns[j], LETTERS) for j in order])
        left = len(self.columns) - len(order)
        self.ax_.set_title("Importance of the columns" + (f" (without the last {left})" if left else ""), loc="left")
        self.ax_.set_xlabel(self.subtitle)
        self.ax_.margins(x=0.1)
        bare(self.ax_)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class EffectsDisplay:
    """Effects of the values of columns on the probability of a class: curves for numbers and dates, bars for levels.

    Effects are in log-odds (or scores, if the model has no probabilities), relative to the reference value. For two
    classes, positive effects increase the probability of the second class. For more classes, there is a line or a
    marker for each class, compared with the mean of the other classes. If the effect depends on other columns, a band
    around the curve contains the middle 80 % of the rows.

    Parameters
    ----------
    effects : sequence of ColumnEffect
        The effects to draw.
    classes : sequence
        Class labels.
    title : str, default=""
        Title of the figure.
    importance : dict of str to float, default=None
        Importance of the columns, for the titles of the panels.
    label : int, default=1
        For two classes, the class whose probability positive effects increase.
    score_name : str, default="log-odds"
        What the effects change: "log-odds", or "score" if the model has no probabilities.

    Attributes
    ----------
    axes_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import TableClassifier
    >>> from polyplane.explain import EffectsDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TableClassifier(n_estimators=1, preparation="standard", random_state=0).fit(X, y)
    >>> display = EffectsDisplay.from_estimator(model, X, columns=["petal length (cm)"])
    >>> display.effects[0].reference
    4.35
    """

    effects: Sequence[ColumnEffect]
    classes: Sequence[Any]
    title: str = ""
    importance: dict[str, float] | None = None
    label: int = 1
    score_name: str = "log-odds"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        columns: Sequence[str] | None = None,
        max_columns: int = 6,
        label: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the effects and draw them.

        Parameters
        ----------
        estimator : classifier, Pipeline, Model or ModelExplanation
            The fitted model, or the result of `explain_model`.
        X : data frame or array-like of shape (n_rows, n_columns), default=None
            Rows to compute the effects on.
        columns : sequence of str, default=None
            The columns to show. If None, the most important ones.
        max_columns : int, default=6
            Largest number of columns if `columns` is None.
        label : label, default=None
            For two classes, the class whose probability positive effects increase. If None, the second.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : EffectsDisplay
            The display, with the attributes `axes_` and `figure_`.
        """
        told = _explained(estimator, X)
        names = [told.columns[j] for j in told.by_importance()[:max_columns]] if columns is None else list(columns)
        effects = [effect for name in names for effect in told.of_column(name)]
        importance = dict(zip(told.columns, told.importance.tolist(), strict=True))
        c = 1 if label is None else class_index("label", label, np.asarray(told.classes, dtype=object))
        ticks = "" if told.n_rows is None else "; ticks: deciles of the rows"
        curve = "" if told.is_additive or told.n_rows is None else "; band or line: the middle 80 % of the rows"
        display = cls(
            effects=effects,
            classes=told.classes,
            title=f"Effects of the values (open circle: reference value{ticks}{curve})",
            importance=importance,
            label=c,
            score_name=told.score_name,
        )
        return display.plot(**kwargs)

    def plot(self, *, n_columns: int = 3) -> Self:
        """Draw a panel for each effect.

        Parameters
        ----------
        n_columns : int, default=3
            Number of panels per row.

        Returns
        -------
        display : EffectsDisplay
            The display itself.
        """
        n_columns = min(n_columns, len(self.effects))
        n_rows = -(-len(self.effects) // n_columns)
        size = (4.3 * n_columns, 0.5 + 3.1 * n_rows)
        self.figure_, self.axes_ = panels(len(self.effects), n_columns, size)
        for ax, effect in zip(self.axes_, self.effects, strict=False):
            self._curve(ax, effect) if effect.is_curve else self._levels(ax, effect)
            ax.set_title(self._name(effect), loc="left", fontsize=11)
            bare(ax)
        if len(self.classes) > 2:
            handles, names = self.axes_[0].get_legend_handles_labels()
            self.figure_.legend(handles, names, loc="outside lower center", ncols=min(6, len(names)), frameon=False)
        self.figure_.suptitle(fill(self.title, int(14 * self.figure_.get_figwidth())), fontsize=10)
        return self

    @property
    def _drawn(self) -> list[int]:
        return [self.label] if len(self.classes) == 2 else list(range(len(self.classes)))

    def _name(self, effect: ColumnEffect) -> str:
        if not self.importance or effect.part not in (None, "days"):
            return effect.name
        return f"{cut(effect.name, LETTERS)} (importance {self.importance[effect.column]:.2f})"

    def _curve(self, ax: Any, effect: ColumnEffect) -> None:
        """Draw the effects of numbers or dates."""
        x: Any = np.array(effect.values, dtype=float)
        inside = (x >= effect.drawn[0]) & (x <= effect.drawn[1])
        x = _moments(x) if effect.part == "days" else x
        for c in self._drawn:
            line = "black" if len(self.classes) == 2 else colour(c)
            ax.plot(x[inside], effect.effect[inside, c], color=line, label=str(self.classes[c]), linewidth=1.8)
            if effect.bands is not None and len(self.classes) == 2:
                ends = (band[inside, c] for band in effect.bands)
                ax.fill_between(x[inside], *ends, color="black", alpha=0.13, linewidth=0)
            elif len(self.classes) == 2:
                height = effect.effect[inside, c]
                for shade, where in ((RIGHT, height > 0), (WRONG, height < 0)):
                    style = {"color": shade, "alpha": 0.15, "linewidth": 0}
                    ax.fill_between(x[inside], height, 0.0, where=where, interpolate=True, **style)
            if effect.missing is not None:
                style = {"marker": "D", "color": line, "clip_on": False, "transform": ax.get_yaxis_transform()}
                ax.plot([1.0], [effect.missing[c]], markersize=6, **style)
        if effect.missing is not None:
            mean = float(np.mean(effect.missing[self._drawn]))
            ax.annotate("missing", (1.0, mean), (-6, 4), ax.get_yaxis_transform(), "offset points", ha="right")
        ax.plot([_moments(effect.reference) if effect.part == "days" else effect.reference], [0.0], **REFERENCE)
        if effect.deciles is not None:
            ticks: Any = np.array(effect.deciles)
            ticks = _moments(ticks) if effect.part == "days" else ticks
            ax.vlines(ticks, 0.0, 0.035, color="#666666", linewidth=1.2, transform=ax.get_xaxis_transform())
        self._ticks(ax, effect)
        self._sides(ax, vertical=True)

    def _ticks(self, ax: Any, effect: ColumnEffect) -> None:
        """Set few ticks, names of the days of the week, and integer ticks for integers."""
        if effect.part == "days":
            dates = import_module("matplotlib.dates")
            locator = dates.AutoDateLocator(minticks=3, maxticks=6)
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        elif effect.part == "day of week":
            ax.set_xticks(range(1, 8), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
        else:  # at most six ticks, so that numbers of six digits fit
            ax.locator_params(axis="x", nbins=5, integer=effect.is_whole)

    def _levels(self, ax: Any, effect: ColumnEffect) -> None:
        """Draw the effects of levels, or of true and false."""
        names, sizes, counts, bands = effect.levels(MAX_LEVELS)
        first = self._drawn[0]
        order = np.argsort(sizes[:, first], kind="stable")
        rows = np.arange(len(order))
        if len(self.classes) == 2:
            values = sizes[order, first]
            ax.barh(rows, values, color=[RIGHT if value > 0 else WRONG for value in values], height=0.7)
            if bands is not None:
                ax.hlines(rows, bands[0][order, first], bands[1][order, first], color="black", linewidth=1.2)
        else:
            for c in self._drawn:
                marker = MARKERS[c % len(MARKERS)]
                ax.plot(sizes[order, c], rows, marker, color=COLOURS[c % len(COLOURS)], label=str(self.classes[c]))
        ax.plot([0.0], [int(np.flatnonzero(order == names.index(str(effect.reference)))[0])], **REFERENCE)
        labels = [f"{cut(names[i], 22)} ({counts[i]:,})" if counts[i] else cut(names[i], 22) for i in order]
        ax.set_yticks(rows, labels, fontsize=9)
        self._sides(ax, vertical=False)

    def _sides(self, ax: Any, vertical: bool) -> None:
        """Draw the line of no effect, and label its sides with the classes."""
        line = ax.axhline if vertical else ax.axvline
        line(0.0, color="#888888", linewidth=0.8, zorder=0)
        ax.use_sticky_edges = False
        ax.margins(**{"y" if vertical else "x": 0.16})
        if len(self.classes) > 2:
            (ax.set_ylabel if vertical else ax.set_xlabel)(f"effect on the {self.score_name}", fontsize=9)
            return
        above, below = (cut(str(self.classes[c]), 18) for c in (self.label, 1 - self.label))
        style = {"transform": ax.transAxes, "fontsize": 9}
        if vertical:
            ax.set_ylabel(f"effect on the {self.score_name}", fontsize=9)
            ax.text(0.02, 0.99, f"\N{UPWARDS ARROW} more {above}", va="top", color=RIGHT, **style)
            ax.text(0.02, 0.05, f"\N{DOWNWARDS ARROW} more {below}", va="bottom", color=WRONG, **style)
        else:
            ax.set_xlabel(f"effect on the {self.score_name}", fontsize=9)
            ax.set_ylim(-1.6, ax.get_yticks()[-1] + 0.7)
            ax.text(0.01, 0.01, f"\N{LEFTWARDS ARROW} more {below}", color=WRONG, **style)
            ax.text(0.99, 0.01, f"more {above} \N{RIGHTWARDS ARROW}", ha="right", color=RIGHT, **style)


@dataclass(kw_only=True, eq=False, repr=False)
class ReasonsDisplay:
    """Contributions of the columns to the prediction for a row: a waterfall chart from the reference row.

    Each bar starts where the one above it ends; the last one ends at the log-odds of the predicted class against its
    rival. Blue bars increase the probability of the predicted class, orange bars that of the rival.

    Parameters
    ----------
    explanation : RowExplanation
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

    explanation: RowExplanation

    @classmethod
    def from_estimator(cls, estimator: Any, x: Any, *, ax: Any = None, max_columns: int = 10, **kwargs: Any) -> Self:
        """Explain a row and draw the contributions.

        Parameters
        ----------
        estimator : classifier, Pipeline or Model
            The fitted model.
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
        told = explain_row(estimator, x, **{"search": False, **kwargs})
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
        names = ["reference row", *(cut(told.reason(j), 60) for j in large)]
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
        for row, (end, size) in enumerate(zip(right, [*sizes, ends[-1]], strict=True)):
            self.ax_.annotate(f"{size:+.2f}", (end, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
        self.ax_.use_sticky_edges = False
        self.ax_.margins(x=0.12)

    def _words(self) -> None:
        told = self.explanation
        label, rival = cut(str(told.label), 24), cut(str(told.rival), 24)
        truth = "" if told.true_label is None else f"\nThe true class is {cut(str(told.true_label), 24)}."
        sure = "" if told.probability is None else f", with probability {told.probability:.2f}"
        self.ax_.set_title(f"Predicted class: {label}{sure}.{truth}", loc="left")
        self.ax_.set_xlabel(
            f"\N{LEFTWARDS ARROW} for {rival}    {told.score_name} of {label}    for {label} \N{RIGHTWARDS ARROW}"
        )
        if len(told.classes) == 2 and told.probability is not None:
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


def _explained(estimator: Any, X: Any) -> ModelExplanation:
    return estimator if isinstance(estimator, ModelExplanation) else explain_model(estimator, X)


def _moments(days: Any) -> Any:
    """Convert days since 1970 to dates for Matplotlib."""
    return np.datetime64(0, "s") + np.round(np.asarray(days, dtype=float) * 86_400).astype("timedelta64[s]")
