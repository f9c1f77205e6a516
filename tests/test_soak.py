"""A short soak; `make soak` makes a long one."""

import subprocess
import sys

import pytest

from tests.soak.child import jumping

KINDS = "SIGTERM; bad batch; SIGINT; file too large; SIGKILL; full disk, SIGTERM; full disk; SIGINT twice"


@pytest.mark.skipif(sys.platform == "win32", reason="signals to another process are for Unix")
def test_a_training_in_many_lives_gives_the_model_of_its_twin():
    options = ["--minutes", "0", "--batches", "150", "--pause", "0.01", "--seed", "0", "--lives", KINDS]
    command = [sys.executable, "-m", "tests.soak", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "1 trainings, each with the model of its undisturbed twin." in done.stdout
    happened = [line for line in done.stdout.splitlines() if line.startswith(("SIG", "bad batch:", "file", "full"))]
    assert len(happened) >= 4, done.stdout  # the stream may be over before the last of them


def test_the_clock_jumps():
    """What the processes read differs by hours."""
    clock = jumping(lambda: 0.0, 1e4)
    seen = [clock() for _ in range(2000)]
    assert min(seen) < -100.0
    assert max(seen) > 100.0
