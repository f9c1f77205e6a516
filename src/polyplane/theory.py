"""Margins, capacities and error bounds of the papers, evaluated on fitted planes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms

from polyplane.planes import PlaneSet, check_winners

__all__ = [
    "GrowthRegret",
    "MixtureBound",
    "MultiHyperplaneBound",
    "PolytopeBound",
    "PolytopeMargins",
    "growth_regret",
    "mixture_bound",
    "multi_hyperplane_bound",
    "polytope_bound",
    "polytope_margins",
    "tangent_planes",
]


# Large-Margin Convex Polytope Machine: Section 3.


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
    planes, X, y = _check_rows(planes, X, y)
    outer = _outside_class(planes, outer)
    lengths = np.linalg.norm(_with_offsets(planes, outer), axis=1)
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
    _check_probability(delta)
    planes, X, y = _check_rows(planes, X, y)
    outer = _outside_class(planes, outer)
    margins = np.where(y == outer, 1.0, -1.0) * _scores(planes, X, outer).max(axis=1)
    hinge = float(np.maximum(0.0, 1.0 - margins).mean())
    capacity = float(np.linalg.norm(_with_offsets(planes, outer), axis=1).sum()) / math.sqrt(len(y))
    confidence = math.sqrt(math.log(2.0 / delta) / (2.0 * len(y)))
    bound = math.nan if constant is None else hinge + constant * capacity + confidence
    return PolytopeBound(hinge, capacity, confidence, bound)


def _scores(planes: PlaneSet, X: Any, c: int) -> np.ndarray:
    """Compute the score of each row on each plane of a class."""
    weights = _with_offsets(planes, c)
    scores: np.ndarray = np.asarray(X @ weights[:, :-1].T) + weights[:, -1]
    return scores


# Growing Adaptive Multi-hyperplane Machines: Theorems 1 to 3.


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
    _check_probability(delta)
    planes, X, y = _check_rows(planes, X, y)
    if radius is None:
        radius = _radius(X, 1.0)
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


# PLUME: Theorem 5.


@dataclass(frozen=True)
class MixtureBound:
    r"""Terms of Theorem 5 of the PLUME paper.

    Parameters
    ----------
    loss : float
        Mean cross-entropy of the rows (:math:`\hat R_\phi`).
    capacity : float
        :math:`c_1 \sum_k W_k^{\max} R / \sqrt N`, as printed.
    confidence : float
        :math:`c_2 \sqrt{\ln(2 / \delta) / (2 N)}`.
    log_factor : float
        Logarithm of :math:`(1 + e^{W^{\max} R}) \, e^{\gamma (W^{\max} + W^{\min}) R}`, the common factor of
        :math:`c_1` and :math:`c_2`. It is finite even if these overflow.
    bound : float
        loss + capacity + confidence, as printed.
    proof_bound : float
        loss + 2 capacity + confidence, the result of the proof.
    """

    loss: float
    capacity: float
    confidence: float
    log_factor: float
    bound: float
    proof_bound: float


def mixture_bound(
    planes: PlaneSet, X: Any, y: Any, *, gamma: float = 1.0, delta: float = 0.05, radius: float | None = None
) -> MixtureBound:
    r"""Compute the bound of Theorem 5 of the PLUME paper (Shah, Sastry and Manwani, 2019) for fitted planes.

    Let :math:`p(y \mid x) = \sum_k g_k(x) \, \sigma(y f_k(x))` with :math:`f_k(x) = w_k x + b_k` and gates
    :math:`g_k(x)` proportional to :math:`e^{-\gamma f_k(x)}`, where :math:`|w_k| \le W_k^{\max}` and
    :math:`|x| \le R`. With probability :math:`1 - \delta` over the N training rows,

    .. math::

        R(f) \le - \frac 1 N \sum_n \ln p(y_n \mid x_n)
        + c_1 \sum_{k=1}^K \frac{W_k^{\max} R}{\sqrt N} + c_2 \sqrt{\frac{\ln (2 / \delta)}{2 N}}

    .. math::

        c_1 = \frac{c_2}{3} \left( \frac{3 \sqrt{K - 1}}{\sqrt 2} + 1 \right)
        \qquad
        c_2 = 3 \, (1 + e^{W^{\max} R}) \, e^{\gamma (W^{\max} + W^{\min}) R}

    where :math:`W^{\max}` and :math:`W^{\min}` are the largest and the smallest :math:`W_k^{\max}`; here
    :math:`W_k^{\max} = |w_k|`. The theorem bounds the expected cross-entropy. Its constants grow exponentially with
    :math:`W^{\max} R`, so the bound is far above any loss unless the norms are small. Its value is in showing how the
    terms depend on N.

    Parameters
    ----------
    planes : PlaneSet
        Planes of `PolyhedralMixtureClassifier`: the class outside the polyhedron owns the planes :math:`-f_k`, the
        class inside it owns the zero plane.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Training rows, in the units of the planes.
    y : array-like of shape (n_rows,)
        Class indices: ``np.searchsorted(model.classes_, labels)``.
    gamma : float, default=1.0
        Sharpness of the gates (:math:`\gamma`), as in training.
    delta : float, default=0.05
        Probability that the bound does not hold (:math:`\delta`).
    radius : float or None, default=None
        Upper bound on the norm of a row (:math:`R`). If None, the largest norm in `X`.

    Returns
    -------
    bound : MixtureBound
        The terms and the bounds.

    Notes
    -----
    The formula is the printed one. Three remarks on it:

    * Result 2 of the paper contains twice the Rademacher complexity, but :math:`c_1` lacks this factor 2.
      ``proof_bound`` includes it.
    * The proof uses :math:`\sqrt{K - 1} / K` as the Lipschitz constant of a gate as a function of all scores. The
      largest slope is :math:`\gamma / \sqrt 8`, where two gates equal 1/2.
    * The offsets :math:`b_k` are part of neither :math:`W_k^{\max}` nor the factor. Centre the rows to keep the
      offsets small.

    The bound depends on the units of the features; the loss does not. Evaluate the bound on standardised rows, as in
    training.

    References
    ----------
    K. Shah, P. S. Sastry and N. Manwani. PLUME: Polyhedral Learning Using Mixture of Experts. 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneSet
    >>> from polyplane.theory import mixture_bound
    >>> inside, around = (np.zeros((1, 1)), np.zeros(1)), (np.array([[-1.0], [1.0]]), np.array([-0.5, -0.5]))
    >>> interval = PlaneSet.of_classes([inside, around])
    >>> bound = mixture_bound(interval, [[0.1], [-0.9], [0.9], [0.2]], [0, 1, 1, 0])
    >>> print(f"{bound.loss:.2f}, and {np.exp(bound.log_factor):.0f} times the rest")
    0.55, and 21 times the rest
    """
    _check_probability(delta)
    if not gamma > 0:
        raise ValueError(f"gamma={gamma!r} must be positive.")
    planes, X, y = _check_rows(planes, X, y)
    if planes.n_classes != 2 or len(_zero_classes(planes)) != 1:
        raise ValueError("One of two classes must own only the zero plane: the class inside the polyhedron.")
    outside = _outside_class(planes, None)
    coef, intercept = (-part.astype(np.float64) for part in planes.of(outside))
    radius = _radius(X, 0.0) if radius is None else float(radius)
    lengths, n_rows = np.linalg.norm(coef, axis=1), len(y)
    longest, shortest = float(lengths.max()) * radius, float(lengths.min()) * radius
    log_factor = float(np.logaddexp(0.0, longest)) + gamma * (longest + shortest)
    factor = math.exp(log_factor) if log_factor < 700.0 else math.inf
    sides = 3.0 * math.sqrt(len(lengths) - 1) / math.sqrt(2.0) + 1.0
    capacity = factor * sides * float(lengths.sum()) * radius / math.sqrt(n_rows)
    confidence = 3.0 * factor * math.sqrt(math.log(2.0 / delta) / (2.0 * n_rows))
    loss = _cross_entropy(np.asarray(X @ coef.T) + intercept, np.where(y == outside, -1.0, 1.0), gamma)
    rest = loss + confidence
    return MixtureBound(loss, capacity, confidence, log_factor, rest + capacity, rest + 2.0 * capacity)


def _cross_entropy(scores: np.ndarray, sign: np.ndarray, gamma: float) -> float:
    """Compute the mean of -ln sum_k g_k sigma(sign f_k), with logarithms because exp(gamma f) may overflow."""
    gates = -gamma * scores
    gates -= np.logaddexp.reduce(gates, axis=1, keepdims=True)
    experts = -np.logaddexp(0.0, -sign[:, None] * scores)
    return float(-np.logaddexp.reduce(gates + experts, axis=1).mean())


# Validation of rows, classes and probabilities, and norms.


def _check_rows(planes: PlaneSet, X: Any, y: Any) -> tuple[PlaneSet, Any, np.ndarray]:
    """Return the planes as NumPy arrays, the rows, and their class indices, after validation."""
    check_winners(planes)
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    y = np.asarray(y)
    if X.ndim != 2 or X.shape[1] != planes.n_features:
        raise ValueError(f"X has shape {tuple(X.shape)}, but the planes have {planes.n_features} features.")
    if y.shape != X.shape[:1] or not len(y):
        raise ValueError(f"y must contain one class for each of the {X.shape[0]} rows of X, and X at least one row.")
    if y.dtype.kind not in "iub" or y.min() < 0 or y.max() >= planes.n_classes:
        raise ValueError(
            f"y must contain class indices from 0 to {planes.n_classes - 1}; convert labels with "
            "np.searchsorted(model.classes_, labels)."
        )
    return planes.to_numpy(), X, y.astype(np.intp)


def _check_probability(delta: float) -> None:
    """Raise an error if `delta` is not a probability between 0 and 1."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta!r} must be between 0 and 1: the probability that the bound does not hold.")


