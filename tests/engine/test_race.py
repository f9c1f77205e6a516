"""The race itself, and the numbers of planes that it chooses."""

import time
from dataclasses import replace

import numpy as np
import pytest

from polyplane import ConvexPolytopeClassifier, MultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.engine.data import Data
from polyplane.engine.run import Race, Run, excess
from polyplane.learners import convex_polytope, tangents
from polyplane.learners.many import Job, train_stacked
from polyplane.learners.multi_hyperplane import SmoothMultiHyperplane
from polyplane.learners.tangents import Schedule, choose_n_planes
from polyplane.planes import PlaneSet


def test_weak_candidates_leave_and_nothing_is_evaluated_twice():
    asked = []

    def losses(candidates, fold):
        asked.append((tuple(candidates), fold))
        return [np.full(4, float(candidate)) for candidate in candidates]

    race = Race(losses)
    half = lambda left, fold: race.ranked(left, fold)[: (len(left) + 1) // 2]  # noqa: E731
    assert race.run([3, 1, 2, 0], "ab", half) == [0]
    assert asked == [((3, 1, 2, 0), "a"), ((0, 1), "b")]
    assert race.run([1, 5], "ab", until_one=True) == [1, 5]
    assert asked[2:] == [((5,), "a"), ((5,), "b")]
    table = race.table(lambda candidate: {"value": candidate})
    assert table == {"value": [3, 1, 2, 0, 0, 1, 5, 5], "loss": [3, 1, 2, 0, 0, 1, 5, 5]}


def test_failures_rank_last_and_ties_keep_their_order():
    race = Race(lambda candidates, fold: [{"a": 1.0, "b": np.nan, "c": 1.0, "d": 0.5}[c] for c in candidates])
    assert race.ranked(race.run("badc", [0]), 0) == ["d", "a", "c", "b"]


def test_one_candidate_left_ends_the_race():
    race = Race(lambda candidates, fold: [float(candidate) for candidate in candidates])
    assert race.run([1, 2], range(9), lambda left, fold: race.ranked(left, fold)[:1], until_one=True) == [1]
    assert len(race.trials) == 2


def test_a_deadline_ends_the_race_after_the_first_batch():
    done = []
    race = Race(
        lambda candidates, fold: candidates,
        batch_size=lambda rung: 2,
        after_batch=done.append,
        deadline=time.monotonic() - 1e9,
    )
    race.run([1, 2, 3], [0])
    assert (race.is_complete, list(race.trials), done) == (False, [(0, 1), (0, 2)], [0])


def test_excess_is_in_standard_errors_of_paired_differences():
    rng = np.random.default_rng(0)
    common, gap = 10 * rng.normal(size=400), rng.normal(0.1, 1, size=400)
    assert excess(common, common) == 0
    assert excess(common + gap, common) == pytest.approx(gap.mean() / (gap.std() / 20))


# The number of planes.


def rings(n_rows, seed):
    X = np.random.default_rng(seed).normal(size=(n_rows, 2))
    return X, np.floor(2 * np.linalg.norm(X, axis=1)).astype(int) % 2


def overlapping(n_rows, seed):
    """Two classes of ten features whose log-odds are linear: no model is better than one plane."""
    rng = np.random.default_rng(seed)
    X, coef = rng.normal(size=(n_rows, 10)), np.random.default_rng(0).normal(size=10)
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-2 * X @ coef / np.linalg.norm(coef)))).astype(int)


def chosen(X, y, seed=0, n_classes=2, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    data = Data(X, y, weight, np.flatnonzero(weight > 0), n_classes)
    return np.array(choose_n_planes(SmoothMultiHyperplane(max_iter=7), data, seed).method.n_planes)


@pytest.mark.parametrize("n_rows", [200, 8000])
def test_one_plane_is_chosen_where_classes_overlap_along_a_plane(n_rows):
    """Judged by uncalibrated log-losses with ties to more planes, 8,000 rows got four planes per class or more."""
    for seed in range(2):
        np.testing.assert_array_equal(chosen(*overlapping(n_rows, seed), seed), [1, 1])


def test_one_plane_is_preferred_to_more_that_are_better_within_the_noise(monkeypatch):
    rows = overlapping(400, 1)
    np.testing.assert_array_equal(chosen(*rows), [1, 1])
    monkeypatch.setattr("polyplane.learners.tangents.WORSE", -9.0)
    assert (chosen(*rows) > 1).all()  # which had the lower loss


def test_a9a_gets_one_plane_and_no_more_errors_than_logistic_regression(local_data):
    data = local_data("a9a")
    X, X_test = (x.toarray().astype(np.float32) for x in (data.data, data.data_test))
    model = MultiHyperplaneClassifier(max_iter=20, random_state=0).fit(X, data.target)
    assert model.planes_.n_planes == 2
    assert 100 * (1 - model.score(X_test, data.target_test)) <= 15.1


def test_rings_get_dozens_of_planes_though_a_few_are_no_better_than_one():
    """One plane errs on half of the rows, four on 46 %, 96 on 11.4 and 128 on 11.1 %: benchmarks/peers."""
    X_test, y_test = rings(5000, 99)
    models = [MultiHyperplaneClassifier(random_state=seed).fit(*rings(1000, seed)) for seed in range(3)]
    errors = [100 * (1 - model.score(X_test, y_test)) for model in models]
    assert max(errors) < 15
    assert np.mean(errors) < 13


def test_irrelevant_features_ask_for_few_planes():
    """Quadrants of two out of 22 features: two planes per class err on 3 % of the rows, 64 on 24 %."""
    X = np.random.default_rng(0).normal(size=(1500, 22))
    assert 2 <= chosen(X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)).max() <= 4


