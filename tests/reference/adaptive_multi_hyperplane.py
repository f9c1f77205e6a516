"""MM, AMM and GAMM, from the boxes and equations of Djuric, Wang and Vucetic (2020); their numbers are in brackets.

(9) with eta = 1 / (lambda t) is W(t+1) = (1 - 1/t) W(t) +- x / (lambda t), or lambda t W(t+1) = lambda (t-1) W(t) +- x.
So `Weights` keeps V(t) = lambda (t-1) W(t), which gets +-x and is never multiplied: a weight that got +x and then -x is
exactly zero, as on paper. Kept as W it would be a rounding error of either sign, and whether its class answers with one
of the infinitely many zero weights would be a coin toss. At t = 1 the factor (1 - 1/t) is 0: what W was is forgotten.

Where the paper is silent or differs from the authors' program:

* a class whose best score is not positive answers with a zero weight that was not used yet, rivals too (section 2.3);
* only a weight with a positive score is duplicated (the program; the box would duplicate zero weights, of which there
  are infinitely many); the copy keeps the old vector, the original gets the update;
* among rivals that all answer 0 by unused zero weights the one whose own weights come closest is taken, otherwise the
  first: the lowest index would collect all of them;
* pruning comes every `prune_every` iterations of a round (the program), and never takes the last weight of a class;
  examples assigned to a weight that was pruned go by (18) until the round ends (the program);
* by (8) an example none of whose weights is positive belongs to the first unused zero weight of its class;
* when (8) changes nothing, the box ends: what is left of the epochs is spent on the same problem, and t goes on.
"""

import numpy as np


class Weights:
    """The columns of (5) in the order in which they were added, as V, and the classes that own them."""

    def __init__(self, n_features, n_classes, start=0, most=np.inf, fixed=False):
        self.owner = np.repeat(np.arange(n_classes), start).tolist()
        self.V = [np.zeros(n_features) for _ in self.owner]
        self.most = most  # weights of a class
        self.unused = 0 if fixed else most  # a class with fewer weights has zero weights that were not used yet

    def add(self, label, v):
        self.V.append(np.array(v, dtype=float))
        self.owner.append(label)
        return len(self.V) - 1

    def best(self, label, x):
        """(4): the best weight of a class and its score; (None, 0) when it has none."""
        own = [k for k, owner in enumerate(self.owner) if owner == label]
        if not own:
            return None, 0.0
        scores = [self.V[k] @ x for k in own]
        return own[int(np.argmax(scores))], max(scores)

    def answer(self, label, x):
        """(4) with the unused zero weights, one of which is meant by None."""
        k, score = self.best(label, x)
        return (None, 0.0) if score <= 0 and self.owner.count(label) < self.unused else (k, score)

    def assign(self, X, y):
        """(8)."""
        unused, z = {}, []
        for x, label in zip(X, y, strict=True):
            k, _ = self.answer(label, x)
            if k is None:
                unused.setdefault(label, []).append(len(z))
            z.append(k)
        for label in sorted(unused):
            k = self.add(label, np.zeros(X.shape[1]))
            for i in unused[label]:
                z[i] = k
        return z

    def prune(self, limit):
        """(14): remove the smallest weights while the norm of all removed is within the limit. Returns the others."""
        squares, gone = [v @ v for v in self.V], []
        for k in np.argsort(squares, kind="stable"):
            left = sum(owner == self.owner[k] for j, owner in enumerate(self.owner) if j not in gone)
            if left > 1 and sum(squares[j] for j in gone) + squares[k] > limit**2:
                break
            if left > 1:
                gone.append(k)
        kept = [k for k in range(len(self.V)) if k not in gone]
        self.V, self.owner = [self.V[k] for k in kept], [self.owner[k] for k in kept]
        return kept


def train(X, y, n_classes, lam, epochs, *, p=0.0, beta=0.99, c=0.0, prune_every=10_000, z=None, length=1, **weights):
    """Algorithm 1; online (18) without the first assignments `z`, otherwise in rounds of `length` epochs.

    `X` carries the constant feature, and `epochs` holds an order and a random number per iteration each. `weights` are
    keywords of `Weights`. Returns W and its owners.
    """
    weights = Weights(X.shape[1], n_classes, **weights)
    t, margin = 1, 0.0  # `margin` is what V x has to reach for W x to reach 1
    for epoch, (order, draws) in enumerate(epochs):
        if z is not None and epoch and epoch % length == 0:
            before, z = z, weights.assign(X, y)
            t = t if z == before else 1
        for i, draw in zip(order, draws, strict=True):
            x, label = X[i], y[i]
            own, own_score = weights.answer(label, x)
            if z is not None and z[i] is not None:
                own, own_score = z[i], weights.V[z[i]] @ x
            rivals = [other for other in range(n_classes) if other != label]
            other = max(rivals, key=lambda k: (weights.answer(k, x)[1], weights.best(k, x)[1]))
            rival, rival_score = weights.answer(other, x)
            has_loss = margin + rival_score - own_score > 0 or margin == 0  # (7); at W = 0 it is 1
            if t == 1:
                weights.V = [np.zeros_like(v) for v in weights.V]
            if has_loss:
                if own is None:
                    own = weights.add(label, np.zeros_like(x))
                if draw < p and own_score > 0 and weights.owner.count(label) < weights.most:
                    weights.add(label, weights.V[own])
                    p *= beta
                if rival is None:
                    rival = weights.add(other, np.zeros_like(x))
                weights.V[own] = weights.V[own] + x
                weights.V[rival] = weights.V[rival] - x
            margin = lam * t
            if c > 0 and t > 1 and t % prune_every == 0:
                kept = weights.prune(c / ((t - 1) * lam) * margin)
                if z is not None:
                    z = [kept.index(k) if k in kept else None for k in z]
            t += 1
    return np.array(weights.V) / margin, np.array(weights.owner)
