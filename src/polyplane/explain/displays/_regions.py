"""`RegionsDisplay`: decision regions in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane._validation import encode
from polyplane.committee import check_single
from polyplane.explain.displays._style import MARKERS, axes, colour
from polyplane.explain.geometry import Cell, cells, plane_slice
from polyplane.explain.unscaled import unwrap
from polyplane.planes import PlaneSet

#: Number of points on a side of the grid on which margins are drawn.
GRID = 301


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
    >>> model = MultiHyperplaneClassifier(n_planes=2, random_state=0).fit(X, y)
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
        model = unwrap(estimator, feature_names=feature_names)
        rows, planes = np.asarray(X, dtype=np.float64), check_single(model.planes)
        shown = [_number(feature, model.feature_names) for feature in features]
        flat = plane_slice(planes, features=(shown[0], shown[1]), at=np.nanmean(rows, axis=0) if at is None else at)
        points = rows[:, shown]
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        pad = 0.04 * np.where(high > low, high - low, 1.0)
        display = cls(
            planes=flat,
            box=(low[0] - pad[0], high[0] + pad[0], low[1] - pad[1], high[1] + pad[1]),
            classes=model.classes,
            names=[model.feature_names[j] for j in shown],
            points=None if y is None else points,
            codes=None if y is None else encode(np.asarray(y), model.classes),
            fixed=_fixed(at, model.feature_names, shown),
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
        if margin is not None:
            self._draw_margin(margin)
        if self.points is not None:
            self._draw_points(max_points)
        left, right, bottom, top = self.box
        self.ax_.set(xlim=(left, right), ylim=(bottom, top), xlabel=self.names[0], ylabel=self.names[1])
        self.ax_.set_title(self._title() if title is None else title, loc="left")
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

    def _draw_margin(self, margin: float) -> None:
        left, right, bottom, top = self.box
        across, up = np.linspace(left, right, GRID), np.linspace(bottom, top, GRID)
        ahead = self.planes.margins(np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)).reshape(GRID, GRID)
        self.ax_.contour(across, up, ahead, levels=[margin], colors="#222222", linewidths=1.0, linestyles="dotted")

    def _draw_points(self, max_points: int) -> None:
        assert self.points is not None
        assert self.codes is not None
        shown = np.linspace(0, len(self.points) - 1, min(max_points, len(self.points))).astype(np.intp)
        for c, label in enumerate(self.classes):
            x, y = self.points[shown[self.codes[shown] == c]].T
            style = {"s": 14, "linewidths": 0.3, "edgecolors": "white", "zorder": 3}
            self.ax_.scatter(x, y, color=colour(c), marker=MARKERS[c % len(MARKERS)], label=str(label), **style)
        self.ax_.legend(loc="upper right", framealpha=0.9, markerscale=1.6)

    def _title(self) -> str:
        title = f"{len(self.cells_)} cells of {self.planes.n_planes} planes"
        return f"{title}\n{self.fixed}" if self.fixed else title


def _number(feature: int | str, names: Sequence[str]) -> int:
    """Return the index of a feature, given its index or name."""
    if not isinstance(feature, str):
        return int(feature)
    if feature not in names:
        raise ValueError(f"features: {feature!r} is not one of the features {', '.join(names)}.")
    return list(names).index(feature)


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