def test_many_rows_get_planes_that_few_rows_do_not_ask_for():
    """A board of ten by ten fields: 64 planes are the most that are tried at first."""
    X = np.random.default_rng(0).uniform(0, 10, (9000, 2))
    assert chosen(X, np.floor(X).sum(axis=1).astype(int) % 2).min() >= 128


def test_growing_samples_share_the_rows_they_are_compared_on():
    X, y = rings(100_000, 0)
    data = Data(X, y, np.ones(len(y)), np.arange(len(y)), 2)
    rungs, is_sample = tangents._rungs(SmoothMultiHyperplane(), data, 0)
    assert is_sample
    assert [len(rung.rows.train) for rung in rungs] == [1500, 6000, 25_000]
    for rung in rungs:
        assert rung.held_out is rungs[0].held_out
        assert not set(rung.rows.train) & set(rung.held_out)


def test_quarters_of_few_rows_have_the_same_share_of_a_rare_class():
    y = (np.arange(400) % 50 == 0).astype(int)
    data = Data(rings(400, 0)[0], y, np.ones(400), np.arange(400), 2)
    rungs, is_sample = tangents._rungs(SmoothMultiHyperplane(), data, 0)
    assert not is_sample
    assert [y[rung.held_out].sum() for rung in rungs] == [2, 2, 2]
    assert [y[rung.rows.train].sum() for rung in rungs] == [6, 6, 6]


def test_noisy_labels_ask_for_small_steps_or_doubt():
    """A board of 16 fields, four in ten labels random: 17 % errors with large steps, 11 with small ones, 5 in doubt."""
    X, y = make_checkerboard(4000, (4, 4), random_state=0)
    rng = np.random.default_rng(100)
    noisy = np.where(rng.random(2000) < 0.4, rng.choice(np.unique(y), 2000), y[:2000])
    models = [MultiHyperplaneClassifier(eta0=eta0, random_state=0).fit(X[:2000], noisy) for eta0 in (None, 0.3)]
    small, large = (1 - model.score(X[2000:], y[2000:]) for model in models)
    assert small < 0.08
    assert small < large - 0.05
    best = int(np.argmin(models[0].choice_["loss"]))
    assert models[0].choice_["label_noise"][best] > 0
    assert not {"eta0", "label_noise"} & set(models[1].choice_)


def test_clean_labels_ask_for_no_other_steps():
    model = MultiHyperplaneClassifier(random_state=0).fit(*make_checkerboard(2000, (4, 4), random_state=0))
    assert set(model.choice_["label_noise"]) == {0.0}
    assert len(set(model.choice_["eta0"])) == 1


def test_rows_with_doubtful_labels_count_less():
    """A label that the model finds improbable counts as likely as it is right, rather than random."""
    X, y = make_checkerboard(1000, (2, 2), random_state=0)
    y = (y == y.max()).astype(int)
    wrong = np.random.default_rng(0).random(1000) < 0.15
    data = Data(X, np.where(wrong, 1 - y, y), np.ones(1000), np.arange(1000), 2)
    method = SmoothMultiHyperplane(n_planes=4, label_noise=0.3)
    trust = Run(method).go([data] * 20).state.rows.trust
    assert trust[~wrong].mean() > 0.75  # at most 1 / (1 + 0.3 / (2 * 0.7)), that of a certain label
    assert trust[wrong].mean() < 0.3
    assert Run(replace(method, label_noise=None)).go([data]).state.rows.trust is None


