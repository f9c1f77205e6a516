"""How experiments keep what they measured: figures with their settings, seeds and versions, as JSON."""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from polyplane import __version__

PACKAGES = ("polyplane", "numpy", "scipy", "scikit-learn", "numba")
#: Where a quick run keeps its results; git does not.
QUICK = Path(__file__).parents[1] / "build" / "reproduce-quick"


def environment() -> dict[str, Any]:
    """The versions and the machine that the figures depend on."""
    machine = {"machine": platform.machine(), "cores": os.cpu_count()}
    return {"python": platform.python_version()} | machine | {p: _version(p) for p in PACKAGES}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # not installed: run from the sources, or not needed
        return __version__ if package == "polyplane" else None


class Results:
    """A JSON file of named figures that grows as an experiment goes on, so that it resumes where it stopped.

    Parameters
    ----------
    script : str
        ``__file__`` of the experiment; the results lie beside it in ``results/NAME.json``.
    quick : bool, default=False
        A quick run: its results go elsewhere, and the experiment does less.
    **settings
        What the figures depend on besides their names; with other settings all are measured anew.
    """

    def __init__(self, script: str, *, quick: bool = False, **settings: Any) -> None:
        path = Path(script)
        folder = QUICK / path.parent.name if quick else path.parent
        self.path = folder / "results" / f"{path.stem}.json"
        self.quick = quick
        self.content: dict[str, Any] = {"settings": settings, "environment": environment(), "figures": {}}
        if self.path.exists():
            before = json.loads(self.path.read_text())
            if before["settings"] == json.loads(json.dumps(settings)):
                self.content |= {key: before[key] for key in ("environment", "figures")}

    @property
    def environment(self) -> dict[str, Any]:
        """The versions and the machine of the latest figure."""
        return self.content["environment"]

    @property
    def figures(self) -> dict[str, Any]:
        """What has been measured so far, by name."""
        return self.content["figures"]

    def get(self, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The figures called `name`: those of an earlier run, or what `measure` returns (a dict of numbers)."""
        if name not in self.figures:
            print(f"{self.path.parts[-3]}/{self.path.stem}: {name} ...", file=sys.stderr, flush=True)
            began = time.perf_counter()
            self.content["environment"] = environment()
            self.figures[name] = measure() | {"seconds": round(time.perf_counter() - began, 2)}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            finished = self.path.with_suffix(".part")
            finished.write_text(json.dumps(self.content, indent=1, sort_keys=True) + "\n")
            finished.replace(self.path)
        return self.figures[name]
