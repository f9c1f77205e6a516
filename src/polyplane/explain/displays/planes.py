"""Displays of planes: rows that they decide, weights, margins, regions, and the history of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane._prediction import encode
from polyplane.explain.columns import ModelColumns
from polyplane.explain.displays import MARKERS, RIGHT, WRONG, axes, bare, colour, panels
from polyplane.explain.geometry import Cell, cells, plane_slice
from polyplane.explain.text import cut
from polyplane.model import Model
from polyplane.planes import PlaneSet, margins_of

#: Number of points on a side of the grid on which margins are drawn, and of letters of a name.
GRID, LETTERS = 301, 28


@dataclass(kw_only=True, eq=False, repr=False)
class PlaneUsageDisplay:
    """Fraction of the rows that each plane decides: those for which it has the largest score.

    Parameters
    ----------
    usage : ndarray of shape (n_planes,)
        Fraction of the rows that each plane decides.
    owners : ndarray of shape (n_planes,)
        Index of the class that owns each plane.
    classes : ndarray of shape (n_classes,)
        Class labels.
    errors : ndarray of shape (n_planes,), default=None
        Fraction of the rows that each plane decides and misclassifies.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import ConvexPolytopeClassifier
    >>> from polyplane.explain import PlaneUsageDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConvexPolytopeClassifier(n_planes=3, random_state=0).fit(X, y)
    >>> display = PlaneUsageDisplay.from_estimator(model, X, y)
    >>> round(float(display.usage.sum()), 6), display.owners.tolist()
    (1.0, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    """

    usage: np.ndarray
    owners: np.ndarray
    classes: np.ndarray
    errors: np.ndarray | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Compute the fractions and draw them.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted Polyplane classifier, or a pipeline that ends in one.
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,), default=None
            Labels of the rows, to mark misclassified rows.
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : PlaneUsageDisplay
            The display, with the attributes `ax_` and `figure_`.
        """
        model = _decided_by_planes(estimator)
        planes, winners = model.planes, model.plane_scores(model.encode(X)).argmax(axis=1)
        usage = np.bincount(winners, minlength=planes.n_planes) / len(winners)
        errors = None
        if y is not None:
            wrong = planes.owners[winners] != encode(np.asarray(y), model.classes)
            errors = np.bincount(winners[wrong], minlength=planes.n_planes) / len(winners)
        return cls(usage=usage, owners=planes.owners, classes=model.classes, errors=errors).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, max_planes: int = 60) -> Self:
        """Draw bars, sorted by fraction within each class.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        max_planes : int, default=60
            Largest number of bars; the planes that decide the most rows are shown.

        Returns
        -------
        display : PlaneUsageDisplay
            The display itself.
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        order = np.lexsort((-self.usage, self.owners))
        shown = order[np.isin(order, np.argsort(-self.usage, kind="stable")[:max_planes])]
        shown = shown[self.usage[shown] > 0]
        for index, plane in enumerate(shown):
            self.ax_.bar(index, 100 * self.usage[plane], color=colour(self.owners[plane]), width=0.85)
        if self.errors is not None:
            wrong = 100 * self.errors[shown]
            self.ax_.bar(np.arange(len(shown)), wrong, color="black", width=0.85, label="misclassified")
            self.ax_.legend(frameon=False)
        owners = self.owners[shown]
        present = np.unique(owners)
        middles = [np.flatnonzero(owners == c).mean() for c in present]
        self.ax_.set_xticks(middles, [str(self.classes[c]) for c in present])
        for edge in np.flatnonzero(np.diff(owners)):
            self.ax_.axvline(edge + 0.5, color="#888888", linewidth=0.6, linestyle=":")
        bare(self.ax_)
        enough = int(np.searchsorted(np.cumsum(np.sort(self.usage)[::-1]), 0.95 - 1e-12)) + 1
        self.ax_.set(ylabel="rows, %", xlabel="planes, by class")
        self.ax_.set_title(f"{enough} of {len(self.usage)} planes decide 95 % of the rows", loc="left")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PlaneWeightsDisplay:
    """Weights of planes: bars of the largest ones, or images if the features are pixels.

    Parameters
    ----------
    coef : ndarray of shape (n_planes, n_features)
        Weights of the planes to show.
    titles : sequence of str
        Title of each plane.
    feature_names : sequence of str
        Names of the features.
    image_shape : tuple of int, default=None
        Height and width of images, if the features are pixels.

    Attributes
    ----------
    axes_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import PlaneWeightsDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CuttingPlaneSVC(C=1e-4).fit(X, y)
    >>> display = PlaneWeightsDisplay.from_estimator(model, image_shape=(8, 8))
    >>> display.coef.shape, display.titles[3]
    ((10, 64), '3')
    """

    coef: np.ndarray
    titles: Sequence[str]
    feature_names: Sequence[str]
    image_shape: tuple[int, int] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        planes: Any = None,
        max_planes: int = 10,
        feature_names: Any = None,
        image_shape: tuple[int, int] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Select planes and draw their weights.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted Polyplane classifier, or a pipeline that ends in one. In a pipeline, the weights refer to the
            features after the other steps.
        X : array-like or sparse matrix of shape (n_rows, n_features), default=None
            Rows, to select the planes that decide the most of them.
        planes : sequence of int, default=None
            Indices of the planes to show. If None, the planes that decide the most rows of `X`, or without `X`, the
            planes with the largest norms.
        max_planes : int, default=10
            Number of planes to select if `planes` is None.
        feature_names : sequence of str, default=None
            Names of the features. If None, those seen during `fit`.
        image_shape : tuple of int, default=None
            Height and width of images, if the features are pixels. If given, images are drawn.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : PlaneWeightsDisplay
            The display, with the attributes `axes_` and `figure_`.
        """
        model = _decided_by_planes(estimator)
        model = model if model.projection is None else model.flat()
        columns, single = ModelColumns.of(model, None, feature_names), model.planes
        names = [columns.names[j] for j in model.features.source]
        if image_shape is not None and np.prod(image_shape) != len(names):
            raise ValueError(f"image_shape={image_shape} does not match the {len(names)} features.")
        usage = None
        if X is not None:
            winners = model.plane_scores(model.encode(X)).argmax(axis=1)
            usage = np.bincount(winners, minlength=single.n_planes) / len(winners)
        chosen = _choose(single, usage, planes, max_planes)
        titles = [str(model.classes[c]) for c in single.owners[chosen]]
        if usage is not None:
            titles = [f"{title}: {100 * usage[p]:.0f} % of rows" for title, p in zip(titles, chosen, strict=True)]
        coef = single.coef[chosen]
        return cls(coef=coef, titles=titles, feature_names=names, image_shape=image_shape).plot(**kwargs)

    def plot(self, *, max_features: int = 12, n_columns: int = 5) -> Self:
        """Draw one panel for each plane.

        Parameters
        ----------
        max_features : int, default=12
            Largest number of bars per plane; the largest weights are shown.
        n_columns : int, default=5
            Number of panels per row; at most two for bars.

        Returns
        -------
        display : PlaneWeightsDisplay
            The display itself.
        """
        n_columns = min(n_columns if self.image_shape else 2, len(self.coef))
        n_rows = -(-len(self.coef) // n_columns)
        shown = min(max_features, self.coef.shape[1])
        size = (1.7 * n_columns, 1.9 * n_rows) if self.image_shape else (5.0 * n_columns, (0.9 + 0.28 * shown) * n_rows)
        self.figure_, self.axes_ = panels(len(self.coef), n_columns, size)
        for ax, weights, title in zip(self.axes_, self.coef, self.titles, strict=False):
            ax.set_title(title, fontsize=11)
            if self.image_shape:
                limit = np.abs(weights).max() or 1.0
                ax.imshow(weights.reshape(self.image_shape), cmap="RdBu", vmin=-limit, vmax=limit)
                ax.set(xticks=[], yticks=[])
            else:
                self._bars(ax, weights, shown)
        self.figure_.suptitle("Weights of planes by class: blue is positive, red is negative", fontsize=11)
        return self

    def _bars(self, ax: Any, weights: np.ndarray, n_shown: int) -> None:
        largest = np.argsort(-np.abs(weights), kind="stable")[:n_shown][::-1]
        colours = [RIGHT if weights[j] > 0 else WRONG for j in largest]
        ax.barh(np.arange(len(largest)), weights[largest], color=colours)
        ax.set_yticks(np.arange(len(largest)), [cut(self.feature_names[j], LETTERS) for j in largest], fontsize=9)
        ax.axvline(0, color="black", linewidth=0.8)
        bare(ax)


def _choose(planes: PlaneSet, usage: np.ndarray | None, numbers: Any, max_planes: int) -> np.ndarray:
    """Select the planes to show."""
    if numbers is None:
        norms = np.linalg.norm(planes.coef, axis=1)
        weight = norms if usage is None else usage * (norms > 0)  # zero planes are omitted
        largest = np.argsort(-weight, kind="stable")[:max_planes]
        return np.sort(largest[weight[largest] > 0])
    chosen = np.asarray(numbers, dtype=np.intp)
    if chosen.ndim != 1 or len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= planes.n_planes:
        raise ValueError(f"planes must be indices from 0 to {planes.n_planes - 1}, not {numbers}.")
    return chosen


@dataclass(kw_only=True, eq=False, repr=False)
class MarginDisplay:
    """Margins of labelled rows: the score of the true class minus the largest score of another class.

    Parameters
    ----------
    margins : ndarray of shape (n_rows,)
        The margins; negative ones are errors.

    Attributes
    ----------
    ax_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import MarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CuttingPlaneSVC().fit(X, y)
    >>> display = MarginDisplay.from_estimator(model, X, y)
    >>> int((display.margins < 0).sum()), int((model.predict(X) != y).sum())
    (3, 3)
    """

    margins: np.ndarray

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Compute the margins and draw them.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted Polyplane classifier, or a pipeline that ends in one.
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Labels of the rows.
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : MarginDisplay
            The display, with the attributes `ax_` and `figure_`.
        """
        model = Model.of(estimator)
        codes = encode(np.asarray(y), model.classes)
        return cls(margins=margins_of(model.class_scores(model.encode(X)), codes)).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, bins: int = 60) -> Self:
        """Draw a histogram.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        bins : int, default=60
            Number of bars.

        Returns
        -------
        display : MarginDisplay
            The display itself.
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        low, high = (float(v) for v in np.quantile(self.margins, [0.001, 0.999]))
        low, high = min(low, 0.0), max(high, 1e-12)
        width = (high - low) / bins
        below = int(np.ceil(-low / width))
        edges = width * np.arange(-below, bins - below + 2)  # 0 is an edge: no bar mixes errors and correct rows
        inner = np.clip(self.margins, edges[0], edges[-1])
        counts, _ = np.histogram(inner, edges)
        colours = [WRONG if edge < -width / 2 else RIGHT for edge in edges[:-1]]
        self.ax_.bar(edges[:-1], counts, width=width, align="edge", color=colours)
        self.ax_.axvline(0, color="black", linewidth=1.0)
        wrong = 100 * float(np.mean(self.margins < 0))
        self.ax_.set(xlabel="margin: score of the true class minus the best other score", ylabel="rows")
        self.ax_.set_title(f"{wrong:.1f} % of the rows are misclassified (left of 0)", loc="left")
        bare(self.ax_)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class RegionsDisplay:
    """Decision regions over two features, the cells of their planes, and rows.

    The cells are exact polygons, not a grid. For a model with more than two features, a slice is shown, in which the
    other features are fixed. The scalers of a pipeline are unwrapped, so that the axes are in the units of the data.

    Parameters
    ----------
    planes : PlaneSet
        The planes over the two features.
    box : tuple of float
        ``(left, right, bottom, top)``.
    classes : ndarray of shape (n_classes,)
        Class labels.
    names : pair of str
        Names of the two features.
    points : ndarray of shape (n_rows, 2), default=None
        Rows to show.
    codes : ndarray of shape (n_rows,), default=None
        Class indices of the rows.
    fixed : str, default=""
        Description of the fixed features of a slice, shown below the title.

    Attributes
    ----------
    cells_ : list of Cell
        The polygons.
    ax_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.datasets import make_checkerboard
    >>> from polyplane.explain import RegionsDisplay
    >>> X, y = make_checkerboard(3000, (2, 2), random_state=0)
    >>> model = MultiHyperplaneClassifier(2, loss="hinge", random_state=0).fit(X, y)
    >>> display = RegionsDisplay.from_estimator(model, X, y)
    >>> sorted(cell.c for cell in display.cells_)
    [0, 0, 1, 1]
    """

    planes: PlaneSet
    box: tuple[float, float, float, float]
    classes: np.ndarray
    names: Sequence[str]
    points: np.ndarray | None = None
    codes: np.ndarray | None = None
    fixed: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: tuple[int | str, int | str] = (0, 1),
        at: Any = None,
        feature_names: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the cells and draw them.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted Polyplane classifier, or a pipeline of scalers that ends in one.
        X : array-like of shape (n_rows, n_features)
            Rows in the units of the data, which determine the limits of the axes.
        y : array-like of shape (n_rows,), default=None
            Labels of the rows. If None, no rows are drawn.
        features : pair of int or str, default=(0, 1)
            The two features to show, as indices or names.
        at : array-like of shape (n_features,), default=None
            A point with the values of the other features. If None, the mean of `X`.
        feature_names : sequence of str, default=None
            Names of the features. If None, those seen during `fit`.
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : RegionsDisplay
            The display, with the attributes `cells_`, `ax_` and `figure_`.
        """
        model = _decided_by_planes(estimator)
        if not model.is_piecewise_linear:
            raise TypeError(f"The regions of this {model.learner} are not polygons: its columns are clipped.")
        names = ModelColumns.of(model, None, feature_names).names
        rows, planes = np.asarray(X, dtype=np.float64), model.flat().planes
        for feature in features:
            if isinstance(feature, str) and feature not in names:
                raise ValueError(f"features: {feature!r} is not one of the features {', '.join(names)}.")
        shown = [names.index(feature) if isinstance(feature, str) else int(feature) for feature in features]
        flat = plane_slice(planes, features=(shown[0], shown[1]), at=np.nanmean(rows, axis=0) if at is None else at)
        points = rows[:, shown]
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        pad = 0.04 * np.where(high > low, high - low, 1.0)
        display = cls(
            planes=flat,
            box=(low[0] - pad[0], high[0] + pad[0], low[1] - pad[1], high[1] + pad[1]),
            classes=model.classes,
            names=[names[j] for j in shown],
            points=None if y is None else points,
            codes=None if y is None else encode(np.asarray(y), model.classes),
            fixed=_fixed(at, names, shown),
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self, ax: Any = None, *, margin: float | None = None, max_points: int = 2000, title: str | None = None
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on. If None, new axes are created.
        margin : float, default=None
            If given, also draw a dashed line where the margin of the best class has this value. The losses of most
            learners use a margin of 1.
        max_points : int, default=2000
            Largest number of rows that are drawn; of more rows, evenly spaced ones.
        title : str, default=None
            Title. If None, the number of cells and, with rows, the error.

        Returns
        -------
        display : RegionsDisplay
            The display itself.
        """
        self.ax_ = axes(ax, figsize=(6.4, 5.6))
        self.figure_ = self.ax_.figure
        self.cells_ = cells(self.planes, self.box)
        for cell in self.cells_:
            self._draw_cell(cell)
        left, right, bottom, top = self.box
        if margin is not None:
            across, up = np.linspace(left, right, GRID), np.linspace(bottom, top, GRID)
            ahead = self.planes.margins(np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)).reshape(GRID, GRID)
            self.ax_.contour(across, up, ahead, levels=[margin], colors="#222222", linewidths=1.0, linestyles="dotted")
        if self.points is not None:
            self._draw_points(max_points)
        self.ax_.set(xlim=(left, right), ylim=(bottom, top), xlabel=self.names[0], ylabel=self.names[1])
        if title is None:
            title = f"{len(self.cells_)} cells of {self.planes.n_planes} planes"
            title += f"\n{self.fixed}" if self.fixed else ""
        self.ax_.set_title(title, loc="left")
        return self

    def _draw_cell(self, cell: Cell) -> None:
        """Draw a polygon; its edges are thin towards cells of the same class, thick towards other classes."""
        self.ax_.fill(*cell.vertices.T, facecolor=colour(cell.c), alpha=0.3, edgecolor="none")
        following = np.roll(cell.vertices, -1, axis=0)
        for start, end, other in zip(cell.vertices, following, cell.across, strict=True):
            if other >= 0:
                own = self.planes.owners[other] == cell.c
                style = {"linewidth": 0.7, "linestyle": (0, (4, 3))} if own else {"linewidth": 1.8}
                self.ax_.plot(*np.stack([start, end]).T, color="#222222", zorder=2, **style)

    def _draw_points(self, max_points: int) -> None:
        assert self.points is not None
        assert self.codes is not None
        shown = np.linspace(0, len(self.points) - 1, min(max_points, len(self.points))).astype(np.intp)
        for c, label in enumerate(self.classes):
            x, y = self.points[shown[self.codes[shown] == c]].T
            style = {"s": 14, "linewidths": 0.3, "edgecolors": "white", "zorder": 3}
            self.ax_.scatter(x, y, color=colour(c), marker=MARKERS[c % len(MARKERS)], label=str(label), **style)
        self.ax_.legend(loc="upper right", framealpha=0.9, markerscale=1.6)


