"""Scripts of this checkout, run with the package of another revision."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness.results import ROOT


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A temporary worktree of a revision."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--detach", path, revision], cwd=ROOT, check=True, capture_output=True
        )
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", path], cwd=ROOT, check=True)


def process(tree: Path, *arguments: str, **how: Any) -> subprocess.Popen[str]:
    """Python with these arguments; it imports the package of `tree`, and the scripts of this checkout."""
    variables = {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | variables, stdout=subprocess.PIPE, text=True, **how)


def output(tree: Path, *arguments: str) -> str:
    """What this process prints."""
    with process(tree, *arguments) as running:
        printed, _ = running.communicate()
    if running.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed with the package of {tree}.")
    return printed
