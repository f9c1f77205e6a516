import sys

import pytest

from polyplane._loop import Plateau, train
from polyplane._progress import Progress


def test_plateau_counts_steps_without_progress():
    plateau = Plateau(tol=0.1, patience=2)
    assert [plateau.reached(v) for v in (10, 8, 7.9, 7.0, 6.9, 6.8)] == [False, False, False, False, False, True]
    assert not any(Plateau(tol=None, patience=1).reached(1.0) for _ in range(5))


def test_a_loss_of_zero_is_a_plateau():
    plateau = Plateau(tol=1e-3, patience=1)
    assert [plateau.reached(0.0) for _ in range(2)] == [False, True]


def test_training_stops_at_the_total_or_when_converged():
    def counting(total, goal):
        return train(lambda s: s + 1, 0, lambda s: {"s": s}, lambda f: f["s"] >= goal, Progress("", total, 0))

    assert counting(5, 99)[:2] == (5, 5)
    trained = counting(5, 3)
    assert trained.n_iter == 3
    assert trained.history["s"] == [1.0, 2.0, 3.0]
    assert trained.history["time"] == sorted(trained.history["time"])


def test_lines_are_not_too_many(capsys):
    progress = Progress("x", 1000, verbose=1)
    for done in range(1, 1001):
        progress.update(done, {"loss": 1 / done})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "x  1/1000  loss 1"
    assert lines[-1] == "x  1000/1000  loss 0.001"
    assert len(lines) < 50


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with Progress("polytopes", 4, verbose=1) as progress:
        progress.update(4, {"loss": 0.25})
    shown = capsys.readouterr().out
    assert "polytopes" in shown
    assert "4/4" in shown
    assert "loss 0.25" in shown


def test_the_bar_goes_away_when_training_fails(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    progress = Progress("x", 3, verbose=1)
    with pytest.raises(ZeroDivisionError):
        train(lambda s: 1 / 0, 0, lambda s: {}, lambda f: False, progress)
    assert progress._bar.finished or not progress._bar.live.is_started
