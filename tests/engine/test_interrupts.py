"""Ctrl-C, sent to a real process in the middle of its work, ends it at once and costs no finished step."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from polyplane import ConvexPolytopeClassifier, PegasosSVC
from polyplane.engine.run import Interrupt

ROWS = """
import os, signal, sys, threading, time
import numpy as np
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from polyplane import ConvexPolytopeClassifier

rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 20)), rng.integers(0, 3, 3000)
ConvexPolytopeClassifier(2, max_iter=1, random_state=0).fit(X[:50], y[:50])  # compiled
machine = ConvexPolytopeClassifier(8, alpha=1e-3, max_iter=10**6, backoff=0, random_state=0)
"""
#: What is interrupted in turn: a fit, of which a usable model remains, what calls `fit`, and at last the process.
WORKS = """
def usable():
    twin = ConvexPolytopeClassifier(**machine.get_params() | {"max_iter": machine.n_iter_}).fit(X, y)
    assert machine.n_iter_ == len(machine.history_["loss"]) > 0
    assert machine.planes_ == twin.planes_
    assert machine.predict(X).shape == (3000,)

def grid(error_score):
    return GridSearchCV(machine, {"alpha": [1e-4, 1e-3]}, cv=2, n_jobs=1, error_score=error_score).fit(X, y)

works = {
    "fit": lambda: machine.fit(X, y),
    "grid": lambda: grid("raise"),
    "grid that counts failures": lambda: grid(np.nan),
    "cross-validation": lambda: cross_val_score(machine, X, y, cv=3),
    "one against one": lambda: OneVsOneClassifier(machine).fit(X, y),
}
for name, work in works.items():
    try:
        print(name, flush=True)
        work()
        print("went on", flush=True)
    except KeyboardInterrupt:
        if name == "fit":
            usable()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        print("ended", flush=True)
print("the process", flush=True)
machine.fit(X, y)
print("went on")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals to another process are for Unix")
def test_everything_above_is_ended_and_the_model_is_usable():
    command, works = [sys.executable, "-c", ROWS + WORKS], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not works or works[-1] != "the process":
                works.append(process.stdout.readline().rstrip())
                time.sleep(0.4)
                sent = time.monotonic()
                process.send_signal(signal.SIGINT)
                if works[-1] != "the process":
                    assert process.stdout.readline() == "ended\n", process.communicate()
                    assert time.monotonic() - sent < 10
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert len(works) == 6
    assert process.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert out == ""


def test_fit_installs_no_handler():
    seen = []

    class Spy(np.ndarray):
        """Tells who handles signals while it is being read."""

        def __array_finalize__(self, other):
            seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))

    X = np.random.default_rng(0).normal(size=(60, 3))
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    PegasosSVC(max_iter=3, random_state=0).fit(X.view(Spy), X[:, 0] > 0)
    assert set(seen) == {before}
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


class TestInterrupt:
    def test_the_first_is_a_request_and_the_second_is_raised(self):
        before = signal.getsignal(signal.SIGINT)
        with Interrupt().watched() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert interrupt.requested == signal.SIGINT
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before

    def test_handlers_of_others_are_left_alone(self):
        seen = []
        before = signal.signal(signal.SIGINT, lambda *_: seen.append("mine"))
        try:
            with Interrupt(signal.SIGTERM).watched() as interrupt:
                signal.raise_signal(signal.SIGINT)
            assert seen == ["mine"]
            assert interrupt.requested is None
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        finally:
            signal.signal(signal.SIGINT, before)

    def test_nothing_is_installed_in_another_thread(self):
        seen = []

        def work():
            with Interrupt(signal.SIGTERM).watched():
                seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))

        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen == [before]


def test_a_stream_without_a_checkpoint_watches_nothing():
    rng, seen = np.random.default_rng(0), []

    def batches():
        for _ in range(3):
            seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))
            X = rng.normal(size=(30, 2))
            yield X, X[:, 0] > 0

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    machine = ConvexPolytopeClassifier(2, random_state=0).fit_stream(batches)
    assert set(seen) == {before}

    def interrupted():
        yield from batches()
        os.kill(os.getpid(), signal.SIGINT)
        yield from batches()

    rng = np.random.default_rng(0)
    other = ConvexPolytopeClassifier(2, random_state=0)
    with pytest.raises(KeyboardInterrupt) as caught:
        other.fit_stream(interrupted)
    assert other.planes_ == machine.planes_
    assert "trained on 90 rows" in caught.value.__notes__[0]


#: A fit in a new process; SIGINT is sent when an event, as auditing sees it, happens for the first time. Then another.
FIRST_FIT = """
import os, signal, sys
import numpy as np
from polyplane import ConvexPolytopeClassifier

def watch(name, arguments):
    global waiting
    if waiting and name == event and str(arguments[0]).endswith(argument):
        waiting = False
        os.kill(os.getpid(), signal.SIGINT)

event, argument = sys.argv[1:]
waiting = True
X = np.random.default_rng(0).normal(size=(200, 3))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
machine = ConvexPolytopeClassifier(4, alpha=1e-3, max_iter=20, random_state=0)
sys.addaudithook(watch)
try:
    machine.fit(X, y)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
assert not waiting
print(machine.fit(X, y).score(X, y) > 0.8)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals to another process are for Unix")
@pytest.mark.parametrize(
    ("event", "argument"),
    [
        ("import", "llvmlite.binding"),
        ("import", "numba.core.typing"),
        ("import", "polyplane.kernels.convex_polytope"),
        ("open", ".nbi"),
    ],
)
def test_ctrl_c_in_the_first_fit_of_a_process(event, argument):
    """It is not lost, and Numba, which is imported and compiles then, can still be used."""
    command = [sys.executable, "-c", FIRST_FIT, event, argument]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["interrupted", "True"]), done.stderr
