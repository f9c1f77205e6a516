"""How sure a model is of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane._validation import encode
from polyplane.inspection._estimators import plane_classifier, transformed_rows
from polyplane.inspection.displays._style import RIGHT, WRONG, axes, bare


@dataclass(kw_only=True, eq=False, repr=False)
class MarginDisplay:
    """The margins of labelled rows: the score of a row's own class less the best score of another.

    Parameters
    ----------
    margins : ndarray of shape (n_rows,)
        The margins; negative ones are errors.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure, after `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.inspection import MarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = CuttingPlaneSVC().fit(X, y)
    >>> display = MarginDisplay.from_estimator(machine, X, y)
    >>> int((display.margins < 0).sum()), int((machine.predict(X) != y).sum())
    (3, 3)
    """

    margins: np.ndarray

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Measure the margins and draw them.

        Parameters
        ----------
        estimator : classifier or pipeline
            A fitted classifier of this library, or a pipeline that ends in one.
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Their labels.
        ax : Axes, default=None
            Where to draw.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : MarginDisplay
            With `ax_` and `figure_`.
        """
        model = plane_classifier(estimator)
        codes = encode(np.asarray(y), model.classes_)
        return cls(margins=model.planes_.margins(transformed_rows(estimator, X), codes)).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, bins: int = 60) -> Self:
        """Draw a histogram.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw.
        bins : int, default=60
            Number of bars.

        Returns
        -------
        display : MarginDisplay
            Itself.
        """
        self.ax_ = axes(ax)
        self.figure_ = self.ax_.figure
        low, high = (float(v) for v in np.quantile(self.margins, [0.001, 0.999]))
        low, high = min(low, 0.0), max(high, 1e-12)
        width = (high - low) / bins
        below = int(np.ceil(-low / width))
        edges = width * np.arange(-below, bins - below + 2)  # 0 is an edge: no bar is both right and wrong
        inner = np.clip(self.margins, edges[0], edges[-1])
        counts, _ = np.histogram(inner, edges)
        colours = [WRONG if edge < -width / 2 else RIGHT for edge in edges[:-1]]
        self.ax_.bar(edges[:-1], counts, width=width, align="edge", color=colours)
        self.ax_.axvline(0, color="black", linewidth=1.0)
        wrong = 100 * float(np.mean(self.margins < 0))
        self.ax_.set(xlabel="margin: score of the row's class less the best other", ylabel="rows")
        self.ax_.set_title(f"{wrong:.1f} % of the rows are wrong (left of 0)", loc="left")
        bare(self.ax_)
        return self
