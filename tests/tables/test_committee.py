"""How a committee is put together: preparations, planes, passes and the temperature."""

from dataclasses import replace
from itertools import repeat

import numpy as np
import pytest

from polyplane.engine.run import Run
from polyplane.learners.multi_hyperplane import SmoothMultiHyperplane
from polyplane.learners.tangents import tangent_start
from polyplane.tables.choice import (
    Candidate,
    EncodedRows,
    Plan,
    _held_out_parts,
    candidates,
    choose_preparation,
    committee_to_train,
    mixed,
    n_passes,
    samples_of,
    settle,
)
from polyplane.tables.members import MemberTask, train_members


def board(n_rows=800, n_features=3):
    """Two classes on a board of two by two fields, and columns that do not matter."""
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, n_features))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return EncodedRows(X, y, np.ones(n_rows), np.zeros(n_features, dtype=bool), 2)


def test_the_best_preparations_share_a_committee():
    ranking = [Candidate(name) for name in "abcd"]
    assert "".join(candidate.name for candidate in mixed(ranking, 5)) == "aaabc"
    assert "".join(candidate.name for candidate in mixed(ranking, 3)) == "aab"
    assert "".join(candidate.name for candidate in mixed(ranking, 1)) == "a"
    assert "".join(candidate.name for candidate in mixed(ranking[:1], 5)) == "aaaaa"


def test_more_rows_are_passed_over_less_often():
    assert [n_passes(n_rows) for n_rows in (100, 12_500, 10**6)] == [60, 40, 20]


def test_preparations_that_cannot_pay_are_not_tried():
    rows = board()
    assert candidates(rows) == ["standard", "robust", "robust+norm", "squares", "bins"]
    assert candidates(EncodedRows(rows.Z, rows.y, rows.weight, np.ones(3, dtype=bool), 2)) == ["standard"]
    assert "bins" not in candidates(EncodedRows(np.ones((4, 300)), rows.y, rows.weight, np.zeros(300, dtype=bool), 2))


def test_what_is_clearly_worse_has_no_part_in_a_committee():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    y = ((X**2).sum(axis=1) > 3.4).astype(int)
    choice = choose_preparation(EncodedRows(X, y, np.ones(800), np.zeros(4, dtype=bool), 2), ["standard", "squares"], 0)
    assert {candidate.name for candidate in choice.ranking} == {"squares"}
    assert choice.losses["standard"] > 2 * choice.losses["squares"]
    assert choice.ranking[0].label == next(iter(choice.losses))


def test_weights_of_columns_that_do_not_matter_fall():
    choice = choose_preparation(board(n_features=12), ["standard"], 0)
    assert choice.ranking[0].label == "standard, weighted"
    gain = np.array(choice.ranking[0].gain)
    assert gain[:2].min() > 2 * gain[2:].max()


@pytest.mark.parametrize(
    ("n_rows", "sizes"),
    [(3_751, [3_751, 3_751]), (9_000, [8_000, 9_000]), (40_000, [8_000, 40_000]), (10**6, [8_000, 32_000, 50_000])],
)
def test_samples_grow(n_rows, sizes):
    samples = samples_of(n_rows, 30)
    assert [sample.n_rows for sample in samples] == sizes
    assert [sample.max_iter for sample in samples] == [20] * (len(sizes) - 1) + [30]


def test_many_rows_get_planes_that_few_rows_do_not_ask_for():
    """A board of ten by ten fields has 20 rows per field in 2,000 rows, which do not show it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (12_000, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    rows = EncodedRows(X, y, np.ones(len(y)), np.zeros(2, dtype=bool), 2)
    plan = Plan([Candidate("standard")], None, 20, [0])
    few, many = settle(rows.take(np.arange(2000)), plan), settle(rows, plan)
    name = Candidate("standard")
    assert many.n_planes[name].max() >= 64
    assert many.n_planes[name].max() >= 2 * few.n_planes[name].max()
    assert next(iter(many.losses)) == f"standard, {many.n_planes[name].max()} planes"
    assert few.losses == {}
    assert many.temperature > 0


def test_few_planes_remain_few_on_many_rows():
    """More planes than a linear boundary needs are not worth their time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=6000) > 0).astype(int)
    rows = EncodedRows(X, y, np.ones(len(y)), np.zeros(3, dtype=bool), 2)
    settled = settle(rows, Plan([Candidate("standard"), Candidate("squares")], None, 20, [0, 1, 2]))
    assert max(n_planes.max() for n_planes in settled.n_planes.values()) <= 4
    given = settle(rows, Plan([Candidate("standard")], 3, 20, [0, 1, 2]))
    assert given.n_planes[Candidate("standard")].tolist() == [3, 3]
    assert list(given.losses) == ["standard, 3 planes"]


def test_one_plane_of_each_class_is_trained_once():
    """It is the minimum of a convex problem, whatever the seed; several planes are another task for each seed."""
    rows = board(200)
    one, several = (planned(rows, Plan([Candidate("standard")], n_planes, 10, [0, 1, 2])) for n_planes in (1, 4))
    assert [number for _, number in one.owners] == [0, 0, 0]
    assert [number for _, number in several.owners] == [0, 1, 2]


def test_members_are_as_good_as_the_classifier_that_can_be_resumed():
    """The same method with other random numbers: errors on a checkerboard of 2 by 2 are as small."""
    rows = board(2000)
    task = MemberTask(rows.data(rows.prepare(Candidate("standard"))), np.array([4, 4]), None, 20, 0)
    data, method = task.data, SmoothMultiHyperplane(max_iter=20)
    planes = train_members([task])[0]
    start = tangent_start(data, task.n_planes, task.scaling, method.scale, 0)
    run = Run(method, method.begin(start, task.scaling, 0)).go(repeat(data, method.max_iter))
    errors = [
        (each.class_scores(data.X).argmax(axis=1) != rows.y).mean() for each in (planes, method.planes(run.state))
    ]
    assert max(errors) < 0.03
    assert abs(errors[0] - errors[1]) < 0.01
    again = train_members([task, replace(task, seed=1)], n_jobs=2)
    assert again[0] == planes
    assert again[1] != planes


@pytest.mark.parametrize(("n_rows", "n_parts"), [(103, 4), (2001, 1)])
def test_all_of_few_rows_ask_for_the_temperature(n_rows, n_parts):
    rows = board(n_rows)
    parts = _held_out_parts(rows, 0)
    assert [len(training.y) + len(held_out.y) for training, held_out in parts] == [n_rows] * n_parts
    shares = [held_out.y.mean() - rows.y.mean() for _, held_out in parts]
    assert np.abs(shares).max() < 0.03
    if n_parts == 4:
        held_out = np.concatenate([held_out.Z for _, held_out in parts])
        assert sorted(map(tuple, held_out)) == sorted(map(tuple, rows.Z))


def test_two_rows_have_no_temperature():
    rows = EncodedRows(np.array([[0.0], [1.0]]), np.array([0, 1]), np.ones(2), np.zeros(1, dtype=bool), 2)
    assert _held_out_parts(rows, 0) == []
    assert planned(rows, Plan([Candidate("standard")], 1, 5, [0])).fitted_temperature == 1.0


def planned(rows, plan):
    """The committee to train, with what is chosen for it."""
    return committee_to_train(rows, plan, settle(rows, plan))
