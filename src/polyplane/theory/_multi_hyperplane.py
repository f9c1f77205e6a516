"""Theorems 1 to 3 of the paper on growing adaptive multi-hyperplane machines (Djuric, Wang and Vucetic, 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.theory._rows import check_probability, check_rows, row_norms


def tangent_planes(X: Any, y: Any) -> PlaneSet:
    r"""The planes of Theorem 1 (Djuric, Wang and Vucetic, 2020): one per row, and no training error.

    "Assume that there are no two examples with identical feature vectors and different labels. Then there exists an MM
    classifier that perfectly classifies the training set": for a strictly convex :math:`h`, the tangents at the rows,
    each owned by the class of its row. At :math:`x_t` its own tangent is :math:`h(x_t)`, and all others lie below.
    Here :math:`h(x) = |x - m|^2` with :math:`m` the mean of the rows, so that the tangent at :math:`x_t` leaves the
    others behind by their squared distances: the machine is the nearest-neighbour classifier.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Their classes, as integers from 0 up to the number of classes less 1, each with a row.

    Returns
    -------
    planes : PlaneSet
        One plane for each distinct row.

    References
    ----------
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane.theory import tangent_planes
    >>> X, y = load_iris(return_X_y=True)
    >>> planes = tangent_planes(X, y)
    >>> planes
    PlaneSet(n_classes=3, n_planes=149, n_features=4, dtype=float64)
    >>> print((planes.predict(X) == y).mean())
    1.0
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or y.shape != X.shape[:1] or not len(y):
        raise ValueError(f"X has shape {X.shape} and y {y.shape}: one class for each row is required.")
    rows, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    of_row = y[first]
    differing = np.flatnonzero(of_row[inverse.ravel()] != y)
    if len(differing):
        twin = first[inverse.ravel()[differing[0]]]
        raise ValueError(
            f"Rows {twin} and {differing[0]} are identical but have different classes: no function of the features can "
            "separate them."
        )
    if not np.array_equal(np.unique(y), np.arange(len(np.unique(y)))):
        raise ValueError(
            "y must contain the classes 0, 1, ..., each at least once: use np.unique(labels, return_inverse=True)[1]."
        )
    mean = rows.mean(axis=0)
    coef = 2.0 * (rows - mean)
    # h(x_t) + grad (x - x_t), with h(x) = |x - m|^2: grad x + |x_t - m|^2 - grad x_t
    intercept = np.einsum("ij,ij->i", rows - mean, rows - mean) - np.einsum("ij,ij->i", coef, rows)
    return PlaneSet.of_classes((coef[of_row == c], intercept[of_row == c]) for c in range(int(y.max()) + 1))


@dataclass(frozen=True)
class GrowthRegret:
    r"""The terms of Theorem 2 of the paper on growing multi-hyperplane machines.

    Parameters
    ----------
    lasting : float
        The first term, which stays: :math:`(2 + c)^2 (2 + p / (1 - \beta)) / \lambda`.
    growth : float
        The part of it that growth adds: :math:`(2 + c)^2 p / ((1 - \beta) \lambda)`.
    vanishing : float
        The second term, which falls as :math:`\ln T / T`.
    bound : float
        lasting + vanishing.
    """

    lasting: float
    growth: float
    vanishing: float
    bound: float


def growth_regret(
    alpha: float, n_visits: int, *, growth: float = 0.2, growth_decay: float = 0.99, prune: float = 50.0
) -> GrowthRegret:
    r"""Theorem 2 of the paper on growing multi-hyperplane machines (Djuric, Wang and Vucetic, 2020).

    It compares the planes on the way, :math:`W^{(t)}`, with the solution :math:`W^*` of the convex problem for a fixed
    assignment of the rows, in the objective that a visit sees, over T visits with the steps
    :math:`1 / (\lambda t)`:

    .. math::

        \frac 1 T \sum_{t=1}^T \left( L^{(t)}(W^{(t)}) - L^{(t)}(W^*) \right) \le
        \frac{(2 + c)^2 \left(2 + \frac{p}{1 - \beta}\right)}{\lambda}
        + \frac{(2 + c)^2 \left(2 + \frac{p}{1 - \beta}\right)^2}{2 T \lambda}
          \left( \frac{p (2 \beta + 3)}{(1 - \beta)^2} + \ln T + 1 \right)

    It holds for the machine that reassigns rows by epochs, within an epoch. Rows are no longer than 1, as in
    Theorem 3. The constants are large, and the bound says nothing of the size of the loss at the settings in use: it
    tells what growth and pruning cost in relation to each other.

    Parameters
    ----------
    alpha : float
        Strength of the regularisation (:math:`\lambda`).
    n_visits : int
        Number of visits (T).
    growth : float, default=0.2
        Probability of copying a plane (:math:`p`); 0 for AMM.
    growth_decay : float, default=0.99
        Its factor after each copy (:math:`\beta`).
    prune : float, default=50.0
        Pruning constant (:math:`c`).

    Returns
    -------
    regret : GrowthRegret
        The terms, and their sum.

    References
    ----------
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020.

    Examples
    --------
    What growth adds does not vanish, and is ten times what there is without it:

    >>> from polyplane.theory import growth_regret
    >>> with_it, without = growth_regret(1e-2, 10**6), growth_regret(1e-2, 10**6, growth=0.0)
    >>> print(f"{with_it.growth / without.lasting:.1f}")
    10.0
    """
    if not (alpha > 0 and n_visits >= 1 and 0 <= growth <= 1 and 0 < growth_decay < 1 and prune >= 0):
        raise ValueError(
            f"alpha={alpha!r} must be positive, n_visits={n_visits!r} at least 1, growth={growth!r} from 0 to 1, "
            f"growth_decay={growth_decay!r} between 0 and 1, prune={prune!r} not negative."
        )
    step, copies = (2.0 + prune) ** 2 / alpha, growth / (1.0 - growth_decay)
    fading = growth * (2.0 * growth_decay + 3.0) / (1.0 - growth_decay) ** 2 + math.log(n_visits) + 1.0
    lasting = step * (2.0 + copies)
    vanishing = step * (2.0 + copies) ** 2 / (2.0 * n_visits) * fading
    return GrowthRegret(lasting, step * copies, vanishing, lasting + vanishing)


