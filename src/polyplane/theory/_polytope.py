"""Section 3 of the Convex Polytope Machine paper: the margins of a polytope, and Theorem 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.theory._rows import check_probability, check_rows, outside_class, with_offsets


@dataclass(frozen=True, eq=False)
class PolytopeMargins:
    r"""The margins of a polytope on given rows.

    Parameters
    ----------
    worst_case : float
        :math:`\delta^{WC}`, the smallest margin of a row.
    total : float
        :math:`\delta^T`, the sum of the planes' margins, over the planes that rows are assigned to.
    by_plane : ndarray of shape (n_planes,)
        The margin of each plane; infinite for one without rows.
    counts : ndarray of shape (n_planes,)
        The number of rows assigned to each plane.
    """

    worst_case: float
    total: float
    by_plane: np.ndarray
    counts: np.ndarray


def polytope_margins(planes: PlaneSet, X: Any, y: Any, outer: int | None = None) -> PolytopeMargins:
    r"""Worst-case and total margin of a polytope (Kantchelian et al., 2014, Section 3.2).

    Class `outer` (:math:`y = +1`) lives outside the polytope, all others (:math:`y = -1`) inside. With planes of
    length 1, :math:`|W_k| = 1`, a row is assigned to its best plane, :math:`z(x) = \operatorname{argmax}_k W_k x`, and

    .. math::

        \delta^{WC} = \min_i \; y_i W_{z(x_i)} x_i
        \qquad
        \delta^T = \sum_k \min_{i: z(x_i) = k} y_i W_k x_i

    As in the paper, rows carry a constant feature 1 whose weight is the offset, so that the length of a plane includes
    it; planes are divided by their lengths first, and the lengths that training gave them do not matter. The paper
    defines margins for rows that the polytope separates; of others, those with a row on the wrong side are negative.
    The minimum over the rows of a plane without any is infinite; such planes are left out of the sum.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Their classes, as integers: ``np.searchsorted(machine.classes_, labels)``.
    outer : int or None, default=None
        The class outside. None: of two classes, the one that does not own the zero plane alone.

    Returns
    -------
    margins : PolytopeMargins
        Both margins, and those of the planes.

    References
    ----------
    A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. Large-Margin Convex Polytope
    Machine. NIPS 2014.

    Examples
    --------
    The line :math:`x > 0`, with class 1 on its right:

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
        raise ValueError(f"Plane {int(lengths.argmin())} of class {outer} is zero: it has no margin.")
    scores = _scores(planes, X, outer) / lengths
    assigned = scores.argmax(axis=1)
    margins = np.where(y == outer, 1.0, -1.0) * scores.max(axis=1)
    by_plane = np.full(len(lengths), np.inf)
    np.minimum.at(by_plane, assigned, margins)
    counts = np.bincount(assigned, minlength=len(lengths))
    return PolytopeMargins(float(margins.min()), float(by_plane[counts > 0].sum()), by_plane, counts)


@dataclass(frozen=True)
class PolytopeBound:
    r"""The terms of Theorem 1 of the Convex Polytope Machine paper.

    Parameters
    ----------
    hinge : float
        The mean of :math:`\max(0, 1 - y f(x))` over the rows.
    capacity : float
        :math:`\sum_k |W_k| / \sqrt{n}`, without the theorem's constant :math:`A`.
    confidence : float
        :math:`\sqrt{\ln(2 / \delta) / (2 n)}`.
    bound : float
        What bounds the error of the polytope: hinge + constant * capacity + confidence; NaN without a constant.
    """

    hinge: float
    capacity: float
    confidence: float
    bound: float


def polytope_bound(
    planes: PlaneSet, X: Any, y: Any, outer: int | None = None, *, delta: float = 0.05, constant: float | None = None
) -> PolytopeBound:
    r"""Theorem 1 of the Convex Polytope Machine paper (Kantchelian et al., 2014), for a fitted polytope.

    "There exists some constant A > 0 such that", with probability :math:`1 - \delta` over the training rows, every
    :math:`f(x) = \max_k W_k x` with :math:`|W_k| \le B_k` has

    .. math::

        P(y f(x) \le 0) \; \le \; \frac{1}{n} \sum_i \max(0, 1 - y_i f(x_i))
        + A \, \frac{\sum_k B_k}{\sqrt n} + \sqrt{\frac{\ln (2 / \delta)}{2 n}}

    Here :math:`B_k = |W_k|`, the offset included: rows carry a constant feature 1. The theorem bounds the error of one
    polytope, :math:`f(x) > 0` meaning class `outer`. For a machine of one polytope that is its error; for one of two
    or more it is not, and each polytope has a bound of its own.

    Parameters
    ----------
    planes : PlaneSet
        The model.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows that it was trained on.
    y : array-like of shape (n_rows,)
        Their classes, as integers: ``np.searchsorted(machine.classes_, labels)``.
    outer : int or None, default=None
        The class outside. None: of two classes, the one that does not own the zero plane alone.
    delta : float, default=0.05
        The probability that the bound does not hold (:math:`\delta`).
    constant : float or None, default=None
        :math:`A`, which the paper does not give; None: the bound is not evaluated, only its terms. See the notes for
        a value.

    Returns
    -------
    bound : PolytopeBound
        The terms, and their sum.

    Notes
    -----
    :math:`A` depends on how long rows can be. Where :math:`|x| \le R`, the constant feature included,
    :math:`A = 2 R` will do. The Rademacher complexity of a maximum is at most the sum of those of its parts, that of
    planes of length :math:`B_k` at most :math:`B_k R / \sqrt n`, and the hinge loss cut off at 1 has slope 1; twice
    the complexity bounds the difference of the means (Bartlett and Mendelson, 2003).

    The :math:`B_k` must be named before the rows are seen. With those of the fitted planes the bound is what it would
    be, had they been named; a union over a grid of values would make it exact and a little larger.

    The paper calls the bound very loose: it grows with the number of planes, and the error on new rows does not.

    References
    ----------
    A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. Large-Margin Convex Polytope
    Machine. NIPS 2014.

    P. L. Bartlett and S. Mendelson. Rademacher and Gaussian Complexities: Risk Bounds and Structural Results. JMLR 3,
    2003.

    Examples
    --------
    The line :math:`x > 0` again, of length 2, and rows of which some are closer to it than its margin:

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
    """Score of each row on each plane of a class."""
    weights = with_offsets(planes, c)
    scores: np.ndarray = np.asarray(X @ weights[:, :-1].T) + weights[:, -1]
    return scores
