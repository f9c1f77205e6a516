"""Removal of planes without a change of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

import polyplane.planes
from polyplane.planes import PlaneSet, check_single

#: Number of best planes stored for each row; when only one of them remains, the row is scored again.
MEMORY = 6


def simplify(planes: PlaneSet, X: Any, tolerance: float = 0.0, *, y: Any = None) -> PlaneSet:
    """Remove planes as long as predictions do not change.

    The plane whose removal changes the fewest predictions is removed first; in case of ties, the one that wins the
    fewest rows. The effect of a removal is known exactly: the rows of a plane go to the second-best plane. Each class
    keeps at least one plane.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Representative rows, for instance the training rows.
    tolerance : float, default=0.0
        Fraction of predictions that may change; with `y`, the allowed increase of the error.
    y : array-like of shape (n_rows,), default=None
        True class indices. If given, the error is preserved instead of the predictions.

    Returns
    -------
    fewer : PlaneSet
        The remaining planes, unchanged.

    Notes
    -----
    The memory used is a block of scores and a few numbers per row.

    If a model fits its training rows without error, these need fewer planes than new rows. To preserve the accuracy of
    such a model, include rows that were not used in training.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.explain.geometry import simplify
    >>> planes = PlaneSet(np.array([[-1.0], [1.0], [2.0], [3.0]]), np.array([0.0, 0.0, -1.0, -9.0]), [0, 1, 4])
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> simplify(planes, X)
    PlaneSet(n_classes=2, n_planes=2, n_features=1, dtype=float64)
    """
    check_single(planes)
    X = X if sparse.issparse(X) else np.asarray(X)
    if not 0 <= tolerance <= 1:
        raise ValueError(f"tolerance={tolerance!r} must be a fraction from 0 to 1.")
    if planes.n_planes == planes.n_classes:
        return planes
    ranking = _Ranking(planes, X)
    predicted = planes.owners[ranking.best[:, 0]]
    aim = predicted if y is None else np.asarray(y)
    if aim.shape != predicted.shape:
        raise ValueError(f"y must contain one class for each of the {len(predicted)} rows.")
    allowed = int(tolerance * len(aim) * (1 + 1e-12)) + int(np.count_nonzero(aim != predicted))
    while (plane := ranking.least_missed(aim, allowed)) is not None:
        ranking.remove(plane)
    return planes.prune(ranking.alive)


class _Ranking:
    """The best remaining planes of each row."""

    def __init__(self, planes: PlaneSet, X: Any) -> None:
        self.planes, self.X, self.owners = planes, X, planes.owners
        self.alive = np.ones(planes.n_planes, dtype=bool)
        self.left = np.diff(planes.indptr)
        self.norms = np.linalg.norm(planes.coef.astype(np.float64), axis=1)
        self.depth = min(MEMORY, planes.n_planes)
        self.best = np.empty((X.shape[0], self.depth), dtype=np.int32)
        self._rank(np.arange(X.shape[0]))

    def least_missed(self, aim: np.ndarray, allowed: int) -> int | None:
        """Return the plane to remove next; None if no plane can be removed."""
        first, second = self.best[:, 0], self.best[:, 1]
        right, then = self.owners[first] == aim, self.owners[second] == aim
        n_planes = self.planes.n_planes
        lost = np.bincount(first, right.astype(np.float64) - then, minlength=n_planes)
        wins = np.bincount(first, minlength=n_planes)
        may_go = self.alive & (self.left[self.owners] > 1) & (np.count_nonzero(~right) + lost <= allowed)
        candidates = np.flatnonzero(may_go)
        if not len(candidates):
            return None
        order = np.lexsort((self.norms[candidates], wins[candidates], lost[candidates]))
        return int(candidates[order[0]])

    def remove(self, plane: int) -> None:
        """Remove a plane; the planes ranked after it move up."""
        self.alive[plane] = False
        self.left[self.owners[plane]] -= 1
        rows, places = np.nonzero(self.best == plane)
        for place in np.unique(places):
            moved = rows[places == place]
            self.best[moved, place:-1] = self.best[moved, place + 1 :]
            self.best[moved, -1] = -1
        self._rank(rows[self.best[rows, 1] < 0])

    def _rank(self, rows: np.ndarray) -> None:
        """Score rows on the remaining planes, in blocks."""
        alive = np.flatnonzero(self.alive)
        depth = min(self.depth, len(alive))
        coef, intercept = np.ascontiguousarray(self.planes.coef[alive].T), self.planes.intercept[alive]
        size = max(1, polyplane.planes.BLOCK_SCORES // len(alive))
        for start in range(0, len(rows), size):
            block = rows[start : start + size]
            scores = self.X[block] @ coef + intercept
            self.best[block] = -1
            for place in range(depth):  # ties are resolved in favour of the first plane, as in prediction
                winners = scores.argmax(axis=1)
                self.best[block, place] = alive[winners]
                scores[np.arange(len(block)), winners] = -np.inf
