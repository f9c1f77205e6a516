"""Adaptive multi-hyperplane machines (Wang et al., 2011; Djuric et al., 2020), online and by epoch, and plain descent.

The box shrinks every plane by (1 - 1/t) and adds +-x / (alpha t); unrolled, W = V / (alpha t) with V the sum of +-x.
The reference keeps V: a plane that got +x and later -x is then exactly zero, as on paper. Kept as W it would be a
rounding error of either sign, and whether the class answers with a fresh zero plane would be a coin toss.
"""

import numpy as np


class Machine:
    """Planes in the order in which they were added, and the classes that own them."""

    def __init__(self):
        self.planes, self.owner = [], []

    def add(self, label, plane):
        self.planes.append(np.array(plane, dtype=float))
        self.owner.append(label)
        return len(self.planes) - 1

    def best(self, label, x):
        """The class's best plane and its score; (None, 0) when it has none."""
        own = [k for k, owner in enumerate(self.owner) if owner == label]
        if not own:
            return None, 0.0
        scores = [self.planes[k] @ x for k in own]
        return own[int(np.argmax(scores))], max(scores)

    def prune(self, limit):
        """Remove the smallest planes while the norm of all removed stays within the limit; never a class's last."""
        squares = [plane @ plane for plane in self.planes]
        left, gone = {c: self.owner.count(c) for c in self.owner}, []
        for k in np.argsort(squares, kind="stable"):
            removable = left[self.owner[k]] > 1
            if removable and sum(squares[j] for j in gone) + squares[k] <= limit**2:
                gone.append(k)
                left[self.owner[k]] -= 1
            elif removable:
                break
        self.planes = [plane for k, plane in enumerate(self.planes) if k not in gone]
        self.owner = [owner for k, owner in enumerate(self.owner) if k not in gone]


def answer(machine, label, x, may_grow):
    """A class that may grow answers at least 0, by a plane not yet added (None)."""
    k, score = machine.best(label, x)
    return (None, 0.0) if k is not None and score <= 0 and may_grow else (k, score)


def train_adaptive(X, y, n_classes, alpha, epochs, growth, decay=0.99, prune=50.0, prune_every=10_000, by_epoch=False):
    """AMM (growth = 0) and GAMM; `X` carries the constant feature, `epochs` holds one (order, draws) each."""
    machine, t, chance = Machine(), 0, growth
    for number, (order, draws) in enumerate(epochs):
        fixed = [machine.best(label, x)[0] for x, label in zip(X, y, strict=True)] if by_epoch and number else None
        for i, draw in zip(order, draws, strict=True):
            x, label = X[i], y[i]
            own, own_score = answer(machine, label, x, may_grow=True)
            if fixed:
                own, own_score = fixed[i], machine.planes[fixed[i]] @ x
            # Of rivals that all answer 0, the one whose planes come closest.
            rivals = [c for c in range(n_classes) if c != label]
            other = max(rivals, key=lambda c: (answer(machine, c, x, True)[1], machine.best(c, x)[1]))
            rival, rival_score = answer(machine, other, x, may_grow=True)
            if own_score - rival_score < alpha * t or t == 0:
                if own is None:
                    own = machine.add(label, np.zeros(X.shape[1]))
                if draw < chance:
                    machine.add(label, machine.planes[own])
                    chance *= decay
                if rival is None:
                    rival = machine.add(other, np.zeros(X.shape[1]))
                machine.planes[own] = machine.planes[own] + x
                machine.planes[rival] = machine.planes[rival] - x
            t += 1
            if t % prune_every == 0 and fixed is None:
                machine.prune(prune * t / (t - 1))
    return np.array(machine.planes) / (alpha * t), np.array(machine.owner)


def train_margin(X, y, W, owner, eta, orders):
    """Stochastic gradient descent on the margin loss from the planes `W`, the step falling linearly from `eta` to 0."""
    W, total = W.copy(), sum(map(len, orders))
    for t, i in enumerate(np.concatenate(orders)):
        scores = W @ X[i]
        own = np.where(owner == y[i], scores, -np.inf).argmax()
        rival = np.where(owner == y[i], -np.inf, scores).argmax()
        if scores[own] - scores[rival] < 1:
            step = eta * (1 - t / total)
            W[own] += step * X[i]
            W[rival] -= step * X[i]
    return W


def log_loss(W, x, y):
    """Multi-class log-loss of one row: each class scores the log-sum-exp of its planes; W (n_classes, n_planes, d)."""
    scores = np.log(np.exp(W @ x).sum(axis=1))
    return np.log(np.exp(scores).sum()) - scores[y]