def _fixed(at: Any, names: Sequence[str], shown: Sequence[int]) -> str:
    """Describe the fixed features of a slice."""
    others = [j for j in range(len(names)) if j not in shown]
    if not others:
        return ""
    if at is None:
        return f"a slice: {len(others)} other feature{'s' if len(others) > 1 else ''} fixed at the mean"
    if len(others) > 3:
        return f"a slice: {len(others)} other features fixed at the given point"
    return "a slice at " + ", ".join(f"{names[j]} = {float(np.asarray(at)[j]):.4g}" for j in others)


@dataclass(kw_only=True, eq=False, repr=False)
class HistoryDisplay:
    """History of training: one panel for each recorded quantity, such as the loss.

    Parameters
    ----------
    history : mapping of str to sequence of float
        The recorded quantities after each step, as in `history_`.

    Attributes
    ----------
    axes_, figure_
        Matplotlib axes and figure, set by `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import HistoryDisplay
    >>> model = CuttingPlaneSVC().fit(*load_iris(return_X_y=True))
    >>> display = HistoryDisplay.from_estimator(model, metrics=["primal", "dual", "gap"])
    >>> len(display.axes_)
    3
    """

    history: Mapping[str, Sequence[float]]

    @classmethod
    def from_estimator(cls, estimator: Any, **kwargs: Any) -> Self:
        """Draw the history of a fitted classifier.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted Polyplane classifier, or a pipeline that ends in one.
        **kwargs
            Keyword arguments of `plot`.

        Returns
        -------
        display : HistoryDisplay
            The display, with the attributes `axes_` and `figure_`.
        """
        estimator = getattr(estimator, "best_estimator_", estimator)
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        return cls(history=last.history_).plot(**kwargs)

    def plot(self, *, metrics: Sequence[str] | None = None, against: str = "step") -> Self:
        """Draw the display.

        Parameters
        ----------
        metrics : sequence of str, default=None
            The quantities to show. If None, all that vary.
        against : {"step", "time"}, default="step"
            Horizontal axis: passes (or other steps of the learner), or time in seconds.

        Returns
        -------
        display : HistoryDisplay
            The display itself.
        """
        names = [name for name in self.history if name != "time"] if metrics is None else list(metrics)
        if metrics is None:  # constant quantities are omitted, unless all are constant
            names = [name for name in names if len(set(self.history[name])) > 1] or names
        for name in names:
            if name not in self.history:
                raise ValueError(f"metrics: {name!r} is not in the history, which contains {', '.join(self.history)}.")
        if not names:
            raise ValueError("The history contains only times: there is nothing to draw.")
        if against not in ("time", "step") or (against == "time" and "time" not in self.history):
            raise ValueError(f"against={against!r}: choose 'step'" + (" or 'time'." if "time" in self.history else "."))
        n_steps = len(self.history[names[0]])
        places = self.history["time"] if against == "time" else range(1, n_steps + 1)
        self.figure_, self.axes_ = panels(len(names), 1, (7.0, 1.0 + 1.6 * len(names)), sharex=True)
        for i, (ax, name) in enumerate(zip(self.axes_, names, strict=True)):
            values = self.history[name]
            ax.plot(places, values, color=colour(i), marker="o" if n_steps <= 30 else None, markersize=4)
            if min(values) > 0 and max(values) > 100 * min(values):
                ax.set_yscale("log")
            ax.set_title(f"{name.replace('_', ' ')}: {values[0]:.4g} to {values[-1]:.4g}", loc="left", fontsize=11)
            bare(ax)
        self.axes_[-1].set_xlabel("seconds" if against == "time" else "pass, or step of the learner")
        return self


def _decided_by_planes(estimator: Any) -> Model:
    """Return the model of an estimator, or raise an error if rows are not decided by single planes."""
    model = Model.of(estimator)
    if not model.has_winners or model.inputs.is_table:
        members = f" of {model.planes.n_members} members" if model.planes.n_members > 1 else ""
        raise TypeError(
            f"This display requires a model in which one plane decides the class of a row, which this {model.learner}"
            f"{members} is not: use ImportanceDisplay, EffectsDisplay or ReasonsDisplay{model.how_to_get_winners}."
        )
    return model
