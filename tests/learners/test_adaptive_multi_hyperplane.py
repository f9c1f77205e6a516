from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import train_test_split

from polyplane import AdaptiveMultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.engine.data import Data
from polyplane.engine.run import Run
from polyplane.learners.adaptive_multi_hyperplane import AdaptiveMultiHyperplane, AveragedPart
from polyplane.learners.tangents import Schedule
from tests.reference.adaptive_multi_hyperplane import train

CONTAINERS = [np.asarray, sparse.csr_matrix]


def data_of(X, y):
    return Data(X, y, np.ones(len(y), dtype=X.dtype), np.arange(len(y)), int(y.max()) + 1)


@pytest.fixture(scope="module")
def three_classes():
    """Rows on a grid, so that sums are exact and ties are ties; centred on 0 with a mean square of 1, nearly."""
    X, y = make_blobs(300, centers=9, n_features=4, cluster_std=1.2, random_state=3)
    X = X - X.mean(axis=0)
    return np.round(X / np.sqrt((X**2).sum(axis=1).mean()) * 64) / 64, y % 3


def in_training_units(X):
    """What the machine makes of its rows: centred, multiplied by one number, with a constant feature."""
    centred = X - X.mean(axis=0)
    return np.column_stack([centred / np.sqrt((centred**2).sum(axis=1).mean()), np.ones(len(X))])


def drawn(seed, n_epochs, n_rows):
    """The order and the random numbers of each epoch, and what is drawn after those of the first."""
    generators = [np.random.default_rng([seed, epoch]) for epoch in range(n_epochs)]
    return [(rng.permutation(n_rows), rng.random(n_rows)) for rng in generators], generators[0]


