"""Margins of a polytope and Theorem 1: Section 3 of the Convex Polytope Machine paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.theory._rows import check_probability, check_rows, outside_class, with_offsets


@dataclass(frozen=True, eq=False)
class PolytopeMargins:
    r"""Margins of a polytope on given rows.

    Parameters
    ----------
    worst_case : float
        :math:`\delta^{WC}`, the smallest margin of a row.
    total : float
        :math:`\delta^T`, the sum of the margins of the planes that have rows assigned to them.
    by_plane : ndarray of shape (n_planes,)
        Margin of each plane; infinite for a plane without rows.
    counts : ndarray of shape (n_planes,)
        Number of rows assigned to each plane.
    """

    worst_case: float
    total: float
    by_plane: np.ndarray
    counts: np.ndarray


def polytope_margins(planes: PlaneSet, X: Any, y: Any, outer: int | None = None) -> PolytopeMargins:
    r"""Compute the worst-case and total margin of a polytope (Kantchelian et al., 2014, Section 3.2).

    Class `outer` (:math:`y = +1`) is outside the polytope, all other classes (:math:`y = -1`) are inside. For planes of
    norm 1, :math:`|W_k| = 1`, a row is assigned to the plane with the largest score,
    :math:`z(x) = \operatorname{argmax}_k W_k x`, and

    .. math::

        \delta^{WC} = \min_i \; y_i W_{z(x_i)} x_i
        \qquad
        \delta^T = \sum_k \min_{i: z(x_i) = k} y_i W_k x_i

    As in the paper, rows have a constant feature 1 whose weight is the offset, so the norm of a plane includes its
    offset. Planes are first divided by their norms, so their norms after training do not matter. The paper defines
    margins for rows that the polytope separates; otherwise, the margin of a plane with a row on the wrong side is
    negative. The margin of a plane without rows is infinite; such planes are omitted from the sum.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows.
    y : array-like of shape (n_rows,)
        Class indices: ``np.searchsorted(model.classes_, labels)``.
    outer : int or None, default=None
        Index of the class outside the polytope. If None, the model must have two classes, of which one owns only the
        zero plane; `outer` is the other one.

    Returns
    -------
    margins : PolytopeMargins
        Both margins, and the margin of each plane.

    References
    ----------
    A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. Large-Margin Convex Polytope
    Machine. NIPS 2014.

    Examples
    --------
    The half-line :math:`x > 0` is class 1:

    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.theory import polytope_margins
    >>> line = PlaneSet(np.array([[0.0], [5.0]]), np.zeros(2), np.arange(3))
    >>> polytope_margins(line, [[-3.0], [2.0], [7.0]], [0, 1, 1]).worst_case
    2.0
    """
    planes, X, y = check_rows(planes, X, y)
    outer = outside_class(planes, outer)
    lengths = np.linalg.norm(with_offsets(planes, outer), axis=1)
    if not lengths.all():
        raise ValueError(f"Plane {int(lengths.argmin())} of class {outer} is zero and has no margin; remove it.")
    scores = _scores(planes, X, outer) / lengths
    assigned = scores.argmax(axis=1)
    margins = np.where(y == outer, 1.0, -1.0) * scores.max(axis=1)
    by_plane = np.full(len(lengths), np.inf)
    np.minimum.at(by_plane, assigned, margins)
    counts = np.bincount(assigned, minlength=len(lengths))
    return PolytopeMargins(float(margins.min()), float(by_plane[counts > 0].sum()), by_plane, counts)


@dataclass(frozen=True)
class PolytopeBound:
    r"""Terms of Theorem 1 of the Convex Polytope Machine paper.

    Parameters
    ----------
    hinge : float
        Mean hinge loss of the rows, :math:`\max(0, 1 - y f(x))`.
    capacity : float
        :math:`\sum_k |W_k| / \sqrt{n}`, without the theorem's constant :math:`A`.
    confidence : float
        :math:`\sqrt{\ln(2 / \delta) / (2 n)}`.
    bound : float
        Bound on the error of the polytope: hinge + constant * capacity + confidence; NaN if no constant is given.
    """

    hinge: float
    capacity: float
    confidence: float
    bound: float


def polytope_bound(
    planes: PlaneSet, X: Any, y: Any, outer: int | None = None, *, delta: float = 0.05, constant: float | None = None
) -> PolytopeBound:
    r"""Compute the bound of Theorem 1 of the CPM paper (Kantchelian et al., 2014) for a fitted polytope.

    "There exists some constant A > 0 such that", with probability :math:`1 - \delta` over the training rows, every
    :math:`f(x) = \max_k W_k x` with :math:`|W_k| \le B_k` has

    .. math::

        P(y f(x) \le 0) \; \le \; \frac{1}{n} \sum_i \max(0, 1 - y_i f(x_i))
        + A \, \frac{\sum_k B_k}{\sqrt n} + \sqrt{\frac{\ln (2 / \delta)}{2 n}}

    Here :math:`B_k = |W_k|`, including the offset as the weight of a constant feature 1. The theorem bounds the error
    of a single polytope, where :math:`f(x) > 0` means class `outer`. If a classifier has one polytope, this is the
    error of the classifier. If it has more, each polytope has its own bound, and none bounds the error of the
    classifier.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Training rows.
    y : array-like of shape (n_rows,)
        Class indices: ``np.searchsorted(model.classes_, labels)``.
    outer : int or None, default=None
        Index of the class outside the polytope. If None, the model must have two classes, of which one owns only the
        zero plane; `outer` is the other one.
    delta : float, default=0.05
        Probability that the bound does not hold (:math:`\delta`).
    constant : float or None, default=None
        :math:`A`, which the paper does not give; the Notes derive a value. If None, only the terms are computed, and
        the bound is NaN.

    Returns
    -------
    bound : PolytopeBound
        The terms and the bound.

    Notes
    -----
    :math:`A` depends on the norms of the rows. If :math:`|x| \le R`, including the constant feature,
    :math:`A = 2 R` is valid. The Rademacher complexity of a maximum is at most the sum of the complexities of its
    parts. The complexity of planes of norm at most :math:`B_k` is at most :math:`B_k R / \sqrt n`, and the hinge loss
    clipped at 1 has Lipschitz constant 1. Twice the complexity bounds the difference of the means (Bartlett and
    Mendelson, 2003).

    The theorem requires :math:`B_k` to be fixed before the rows are known. With the norms of the fitted planes, the
    bound is therefore approximate. A union bound over a grid of values would be rigorous and slightly larger.

    The paper calls the bound very loose: it grows with the number of planes, while the error on new rows does not.

    References
    ----------
    A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. Large-Margin Convex Polytope
    Machine. NIPS 2014.

    P. L. Bartlett and S. Mendelson. Rademacher and Gaussian Complexities: Risk Bounds and Structural Results. JMLR 3,
    2003.

    Examples
    --------
    The half-line :math:`x > 0` as a plane of norm 2. Some rows have a margin below 1:

    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.theory import polytope_bound
    >>> line = PlaneSet(np.array([[0.0], [2.0]]), np.zeros(2), np.arange(3))
    >>> X = np.linspace(-3.9, 3.9, 400)[:, None]
    >>> bound = polytope_bound(line, X, X[:, 0] > 0)
    >>> print(f"{bound.hinge:.3f} + A {bound.capacity:.3f} + {bound.confidence:.3f}")
    0.064 + A 0.100 + 0.068
    """
    check_probability(delta)
    planes, X, y = check_rows(planes, X, y)
    outer = outside_class(planes, outer)
    margins = np.where(y == outer, 1.0, -1.0) * _scores(planes, X, outer).max(axis=1)
    hinge = float(np.maximum(0.0, 1.0 - margins).mean())
    capacity = float(np.linalg.norm(with_offsets(planes, outer), axis=1).sum()) / math.sqrt(len(y))
    confidence = math.sqrt(math.log(2.0 / delta) / (2.0 * len(y)))
    bound = math.nan if constant is None else hinge + constant * capacity + confidence
    return PolytopeBound(hinge, capacity, confidence, bound)


def _scores(planes: PlaneSet, X: Any, c: int) -> np.ndarray:
    """Compute the score of each row on each plane of a class."""
    weights = with_offsets(planes, c)
    scores: np.ndarray = np.asarray(X @ weights[:, :-1].T) + weights[:, -1]
    return scores
