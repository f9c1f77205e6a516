"""Training on streams: every learner, every kind of source, and what happens when they break off."""

import errno
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import polyplane
import polyplane.readers
from polyplane import ConvexPolytopeClassifier, MultiHyperplaneClassifier, PegasosSVC

LEARNERS = [
    value for value in (getattr(polyplane, name) for name in polyplane.learners.LEARNERS) if value._declaration.streams
]


def make(learner, **params):
    params = {"random_state": 0} | params
    return learner(**{name: value for name, value in params.items() if name in inspect.signature(learner).parameters})


def rows(n_batches=12, n_rows=60, n_features=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    for _ in range(n_batches):
        X = rng.normal(size=(n_rows, n_features)).astype(dtype)
        yield X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "up", "down")


BATCHES = list(rows())


@pytest.mark.parametrize("learner", LEARNERS)
class TestEveryLearner:
    def test_learns_as_partial_fit_does(self, learner):
        streamed = make(learner).fit_stream(BATCHES, classes=["up", "down"])
        pieces = make(learner)
        for X, y in BATCHES:
            pieces.partial_fit(X, y, classes=["up", "down"])
        assert streamed.planes_ == pieces.planes_
        assert streamed.score(*next(rows(1, 2000, seed=1))) > 0.89
        assert streamed.n_iter_ == len(BATCHES)

    def test_goes_on_from_a_checkpoint_to_the_same_planes(self, learner, tmp_path):
        path = tmp_path / "stream.safetensors"

        def breaks():
            yield from BATCHES[:5]
            raise OSError("the line is dead")

        whole = make(learner).fit_stream(BATCHES, passes=2)
        with pytest.raises(OSError, match="the line is dead"):
            make(learner).fit_stream(breaks, checkpoint=path)
        resumed = make(learner).fit_stream(BATCHES, passes=2, checkpoint=path, resume=True)
        assert resumed.planes_ == whole.planes_
        assert resumed.history_["rows"] == whole.history_["rows"]
        np.testing.assert_array_equal(resumed.history_["progressive_error"], whole.history_["progressive_error"])
        assert polyplane.load(path).planes_ == whole.planes_

    def test_a_broken_stream_leaves_the_model_so_far(self, learner):
        bad = np.full((3, 4), np.nan)
        machine = make(learner)
        with pytest.raises(ValueError, match=r"Batch 4 of the stream: .*NaN"):
            machine.fit_stream([*BATCHES[:3], (bad, ["up", "down", "up"]), *BATCHES[4:]], classes=["up", "down"])
        expected = make(learner).fit_stream(BATCHES[:3], classes=["up", "down"])
        assert machine.planes_ == expected.planes_
        assert machine.n_iter_ == 3
        machine.partial_fit(*BATCHES[3])


class TestSources:
    def test_lists_generators_and_functions_give_the_same(self):
        machines = [make(PegasosSVC).fit_stream(source) for source in (BATCHES, rows(), rows, lambda: iter(BATCHES))]
        assert all(machine.planes_ == machines[0].planes_ for machine in machines)

    def test_readers_of_files(self, tmp_path):
        np.savetxt(tmp_path / "rows.csv", np.column_stack([BATCHES[0][0], BATCHES[0][1] == "up"]), delimiter=",",
                   header="a,b,c,d,label", comments="")  # fmt: skip
        machine = make(PegasosSVC).fit_stream(polyplane.readers.batches(tmp_path / "rows.csv", 20))
        assert machine.n_iter_ == 3

    def test_passes(self):
        two = make(PegasosSVC).fit_stream(rows, passes=2)
        assert two.planes_ == make(PegasosSVC).fit_stream([*BATCHES, *BATCHES]).planes_
        assert two.history_["pass"] == [1.0] * 12 + [2.0] * 12
        with pytest.raises(ValueError, match=r"passes=2 needs a list of batches, .* generator is exhausted"):
            make(PegasosSVC).fit_stream(rows(), passes=2)

    def test_weights(self):
        weighted = [(X, y, np.linspace(0.1, 2, len(y))) for X, y in BATCHES]
        pieces = make(PegasosSVC)
        for X, y, weight in weighted:
            pieces.partial_fit(X, y, classes=["up", "down"], sample_weight=weight)
        assert make(PegasosSVC).fit_stream(weighted).planes_ == pieces.planes_

    @pytest.mark.parametrize("depth", [1, 3])
    def test_reading_ahead_changes_nothing(self, depth):
        assert (
            make(PegasosSVC).fit_stream(rows, passes=3, prefetch=depth).planes_
            == make(PegasosSVC).fit_stream(rows, passes=3).planes_
        )

    def test_reading_ahead_happens_elsewhere_and_ends_with_training(self):
        seen = set()

        def endless():
            while True:
                seen.add(threading.current_thread().name)
                yield BATCHES[0]

        make(PegasosSVC).fit_stream(endless, prefetch=2, time_limit=0.05)
        assert seen == {"polyplane-reader"}
        for _ in range(100):
            if not any(thread.name == "polyplane-reader" for thread in threading.enumerate()):
                return
            time.sleep(0.05)
        pytest.fail("The thread that reads ahead does not end.")

    def test_an_error_ahead_is_raised_in_its_turn(self):
        def breaks():
            yield from BATCHES[:5]
            raise OSError("the line is dead")

        machine = make(PegasosSVC)
        with pytest.raises(OSError, match="the line is dead") as caught:
            machine.fit_stream(breaks, prefetch=3)
        assert machine.n_iter_ == 5
        assert "trained on 300 rows" in caught.value.__notes__[0]


