"""Theorem 5 of the PLUME paper (Shah, Sastry and Manwani, 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.planes import PlaneSet
from polyplane.theory._rows import check_probability, check_rows, outside_class, row_norms, zero_classes


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
    check_probability(delta)
    if not gamma > 0:
        raise ValueError(f"gamma={gamma!r} must be positive.")
    planes, X, y = check_rows(planes, X, y)
    if planes.n_classes != 2 or len(zero_classes(planes)) != 1:
        raise ValueError("One of two classes must own only the zero plane: the class inside the polyhedron.")
    outside = outside_class(planes, None)
    coef, intercept = (-part.astype(np.float64) for part in planes.of(outside))
    radius = float(row_norms(X, 0.0).max()) if radius is None else float(radius)
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