def _zero_classes(planes: PlaneSet) -> list[int]:
    """Return the classes that own only zero planes."""
    zero = ~planes.coef.any(axis=1) & (planes.intercept == 0)
    return [c for c in range(planes.n_classes) if zero[planes.indptr[c] : planes.indptr[c + 1]].all()]


def _outside_class(planes: PlaneSet, outer: int | None) -> int:
    """Return the class outside the polytope: `outer`, or the one of two classes that does not own the zero plane."""
    zero = _zero_classes(planes)
    if outer is None:
        if planes.n_classes != 2 or len(zero) != 1:
            raise ValueError("Each class owns planes: specify the class outside the polytope with outer=0, 1, ...")
        return 1 - zero[0]
    if not 0 <= outer < planes.n_classes:
        raise ValueError(f"outer={outer!r} is not a class from 0 to {planes.n_classes - 1}.")
    if outer in zero:
        raise ValueError(f"outer={outer!r} owns only the zero plane: specify a class that owns other planes.")
    return int(outer)


def _with_offsets(planes: PlaneSet, c: int) -> np.ndarray:
    """Return the planes of a class in float64, with the offset as the last column."""
    return np.column_stack(planes.of(c)).astype(np.float64)


def _radius(X: Any, constant: float) -> float:
    """Compute the largest norm of a row with an additional feature of the given value."""
    return math.sqrt(float(row_norms(X, squared=True).max()) + constant**2)