class TestFigures:
    def test_progressive_error_is_that_before_training(self):
        machine, pieces = make(PegasosSVC).fit_stream(BATCHES), make(PegasosSVC)
        errors = [np.nan]
        pieces.partial_fit(*BATCHES[0], classes=["up", "down"])
        for X, y in BATCHES[1:]:
            errors.append(1 - pieces.score(X, y))
            pieces.partial_fit(X, y)
        np.testing.assert_allclose(machine.history_["progressive_error"], errors)
        assert machine.history_["rows"] == [60.0 * (i + 1) for i in range(12)]
        assert "progressive_error" not in make(PegasosSVC).fit_stream(BATCHES, progressive=False).history_

    @pytest.mark.parametrize("enclosed", [None, "up"])
    @pytest.mark.parametrize("average", [True, False])
    def test_prediction_without_a_copy_of_the_planes(self, average, enclosed):
        X, _y = next(rows(1, 500, seed=2))
        machine = ConvexPolytopeClassifier(3, average=average, enclosed=enclosed, random_state=0).fit_stream(BATCHES)
        for matrix in (X, sparse.csr_matrix(X)):
            codes = machine._trained_by.predict(machine._state, matrix)
            np.testing.assert_array_equal(machine.classes_[codes], machine.predict(X))

    def test_validation(self):
        X, y = next(rows(1, 500, seed=1))
        machine = make(PegasosSVC).fit_stream(BATCHES, validation=(X, y), validate_every=5)
        assert machine.history_["validation_rows"] == [60.0, 300.0, 600.0, 720.0]
        assert machine.history_["validation_error"][-1] == pytest.approx(1 - machine.score(X, y))
        parts = make(PegasosSVC).fit_stream(BATCHES, validation=[(X[:100], y[:100]), (X[100:], y[100:])])
        assert parts.history_["validation_error"][-1] == pytest.approx(1 - machine.score(X, y))

    def test_a_time_limit(self):
        def endless():
            while True:
                yield BATCHES[0]

        began = time.perf_counter()
        machine = make(PegasosSVC).fit_stream(endless, time_limit=0.1)
        assert machine.n_iter_ > 1
        assert time.perf_counter() - began < 5

    def test_progress_is_shown(self, capsys):
        make(PegasosSVC, verbose=1).fit_stream(BATCHES)
        assert capsys.readouterr().out.startswith("PegasosSVC  60  rows/s ")


