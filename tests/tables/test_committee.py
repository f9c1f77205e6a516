"""How a committee is put together: features, planes, weights, passes and the temperature."""

from dataclasses import replace
from itertools import repeat

import numpy as np
import pytest

from polyplane.engine.run import Race, Run
from polyplane.learners.multi_hyperplane import SmoothMultiHyperplane
from polyplane.tables import choice
from polyplane.tables.choice import (
    Candidate,
    Plan,
    _greedy,
    _weighted_later,
    committee_to_train,
    n_passes,
    parts_of,
    preparations_of,
    select,
)
from polyplane.tables.members import EncodedRows, MemberTask, train_members


def board(n_rows=800, n_features=3):
    """Two classes on a board of two by two fields, and columns that do not matter."""
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, n_features))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return EncodedRows(X, y, np.ones(n_rows), np.zeros(n_features, dtype=bool), 2)


def plan(names=("standard",), n_planes=None, max_iter=20, n_members=1):
    return Plan(names, n_planes, max_iter, tuple(range(n_members)))


def test_more_rows_are_passed_over_less_often():
    assert [n_passes(n_rows) for n_rows in (100, 3_000, 10**6)] == [60, 50, 20]
    assert n_passes(10**6, on_device=True) == 30


def test_preparations_that_cannot_pay_are_not_tried():
    rows = board()
    assert preparations_of(rows) == ("standard", "robust", "robust+norm", "squares", "bins")
    assert preparations_of(EncodedRows(rows.Z, rows.y, rows.weight, np.ones(3, dtype=bool), 2)) == ("standard",)
    wide = EncodedRows(np.ones((4, 300)), rows.y, rows.weight, np.zeros(300, dtype=bool), 2)
    assert "bins" not in preparations_of(wide)
    coded = replace(rows, Z=np.floor(5 * rows.Z))
    assert preparations_of(coded)[-1] == "levels"
    assert "levels" not in preparations_of(replace(coded, ranks=np.zeros((3, 2), dtype=int)))
    many = replace(coded, Z=np.tile(coded.Z, 20), is_indicator=np.zeros(60, dtype=bool))
    assert "levels" not in preparations_of(many)


def test_what_is_clearly_worse_has_no_part_in_a_committee():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 4))
    y = ((X**2).sum(axis=1) > 3.4).astype(int)
    rows = EncodedRows(X, y, np.ones(800), np.zeros(4, dtype=bool), 2)
    team = select(rows, plan(("standard", "squares"), n_members=5))
    assert {own.name for own in team.candidates} == {"squares"}
    best, worst = next(iter(team.losses.items())), list(team.losses.items())[-1]
    assert best[0].startswith("squares")
    assert worst[0].startswith("standard")
    assert worst[1] > 2 * best[1]


def test_a_preparation_that_leads_on_more_rows_only_is_weighted_there():
    losses = {"bins": (1.0, 0.5, 0.7), "squares": (1.0, 2.0, 0.1), "robust": (1.0, 0.2, 0.3)}
    race = Race(lambda candidates, part: [np.full(4, losses[own.name][own.weightings]) for own in candidates])
    race.run([Candidate("bins", 1, 4)], ["few rows"])  # weights from few rows are no reason not to weight again
    race.run([Candidate("robust", 1, 4)], ["many rows"])
    leaders = race.run([Candidate(name, 0, 4) for name in losses], ["many rows"])
    tried = [Candidate("bins", 1, 4), Candidate("bins", 2, 4), Candidate("squares", 1, 4)]
    assert _weighted_later(race, leaders, "many rows") == tried


def test_weights_of_columns_that_do_not_matter_fall():
    team = select(board(n_features=12), plan(("standard", "robust"), n_members=4))
    assert all(own.weightings for own in team.candidates)
    for gain in team.gains.values():
        assert gain[:2].min() > 2 * gain[2:].max()


def test_codes_whose_order_means_nothing_become_levels():
    """The class says whether three codes include two equal ones: planes over their order cannot know."""
    Z = np.random.default_rng(0).integers(0, 6, (900, 3)).astype(float)
    y = (np.diff(np.sort(Z, axis=1), axis=1) == 0).any(axis=1).astype(int)
    rows = EncodedRows(Z, y, np.ones(900), np.zeros(3, dtype=bool), 2)
    team = select(rows, plan(preparations_of(rows)))
    assert team.candidates[0].name == "levels"
    others = [loss for label, loss in team.losses.items() if "levels" not in label]
    assert min(team.losses.values()) < 0.5 * min(others)


def test_members_are_selected_for_the_loss_of_their_mean():
    """Two candidates err on different rows, their mean on none; a third is better than either."""
    y = np.zeros(40, dtype=int)
    right = {"a": np.r_[np.full(20, 6.0), np.full(20, -1.0)], "b": np.r_[np.full(20, -1.0), np.full(20, 6.0)]}
    scores = {name: np.stack([value, -value], axis=1) for name, value in (right | {"c": np.full(40, 0.4)}).items()}
    assert _greedy(scores, y, np.ones(40), 1) == {"c": 1}
    chosen = _greedy(scores, y, np.ones(40), 9)
    assert min(chosen["a"], chosen["b"]) >= 3
    assert chosen.total() == 9
    only_the_last = _greedy(scores, y, np.r_[np.zeros(20), np.ones(20)], 3)
    assert only_the_last == {"b": 3}


