"""The engine: runs that stop when they should, states that are undone, copied and mixed as declared."""

import sys
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Annotated

import numpy as np
import pytest
from scipy import sparse

from polyplane.engine.data import Data
from polyplane.engine.method import Method, Traits, refuse_changes
from polyplane.engine.run import Limits, Observer, Plateau, Progress, Run
from polyplane.engine.state import Array, MixedNumber, MixedWhole, RowMemory, State, kinds_of, mix, workspace
from polyplane.planes import PlaneSet


def test_plateau_counts_steps_without_progress():
    plateau = Plateau(tol=0.1, patience=2)
    assert [plateau.reached(v) for v in (10, 8, 7.9, 7.0, 6.9, 6.8)] == [False, False, False, False, False, True]
    assert not any(Plateau(tol=None, patience=1).reached(1.0) for _ in range(5))


def test_a_loss_of_zero_is_a_plateau():
    plateau = Plateau(tol=1e-3, patience=1)
    assert [plateau.reached(0.0) for _ in range(2)] == [False, True]


@dataclass(frozen=True, eq=False)
class Seen(RowMemory):
    visits: Annotated[np.ndarray, Array("i", "rows")]


@dataclass(frozen=True, eq=False)
class Sums(State):
    total: Annotated[np.ndarray, Array("f", "features", by_feature=True, mixed=True, scaled_by="count")]
    fixed: Annotated[np.ndarray, Array("f", "features", in_place=False)]
    count: MixedWhole = 0
    error: MixedNumber = 8.0
    rows: Seen | None = None
    notes: list | None = workspace()


@dataclass(frozen=True)
class Summing(Method[Sums]):
    """Adds up rows; halves its error at each step, down to a floor."""

    floor: float = 0.0
    fail_at: int = -1
    error: type[BaseException] = field(default=RuntimeError)

    traits = Traits(Sums, frozenset({"fail_at"}))

    def start(self, data, seed):
        return Sums(np.zeros(data.X.shape[1]), np.full(data.X.shape[1], float(seed)))

    def step(self, state, data):
        if state.notes is None:
            state = replace(state, rows=state.rows or Seen(np.zeros(len(data.y), dtype=int)), notes=[])
        state.total[:] += np.asarray(data.X.sum(axis=0)).ravel()
        state.rows.visits[:] += 1
        state.notes.append("step")
        if state.count == self.fail_at:
            raise self.error("in the middle")
        return replace(state, count=state.count + 1, error=max(state.error / 2, self.floor))

    def planes(self, state):
        return PlaneSet(np.stack([state.total, -state.total]), np.zeros(2), np.arange(3))

    def metrics(self, state):
        return {"error": state.error}

    def done(self, state):
        return state.error


def rows(n=5, d=3, **how):
    return Data(np.arange(float(n * d)).reshape(n, d), np.arange(n) % 2, np.ones(n), np.arange(n), 2, **how)


class TestRun:
    def test_it_stops_at_the_end_of_the_data_or_on_a_plateau(self):
        run = Run(Summing()).go(repeat(rows(), 4))
        assert (run.n_steps, run.reason, run.history["error"]) == (4, "end of data", [4.0, 2.0, 1.0, 0.5])
        run = Run(Summing(floor=1.0), plateau=Plateau(0.1, 2)).go(repeat(rows(), 40))
        assert (run.n_steps, run.reason) == (5, "converged")

    def test_a_stream_does_not_converge(self):
        run = Run(Summing(floor=1.0), plateau=Plateau(0.1, 2)).go(repeat(rows(stream=True), 40))
        assert (run.n_steps, run.reason) == (40, "end of data")

    def test_a_time_limit_ends_it_after_a_step(self):
        run = Run(Summing(), limits=Limits(seconds=1e-9)).go(repeat(rows()))
        assert (run.n_steps, run.reason) == (1, "time limit")

    def test_it_works_on_a_copy(self):
        given = Run(Summing()).go(repeat(rows(), 2)).state
        before = given.total.copy()
        run = Run(Summing(), given).go(repeat(rows(), 3))
        np.testing.assert_array_equal(given.total, before)
        assert run.state.count == 5

    @pytest.mark.parametrize("error", [RuntimeError, MemoryError, KeyboardInterrupt])
    def test_a_step_that_fails_is_undone(self, error):
        run = Run(Summing(fail_at=3, error=error))
        with pytest.raises(error):
            run.go(repeat(rows(), 9))
        twin = Run(Summing()).go(repeat(rows(), 3))
        np.testing.assert_array_equal(run.state.total, twin.state.total)
        np.testing.assert_array_equal(run.state.rows.visits, twin.state.rows.visits)
        assert (run.n_steps, run.state.count) == (3, 3)
        assert run.history["error"] == twin.history["error"]
        assert run.reason == ("interrupted" if error is KeyboardInterrupt else "end of data")

    def test_observers_look_on(self):
        class Watch(Observer):
            def before_step(self, run, data):
                return {"before": run.n_steps}

            def after_step(self, run, metrics):
                return {"after": run.n_steps, "seen": metrics["error"]}

        run = Run(Summing(), observers=[Watch()]).go(repeat(rows(), 2))
        assert run.history["before"] == [0.0, 1.0]
        assert run.history["after"] == [1.0, 2.0]
        assert run.history["seen"] == run.history["error"]

    def test_going_on_with_another_parameter_is_refused(self):
        refuse_changes(Summing(fail_at=7), Summing())
        with pytest.raises(ValueError, match=r"floor=1.0.*floor=0.0"):
            refuse_changes(Summing(floor=0.0), Summing(floor=1.0))

    def test_an_untracked_run_takes_the_same_steps_and_keeps_nothing_else(self):
        seen = []

        class Watch(Observer):
            def after_step(self, run, metrics):
                seen.append(run.n_steps)
                return {}

        twin = Run(Summing(floor=1.0)).go(repeat(rows(), 5))
        given = Summing().start(rows(), 0)
        run = Run(Summing(floor=1.0), given, observers=[Watch()], tracked=False).go(repeat(rows(), 5))
        np.testing.assert_array_equal(run.state.total, twin.state.total)
        assert (run.n_steps, run.state.error, run.history, seen) == (5, twin.state.error, {}, [])
        assert run.state.total is given.total  # no copy is made