class TestRefusals:
    @pytest.mark.parametrize(
        ("batch", "message"),
        [
            ((np.zeros((2, 3)), ["up", "down"]), "Batch 13 of the stream: X has 3 features"),
            ((np.zeros((2, 4), dtype=np.float32), ["up", "down"]), "Batch 13 of the stream: X is float32"),
            ((np.zeros((0, 4)), []), "Batch 13 of the stream has no rows"),
            ((np.zeros((2, 4)), ["up", "left"]), "Batch 13 of the stream: y contains the label 'left' .row 1."),
            ((np.zeros((2, 4)), ["up"]), "Batch 13 of the stream: .*inconsistent numbers of samples"),
            (
                (np.zeros((2, 4)), ["up", "down"], [0, 0]),
                "Batch 13 of the stream: (Sample|All sample) weights",
            ),
            (np.zeros((2, 4)), r"Batch 13 of the stream is a .*, not \(X, y\)"),
            ((np.zeros((2, 4)),), r"Batch 13 of the stream is a .*, not \(X, y\)"),
        ],
    )
    def test_a_bad_batch(self, batch, message):
        machine = make(ConvexPolytopeClassifier)
        with pytest.raises(ValueError, match=message):
            machine.fit_stream([*BATCHES, batch])
        assert machine.planes_ == make(ConvexPolytopeClassifier).fit_stream(BATCHES).planes_

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"passes": 0}, "passes=0"),
            ({"half_life": 0}, "half_life=0"),
            ({"time_limit": -1}, "time_limit=-1"),
            ({"resume": True}, "resume=True needs the file to resume from"),
            ({"checkpoint": "no/such/folder/file"}, "the folder does not exist"),
            ({"classes": ["up"]}, "at least two classes"),
        ],
    )
    def test_bad_options(self, options, message):
        machine = make(PegasosSVC).fit(*BATCHES[0])
        before = machine.planes_
        with pytest.raises(ValueError, match=message):
            machine.fit_stream(BATCHES, **options)
        assert machine.planes_ is before

    def test_nothing_to_read(self):
        machine = make(PegasosSVC).fit(*BATCHES[0])
        before = machine.planes_
        for empty, message in (([], "it has no batches"), (7, "batches is a int")):
            with pytest.raises(ValueError, match=message):
                machine.fit_stream(empty)
            assert machine.planes_ is before

    def test_half_life_where_it_means_nothing(self):
        with pytest.raises(ValueError, match="half_life is not supported by MultiHyperplaneClassifier"):
            make(MultiHyperplaneClassifier).fit_stream(BATCHES, half_life=100)

    def test_there_is_none_for_programs_that_need_all_rows(self):
        assert not hasattr(polyplane.SuccessiveLPClassifier(), "fit_stream")


class TestNewFeatures:
    def growing(self, seed=0):
        """Sparse batches that get wider and narrower."""
        rng = np.random.default_rng(seed)
        for width in (3, 5, 4, 200, 6, 300):
            X = sparse.random_array((400, width), density=0.5, format="csr", rng=rng, data_sampler=rng.normal)
            yield X, np.where(np.asarray(X[:, [0]].todense()).ravel() > 0, 1, 0)

    @pytest.mark.parametrize("average", [True, False])
    def test_planes_grow_with_zero_weights(self, average):
        machine = ConvexPolytopeClassifier(3, average=average, random_state=0).fit_stream(self.growing())
        wide = [(sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(400, 300)), y) for X, y in self.growing()]
        all_along = ConvexPolytopeClassifier(3, average=average, random_state=0).fit_stream(wide)
        assert machine.n_features_in_ == machine.planes_.n_features == 300
        np.testing.assert_allclose(machine.coef_, all_along.coef_, atol=1e-12)
        machine.partial_fit(*wide[0])

    def test_dense_columns_do_not_grow(self):
        with pytest.raises(ValueError, match=r"Batch 2 of the stream: X has 5 features, but .* expecting 4"):
            make(PegasosSVC).fit_stream([BATCHES[0], (np.zeros((2, 5)), ["up", "down"])])

    def test_a_learner_that_cannot_grow_says_so(self):
        machine = make(MultiHyperplaneClassifier, n_planes=2)
        with pytest.raises(ValueError, match=r"Batch 2 of the stream: .* cannot add features"):
            machine.fit_stream(self.growing())
        assert machine.n_features_in_ == machine.planes_.n_features == 3

    def test_few_rows_in_many_features_are_not_lost_in_the_average(self):
        """The average is made up where it is asked for: a batch that is small against a plane counts all the same."""
        batches = [(sparse.csr_matrix(([1.0, -1.0], ([0, 1], [i, i])), shape=(2, 1000)), [1, 0]) for i in range(4)]
        planes = make(PegasosSVC, alpha=1.0).fit_stream(batches).coef_[0]
        assert (planes[:4] != 0).all()


