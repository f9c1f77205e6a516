"""Distances of rows to the decision boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from polyplane.explain.geometry._allowed import AllowedChange
from polyplane.explain.geometry._nearest import Region
from polyplane.planes import PlaneSet, check_single


def signed_distance(planes: PlaneSet, X: Any, y: Any = None, *, scale: Any = None) -> np.ndarray:
    r"""Compute the distance of rows to the decision boundary of a class: positive inside, negative outside.

    For a row inside the region of the class, it is the distance to the nearest point of another class; for a row
    outside, to the nearest point of the class. It is exact also where several planes meet, where it differs from the
    smallest distance to a plane.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows.
    y : int or array-like of shape (n_rows,), default=None
        Class index, or one per row. If None, the predicted classes; all distances are then non-negative.
    scale : array-like of shape (n_features,), default=None
        Units of the features, as in `counterfactual`. If None, 1 for all.

    Returns
    -------
    distances : ndarray of shape (n_rows,)
        Signed distances; :math:`\pm\infty` for a class without a boundary.

    Examples
    --------
    The second row is nearest to a corner of the unit square:

    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import signed_distance
    >>> inside = (np.zeros((1, 2)), np.zeros(1))
    >>> around = (np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]]), np.array([0.0, -1.0, 0.0, -1.0]))
    >>> square = PlaneSet.of_classes([inside, around])
    >>> signed_distance(square, [[0.25, 0.5], [4.0, 5.0]], 0)
    array([ 0.25, -5.  ])
    """
    check_single(planes)
    X = X if sparse.issparse(X) else np.asarray(X)
    allowed = AllowedChange.of(planes, scale=scale)
    predicted = planes.predict(X)
    classes = predicted if y is None else np.broadcast_to(np.asarray(y), len(predicted))
    if len(classes) and not (classes.min() >= 0 and classes.max() < planes.n_classes):
        raise ValueError(f"y must contain class indices from 0 to {planes.n_classes - 1}.")
    distances = np.empty(len(predicted))
    for c in np.unique(classes):
        own, others = np.flatnonzero(planes.owners == c), np.flatnonzero(planes.owners != c)
        for inside in (True, False):
            rows = np.flatnonzero((classes == c) & ((predicted == c) == inside))
            if len(rows):
                region = Region(planes, *((others, own) if inside else (own, others)), allowed)
                distances[rows] = _distances(region, X, rows) * (1.0 if inside else -1.0)
    return distances


def _distances(region: Region, X: Any, rows: np.ndarray) -> np.ndarray:
    """Compute the distances of rows to a region outside of which they are."""
    found = (region.nearest(_dense(X, row)) for row in rows)
    return np.array([np.inf if point is None else point.distance for point in found])


def _dense(X: Any, row: int) -> np.ndarray:
    x = X[[row]].toarray()[0] if sparse.issparse(X) else X[row]
    dense: np.ndarray = x.astype(np.float64)
    return dense