@dataclass(frozen=True)
class MultiHyperplaneBound:
    r"""The terms of Theorem 3 of the paper on growing multi-hyperplane machines.

    Parameters
    ----------
    error : float
        Share of the rows that are classified wrongly (:math:`\tilde R_N`).
    hinge : float
        Mean of the loss :math:`\max(0, 1 - \text{margin})`, which is never less.
    n_pairs : int
        Pairs of planes of different classes (:math:`K`).
    norm : float
        :math:`|W|` for rows no longer than 1.
    capacity : float
        :math:`(4 + 4 K |W|) / \sqrt N`.
    confidence : float
        :math:`(|W| + 1) \sqrt{\ln(1 / \delta) / (2 N)}`.
    bound : float
        As printed: error + capacity + confidence.
    hinge_bound : float
        hinge + capacity + confidence.
    """

    error: float
    hinge: float
    n_pairs: int
    norm: float
    capacity: float
    confidence: float
    bound: float
    hinge_bound: float


def multi_hyperplane_bound(
    planes: PlaneSet, X: Any, y: Any, *, delta: float = 0.05, radius: float | None = None
) -> MultiHyperplaneBound:
    r"""Theorem 3 of the paper on growing multi-hyperplane machines (Djuric, Wang and Vucetic, 2020), for fitted planes.

    With probability :math:`1 - \delta` over the N training rows, and rows no longer than 1, the error of every
    multi-hyperplane machine is

    .. math::

        R(f) \le \tilde R_N(f) + \frac{4 + 4 K |W|}{\sqrt N} + (|W| + 1) \sqrt{\frac{\ln (1 / \delta)}{2 N}}
        \qquad K = \sum_i b_i \sum_{j \ne i} b_j

    with :math:`b_i` the number of planes of class :math:`i`, and :math:`|W|` the Frobenius norm of all of them. The
    offset is the weight of a constant feature 1. Rows of length up to `radius` are divided by it, and the planes
    multiplied: no prediction changes.

    Parameters
    ----------
    planes : PlaneSet
        The model; of any learner, as all of them are multi-hyperplane machines.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows that it was trained on.
    y : array-like of shape (n_rows,)
        Their classes, as integers: ``np.searchsorted(machine.classes_, labels)``.
    delta : float, default=0.05
        The probability that the bound does not hold (:math:`\delta`).
    radius : float or None, default=None
        The longest that a row can be, the constant feature included. None: the longest of these rows, which is less
        than what the theorem asks for: a bound on all rows that can come.

    Returns
    -------
    bound : MultiHyperplaneBound
        The terms, and their sums.

    Notes
    -----
    The paper prints the bound with the zero-one loss on the training rows. That cannot be meant: planes times 1/1000
    predict the same, and would have a bound without :math:`|W|`. The work that the proof follows (Guermeur, 2010) has
    a loss that asks for a margin of 1. Both are given: ``bound`` as printed, and ``hinge_bound`` with the loss of the
    training problem, the paper's equation (3), which is at least as large.

    References
    ----------
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020.

    Y. Guermeur. Sample Complexity of Classifiers Taking Values in R^Q, Application to Multi-class SVMs. Communications
    in Statistics - Theory and Methods 39(3), 2010.

    Examples
    --------
    The machine of Theorem 1 makes no training error, and its bound is far above 1, as that of any nearest neighbour:

    >>> from sklearn.datasets import load_iris
    >>> from polyplane.theory import multi_hyperplane_bound, tangent_planes
    >>> X, y = load_iris(return_X_y=True)
    >>> bound = multi_hyperplane_bound(tangent_planes(X, y), X, y)
    >>> print(bound.error, bound.n_pairs, f"{bound.bound:.1g}")
    0.0 14800 2e+07
    """
    check_probability(delta)
    planes, X, y = check_rows(planes, X, y)
    if radius is None:
        radius = float(row_norms(X, 1.0).max())
    elif not radius > 0:
        raise ValueError(f"radius={radius!r} must be positive.")
    sizes, n_rows = np.diff(planes.indptr), len(y)
    n_pairs = int(sizes.sum() ** 2 - (sizes**2).sum())
    norm = radius * math.hypot(np.linalg.norm(planes.coef), np.linalg.norm(planes.intercept))
    margins = np.asarray(planes.margins(X, y), dtype=np.float64)
    error, hinge = float((planes.predict(X) != y).mean()), float(np.maximum(0.0, 1.0 - margins).mean())
    capacity = (4.0 + 4.0 * n_pairs * norm) / math.sqrt(n_rows)
    confidence = (norm + 1.0) * math.sqrt(math.log(1.0 / delta) / (2.0 * n_rows))
    rest = capacity + confidence
    return MultiHyperplaneBound(error, hinge, n_pairs, norm, capacity, confidence, error + rest, hinge + rest)
