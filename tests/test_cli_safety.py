"""What training leaves behind when it is broken off: by Ctrl-C, a full disk, an error, or for good."""

# ruff: noqa: F401, F811  (fixtures are imported by the names that tests ask for)

import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import polyplane
from polyplane.cli import app

from .test_cli_train import QUICK, data, refused, run


def interrupting(after):
    """Ctrl-C during the step of Pegasos that comes after so many."""
    from polyplane.learners.pegasos import PegasosSVC

    step, count = PegasosSVC._step, iter(range(10**9))

    def watched(self, state, data):
        if next(count) == after:
            signal.raise_signal(signal.SIGINT)
        return step(self, state, data)

    return watched


@pytest.mark.parametrize("option", [["--cv", "3"], ["--tune"]])
def test_ctrl_c_ends_searches_too(data, tmp_path, monkeypatch, option):
    from polyplane.learners.pegasos import PegasosSVC

    monkeypatch.setattr(PegasosSVC, "_step", interrupting(after=120))
    arguments = ["train", data / "cancer.svm", "--learner", "pegasos", "--out", tmp_path / "m", *option]
    result = run(*arguments, code=130)
    assert result.stderr.endswith("polyplane train: interrupted; nothing was written.\n")
    assert not (tmp_path / "m").exists()


def test_a_full_disk_is_a_sentence(data, tmp_path, monkeypatch):
    import polyplane.io._model as module

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

    monkeypatch.setattr(sys.modules["polyplane.cli.train"], "fit_rows", broken)
    arguments = ["train", str(data / "cancer.svm"), "--out", str(tmp_path / "m")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "an error in polyplane itself, AssertionError: it broke" in result.stderr
    result = CliRunner().invoke(app, [*arguments, "--debug"])
    assert isinstance(result.exception, AssertionError)


MOMENTS = {
    "training": ("polyplane.learners.pegasos", "PegasosSVC", "_step", "pass"),
    "writing": ("polyplane.io", "_model", "write_container", "args[0].write(b'half of it'), args[0].flush()"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_process_that_is_killed_leaves_the_old_model(data, tmp_path, moment):
    """Killed by SIGKILL while it trains, or when half of the new file is written."""
    module, owner, name, first = MOMENTS[moment]
    code = (
        "import importlib, time\n"
        f"owner = getattr(importlib.import_module({module!r}), {owner!r})\n"
        "def stall(*args):\n"
        f"    {first}\n"
        "    print('now', flush=True)\n"
        "    time.sleep(600)\n"
        f"setattr(owner, {name!r}, stall)\n"
        "from polyplane.cli import main\n"
        "main()\n"
    )
    out = tmp_path / "m.safetensors"
    train = ["train", data / "cancer.svm", "--learner", "pegasos", "--out", out, *QUICK]
    run(*train)
    before = out.read_bytes()
    command = [sys.executable, "-c", code, *map(str, train), "--seed", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "now\n"
        process.kill()
    assert out.read_bytes() == before
    assert polyplane.load(out).n_iter_ == 5
    run(*train, "--seed", "1")
    assert out.read_bytes() != before


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent in another way there")
def test_ctrl_c_writes_the_model_so_far(data, tmp_path):
    """A training that would take hours: the file appears, the exit code says that it was broken off."""
    out = tmp_path / "m.safetensors"
    code = (
        "import signal, threading\n"
        "import polyplane.learners.pegasos as module\n"
        "from polyplane.cli import main\n"
        "step = module.PegasosSVC._step\n"
        "def watched(self, state, data):\n"
        "    if state.epoch == 3:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return step(self, state, data)\n"
        "module.PegasosSVC._step = watched\n"
        "main()\n"
    )
    arguments = ["train", data / "cancer.svm", "--learner", "pegasos", "--out", out, "--set", "max_iter=100000000"]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 130, ran.stderr
    assert "note: Interrupted" in ran.stderr
    assert "interrupted\tTrue" in ran.stdout
    assert polyplane.load(out).n_iter_ == 4