class TestState:
    def test_replace_is_that_of_dataclasses(self):
        state = Run(Summing()).go([rows()]).state
        changed = state.replace(count=7, notes=["x"])
        assert vars(changed) == vars(replace(state, count=7, notes=["x"]))
        assert (type(changed), state.count) == (Sums, 1)

    def test_wide_sparse_rows_are_undone_by_their_features(self):
        """Few features of many are saved; the result is the same."""
        X = sparse.random_array((20, 5000), density=1e-3, format="csr", rng=np.random.default_rng(0))
        data = Data(X, np.arange(20) % 2, np.ones(20), np.arange(20), 2)
        run = Run(Summing(fail_at=1))
        with pytest.raises(RuntimeError):
            run.go(repeat(data, 3))
        np.testing.assert_array_equal(run.state.total, Run(Summing()).go([data]).state.total)

    def test_copies_share_what_is_never_written(self):
        state = Run(Summing()).go([rows()]).state
        copy = state.copy()
        assert copy.fixed is state.fixed
        assert copy.total is not state.total
        assert copy.notes is None

    def test_row_memory_belongs_to_its_rows(self):
        data, same, other = rows(), rows(), rows(6)
        state = Run(Summing()).go([data]).state
        kept = state.with_rows_of(data)
        assert kept.for_rows(same).rows.visits is state.rows.visits
        assert kept.for_rows(other).rows is None
        assert state.for_rows(same).rows is None, "without a fingerprint nothing is known of the rows"
        assert kept.without_rows().rows is None

    def test_mixing_is_by_the_declaration(self):
        one, two = (Run(Summing()).go(repeat(rows(), n)).state for n in (1, 3))
        mixed = mix([one, two], np.array([0.5, 0.5]))
        assert (mixed.count, mixed.error) == (2, (4.0 + 1.0) / 2)
        # The totals over their counts are the same in both, so their average times the mean count is.
        np.testing.assert_allclose(mixed.total, 2 * one.total)
        assert mixed.fixed is one.fixed

    def test_a_field_without_a_kind_is_refused(self):
        @dataclass(frozen=True, eq=False)
        class Odd(State):
            what: object

        with pytest.raises(TypeError, match=r"Odd.what: .* is not supported"):
            kinds_of(Odd)


def test_fingerprints_tell_rows_apart():
    data = rows()
    assert data.fingerprint == rows().fingerprint
    others = [rows(6), replace(data, y=1 - data.y), replace(data, weight=2 * data.weight), replace(data, train=data.y)]
    others += [replace(data, X=data.X.astype(np.float32)), replace(data, X=sparse.csr_array(data.X))]
    assert len({data.fingerprint, *(other.fingerprint for other in others)}) == 7


def test_lines_are_not_too_many(capsys):
    progress = Progress("x", 1000)
    for done in range(1, 1001):
        progress.update(done, {"loss": 1 / done})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "x  1/1000  loss 1"
    assert lines[-1] == "x  1000/1000  loss 0.001"
    assert len(lines) < 50


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    progress = Progress("polytopes", 4)
    progress.begin()
    progress.update(4, {"loss": 0.25})
    progress.end()
    shown = capsys.readouterr().out
    assert "polytopes" in shown
    assert "4/4" in shown
    assert "loss 0.25" in shown


def test_a_terminal_without_rich_gets_lines(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich", None)
    progress = Progress("polytopes", 4)
    progress.begin()
    progress.update(4, {"loss": 0.25})
    progress.end()
    assert capsys.readouterr().out == "polytopes  4/4  loss 0.25\n"


def test_the_bar_goes_away_when_training_fails(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    progress = Progress("x", 3)
    with pytest.raises(RuntimeError):
        Run(Summing(fail_at=0), observers=[progress]).go(repeat(rows(), 3))
    assert progress._bar.finished or not progress._bar.live.is_started
