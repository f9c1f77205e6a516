"""Scripts run with the package of an earlier revision."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


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


def run_in(tree: Path, module: str, *arguments: str) -> Any:
    """The JSON that a script of this revision prints when it sees the package of `tree`."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, *arguments]
    ran = subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout.splitlines()[-1])
