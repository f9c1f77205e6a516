"""What training leaves behind when it is broken off: by Ctrl-C, a full disk, an error, or for good."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from sklearn.datasets import load_svmlight_file
from typer.testing import CliRunner

import polyplane
from polyplane.cli import app
from polyplane.readers import read
from tests.cli.commands import QUICK, refused, run

STEP = ("polyplane.learners.sgd", "ConvexPolytope", "step")
PEGASOS = ["--learner", "pegasos"]
LONG = [*PEGASOS, "--set", "max_iter=100000000"]
SCALES = "note: Feature 23 reaches 3.43e+03 and feature 17 only 0.0528, so the former dominates training: "

pytestmark = pytest.mark.filterwarnings("ignore:Feature .* dominates training:UserWarning")


def without_scales(said):
    """What was said, less the one line about the scales of the features."""
    lines = said.splitlines()
    assert sum(line.startswith(SCALES) for line in lines) == 1, said
    return [line for line in lines if not line.startswith(SCALES)]


@pytest.fixture
def ctrl_c(monkeypatch):
    """Arranges for Ctrl-C, once or more, at the beginning of a step of Pegasos, counted from 0."""
    from polyplane.learners.sgd import ConvexPolytope

    step, count = ConvexPolytope.step, iter(range(10**9))

    def arrange(number, times=1):
        def interrupted(self, state, data):
            if next(count) == number:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)
            return step(self, state, data)

        monkeypatch.setattr(ConvexPolytope, "step", interrupted)

    return arrange


@pytest.mark.parametrize("option", [["--cv", "3"], ["--tune"]])
def test_ctrl_c_ends_searches_at_once(data, tmp_path, ctrl_c, option):
    ctrl_c(120)
    result = run("train", data / "cancer.svm", *PEGASOS, "--out", tmp_path / "m", *option, code=130)
    assert result.stderr.splitlines()[-1] == "polyplane train: interrupted; no file has been written."
    assert len(result.stderr.splitlines()) <= 2
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("stream", [[], ["--stream", "--batch-rows", "100", "--passes", "9"]])
@pytest.mark.parametrize(("times", "n_steps"), [(1, 4), (2, 3)])
def test_ctrl_c_keeps_the_finished_steps(data, tmp_path, ctrl_c, stream, times, n_steps):
    """The first one lets the step at hand finish, the second one does not."""
    out, handler = tmp_path / "m", signal.getsignal(signal.SIGINT)
    ctrl_c(3, times)
    report = json.loads(run("train", data / "cancer.svm", *PEGASOS, *stream, "--out", out, "--json", code=130).stdout)
    assert report["interrupted"]
    assert report["steps"] == polyplane.load(out).n_iter_ == n_steps
    assert report["rows"] == (100 * n_steps if stream else 400)
    assert signal.getsignal(signal.SIGINT) is handler
    rows = read(data / "cancer.svm")
    twin = polyplane.PegasosSVC(max_iter=n_steps, random_state=0)
    if stream:
        twin.fit_stream([(rows.X[i : i + 100], rows.y[i : i + 100]) for i in range(0, 100 * n_steps, 100)])
    else:
        twin.fit(rows.X, rows.y)
    assert polyplane.load(out).planes_ == twin.planes_


@pytest.mark.parametrize("resume", [False, True])
def test_ctrl_c_in_the_first_step_leaves_the_old_model(data, tmp_path, ctrl_c, resume):
    out = tmp_path / "m"
    run("train", data / "cancer.svm", *PEGASOS, *QUICK, "--out", out)
    before = out.read_bytes()
    ctrl_c(0, times=2)
    options = ["--resume", out] if resume else PEGASOS
    result = run("train", data / "cancer.svm", *options, "--out", out, code=130)
    said = result.stderr.splitlines() if resume else without_scales(result.stderr)
    assert said == ["polyplane train: interrupted; no file has been written."]
    assert out.read_bytes() == before


def test_ctrl_c_while_testing_says_that_the_model_is_written(data, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["polyplane.cli.data"], "class_indices", interrupted)
    out = tmp_path / "m"
    result = run("train", data / "cancer.svm", *PEGASOS, *QUICK, "--out", out, "--test", data / "cancer.t", code=130)
    assert result.stderr.endswith("m has been written, but not evaluated on the test data.\n")
    assert polyplane.load(out).n_iter_ == 5


def test_a_full_disk_is_a_sentence(data, tmp_path, monkeypatch):
    import polyplane.files.file as module

    out = tmp_path / "m.safetensors"
    out.write_bytes(b"an older model")

    def full(*_):
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr(module, "write_container", full)
    said = refused("train", data / "cancer.svm", "--learner", "pegasos", "--out", out, *QUICK)
    assert said.endswith("m.safetensors: No space left on device.")
    assert out.read_bytes() == b"an older model"
    assert list(tmp_path.iterdir()) == [out]


def test_errors_of_our_own_and_debug(data, tmp_path, monkeypatch):
    def broken(*_):
        raise AssertionError("it broke")

    monkeypatch.setattr("polyplane.cli.training.train_in_memory", broken)
    arguments = ["train", str(data / "cancer.svm"), "--out", str(tmp_path / "m")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "internal error, AssertionError: it broke" in result.stderr
    result = CliRunner().invoke(app, [*arguments, "--debug"])
    assert isinstance(result.exception, AssertionError)


def started(code, *arguments):
    """`polyplane` in a process of its own, after some code that changes it."""
    code = f"import importlib, time\n{code}\nfrom polyplane.cli import main\nmain()\n"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


MOMENTS = {
    "training": (*STEP, "pass"),
    "writing": ("polyplane.files", "file", "write_container", "args[0].write(b'half of it'), args[0].flush()"),
}


def stalling(module, owner, name, first):
    """Code that makes a function say that it is called, and never end."""
    return (
        f"owner = getattr(importlib.import_module({module!r}), {owner!r})\n"
        "def stall(*args):\n"
        f"    {first}\n"
        "    print('now', flush=True)\n"
        "    time.sleep(600)\n"
        f"setattr(owner, {name!r}, stall)"
    )


def test_a_process_that_is_killed_leaves_the_old_model(data, tmp_path):
    """Killed by SIGKILL when half of the new file is written."""
    out = tmp_path / "m.safetensors"
    train = ["train", data / "cancer.svm", *PEGASOS, "--out", out, *QUICK]
    run(*train)
    before = out.read_bytes()
    with started(stalling(*MOMENTS["writing"]), *train, "--seed", "1") as process:
        assert process.stdout.readline() == "now\n"
        process.kill()
    assert out.read_bytes() == before
    assert polyplane.load(out).n_iter_ == 5
    run(*train, "--seed", "1")
    assert out.read_bytes() != before


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent in another way there")
class TestSignals:
    """SIGINT by process id."""

    def test_the_model_of_the_finished_steps_is_written(self, data, tmp_path):
        """A training that would take hours: the file appears, the exit code says that it was interrupted."""
        out = tmp_path / "m.safetensors"
        module, owner, name = STEP
        code = (
            f"owner = getattr(importlib.import_module({module!r}), {owner!r})\n"
            f"step, count = owner.{name}, iter(range(10**9))\n"
            "def watched(self, state, data):\n"
            "    state = step(self, state, data)\n"
            "    if next(count) == 3:\n"
            "        print('now', flush=True)\n"
            "    return state\n"
            f"owner.{name} = watched"
        )
        with started(code, "train", data / "cancer.svm", *LONG, "--out", out) as process:
            assert process.stdout.readline() == "now\n"
            os.kill(process.pid, signal.SIGINT)
            shown, said = process.communicate(timeout=120)
        assert process.returncode == 130, said
        assert "interrupted\tyes" in shown
        n_steps = polyplane.load(out).n_iter_
        assert n_steps >= 4
        assert without_scales(said) == [
            f"note: Interrupted after {n_steps} steps: {out} contains the model trained so far."
        ]
        X, y = load_svmlight_file(str(data / "cancer.svm"))
        assert polyplane.load(out).score(X, y) > 0.5

    def test_a_second_one_in_the_first_step_leaves_the_old_model(self, data, tmp_path):
        out = tmp_path / "m.safetensors"
        run("train", data / "cancer.svm", *PEGASOS, *QUICK, "--out", out)
        before = out.read_bytes()
        with started(stalling(*MOMENTS["training"]), "train", data / "cancer.svm", *LONG, "--out", out) as process:
            assert process.stdout.readline() == "now\n"
            os.kill(process.pid, signal.SIGINT)
            time.sleep(1)  # two signals at once would be one
            assert process.poll() is None
            os.kill(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=120)
        assert process.returncode == 130, said
        assert without_scales(said) == ["polyplane train: interrupted; no file has been written."]
        assert out.read_bytes() == before