def test_models_trained_together_doubt_labels_too():
    X, y = make_checkerboard(3000, (4, 4), random_state=0)
    y, rng = (y == y.max()).astype(int), np.random.default_rng(0)
    noisy = np.where(rng.random(1500) < 0.4, rng.integers(0, 2, 1500), y[:1500])
    data = Data(X[:1500], noisy, np.ones(1500), np.arange(1500), 2)
    jobs = [Job(SmoothMultiHyperplane(n_planes=16, label_noise=doubt), 0, data.train) for doubt in (0.0, 0.4)]
    alone = Run(jobs[1].method, seed=0).go([data] * 60)
    models = *train_stacked(data, jobs), alone.method.planes(alone.state)
    trusting, doubting, doubting_alone = (np.mean(planes.predict(X[1500:]) != y[1500:]) for planes in models)
    assert doubting < trusting - 0.05
    assert doubting == pytest.approx(doubting_alone, abs=0.03)


def test_the_chosen_step_is_kept_when_training_continues():
    X, y = make_checkerboard(1000, (4, 4), random_state=0)
    method = SmoothMultiHyperplane(n_planes=4)
    data = Data(X, (y == y.max()).astype(int), np.ones(1000), np.arange(1000), 2)
    state = SmoothMultiHyperplane(n_planes=4, eta0=0.03).start(data, 0)
    methods = method, replace(method, eta0=0.3)
    small, usual = (own.paces(state, Schedule(10, 0, False), 1000, 256)[0][0] for own in methods)
    assert usual.rate == pytest.approx(10 * small.rate)


def test_each_plane_has_a_few_rows():
    data = Data(np.zeros((50, 1)), np.repeat([0, 1, 2], [40, 7, 3]), np.ones(50), np.arange(50), 3)
    assert tangents._limit(data, 64).tolist() == [10, 1, 1]
    assert tangents._limit(data, 4).tolist() == [4, 1, 1]


def test_a_class_of_few_rows_gets_few_planes():
    X, y = rings(1000, 0)
    X, y = np.vstack([X, [[9.0, 9.0]]]), np.append(y, 2)
    planes = chosen(X, y, n_classes=4)
    assert planes[:2].min() >= 60
    np.testing.assert_array_equal(planes[2:], [1, 1])


@pytest.mark.parametrize("n_rows", [2, 7, 12])
def test_a_handful_of_rows_is_enough(n_rows):
    X, y = rings(400, 0)
    rows = np.concatenate([np.flatnonzero(y == c)[: n_rows // 2] for c in (0, 1)])
    planes = chosen(X[rows], y[rows])
    assert planes.min() >= 1
    assert planes.max() <= max(1, n_rows // 8)


def test_rows_without_weight_have_no_say():
    (X, y), (noise, labels) = rings(600, 0), overlapping(600, 1)
    X, weight = np.vstack([X, 100 * noise[:, :2]]), np.repeat([1.0, 0.0], 600)
    np.testing.assert_array_equal(chosen(X, np.append(y, labels), weight=weight), chosen(X[:600], y))


def test_confidence_is_not_held_against_a_candidate():
    """The same planes, ten times as steep or ten times as flat, have the same losses."""
    X, y = overlapping(500, 0)
    data, rows = Data(X, y, np.ones(500), np.arange(500), 2), np.arange(500)
    coef, intercept = np.vstack([X[y == c].mean(axis=0) for c in (0, 1)]), np.zeros(2)
    planes = [PlaneSet.of_classes((s * coef[[c]], intercept[[c]]) for c in (0, 1)) for s in (1.0, 10.0, 0.1)]
    losses = [tangents._calibrated_losses(own, data, rows) for own in planes]
    for other in losses[1:]:
        np.testing.assert_allclose(other, losses[0], atol=1e-6)
    wrong = (X @ (coef[1] - coef[0]) > 0) != y
    assert 0 < losses[0].mean() - wrong.mean() < 0.5  # the Brier score of a coin


# What users see of it.


def test_what_was_compared_is_in_choice(capsys):
    X, y = rings(300, 0)
    model = MultiHyperplaneClassifier(max_iter=2, random_state=0, verbose=1).fit(X, y)
    assert set(model.choice_) == {"n_planes", "eta0", "label_noise", "loss"}
    most = int(np.diff(model.planes_.indptr).max())
    assert most in model.choice_["n_planes"]
    assert capsys.readouterr().out.splitlines()[0].partition("0/2")[2].startswith(f"  n_planes {most}  eta0 ")
    assert not hasattr(model.set_params(n_planes=3).fit(X, y), "choice_")


def test_polytopes_share_the_centres_that_they_start_from(monkeypatch):
    counted, of = [], convex_polytope.ClassCentres.of
    monkeypatch.setattr(
        convex_polytope.ClassCentres, "of", lambda data, k, seed: counted.append(k) or of(data, k, seed)
    )
    model = ConvexPolytopeClassifier(max_iter=1, random_state=0).fit(*rings(300, 0))
    assert set(model.choice_) == {"n_planes", "start_weight", "strength", "loss"}
    n_trials = len(model.choice_["loss"])
    assert (n_trials, len(counted)) == (110, 40 + 1)  # 10 splits of 4 numbers of planes, and the fit itself
