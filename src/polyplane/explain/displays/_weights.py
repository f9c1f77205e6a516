"""`PlaneWeightsDisplay`: weights of planes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polyplane.explain._estimators import names_of_features, plane_classifier, single_planes, transformed_rows
from polyplane.explain.displays._style import RIGHT, WRONG, bare, pyplot, short
from polyplane.planes import PlaneSet


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
        model, single = plane_classifier(estimator), single_planes(estimator)
        names = names_of_features(model, feature_names)
        if image_shape is not None and np.prod(image_shape) != len(names):
            raise ValueError(f"image_shape={image_shape} does not match the {len(names)} features.")
        usage = None
        if X is not None:
            winners = single.winners(transformed_rows(estimator, X))
            usage = np.bincount(winners, minlength=single.n_planes) / len(winners)
        chosen = _choose(single, usage, planes, max_planes)
        titles = [str(model.classes_[c]) for c in single.owners[chosen]]
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
        self.figure_, panels = pyplot().subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
        self.axes_ = panels.ravel()
        for ax in self.axes_[len(self.coef) :]:
            ax.axis("off")
        for ax, weights, title in zip(self.axes_, self.coef, self.titles, strict=False):
            ax.set_title(title, fontsize=11)
            if self.image_shape:
                self._image(ax, weights)
            else:
                self._bars(ax, weights, shown)
        self.figure_.suptitle("Weights of planes by class: blue is positive, red is negative", fontsize=11)
        return self

    def _image(self, ax: Any, weights: np.ndarray) -> None:
        limit = np.abs(weights).max() or 1.0
        ax.imshow(weights.reshape(self.image_shape), cmap="RdBu", vmin=-limit, vmax=limit)
        ax.set(xticks=[], yticks=[])

    def _bars(self, ax: Any, weights: np.ndarray, n_shown: int) -> None:
        largest = np.argsort(-np.abs(weights), kind="stable")[:n_shown][::-1]
        colours = [RIGHT if weights[j] > 0 else WRONG for j in largest]
        ax.barh(np.arange(len(largest)), weights[largest], color=colours)
        ax.set_yticks(np.arange(len(largest)), [short(self.feature_names[j]) for j in largest], fontsize=9)
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
