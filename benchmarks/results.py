"""How experiments keep what they measured: figures with their settings, seeds and versions, as JSON."""

import json
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def environment():
    """The versions that the figures depend on."""
    return {"python": platform.python_version(), "machine": platform.machine()} | {p: version(p) for p in PACKAGES}


class Results:
    """A JSON file of named figures that grows as an experiment goes on, so that it resumes where it stopped.

    Parameters
    ----------
    script : str
        ``__file__`` of the experiment; the results lie beside it in ``results/NAME.json``.
    **settings
        What the figures depend on besides their names.
    """

    def __init__(self, script, **settings):
        path = Path(script)
        self.path = path.parent / "results" / f"{path.stem}.json"
        self.content = {"settings": settings, "environment": environment(), "figures": {}}
        if self.path.exists():
            before = json.loads(self.path.read_text())
            if before["settings"] == json.loads(json.dumps(settings)):
                self.content["figures"] = before["figures"]

    def get(self, name, measure):
        """The figures called `name`: those of an earlier run, or what `measure` returns (a dict of numbers)."""
        figures = self.content["figures"]
        if name not in figures:
            print(f"{name} ...", file=sys.stderr, flush=True)
            began = time.perf_counter()
            figures[name] = measure() | {"seconds": round(time.perf_counter() - began, 2)}
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_text(json.dumps(self.content, indent=1, sort_keys=True) + "\n")
        return figures[name]
