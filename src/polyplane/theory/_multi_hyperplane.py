"""Theorems 1 to 3 of the paper on growing adaptive multi-hyperplane machines (Djuric, Wang and Vucetic, 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.theory._rows import check_probability, check_rows, row_norms


def tangent_planes(X: Any, y: Any) -> PlaneSet:
    r"""Return the planes of Theorem 1 (Djuric, Wang and Vucetic, 2020): one per row, with zero training error.

    "Assume that there are no two examples with identical feature vectors and different labels. Then there exists an MM
    classifier that perfectly classifies the training set." Its planes are the tangents to a strictly convex function
    :math:`h` at the rows, each owned by the class of its row. At :math:`x_t`, the tangent at :math:`x_t` has the value
    :math:`h(x_t)`, and all other tangents have smaller values. Here :math:`h(x) = |x - m|^2` with :math:`m` the mean of
    the rows. At :math:`x`, the tangent at :math:`x_t` is :math:`|x - x_t|^2` below :math:`h(x)`: the classifier is the
    nearest-neighbour classifier.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Training rows.
    y : array-like of shape (n_rows,)
        Class indices, from 0 to n_classes - 1. Each class has at least one row.

    Returns
    -------
    planes : PlaneSet
        One plane per distinct row.

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
        raise ValueError(f"X has shape {X.shape} and y has shape {y.shape}: y must contain one class per row of X.")
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
    r"""Terms of Theorem 2 of the paper on growing multi-hyperplane machines.

    Parameters
    ----------
    lasting : float
        The first term, which does not depend on T: :math:`(2 + c)^2 (2 + p / (1 - \beta)) / \lambda`.
    growth : float
        The part of `lasting` that is due to growth: :math:`(2 + c)^2 p / ((1 - \beta) \lambda)`.
    vanishing : float
        The second term, which decreases as :math:`\ln T / T`.
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
    r"""Compute the bound of Theorem 2 of the GAMM paper (Djuric, Wang and Vucetic, 2020).

    The theorem bounds the mean regret over T stochastic gradient steps with step sizes :math:`1 / (\lambda t)`. It
    compares the planes during training, :math:`W^{(t)}`, with the solution :math:`W^*` of the convex problem for a
    fixed assignment of the rows, in the objective :math:`L^{(t)}` of step t:

    .. math::

        \frac 1 T \sum_{t=1}^T \left( L^{(t)}(W^{(t)}) - L^{(t)}(W^*) \right) \le
        \frac{(2 + c)^2 \left(2 + \frac{p}{1 - \beta}\right)}{\lambda}
        + \frac{(2 + c)^2 \left(2 + \frac{p}{1 - \beta}\right)^2}{2 T \lambda}
          \left( \frac{p (2 \beta + 3)}{(1 - \beta)^2} + \ln T + 1 \right)

    It holds within an epoch, for the algorithm that reassigns rows once per epoch, and for rows of norm at most 1, as
    in Theorem 3. The constants are large: at practical settings, the bound says nothing about the loss itself. It is
    useful to compare the costs of growth and pruning.

    Parameters
    ----------
    alpha : float
        Regularisation strength (:math:`\lambda`).
    n_visits : int
        Number of steps, one row each (T).
    growth : float, default=0.2
        Probability of copying a plane (:math:`p`); 0 for AMM.
    growth_decay : float, default=0.99
        Factor of this probability after each copy (:math:`\beta`).
    prune : float, default=50.0
        Pruning constant (:math:`c`).

    Returns
    -------
    regret : GrowthRegret
        The terms and the bound.

    References
    ----------
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020.

    Examples
    --------
    The part due to growth does not vanish, and is ten times the bound without growth:

    >>> from polyplane.theory import growth_regret
    >>> with_it, without = growth_regret(1e-2, 10**6), growth_regret(1e-2, 10**6, growth=0.0)
    >>> print(f"{with_it.growth / without.lasting:.1f}")
    10.0
    """
    if not (alpha > 0 and n_visits >= 1 and 0 <= growth <= 1 and 0 < growth_decay < 1 and prune >= 0):
        raise ValueError(
            f"alpha={alpha!r} must be positive, n_visits={n_visits!r} at least 1, growth={growth!r} from 0 to 1, "
            f"growth_decay={growth_decay!r} between 0 and 1, and prune={prune!r} non-negative."
        )
    step, copies = (2.0 + prune) ** 2 / alpha, growth / (1.0 - growth_decay)
    fading = growth * (2.0 * growth_decay + 3.0) / (1.0 - growth_decay) ** 2 + math.log(n_visits) + 1.0
    lasting = step * (2.0 + copies)
    vanishing = step * (2.0 + copies) ** 2 / (2.0 * n_visits) * fading
    return GrowthRegret(lasting, step * copies, vanishing, lasting + vanishing)


@dataclass(frozen=True)
class MultiHyperplaneBound:
    r"""Terms of Theorem 3 of the paper on growing multi-hyperplane machines.

    Parameters
    ----------
    error : float
        Training error: the fraction of misclassified rows (:math:`\tilde R_N`).
    hinge : float
        Mean hinge loss :math:`\max(0, 1 - \text{margin})`, at least as large as `error`.
    n_pairs : int
        Number of ordered pairs of planes of different classes (:math:`K`).
    norm : float
        :math:`|W|`, for rows scaled to norm at most 1.
    capacity : float
        :math:`(4 + 4 K |W|) / \sqrt N`.
    confidence : float
        :math:`(|W| + 1) \sqrt{\ln(1 / \delta) / (2 N)}`.
    bound : float
        error + capacity + confidence, as printed.
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
    r"""Compute the bound of Theorem 3 of the GAMM paper (Djuric, Wang and Vucetic, 2020) for fitted planes.

    With probability :math:`1 - \delta` over N training rows of norm at most 1, the error of every multi-hyperplane
    machine satisfies

    .. math::

        R(f) \le \tilde R_N(f) + \frac{4 + 4 K |W|}{\sqrt N} + (|W| + 1) \sqrt{\frac{\ln (1 / \delta)}{2 N}}
        \qquad K = \sum_i b_i \sum_{j \ne i} b_j

    where :math:`b_i` is the number of planes of class :math:`i`, and :math:`|W|` the Frobenius norm of all planes. The
    offset is the weight of a constant feature 1. The rows are divided by `radius` and the planes multiplied by it,
    which does not change the predictions.

    Parameters
    ----------
    planes : PlaneSet
        The planes of any learner: each `PlaneSet` is a multi-hyperplane machine.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Training rows.
    y : array-like of shape (n_rows,)
        Class indices: ``np.searchsorted(model.classes_, labels)``.
    delta : float, default=0.05
        Probability that the bound does not hold (:math:`\delta`).
    radius : float or None, default=None
        Upper bound on the norm of a row, including the constant feature. The theorem requires a bound that holds for
        all possible rows. If None, the largest norm in `X`, which may be smaller.

    Returns
    -------
    bound : MultiHyperplaneBound
        The terms and the bounds.

    Notes
    -----
    The paper prints the bound with the zero-one loss on the training rows. This cannot be intended: dividing all planes
    by 1000 keeps the predictions and makes the terms with :math:`|W|` arbitrarily small. The proof follows Guermeur
    (2010), where the loss requires a margin of 1. Both versions are returned: ``bound`` as printed, and
    ``hinge_bound`` with the loss of the training problem, equation (3) of the paper, which is at least as large.

    References
    ----------
    N. Djuric, Z. Wang and S. Vucetic. Growing Adaptive Multi-hyperplane Machines. ICML 2020.

    Y. Guermeur. Sample Complexity of Classifiers Taking Values in R^Q, Application to Multi-class SVMs. Communications
    in Statistics - Theory and Methods 39(3), 2010.

    Examples
    --------
    The classifier of Theorem 1 has zero training error. Its bound is far above 1, as for any nearest-neighbour
    classifier:

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