#: The parameters of each machine, and those of the reference.
BOXES = {
    "online AMM": ({"growth": 0.0}, {}),
    "online GAMM": ({"growth": 0.6}, {"p": 0.6}),
    "online GAMM of few planes": ({"n_planes": 4}, {"p": 0.2, "most": 4}),
    "MM": ({"n_planes": 4, "growth": 0.0, "assignment": "epoch", "prune": 0.0}, {"start": 4, "fixed": True, "c": 0.0}),
    "MM, long rounds": (
        {"n_planes": 4, "growth": 0.0, "assignment": 3, "prune": 1.5},
        {"start": 4, "fixed": True, "length": 3, "c": 1.5},
    ),
    "batch AMM": ({"growth": 0.0, "assignment": "epoch"}, {"start": 1}),
    "batch GAMM": ({"assignment": "epoch"}, {"p": 0.2, "start": 1}),
    "batch GAMM, long rounds": ({"n_planes": 3, "assignment": 4}, {"p": 0.2, "start": 3, "fixed": True, "length": 4}),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("box", BOXES)
def test_the_kernel_is_the_papers_box(three_classes, container, box):
    X, y = three_classes
    n_epochs, alpha = 12, 1 / 971.3
    parameters, reference = BOXES[box]
    rounds = "assignment" in parameters
    how = {"prune": 5.0, "prune_every": 130 if rounds else 700, "average_fraction": 0, "max_iter": n_epochs}
    machine = AdaptiveMultiHyperplaneClassifier(**how | {"alpha": alpha, "random_state": 0} | parameters)
    machine.fit(container(X), y)
    epochs, rng = drawn(np.random.RandomState(0).randint(2**31), n_epochs, len(X))
    if rounds:
        start = reference["start"]
        reference = reference | {"z": (start * y + rng.integers(0, start, len(X))).tolist()}
    settings = {"c": 5.0, "prune_every": how["prune_every"]} | reference
    W, owner = train(in_training_units(X), y, 3, alpha, epochs, **settings)
    assert len(W) > 4
    by_class = np.argsort(owner, kind="stable")
    np.testing.assert_array_equal(machine.planes_.owners, owner[by_class])
    # Planes in the units of X and in training units are the same functions of a row.
    np.testing.assert_allclose(machine.planes_.scores(X), in_training_units(X) @ W[by_class].T, rtol=0, atol=1e-9)


def test_zero_planes_are_not_duplicated(three_classes):
    """Such copies never win a row again, and would use up the chance to duplicate others."""
    X, y = three_classes
    run = Run(AdaptiveMultiHyperplane(growth=0.999), seed=0)
    run.step(replace(data_of(X[:1], y[:1]), n_classes=3))
    assert run.state.duplication == 0.999
    machine = AdaptiveMultiHyperplaneClassifier(growth=0.9, prune=0.0, average_fraction=0, max_iter=3, random_state=0)
    planes = machine.fit(X, y).planes_
    assert planes.n_planes > 60
    assert (np.abs(planes.coef).sum(axis=1) + np.abs(planes.intercept)).min() > 0


class TestRounds:
    X, y = make_checkerboard(1000, (2, 3), random_state=0)
    mm = AdaptiveMultiHyperplaneClassifier(10, growth=0.0, assignment="epoch", average_fraction=0, random_state=0)

    def test_mm_has_a_fixed_number_of_planes(self):
        planes = self.mm.fit(self.X, self.y).planes_
        np.testing.assert_array_equal(np.diff(planes.indptr), [10, 10])

    def test_rows_are_divided_at_random_first(self):
        method = AdaptiveMultiHyperplane(10, "epoch", growth=0.0)
        state = Run(method, seed=0).go([data_of(self.X, self.y)]).state
        np.testing.assert_array_equal(state.owner[state.assigned], self.y)
        counts = np.bincount(state.assigned)
        assert 25 < counts.min() < counts.max() < 85  # about 50 each
        assert np.abs(method.planes(state).coef).sum(axis=1).min() > 0

    @pytest.mark.parametrize(
        ("params", "visits"),
        [
            ({"assignment": "epoch"}, 1000),
            ({"assignment": 3}, 2000),
            ({"n_planes": 1}, 5000),
            ({"average_fraction": 0.4}, 3000),
        ],
    )
    def test_each_round_begins_anew(self, params, visits):
        """Unless no row changes its plane, or planes are averaged."""
        mm = self.mm.set_params(max_iter=5, n_planes=10, assignment="epoch", average_fraction=0).set_params(**params)
        assert mm.fit(self.X, self.y)._state.t == visits

    def test_planes_are_pruned(self):
        gamm = AdaptiveMultiHyperplaneClassifier(assignment="epoch", max_iter=5, random_state=0)
        assert gamm.fit(self.X, self.y).planes_.n_planes > 20
        assert (
            gamm.set_params(prune=1e9, prune_every=1000, average_fraction=0).fit(self.X, self.y).planes_.n_planes == 2
        )

    def test_mm_learns(self):
        """Of three planes per class, one per square."""
        mm = AdaptiveMultiHyperplaneClassifier(8, growth=0.0, assignment="epoch", alpha=1e-4, random_state=0)
        X_test, y_test = make_checkerboard(5000, (2, 3), random_state=1)
        X, y = make_checkerboard(3000, (2, 3), random_state=0)
        assert mm.fit(X, y).score(X_test, y_test) > 0.96

    def test_rows_that_are_known_again_keep_their_planes(self):
        """An interruption in the middle of a round does not end it."""
        method = AdaptiveMultiHyperplane(4, 3, growth=0.0, max_iter=6)
        data = data_of(self.X, self.y)
        whole = Run(method, seed=3).go([data] * 6).state
        half = Run(method, seed=3).go([data] * 4).state.with_rows_of(data)
        assert method.planes(Run(method, half).go([data] * 2).state) == method.planes(whole)


def test_pruning_at_each_visit(three_classes):
    machine = AdaptiveMultiHyperplaneClassifier(prune_every=1, max_iter=1).fit(*three_classes)
    assert (np.bincount(machine.planes_.owners, minlength=3) >= 1).all()  # never the last plane of a class


class TestAverages:
    @pytest.mark.parametrize("fraction", [1e-20, 0.01, 0.2, 1 / 3, 1.0])
    @pytest.mark.parametrize("n_rows", [1, 3, 100])
    @pytest.mark.parametrize("passes", [1, 2, 4, 7, 60])
    def test_the_last_part_of_all_visits_is_averaged(self, fraction, n_rows, passes):
        data = data_of(np.zeros((n_rows, 2)), np.zeros(n_rows, dtype=int))
        parts = [AveragedPart.of(fraction, Schedule(passes, done, False), data, n_rows) for done in range(passes)]
        averaged = sum(n_rows - part.first for part in parts)
        assert averaged == pytest.approx(max(1, fraction * passes * n_rows), abs=1)
        assert parts[-1].first < n_rows
        assert parts[-1].interval <= max(1, averaged // 4)

    @pytest.mark.parametrize("max_iter", [1, 2, 3, 4])
    def test_few_passes_are_averaged_too(self, max_iter):
        X, X_test, y, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
        last, averaged = (
            np.mean([self.error(fraction, max_iter, seed, X, X_test, y, y_test) for seed in range(3)])
            for fraction in (0.0, 0.2)
        )
        assert averaged < 0.85 * last

    def error(self, fraction, max_iter, seed, X, X_test, y, y_test):
        machine = AdaptiveMultiHyperplaneClassifier(average_fraction=fraction, max_iter=max_iter, random_state=seed)
        machine.fit(X, y)
        assert (machine._state.mean is not None) == (fraction > 0)
        assert machine._state.n_averaged >= 4 * (fraction > 0)
        return 1 - machine.score(X_test, y_test)

    def test_streams_are_averaged_while_planes_come_and_go(self):
        """The average changes nothing in the training itself, and is the better model."""
        X, y = make_checkerboard(6000, (2, 3), random_state=0)
        X_test, y_test = make_checkerboard(5000, (2, 3), random_state=1)
        last, averaged = (AdaptiveMultiHyperplaneClassifier(average_fraction=f, random_state=0) for f in (0.0, 0.2))
        for machine in (last, averaged):
            machine.set_params(prune_every=1500, prune=2.0)
            for rows in np.array_split(np.arange(len(X)), 60):
                machine.partial_fit(X[rows], y[rows], classes=np.unique(y))
                mean = machine._state.mean
                assert (mean is None) == (machine is last)
                assert mean is None or len(mean[1]) == machine._state.n_planes
        np.testing.assert_array_equal(last._state.coef, averaged._state.coef)
        assert len(set(last.history_["planes"])) > 10
        assert averaged.score(X_test, y_test) > last.score(X_test, y_test) + 0.015

    def test_the_average_of_a_stream_is_its_last_part(self):
        """Rows one by one: the states are those of a machine without averages."""
        X, y = make_blobs(200, centers=2, cluster_std=3, random_state=0)
        last, averaged = (
            AdaptiveMultiHyperplaneClassifier(1, average_fraction=f, alpha=0.1, random_state=0) for f in (0.0, 0.25)
        )
        n, mean = 0, 0.0
        for t in range(1, len(X) + 1):
            for machine in (last, averaged):
                machine.partial_fit(X[t - 1 : t], y[t - 1 : t], classes=[0, 1])
            n = min(n + 1, max(1, min(30, t // 4)))
            mean = mean + (last.coef_ - mean) / n
        np.testing.assert_allclose(averaged.coef_, mean, atol=1e-12)

    def test_copies_inherit_the_average(self, three_classes):
        X, y = three_classes
        state = Run(AdaptiveMultiHyperplane(growth=0.0), seed=0).go([data_of(X, y)]).state.averaged(1.0, 1)
        coef, n_planes = state.mean[0], state.n_planes
        grown, _ = state.with_new_planes(np.array([-1, 1, n_planes + 1, n_planes])).mean
        np.testing.assert_array_equal(grown[:n_planes], coef)
        np.testing.assert_array_equal(grown[n_planes:], [0 * coef[0], coef[1], coef[1], 0 * coef[0]])


@pytest.mark.parametrize(
    ("params", "bar"),
    [({"average_fraction": 1 / 3}, 2.0), ({"average_fraction": 0, "max_iter": 15, "alpha": 1e-4}, 8.2)],
)
def test_the_4x4_board(params, bar):
    """The paper's GAMM has 7.4 % on this board, its AMM 35.9 %; the released program has 8.2 %."""
    X, y = make_checkerboard(15_000, random_state=0)
    X_test, y_test = make_checkerboard(5_000, random_state=1)
    machine = AdaptiveMultiHyperplaneClassifier(random_state=0, **params)
    assert 100 * (1 - machine.fit(X, y).score(X_test, y_test)) < bar


def test_amm_fails_where_the_paper_says():
    def error(shape):
        X, y = make_checkerboard(15_000, shape, random_state=0)
        amm = AdaptiveMultiHyperplaneClassifier(growth=0.0, prune=10.0, average_fraction=0, max_iter=15, random_state=0)
        X_test, y_test = make_checkerboard(5_000, shape, random_state=1)
        return 100 * (1 - amm.fit(X, y).score(X_test, y_test))

    assert error((1, 2)) < 2
    assert error((2, 2)) < 4
    assert error((4, 4)) > 25


def test_growth_gives_more_planes_and_the_cap_holds():
    X, y = make_checkerboard(4000, random_state=0)
    settings = {"max_iter": 5, "random_state": 0}
    amm = AdaptiveMultiHyperplaneClassifier(growth=0.0, **settings).fit(X, y).planes_
    gamm = AdaptiveMultiHyperplaneClassifier(growth=0.2, **settings).fit(X, y).planes_
    capped = AdaptiveMultiHyperplaneClassifier(7, growth=0.2, **settings).fit(X, y).planes_
    assert gamm.n_planes > 4 * amm.n_planes
    assert capped.n_planes == 14


@pytest.mark.parametrize("container", CONTAINERS)
def test_mm_takes_a_class_that_comes_late(container):
    X, y = make_blobs(300, centers=[[-4, 0], [4, 0], [0, 6]], random_state=0)
    mm = AdaptiveMultiHyperplaneClassifier(2, growth=0.0, assignment="epoch", alpha=1e-3, random_state=0)
    for rows in (np.flatnonzero(y < 2), *[np.arange(300)] * 10):
        mm.partial_fit(container(X[rows]), y[rows], classes=[0, 1, 2])
    assert mm.score(X, y) > 0.95


def test_a_failed_step_leaves_no_trace_in_free_columns(monkeypatch):
    """A duplicated plane has features that the sparse rows of the step do not have."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 200), density=0.2, format="csr", rng=rng)
    y = rng.integers(0, 2, 400)
    few = sparse.csr_array(X[:3])
    method = AdaptiveMultiHyperplane(growth=0.9, growth_decay=1.0)
    run, twin = (Run(method, seed=1).go([data_of(X, y)]) for _ in range(2))

    data, visit = data_of(few, np.array([0, 1, 0])), AdaptiveMultiHyperplane._visit

    def failing(self, state, *rest):
        visit(self, state, *rest)
        raise MemoryError

    monkeypatch.setattr(AdaptiveMultiHyperplane, "_visit", failing)
    with pytest.raises(MemoryError):
        run.step(data)
    for name in ("coef", "intercept", "shift", "owner", "counts"):
        np.testing.assert_array_equal(getattr(run.state, name), getattr(twin.state, name))
