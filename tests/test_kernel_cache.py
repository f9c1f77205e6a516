"""The cache of compiled kernels is a convenience: without it, or with a damaged or a full one, everything works."""

import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import polyplane
from polyplane.kernels import jit

SOURCE = "from polyplane.kernels.jit import kernel\n\n\n@kernel\ndef double(x):\n    return x + x\n"


@pytest.fixture
def import_kernel(tmp_path, monkeypatch):
    """Imports a kernel from its file, as a new process would."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "doubling.py").write_text(SOURCE)

    def fresh():
        jit._note.cache_clear()
        spec = importlib.util.spec_from_file_location("doubling", tmp_path / "doubling.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.double

    return fresh


def test_a_damaged_cache_is_replaced(import_kernel, tmp_path):
    assert import_kernel()(2.0) == 4.0
    files = sorted((tmp_path / "__pycache__").glob("*.nb?"))
    assert [file.suffix for file in files] == [".nbc", ".nbi"]
    for damaged in ([files[0]], [files[1]], files):
        for size in (0, 100):
            for file in damaged:
                os.truncate(file, size)
            for hits in (0, 1):
                kernel = import_kernel()
                assert kernel(2.0) == 4.0
                assert sum(kernel.stats.cache_hits.values()) == hits


def test_a_full_disk_is_a_note(import_kernel):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        kernel = import_kernel()
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            assert [kernel(2.0), kernel(np.float32(2)), kernel(2)] == [4.0, 4.0, 4]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(notes) == 1
    assert "NUMBA_CACHE_DIR" in str(notes[0].message)


@pytest.fixture
def read_only(tmp_path):
    """Runs the command line where no folder of the package, nor the home, can hold a cache: they are plain files."""
    shutil.copytree(Path(polyplane.__file__).parent, tmp_path / "polyplane", ignore=lambda *_: ["__pycache__"])
    for folder in [tmp_path / "polyplane", *(path for path in (tmp_path / "polyplane").rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "home").touch()
    home = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE")}
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "polyplane", *arguments],
            env={**kept, **home, "PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_read_only_places_train_and_predict_with_one_note(read_only, tmp_path):
    rng = np.random.default_rng(0)
    rows = "".join(f"{a!r},{b!r},{a > 0}\n" for a, b in rng.normal(size=(3000, 2)).tolist())  # too long for `_small`
    (tmp_path / "rows.csv").write_text(f"a,b,label\n{rows}")
    model = "model.safetensors"
    for words, expected in (
        (("train", "rows.csv", "--test", "rows.csv", "--learner", "pegasos"), "test error"),
        (("predict", model, "rows.csv"), "True\n"),
    ):
        done = read_only(*words)
        assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
        assert "NUMBA_CACHE_DIR" in done.stderr
        assert expected in done.stdout
