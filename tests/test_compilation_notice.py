"""One line tells those who wait at a terminal that kernels are compiled; programs never get it."""

import importlib.util
import io
import os
import subprocess
import sys

import numpy as np
import pytest

from polyplane.engine.run import Progress
from polyplane.kernels import notice
from polyplane.kernels.notice import compilation_shown

LINE = "Compiling for this CPU, once (a few seconds) ...\n"
SOURCE = "from polyplane.kernels.jit import kernel\n\n\n@kernel\ndef double(x):\n    return x + x\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def import_kernel(tmp_path):
    """Imports a kernel that no process has compiled, or the same again as a new process would."""
    (tmp_path / "doubling.py").write_text(SOURCE)

    def fresh():
        spec = importlib.util.spec_from_file_location("doubling", tmp_path / "doubling.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.double

    return fresh


def test_a_terminal_gets_one_line_for_several_compilations(import_kernel, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with compilation_shown():
        double = import_kernel()
        assert [double(2.0), double(2), double(np.float32(2))] == [4.0, 4, 4.0]
    assert sys.stderr.getvalue() == LINE


def test_what_is_compiled_already_is_not_announced(import_kernel, monkeypatch):
    import_kernel()(2.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with compilation_shown():
        assert import_kernel()(2.0) == 4.0
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["pipe", "closed"])
def test_no_terminal_no_line(import_kernel, monkeypatch, stream):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", stream)
        with compilation_shown():
            assert import_kernel()(2.0) == 4.0
    assert stream is None or stream.getvalue() == ""


def test_nobody_waits(import_kernel, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert import_kernel()(2.0) == 4.0
    assert sys.stderr.getvalue() == ""


def test_progress_is_waited_for_until_it_ends(import_kernel, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Progress("doubling", 2)
    progress.begin()
    double = import_kernel()
    double(2.0)
    progress.end()
    progress.end()
    double(2)
    assert sys.stderr.getvalue() == LINE
    assert notice._n_waiting == 0


def test_the_command_line_tells_a_terminal_and_no_pipe(tmp_path):
    pty = pytest.importorskip("pty")
    rows = np.random.default_rng(0).normal(size=(200, 2))
    (tmp_path / "rows.csv").write_text("a,b,label\n" + "".join(f"{a},{b},{a > 0}\n" for a, b in rows.tolist()))
    command = [sys.executable, "-m", "polyplane", "train", "rows.csv", "--learner", "pegasos"]

    def errors(cache):
        """What a command, whose standard output is a pipe, writes to a terminal on standard error."""
        here, there = pty.openpty()
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / cache)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=there, check=True)
        os.close(there)
        try:
            shown = os.read(here, 65536)
        except OSError:  # nothing was written
            shown = b""
        os.close(here)
        return shown.decode(), done.stdout.decode()

    first, printed = errors("cache")
    assert first.count("Compiling for this CPU, once") == 1
    assert first.endswith("\n")
    assert "Compiling" not in printed
    assert "Compiling" not in errors("cache")[0]
