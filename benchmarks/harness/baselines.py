"""What a user would pick instead: scikit-learn's classifiers, with a small grid of settings each, and LVQ2.1.

LVQ2.1 is a plain one of our own. `sklvq` (0.1.2) and `sklearn-lvq` (1.1.1) do not have it, but GLVQ, its smooth
relative, and the former fails with scikit-learn 1.9, whose estimators have no `_validate_data`; the LVQ2.1 of
`prosemble` (2.4.0) is trained by batches with JAX and has no window. scikit-learn, which the paper names, has none.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from benchmarks.harness.choosing import choose, grid
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, validate_data


class LVQ21Classifier(ClassifierMixin, BaseEstimator):
    """LVQ2.1 (Kohonen, 1995): prototypes of classes; the class of the nearest one wins.

    Prototypes begin at k-means centres of their class. A row whose two nearest prototypes are of its own and of another
    class, and which lies in the window between them, draws the former near and pushes the latter away.

    Parameters
    ----------
    n_prototypes : int, default=20
        Prototypes of each class.
    eta0 : float, default=0.05
        First step; steps fall linearly to 0.
    window : float, default=0.2
        Relative width of the window.
    max_iter : int, default=20
        Passes over the rows.
    random_state : int or None, default=None
        Source of the centres and the orders.
    """

    def __init__(self, n_prototypes=20, *, eta0=0.05, window=0.2, max_iter=20, random_state=None):
        self.n_prototypes = n_prototypes
        self.eta0 = eta0
        self.window = window
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y):
        """Learn the prototypes."""
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        self.classes_, y = np.unique(y, return_inverse=True)
        centres = [self._centres(X[y == c]) for c in range(len(self.classes_))]
        self.prototypes_ = np.concatenate(centres)
        self.labels_ = np.repeat(np.arange(len(centres)), [len(c) for c in centres])
        closest = (1 - self.window) / (1 + self.window)
        rng = np.random.default_rng(self.random_state)
        visits = self.max_iter * len(y)
        for epoch in range(self.max_iter):
            order = rng.permutation(len(y))
            steps = self.eta0 * (1 - np.arange(epoch * len(y), (epoch + 1) * len(y)) / visits)
            _lvq_epoch()(X, y, order, steps, self.prototypes_, self.labels_, closest * closest)
        return self

    def _centres(self, X):
        means = MiniBatchKMeans(min(self.n_prototypes, len(X)), n_init=1, random_state=self.random_state)
        return means.fit(X).cluster_centers_.astype(X.dtype)

    def predict(self, X):
        """The classes of the nearest prototypes."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        nearest = (0.5 * (self.prototypes_**2).sum(axis=1) - X @ self.prototypes_.T).argmin(axis=1)
        return self.classes_[self.labels_[nearest]]


@cache
def _lvq_epoch():
    """One pass of LVQ2.1, compiled when first needed."""
    from numba import njit

    @njit(nogil=True)
    def epoch(X, y, order, steps, prototypes, labels, closest):
        distances = np.empty(len(prototypes))
        for visit, i in enumerate(order):
            for k in range(len(prototypes)):
                total = 0.0
                for j in range(X.shape[1]):
                    total += (X[i, j] - prototypes[k, j]) ** 2
                distances[k] = total
            first = distances.argmin()
            nearest = distances[first]
            distances[first] = np.inf
            second = distances.argmin()
            right, wrong = (first, second) if labels[first] == y[i] else (second, first)
            if labels[right] != y[i] or labels[wrong] == y[i] or nearest < closest * distances[second]:
                continue
            for j in range(X.shape[1]):
                prototypes[right, j] += steps[visit] * (X[i, j] - prototypes[right, j])
                prototypes[wrong, j] -= steps[visit] * (X[i, j] - prototypes[wrong, j])

    return epoch


class Baseline(NamedTuple):
    """A classifier to compare with: how it is made, ``make(random_state=, **settings)``, and the settings to try."""

    make: Callable[..., Any]
    settings: list[dict[str, Any]]


