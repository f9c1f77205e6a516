"""The joint convex polytope machine, which `ConvexPolytopeClassifier` trains by default."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification

from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.learners._joint_polytope import JointPolytope
from tests.reference.joint_polytope import joint_train


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        400, 12, n_informative=6, n_classes=4, n_clusters_per_class=2, class_sep=0.7, random_state=0
    )
    X = np.round(X * 16) / 16  # sums of such numbers are exact: ties between planes are ties in any order of summation
    X[np.abs(X) < 0.5] = 0.0
    return X, y, np.random.default_rng(1).integers(2, 16, len(y)) / 8


def columns(planes):
    """Planes (n_classes, n_planes, n_features + 1) as the state has them: coefficients by feature, and offsets."""
    flat = planes.reshape(-1, planes.shape[2])
    return np.ascontiguousarray(flat[:, :-1].T), flat[:, -1].copy()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, "csr64"])
@pytest.mark.parametrize("min_entropy", [0.0, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_backoff_the_kernel_is_the_box(problem, container, min_entropy, weighted):
    X, y, weight = problem
    weight = weight if weighted else np.ones(len(y))
    matrix = X
    if container == "csr64":
        matrix = sparse.csr_array(X)
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    elif container is not np.asarray:
        matrix = container(X)
    n_planes, alpha, n_epochs = 5, 1 / 97.3, 30
    data = Data(matrix, y, weight, np.arange(len(y)), 4)
    method = JointPolytope(n_planes, alpha, min_entropy=min_entropy, backoff=0, average=False)
    state = method.start(data, seed=3)
    start = np.column_stack([state.coef.T, state.intercept]).reshape(4, n_planes, -1) / state.margin
    after = Run(method, state).go([data] * n_epochs).state
    orders = [np.random.default_rng([3, epoch]).permutation(len(y)) for epoch in range(n_epochs)]
    X, nats = np.column_stack([X, np.ones(len(y))]), min_entropy * math.log(n_planes)
    W, losses = joint_train(X, y, orders, start, alpha, state.t, nats, weight)
    coef, intercept = columns(W)
    np.testing.assert_allclose(after.coef / after.margin, coef, rtol=0, atol=1e-9)
    np.testing.assert_allclose(after.intercept / after.margin, intercept, rtol=0, atol=1e-9)
    np.testing.assert_allclose(after.loss, np.mean(losses[-len(y) :]), rtol=1e-9)