class TestDrift:
    @given(window=st.integers(3, 400), n_rows=st.integers(1, 300), seed=st.integers(0, 5))
    @settings(max_examples=25, deadline=None)
    def test_steps_stay_at_the_window(self, window, n_rows, seed):
        """Against the loop as it is written in the documentation."""
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n_rows, 3)), rng.integers(0, 2, n_rows)
        if len(set(y)) < 2:
            return
        alpha, half_life = 0.05, window * np.log(2)
        machine = PegasosSVC(alpha, average=False, fit_intercept=False)
        rows_of_one = [(X[i : i + 1], y[i : i + 1]) for i in range(n_rows)]  # their order is the order of the visits
        machine.fit_stream(rows_of_one, classes=[0, 1], half_life=half_life)
        w = np.zeros(3)
        for t, (x, sign) in enumerate(zip(X, 2 * y - 1, strict=True)):
            step = 1 / (alpha * min(t + 1, window))
            violated = t == 0 or sign * (w @ x) < 1
            w = (1 - alpha * step) * w + violated * step * sign * x
        np.testing.assert_allclose(machine.coef_[0], w, rtol=1e-6, atol=1e-9)

    def test_sums_stay_finite(self):
        """Ten thousand half-lives in float32."""
        batches = list(rows(20, 1000, dtype=np.float32))
        machine = make(PegasosSVC, average=False).fit_stream(batches, half_life=2)
        assert np.isfinite(machine.coef_).all()
        assert np.abs(machine._state.polytopes[0].coef).max() < 1e12

    def test_old_days_fade(self):
        """The labels turn round half-way: a machine that forgets is right again soon, one that does not is not."""
        turned = [*rows(40), *((X, np.where(y == "up", "down", "up")) for X, y in rows(40, seed=1))]
        fading, steady = (
            make(ConvexPolytopeClassifier, n_planes=2, alpha=1e-3).fit_stream(turned, half_life=half_life)
            for half_life in (300, None)
        )
        after = slice(42, 52)
        assert np.mean(fading.history_["progressive_error"][after]) < 0.15
        assert np.mean(steady.history_["progressive_error"][after]) > 0.5

    def test_steps_may_fall_again(self):
        machine = make(PegasosSVC, average=False).fit_stream(BATCHES, half_life=50)
        before = machine.coef_
        machine.set_params(warm_start=True).fit_stream([(BATCHES[0][0][:1], BATCHES[0][1][:1])])
        step = 1 / (machine.alpha * (round(50 / np.log(2)) + 1))
        assert machine.history_["step"][-1] == pytest.approx(step)
        assert np.abs(machine.coef_ - before).max() <= 3 * step