BASELINES = {
    "linear SVM": Baseline(LinearSVC, grid(C=[0.01, 0.1, 1, 10])),
    "RBF-SVM": Baseline(partial(SVC, cache_size=1_000), grid(C=[1, 10, 100], gamma=[0.3, 1, 3, 10])),
    "CART": Baseline(DecisionTreeClassifier, grid(ccp_alpha=[0, 1e-4, 3e-4, 1e-3, 3e-3])),
    "random forest": Baseline(
        partial(RandomForestClassifier, n_estimators=200), grid(max_features=["sqrt", 0.3], min_samples_leaf=[1, 3])
    ),
    "MLP": Baseline(
        MLPClassifier,
        grid(hidden_layer_sizes=[(32,), (128,)], alpha=[1e-4, 1e-2]),
    ),
    "gradient boosting": Baseline(
        HistGradientBoostingClassifier, grid(learning_rate=[0.05, 0.1, 0.2], max_leaf_nodes=[7, 31])
    ),
    "LVQ2.1": Baseline(LVQ21Classifier, grid(n_prototypes=[10, 40], eta0=[0.02, 0.1])),
}


def candidates(name, X):
    """The settings to try on rows `X`: gamma is meant relative to scikit-learn's "scale"."""
    if name != "RBF-SVM":
        return BASELINES[name].settings
    return [s | {"gamma": round(s["gamma"] * gamma_scale(X), 6)} for s in BASELINES[name].settings]


def gamma_scale(X):
    """What ``gamma="scale"`` means in scikit-learn, for dense and sparse rows."""
    variance = X.multiply(X).mean() - X.mean() ** 2 if sparse.issparse(X) else X.var()
    return 1.0 / (X.shape[1] * float(variance))


def baseline(name, seed=0, **settings):
    """The baseline called `name`; its warnings that it has not converged are not shown."""
    return Quiet(BASELINES[name].make(random_state=seed, **settings))


def choose_baseline(name, X, y, n_splits=2, rungs=None):
    """Settings with the least error on held-out fifths of the training rows."""
    rungs = {1: 3} if rungs is None else rungs
    return choose(partial(baseline, name), candidates(name, X), X, y, n_splits, rungs)


def baseline_errors(name, split, choice_rows=None, seeds=(0,), settings=None):
    """Test errors of a baseline with what held-out training rows prefer, and the median processor times of one run.

    Parameters
    ----------
    name : str
        Which baseline.
    split : Split
        Training and test rows.
    choice_rows : int or None, default=None
        How many of the training rows the choice is made on; None: all.
    seeds : sequence of int, default=(0,)
        One run each.
    settings : dict or None, default=None
        Settings that need no choice.
    """
    if settings is None:
        rows = np.random.default_rng(0).permutation(len(split.y))[:choice_rows]
        settings = choose_baseline(name, split.X[rows], split.y[rows])["settings"]
    runs, fit, predict = [], [], []
    for seed in seeds:
        times = [time.process_time()]
        machine = baseline(name, seed, **settings).fit(split.X, split.y)
        times.append(time.process_time())
        runs.append(100 * (1 - machine.score(split.X_test, split.y_test)))
        times.append(time.process_time())
        fit.append(times[1] - times[0])
        predict.append(times[2] - times[1])
    figures = {"error": np.mean(runs), "fit_seconds": np.median(fit), "predict_seconds": np.median(predict)}
    figures |= {"std": np.std(runs)} if len(runs) > 1 else {}
    told = {"settings": settings, "runs": np.round(runs, 4).tolist(), "rows": len(split.y)}
    return {key: round(float(value), 4) for key, value in figures.items()} | told


class Quiet:
    """A classifier that keeps to itself that it ran out of iterations: its score tells."""

    def __init__(self, machine):
        self.machine = machine

    def fit(self, X, y):
        """Fit the classifier."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.machine.fit(X, y)
        return self

    def __getattr__(self, name):
        return getattr(self.machine, name)