@pytest.mark.parametrize(
    ("n_rows", "sizes", "held_out"),
    [
        (103, [77, 77, 77, 77, 78], [26, 26, 26, 26, 25]),
        (3_000, [2_250] * 3, [750] * 3),
        (5_000, [3_000, 3_750], [1_250] * 2),
        (20_000, [3_750, 15_000], [5_000] * 2),
        (80_000, [3_000, 10_000, 40_000], [8_000] * 3),
    ],
)
def test_folds_of_few_rows_and_growing_samples_of_many(n_rows, sizes, held_out):
    samples, parts = parts_of(board(n_rows), plan(max_iter=30))
    assert [len(part.training.y) for part in samples + parts] == sizes
    assert [len(part.held_out.y) for part in samples + parts] == held_out
    assert [part.max_iter for part in samples + parts] == [20] * len(samples) + [30] * len(parts)
    whole = sorted(map(tuple, np.concatenate([part.held_out.Z for part in parts])))
    assert len(set(whole)) == len(whole)  # a row is held out at most once


def test_many_rows_get_planes_that_few_rows_do_not_ask_for():
    """A board of ten by ten fields has 20 rows per field in 2,000 rows, which do not show it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (12_000, 2))
    y = np.floor(X).sum(axis=1).astype(int) % 2
    rows = EncodedRows(X, y, np.ones(len(y)), np.zeros(2, dtype=bool), 2)
    team = select(rows, plan())
    assert team.candidates[0].n_planes >= 64
    assert next(iter(team.losses)) == f"standard, {team.candidates[0].n_planes} planes"
    assert team.temperature > 0


def test_few_planes_remain_few_on_many_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=9000) > 0).astype(int)
    rows = EncodedRows(X, y, np.ones(len(y)), np.zeros(3, dtype=bool), 2)
    team = select(rows, plan(("standard", "squares"), n_members=3))
    assert max(own.n_planes for own in team.candidates) <= 8
    given = select(rows, plan(n_planes=3, n_members=3))
    assert given.candidates == [Candidate("standard", 0, 3)] * 3
    assert given.weights == [given.weights[0]] * 3
    assert given.losses == {}


def test_smaller_steps_are_compared_on_many_rows(monkeypatch):
    """Until they are no longer better; the member that is trained makes the steps of the best candidate."""
    rows, how = board(6000), plan(n_planes=4, max_iter=5)
    assert select(rows, how).losses == {}
    monkeypatch.setattr(choice, "STEPS_COMPARED", 4000)
    for first in (0.3, 30.0):  # much too large
        monkeypatch.setattr(Plan, "candidates", [Candidate("standard", 0, 4, first)])
        team = select(rows, how)
        losses, best = list(team.losses.values()), team.candidates[0]
        assert len(losses) > 1
        assert losses[0] == min(losses)
        assert best.label == next(iter(team.losses))
        assert committee_to_train(rows, how, team).parts[0].method.eta0 == best.eta0
    assert best.eta0 < first


def test_one_plane_of_each_class_is_trained_once():
    """It is the minimum of a convex problem, whatever the seed; several planes are another task for each seed."""
    rows = board(200)
    one, several = (planned(rows, plan(n_planes=n_planes, max_iter=10, n_members=3)) for n_planes in (1, 4))
    assert [part.seed for part in one.parts] == [0]
    assert [part.seed for part in several.parts] == [0, 1, 2]


def test_members_are_as_good_as_the_classifier_that_can_be_resumed():
    """The same method with other random numbers: errors on a checkerboard of 2 by 2 are as small."""
    rows = board(2000)
    task = MemberTask(rows.data(rows.prepare("standard")), 4, None, 20, 0)
    data, method = task.data, SmoothMultiHyperplane(n_planes=4, max_iter=20)
    planes = train_members([task])[0]
    run = Run(method, method.start(data, 0)).go(repeat(data, method.max_iter))
    errors = [
        (each.class_scores(data.X).argmax(axis=1) != rows.y).mean() for each in (planes, method.planes(run.state))
    ]
    assert max(errors) < 0.03
    assert abs(errors[0] - errors[1]) < 0.01
    again = train_members([task, replace(task, seed=1)], n_jobs=2)
    assert again[0] == planes
    assert again[1] != planes


def test_two_rows_have_no_temperature():
    rows = EncodedRows(np.array([[0.0], [1.0]]), np.array([0, 1]), np.ones(2), np.zeros(1, dtype=bool), 2)
    assert parts_of(rows, plan()) == ([], [])
    assert planned(rows, plan(n_planes=1, max_iter=5)).fitted_temperature == 1.0


def planned(rows, settings):
    """The committee to train, with what is selected for it."""
    return committee_to_train(rows, settings, select(rows, settings))