class TestGoingOn:
    def test_warm_start_goes_on_and_a_cold_one_does_not(self):
        whole = make(PegasosSVC).fit_stream(BATCHES)
        warm = make(PegasosSVC, warm_start=True).fit_stream(BATCHES[:6]).fit_stream(BATCHES[6:])
        cold = make(PegasosSVC).fit_stream(BATCHES[:6]).fit_stream(BATCHES[6:])
        assert warm.planes_ == whole.planes_
        assert cold.planes_ == make(PegasosSVC).fit_stream(BATCHES[6:]).planes_

    @pytest.mark.parametrize("half_life", [None, 50.0])
    @pytest.mark.parametrize("prefetch", [0, 2])
    def test_a_source_that_seeks_is_told_where_to_begin(self, tmp_path, half_life, prefetch):
        X, y = (np.concatenate(parts) for parts in zip(*BATCHES, strict=True))
        told = []

        def source(n_batches):
            """Batches that break off after so many."""
            left = iter(range(n_batches))

            def batches(start=0):
                told.append(start)
                for i in range(start, len(y), 50):
                    if next(left, None) is None:
                        raise OSError("no more")
                    yield X[i : i + 50], y[i : i + 50]

            return batches

        path = tmp_path / "checkpoint"
        options = {"passes": 2, "half_life": half_life, "prefetch": prefetch}
        whole = make(ConvexPolytopeClassifier).fit_stream(source(100), **options)
        with pytest.raises(OSError, match="no more"):
            make(ConvexPolytopeClassifier).fit_stream(source(18), checkpoint=path, **options)
        told.clear()
        resumed = make(ConvexPolytopeClassifier).fit_stream(source(100), checkpoint=path, resume=True, **options)
        assert resumed.planes_ == whole.planes_
        assert told == [150]

    def test_resume_without_a_file_begins_and_a_finished_one_is_left_alone(self, tmp_path):
        path = tmp_path / "checkpoint"
        first = make(PegasosSVC).fit_stream(BATCHES, checkpoint=path, resume=True)
        again = make(PegasosSVC).fit_stream(BATCHES, checkpoint=path, resume=True)
        assert first.planes_ == again.planes_
        assert again.n_iter_ == 12
        more = make(PegasosSVC).fit_stream(BATCHES, checkpoint=path, resume=True, passes=2)
        assert more.planes_ == make(PegasosSVC).fit_stream(BATCHES, passes=2).planes_

    def test_another_stream_or_another_training_is_refused(self, tmp_path):
        path = tmp_path / "checkpoint"
        make(PegasosSVC).fit_stream(BATCHES, checkpoint=path)
        with pytest.raises(ValueError, match="not the stream of the checkpoint: its first 12 batches have 120 rows"):
            make(PegasosSVC).fit_stream(rows(12, 10), checkpoint=path, resume=True)
        with pytest.raises(ValueError, match=r"from training with other parameters: alpha=0.0001"):
            make(PegasosSVC, alpha=1e-2).fit_stream(BATCHES, checkpoint=path, resume=True)
        with pytest.raises(ValueError, match="from another estimator, PegasosSVC"):
            make(ConvexPolytopeClassifier).fit_stream(BATCHES, checkpoint=path, resume=True)
        with pytest.raises(ValueError, match="differ from those of the model"):
            make(PegasosSVC).fit_stream(BATCHES, checkpoint=path, resume=True, classes=["a", "b"])
        polyplane.save(make(PegasosSVC).fit(*BATCHES[0]), path)
        with pytest.raises(ValueError, match="is a model, not a checkpoint"):
            make(PegasosSVC).fit_stream(BATCHES, checkpoint=path, resume=True)

    def test_ctrl_c_keeps_the_model(self):
        def interrupted():
            yield from BATCHES[:3]
            os.kill(os.getpid(), signal.SIGINT)
            yield from BATCHES[3:]

        machine = make(PegasosSVC)
        with pytest.raises(KeyboardInterrupt) as caught:
            machine.fit_stream(interrupted)
        assert machine.planes_ == make(PegasosSVC).fit_stream(BATCHES[:3]).planes_
        assert machine.n_iter_ == 3
        assert "trained on 180 rows" in caught.value.__notes__[0]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    @pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)])
    def test_a_process_that_is_told_to_end_leaves_a_checkpoint(self, tmp_path, signum, code):
        path = tmp_path / "checkpoint"
        script = textwrap.dedent("""
            import sys, time
            from tests.engine.test_stream import BATCHES, make
            from polyplane import ConvexPolytopeClassifier

            def slow():
                for number, batch in enumerate(BATCHES):
                    if number == 3:
                        print("going", flush=True)
                    time.sleep(0.2 if number > 2 else 0)
                    yield batch

            make(ConvexPolytopeClassifier).fit_stream(slow, checkpoint=sys.argv[1])
        """)
        command = [sys.executable, "-c", script, path]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "going\n"
        process.send_signal(signum)
        process.communicate(timeout=60)
        assert process.returncode == code
        n_batches = polyplane.load(path).n_iter_
        assert 3 <= n_batches < 12
        resumed = make(ConvexPolytopeClassifier).fit_stream(BATCHES, checkpoint=path, resume=True)
        assert resumed.planes_ == make(ConvexPolytopeClassifier).fit_stream(BATCHES).planes_

    def test_a_full_disk_does_not_hide_why_training_ended(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "checkpoint")

        monkeypatch.setattr("polyplane.files.write_model", full)
        machine, path = make(PegasosSVC), tmp_path / "checkpoint"
        bad = (np.full((3, 4), np.nan), ["up", "down", "up"])
        with pytest.raises(ValueError, match=r"Batch 4 of the stream: .*NaN") as caught:
            machine.fit_stream([*BATCHES[:3], bad], checkpoint=path)
        assert "The checkpoint could not be written: [Errno 28]" in caught.value.__notes__[0]
        assert machine.planes_ == make(PegasosSVC).fit_stream(BATCHES[:3]).planes_
        with pytest.raises(OSError, match="No space left on device: 'checkpoint'") as caught:
            machine.fit_stream(BATCHES, checkpoint=path, checkpoint_every=1e-9)
        assert "trained on 60 rows" in caught.value.__notes__[1]

    @pytest.mark.skipif(sys.platform == "win32", reason="signals to another process are for Unix")
    def test_a_process_that_is_told_to_end_does_so_on_a_full_disk(self):
        script = textwrap.dedent("""
            import os, signal
            import polyplane.files
            from tests.engine.test_stream import BATCHES, make
            from polyplane import PegasosSVC

            def full(*_):
                raise OSError(28, "No space left on device")

            def told():
                yield from BATCHES[:3]
                os.kill(os.getpid(), signal.SIGTERM)
                yield from BATCHES[3:]

            polyplane.files.write_model = full
            try:
                make(PegasosSVC).fit_stream(told, checkpoint="checkpoint")
            except OSError:
                print("goes on")
        """)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
        assert "the checkpoint could not be written: [Errno 28]" in done.stderr
