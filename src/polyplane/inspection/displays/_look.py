"""What the displays share: colours, axes, and the model behind a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyplane.base import PlaneClassifier

#: Okabe and Ito's colours, told apart by the colour-blind. Black is for lines.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
RIGHT, WRONG = "#0072B2", "#D55E00"
#: Markers, for those who see no colours; a class has the same place in both.
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


def colour(i: int) -> str:
    """The colour of class or line `i`."""
    return COLOURS[i % len(COLOURS)]


def axes(ax: Any, figsize: tuple[float, float] = (7.0, 4.4)) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=figsize, layout="constrained")[1]


def pyplot() -> Any:
    """Matplotlib's pyplot, or a sentence that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Displays need Matplotlib: pip install "polyplane[plot]".') from None
    return plt


def bare(ax: Any) -> None:
    """Take away the lines that carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def behind(estimator: Any) -> PlaneClassifier:
    """The classifier of ours that an estimator is, or that a pipeline ends in."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, PlaneClassifier):
        raise TypeError(f"{type(last).__name__} is not a classifier of this library: it has no planes to show.")
    check_is_fitted(last)
    return last


def rows_for(estimator: Any, X: Any) -> Any:
    """The rows as the classifier sees them, behind the other steps of a pipeline."""
    X = estimator[:-1].transform(X) if isinstance(estimator, Pipeline) and len(estimator) > 1 else X
    return X if sparse.issparse(X) else np.asarray(X, dtype=behind(estimator).planes_.coef.dtype)


def names_of(model: PlaneClassifier, feature_names: Any = None) -> list[str]:
    """Names of the features: those given, those seen in `fit`, or their numbers."""
    n_features = model.planes_.n_features
    names = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    if names is None:
        return [f"feature {j}" for j in range(n_features)]
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names; the model has {n_features} features.")
    return [str(name) for name in names]


def codes_of(classes: np.ndarray, y: Any) -> np.ndarray:
    """Labels as positions in the sorted `classes`."""
    y = np.asarray(y)
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(f"y holds {y[unknown][0]!r}, which is not a class of the model.")
    codes: np.ndarray = np.searchsorted(classes, y)
    return codes
