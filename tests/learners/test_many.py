"""Many machines trained together are what each of them is alone."""

from dataclasses import replace
from itertools import repeat

import array_api_strict
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification

from polyplane import MultiHyperplaneClassifier, PegasosSVC
from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.learners import many, tangents
from polyplane.learners.many import Job, Stack, fit_many, shared_starts, train_stacked
from polyplane.learners.multi_hyperplane import SmoothMultiHyperplane
from polyplane.learners.tangents import choose_n_planes

X, Y = make_classification(900, 8, n_informative=6, n_classes=3, random_state=0)
#: Folds of 720 rows, and one of 700: as many steps, and a shorter last batch.
FOLDS = [*(np.flatnonzero(np.arange(900) % 5 != k) for k in range(3)), np.arange(700)]


def data_of(X):
    return Data(X, Y, np.linspace(0.5, 1.5, 900), np.arange(900), 3)


def method(n_planes, **how):
    return SmoothMultiHyperplane(n_planes=n_planes, max_iter=6, backoff=0, **how)


JOBS = [
    Job(method(4), 1, FOLDS[0]),
    Job(method(3, eta0=0.1, alpha=0.1), 1, FOLDS[0]),
    Job(method(4, noise=0.5, scale=1.0), 2, FOLDS[1]),
    Job(method(7, noise=0.0), 3, FOLDS[2]),
    Job(method(1), 3, FOLDS[2]),  # convex: another way of training
    Job(method(4), 3, FOLDS[3]),
    Job(method(None), 4, FOLDS[0]),
]


def alone(job):
    data = replace(data_of(X), train=job.rows)
    run = Run(job.method, seed=job.seed, choose=choose_n_planes).go(repeat(data, job.method.max_iter))
    return job.method.planes(run.state)


@pytest.mark.parametrize("most_scores", [many.MOST_SCORES, 1])
def test_a_machine_is_what_it_is_alone(monkeypatch, most_scores):
    """Whatever its neighbours, their numbers of planes and rows, and however many fit into memory together."""
    monkeypatch.setattr(many, "MOST_SCORES", most_scores)
    for job, planes in zip(JOBS, train_stacked(data_of(X), JOBS, n_jobs=2), strict=True):
        expected = alone(job)
        np.testing.assert_array_equal(planes.indptr, expected.indptr)
        np.testing.assert_allclose(planes.scores(X), expected.scores(X), atol=1e-9)
        np.testing.assert_allclose(planes.class_scores(X), expected.class_scores(X), atol=1e-9)


@pytest.mark.parametrize("shortfall", [tangents.SHORTFALL, 0.0])
@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_rows_are_skipped_as_alone(library, shortfall, monkeypatch):
    """Also where skipped rows have lost their probability and all are visited again."""
    monkeypatch.setattr(tangents, "SHORTFALL", shortfall)
    data = data_of(pytest.importorskip(library).asarray(2 * X))
    one = SmoothMultiHyperplane(n_planes=4, eta0=0.3, max_iter=20, batch_size=64)
    jobs = [Job(one, seed, data.train) for seed in (0, 1)]
    starts = shared_starts(data, jobs, None)
    alone = [Run(one, start).go(repeat(data, 20)).state for start in starts]
    together = Run(Stack((jobs[0],), (starts[0],))).go(repeat(data, 20))
    (found,), expected = together.method.planes_of_models(together.state), one.planes(alone[0]).to_numpy()
    np.testing.assert_allclose(found.scores(X), expected.scores(X), atol=1e-9)
    assert together.state.adam.t == alone[0].adam.t < 20 * 15
    assert shortfall or together.state.workspace.clocks[0].strikes == alone[0].rows.strikes > 0
    # With neighbours, some batches are smaller.
    both = Run(Stack(tuple(jobs), tuple(starts))).go(repeat(data, 20))
    for state, planes in zip(alone, both.method.planes_of_models(both.state), strict=True):
        assert (planes.predict(X) == one.planes(state).to_numpy().predict(X)).mean() > 0.95


def test_centres_are_found_once_for_machines_that_share_them(monkeypatch):
    starts = []
    start = SmoothMultiHyperplane.start
    monkeypatch.setattr(SmoothMultiHyperplane, "start", lambda self, *data: starts.append(1) or start(self, *data))
    jobs = [Job(method(4, scale=scale, eta0=eta), 0, FOLDS[0]) for scale in (1.0, 2.0) for eta in (0.1, 0.3)]
    train_stacked(data_of(X), jobs)
    assert len(starts) == 1


@pytest.mark.parametrize("array", [np.asarray, array_api_strict.asarray])
def test_many_estimators_are_fitted_as_one_by_one(array, monkeypatch):
    """In threads on the host, as a stack on a device; other learners too, where they can be trained there."""
    machines = [
        MultiHyperplaneClassifier(n, eta0=eta, backoff=0, max_iter=5, random_state=0)
        for n, eta in ((2, 0.3), (4, 0.3), (4, 0.1))
    ]
    if array is np.asarray:
        machines.append(PegasosSVC(random_state=0))
    rows, labels, weight = FOLDS[: len(machines)], np.array(["a", "b", "c"])[Y], np.linspace(0.0, 1.0, 900)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        fitted = fit_many(machines, array(X), labels, rows, sample_weight=weight, n_jobs=2)
    for machine, found, own in zip(machines, fitted, rows, strict=True):
        expected = clone(machine).fit(X[own], labels[own], weight[own])
        found = found.to_numpy()
        np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-6)
        assert found.score(X, labels) == expected.score(X, labels) > 0.5
        assert found.get_params() == machine.get_params()
        assert not hasattr(machine, "planes_")
