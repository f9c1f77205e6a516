"""The results of experiments as JSON: figures with their settings, seeds and versions.

The figures of the papers also have fingerprints (`KeptFigures`), which tell when the code behind them has changed.
"""

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.fingerprint import Fingerprint, Unknown, fingerprint

from polyplane import __version__

PACKAGES = ("polyplane", "numpy", "scipy", "scikit-learn", "numba")
#: Where a quick run keeps its results; git ignores it.
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
            self._measure(name, measure)
        return self.figures[name]

    def _measure(self, name: str, measure: Callable[[], dict[str, Any]], **made: Any) -> None:
        print(f"{self.path.parts[-3]}/{self.path.stem}: {name} ...", file=sys.stderr, flush=True)
        began = time.perf_counter()
        self.content["environment"] = environment()
        self.figures[name] = measure() | {"seconds": round(time.perf_counter() - began, 2)} | made
        self.write()

    def write(self) -> None:
        """Write the file atomically."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        finished = self.path.with_suffix(".part")
        finished.write_text(json.dumps(self.content, indent=1, sort_keys=True) + "\n")
        finished.replace(self.path)


CURRENT, STALE, UNKNOWN = "current", "stale", "unverified"


class KeptFigures(Results):
    """Figures with the fingerprints of what they depend on (`benchmarks.fingerprint`).

    A figure whose fingerprint is that of today is not measured again. Others are kept, too, and shown as what they are,
    until they are measured again: *stale* are those whose settings, protocol or methods have changed since,
    *unverified* those that were measured before fingerprints were kept.

    Parameters
    ----------
    script : str
        ``__file__`` of the experiment.
    quick : bool, default=False
        A quick run.
    root : Path or None, default=None
        Another checkout whose figures are read.
    only : str or None, default=""
        Measure only figures with this text in their names; "": all. None: none, `get` only computes fingerprints.
    **settings
        What all figures depend on.
    """

    def __init__(
        self, script: str, *, quick: bool = False, root: Path | None = None, only: str | None = "", **settings: Any
    ) -> None:
        super().__init__(script, quick=quick)
        if root is not None:
            self.path = root / Path(script).parent.relative_to(Path(__file__).parents[1]) / "results" / self.path.name
        self.content |= {"settings": settings, "figures": {}, "environment": environment()}
        if self.path.exists():
            before = json.loads(self.path.read_text())
            self.content |= {key: before[key] for key in ("environment", "figures")}
        self.only = only
        self.wanted: dict[str, Fingerprint] = {}

    def get(self, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The figures called `name`, measured now unless they are current."""
        self.wanted[name] = fingerprint(measure, self.content["settings"])
        if self.only is None or self.only not in name:
            return self.figures.get(name, Unknown())
        if self.state(name) != CURRENT:
            wanted = self.wanted[name]
            made = {"fingerprint": wanted.text, "methods": wanted.methods, "when": date.today().isoformat()}
            self._measure(name, measure, made=made)
        return self.figures[name]

    def vouch(self, reason: str) -> list[str]:
        """Give the figures asked for the current fingerprints: the changes since do not affect them."""
        stamped = [name for name in self.wanted if (self.only or "") in name and self.state(name) in (STALE, UNKNOWN)]
        for name in stamped:
            made = self.figures[name].setdefault("made", {"when": "before fingerprints were kept"})
            made |= {"fingerprint": self.wanted[name].text, "methods": self.wanted[name].methods, "vouched": reason}
        self.write()
        return stamped

    def first(self, prepare: Callable[[], Any]) -> None:
        """Call what must precede measuring, such as compilation, unless nothing is measured."""
        if self.only is not None:
            prepare()

    def state(self, name: str) -> str:
        """The state of a figure after `get`: current, stale, unverified, or "" if it has not been measured."""
        if name not in self.figures:
            return ""
        made = self.figures[name].get("made")
        if made is None:
            return UNKNOWN
        return CURRENT if name in self.wanted and made["fingerprint"] == self.wanted[name].text else STALE

    def changed(self, name: str) -> str:
        """What has changed since a stale figure was measured."""
        if name not in self.wanted:
            return "it is no longer part of the experiment"
        before, now = self.figures[name]["made"]["methods"], self.wanted[name].methods
        methods = [f"{m} {before.get(m, '-')} to {now.get(m, '-')}" for m in now if before.get(m) != now[m]]
        return ", ".join(methods) or "its settings or its protocol"
