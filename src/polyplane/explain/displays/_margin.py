"""`MarginDisplay`: margins of labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane._validation import encode
from polyplane.explain._estimators import plane_classifier, transformed_rows
from polyplane.explain.displays._style import RIGHT, WRONG, axes, bare


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
        model = plane_classifier(estimator)
        codes = encode(np.asarray(y), model.classes_)
        return cls(margins=model.planes_.margins(transformed_rows(estimator, X), codes)).plot(ax=ax, **kwargs)

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
