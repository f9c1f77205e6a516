"""Multi-hyperplane machines: plain descent by the margin loss, the log-loss, and Adam by the planes in contention."""

import numpy as np


def train_margin(X, y, W, owner, eta, orders, backoff=0, caution=0.3):
    """Stochastic gradient descent on the margin loss from the planes `W`, the step falling linearly from `eta` to 0.

    With back-off, a row whose margin has some slack is not visited for as many epochs as the slack would last, at most
    `backoff`, if each changed the margin by `caution` times the length of the row and the movement of the plane that
    moved most in the epoch before. Some skipped rows are checked nevertheless, those of the visits t for which the
    fractional part of t times the golden ratio is below a rate; `caution` follows what these checks find. Returns the
    planes, and how many visits were made.
    """
    W, total, t, visits = W.copy(), sum(map(len, orders)), 0, 0
    asleep, movement, rate, factor = np.zeros(len(X), dtype=int), np.inf, max(1 / 64, 256 / len(X)), 1.0
    for order in orders:
        before, missed, made = W.copy(), 0.0, 0.0
        for i in order:
            step, t = eta * (1 - t / total), t + 1
            was_asleep = asleep[i] > 0
            if was_asleep:
                asleep[i] -= 1
                if ((t - 1) * 0x9E3779B97F4A7C15 % 2**64 >> 32) >= rate * 2**32:
                    continue
            visits += 1
            scores = W @ X[i]
            own = np.where(owner == y[i], scores, -np.inf).argmax()
            rival = np.where(owner == y[i], -np.inf, scores).argmax()
            slack = scores[own] - scores[rival] - 1
            if slack < 0:
                W[own] += step * X[i]
                W[rival] -= step * X[i]
                made += 1
                if was_asleep:
                    asleep[i] = 0
                    missed += 1 / rate - 1
            elif movement > 0 and not was_asleep:
                asleep[i] = min(backoff, int(slack / (factor * caution * np.linalg.norm(X[i]) * movement)))
        movement = np.linalg.norm(W - before, axis=1).max()
        changed = max(0.5, factor * min(1e3, 2 ** (rate * (missed - 0.005 * (missed + made)))))
        if changed > factor:
            asleep = (asleep * factor / changed).astype(int)
        factor = changed
    return W, visits


def log_loss(W, x, y):
    """Multi-class log-loss of one row: each class scores the log-sum-exp of its planes; W (n_classes, n_planes, d)."""
    scores = np.log(np.exp(W @ x).sum(axis=1))
    return np.log(np.exp(scores).sum()) - scores[y]


def candidates(W, x, y, n):
    """The `n` planes (class, plane) with the best scores for a row; the last gives way to one of a missing side."""
    scores = W @ x
    ranked = [divmod(int(k), W.shape[1]) for k in np.argsort(-scores, axis=None, kind="stable")]
    best = ranked[:n]
    for side in (True, False):
        if all((c == y) != side for c, _ in best):
            best[-1] = next(plane for plane in ranked if (plane[0] == y) == side)
    return best


def train_log_loss(X, y, weight, W, batches, rate, n, renewed, negligible=1e-3, b1=0.9, b2=0.99, epsilon=1e-4):
    """Adam on the mean weighted log-loss of each batch, in which only the planes in contention for a row count.

    They are found anew in those passes of which `renewed` is true. `batches` holds lists of rows, pass by pass. Moves
    shorter than `negligible` are left out. Returns the planes, and the probabilities of the rows' classes as met.
    """
    W, memory, t, met = W.copy(), {}, 0, []
    first, second = np.zeros_like(W), np.zeros_like(W)
    for passage, renew in zip(batches, renewed, strict=True):
        for batch in passage:
            gradient = np.zeros_like(W)
            for i in batch:
                if renew:
                    memory[i] = candidates(W, X[i], y[i], n)
                p = np.exp([W[plane] @ X[i] for plane in memory[i]])
                p /= p.sum()
                own = np.array([c == y[i] for c, _ in memory[i]])
                met.append(p[own].sum())
                slope = np.where(own, p - p / p[own].sum(), p)
                for plane, amount in zip(memory[i], slope, strict=True):
                    if abs(amount) > negligible:
                        gradient[plane] += amount * weight[i] * X[i] / len(batch)
            t += 1
            first, second = b1 * first + (1 - b1) * gradient, b2 * second + (1 - b2) * gradient**2
            W -= rate * first / (1 - b1**t) / (np.sqrt(second / (1 - b2**t)) + epsilon / np.sqrt(1 - b2**t))
    return W, np.array(met)
