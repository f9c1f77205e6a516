"""`PlaneUsageDisplay`: fraction of the rows that each plane decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane._validation import encode
from polyplane.explain._estimators import plane_classifier, single_planes, transformed_rows
from polyplane.explain.displays._style import axes, bare, colour


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
        model = plane_classifier(estimator)
        planes = single_planes(estimator)
        winners = planes.winners(transformed_rows(estimator, X))
        usage = np.bincount(winners, minlength=planes.n_planes) / len(winners)
        errors = None
        if y is not None:
            wrong = planes.owners[winners] != encode(np.asarray(y), model.classes_)
            errors = np.bincount(winners[wrong], minlength=planes.n_planes) / len(winners)
        return cls(usage=usage, owners=planes.owners, classes=model.classes_, errors=errors).plot(ax=ax, **kwargs)

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
        for place, plane in enumerate(shown):
            self.ax_.bar(place, 100 * self.usage[plane], color=colour(self.owners[plane]), width=0.85)
        if self.errors is not None:
            wrong = 100 * self.errors[shown]
            self.ax_.bar(np.arange(len(shown)), wrong, color="black", width=0.85, label="misclassified")
            self.ax_.legend(frameon=False)
        self._label_classes(shown)
        bare(self.ax_)
        enough = int(np.searchsorted(np.cumsum(np.sort(self.usage)[::-1]), 0.95 - 1e-12)) + 1
        self.ax_.set(ylabel="rows, %", xlabel="planes, by class")
        self.ax_.set_title(f"{enough} of {len(self.usage)} planes decide 95 % of the rows", loc="left")
        return self

    def _label_classes(self, shown: np.ndarray) -> None:
        owners = self.owners[shown]
        present = np.unique(owners)
        middles = [np.flatnonzero(owners == c).mean() for c in present]
        self.ax_.set_xticks(middles, [str(self.classes[c]) for c in present])
        for edge in np.flatnonzero(np.diff(owners)):
            self.ax_.axvline(edge + 0.5, color="#888888", linewidth=0.6, linestyle=":")
