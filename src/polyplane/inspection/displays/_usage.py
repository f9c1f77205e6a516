"""Which planes decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane._validation import encode
from polyplane.inspection._estimators import plane_classifier, single_planes, transformed_rows
from polyplane.inspection.displays._style import axes, bare, colour


@dataclass(kw_only=True, eq=False, repr=False)
class PlaneUsageDisplay:
    """The share of the rows that each plane decides.

    Parameters
    ----------
    usage : ndarray of shape (n_planes,)
        Share of the rows that each plane wins.
    owners : ndarray of shape (n_planes,)
        The class that owns each plane, as an integer.
    classes : ndarray of shape (n_classes,)
        The labels.
    errors : ndarray of shape (n_planes,), default=None
        Share of the rows that each plane wins wrongly.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure, after `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import ConvexPolytopeClassifier
    >>> from polyplane.inspection import PlaneUsageDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = ConvexPolytopeClassifier(n_planes=3, random_state=0).fit(X, y)
    >>> display = PlaneUsageDisplay.from_estimator(machine, X, y)
    >>> round(float(display.usage.sum()), 6), display.owners.tolist()
    (1.0, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    """

    usage: np.ndarray
    owners: np.ndarray
    classes: np.ndarray
    errors: np.ndarray | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Count and draw.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted classifier of this library, or a pipeline that ends in one.
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), default=None
            Their labels, to mark the rows that are won wrongly.
        ax : Axes, default=None
            Where to draw.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : PlaneUsageDisplay
            With `ax_` and `figure_`.
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
        """Draw bars, the busiest planes of each class first.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw.
        max_planes : int, default=60
            The least busy planes beyond so many are left out.

        Returns
        -------
        display : PlaneUsageDisplay
            Itself.
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
            self.ax_.bar(np.arange(len(shown)), wrong, color="black", width=0.85, label="of them wrongly")
            self.ax_.legend(frameon=False)
        self._label_classes(shown)
        bare(self.ax_)
        enough = int(np.searchsorted(np.cumsum(np.sort(self.usage)[::-1]), 0.95 - 1e-12)) + 1
        self.ax_.set(ylabel="share of the rows, %", xlabel="planes, by class")
        self.ax_.set_title(f"{enough} of {len(self.usage)} planes decide 95 % of the rows", loc="left")
        return self

    def _label_classes(self, shown: np.ndarray) -> None:
        owners = self.owners[shown]
        present = np.unique(owners)
        middles = [np.flatnonzero(owners == c).mean() for c in present]
        self.ax_.set_xticks(middles, [str(self.classes[c]) for c in present])
        for edge in np.flatnonzero(np.diff(owners)):
            self.ax_.axvline(edge + 0.5, color="#888888", linewidth=0.6, linestyle=":")
