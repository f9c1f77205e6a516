"""The worst-case-margin form of the Convex Polytope Machine (Kantchelian et al., 2014, Section 3.3).

The paper states the problem and gives no algorithm: it is problem (6) with the regulariser max_k |W_k|^2 in place of
|W|^2. Over the mean of the losses, as Algorithm 1 has it,

    alpha / 2 max_k |W_k|^2 + 1/n sum_neg sum_k [1 + W_k x]_+ + 1/n sum_pos [1 - W_z(x) x]_+

whose stochastic sub-gradient at W is that of Algorithm 1 but for the regulariser's part: alpha W_m for the plane m of
the largest norm, 0 for all others. Steps are 1 / (alpha (t + t0)) with alpha t0 = mean |x|^2, alpha t0 >= alpha: those
of Algorithm 1, begun later. Algorithm 1 can begin with a step of 1 / alpha, as it shrinks all planes at each visit;
here K planes share the shrinking, and what a plane took in then would never leave it.
"""

import numpy as np


def first_best(values):
    """The lowest index among the best: planes begin alike, and rounding errors are not to choose among them."""
    return int(np.argmax(values >= values.max() - 1e-9 * abs(values.max())))


def sgd_train(X, positive, orders, n_planes, alpha, weight=None, longest_alone=True):
    """The planes of one polytope that has the rows `positive` outside, after each epoch.

    `X` carries the constant feature; `orders` holds one order of visits per epoch. Without `longest_alone` the
    regulariser is that of the total margin, and all planes are shrunk.
    """
    weight = np.ones(len(X)) if weight is None else weight
    t0 = max(1.0, (weight * (X**2).sum(axis=1)).mean() / alpha)
    W, t, after_epochs = np.zeros((n_planes, X.shape[1])), 0, []
    for order in orders:
        for i in order:
            t += 1
            eta = 1.0 / (alpha * (t + t0))
            scores, longest = W @ X[i], first_best((W**2).sum(axis=1))
            shrunk = longest if longest_alone else slice(None)
            W[shrunk] -= eta * alpha * W[shrunk]
            if not positive[i]:
                for k in range(n_planes):
                    if scores[k] > -1:
                        W[k] -= eta * weight[i] * X[i]
            elif scores.max() < 1:
                W[first_best(scores)] += eta * weight[i] * X[i]
        after_epochs.append(W.copy())
    return after_epochs
