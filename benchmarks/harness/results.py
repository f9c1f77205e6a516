"""The results of experiments as JSON: figures with their settings, seeds and versions.

The figures of the papers (`KeptFigures`) also have the versions of the methods that they were measured with.
"""

from __future__ import annotations

import fcntl
import hashlib
import inspect
import json
import os
import platform
import re
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyplane import __version__

ROOT = Path(__file__).parents[2]
PACKAGES = ("polyplane", "numpy", "scipy", "scikit-learn", "numba")
#: Where a quick run keeps its results; git ignores it.
QUICK = ROOT / "build" / "reproduce-quick"


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
        self.write(name)

    def write(self, measured: str = "") -> None:
        """Write the file atomically, after `measured` has been measured."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        finished = self.path.with_suffix(".part")
        text = json.dumps(self.content, indent=1, sort_keys=True)
        # Lists of numbers take one line.
        text = re.sub(r"\[[^\[\]{}\"]*\]", lambda numbers: re.sub(r"\s+", " ", numbers[0]).replace("[ ", "["), text)
        finished.write_text(text.replace(" ]", "]") + "\n")
        finished.replace(self.path)


def minutes(seconds: float) -> str:
    """Minutes, or seconds if few."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


CURRENT, STALE, UNKNOWN = "current", "stale", "unverified"
DECLARED: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "versions.toml").read_text())
#: The versions of methods and generators, by name (`benchmarks.harness.versions`).
VERSIONS: dict[str, int] = {name: found["version"] for name, found in DECLARED.items()}


def our_version() -> str:
    """The versions that the predictions of `TableClassifier` depend on: its own and that of its members."""
    return " with ".join(f"{name} {VERSIONS[name]}" for name in ("TableClassifier", "MultiHyperplaneClassifier"))


class Unknown:
    """Stands for a figure that has not been measured: each of its values is unknown, too."""

    def __getitem__(self, key: Any) -> Unknown:
        return self

    def get(self, key: Any, default: Any = None) -> Unknown:
        """An unknown value."""
        return self

    def __or__(self, other: Any) -> Unknown:
        return self

    def __bool__(self) -> bool:
        return True


def plain(value: Any) -> Any:
    """Settings as plain data. Of a function only its bound arguments count, so that it may be renamed or moved."""
    if isinstance(value, Unknown):
        return "?"
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, partial):
        return [plain(value.func), plain(value.args), plain(value.keywords)]
    if callable(value):
        inner = inspect.unwrap(value)
        return None if inner is value else plain(inner)
    raise TypeError(f"{value!r} cannot be a setting of a figure.")


class Key(NamedTuple):
    """What a kept figure depends on besides its name.

    Parameters
    ----------
    settings : str
        Digest of the settings of the experiment and of the arguments of the call that measures the figure.
    versions : dict
        Versions of the methods and generators that it uses.
    """

    settings: str
    versions: dict[str, int]


def key_of(measure: Callable[[], Any], settings: dict[str, Any], uses: Sequence[str]) -> Key:
    """The key of the figure that `measure` gives."""
    text = json.dumps([plain(settings), plain(measure)], sort_keys=True)
    return Key(hashlib.sha256(text.encode()).hexdigest()[:16], {name: VERSIONS[name] for name in sorted(uses)})


class KeptFigures(Results):
    """Figures with the settings and the versions (`benchmarks.harness.versions`) that they were measured with.

    A figure with today's settings and versions is *current* and not measured again. Others are kept, too, and shown as
    what they are, until they are measured again: *stale* if settings or versions have changed since, *unverified* if it
    is not known with which they were measured. Data sets are part of the settings or of the name of a figure; the
    loaders check their contents.

    Parameters
    ----------
    script : str
        ``__file__`` of the experiment.
    quick : bool, default=False
        A quick run.
    root : Path or None, default=None
        Another checkout whose figures are read.
    only : str or None, default=""
        Measure only figures with this text in their names; "": all. None: none, `get` only looks them up.
    exactly : str, default=""
        Measure only the figure of this name; "": all.
    uses : sequence of str, default=()
        The methods and generators of figures that do not say theirs.
    **settings
        What all figures depend on.
    """

    def __init__(
        self,
        script: str,
        *,
        quick: bool = False,
        root: Path | None = None,
        only: str | None = "",
        exactly: str = "",
        uses: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__(script, quick=quick)
        if root is not None:
            self.path = root / Path(script).parent.relative_to(ROOT) / "results" / self.path.name
        self.content |= {"settings": plain(settings), "figures": {}, "environment": environment()}
        if self.path.exists():
            before = json.loads(self.path.read_text())
            self.content |= {key: before[key] for key in ("environment", "figures")}
        self.only, self.exactly = only, exactly
        self.uses = uses
        self.wanted: dict[str, Key] = {}
        self.waiting: set[str] = set()  # for figures that their settings depend on

    def get(
        self, name: str, measure: Callable[[], dict[str, Any]], uses: Sequence[str] | None = None
    ) -> dict[str, Any] | Unknown:
        """The figures called `name`, measured now unless they are current."""
        self.wanted[name] = key_of(measure, self.content["settings"], self.uses if uses is None else uses)
        if "?" in json.dumps(plain(measure)):
            self.waiting.add(name)
        if self.only is None or self.only not in name or self.exactly not in ("", name):
            return self.figures.get(name, Unknown())
        if self.state(name) != CURRENT:
            self._measure(name, measure, made=self.wanted[name]._asdict() | {"when": date.today().isoformat()})
        return self.figures[name]

    def write(self, measured: str = "") -> None:
        """Write the file, with what other processes have measured in the meantime."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            if measured and self.path.exists():
                others = json.loads(self.path.read_text())["figures"]
                self.content["figures"] = others | {measured: self.figures[measured]}
            super().write(measured)
        finally:
            os.close(folder)  # and with it the lock

    def vouch(self, reason: str) -> list[str]:
        """Give the figures asked for the current settings and versions: the changes since do not affect them."""
        stamped = [name for name in self.wanted if (self.only or "") in name and self.state(name) in (STALE, UNKNOWN)]
        for name in stamped:
            made = self.figures[name].setdefault("made", {"when": "not recorded"})
            made |= self.wanted[name]._asdict() | {"vouched": reason}
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
        made = self.figures[name].get("made", {})
        if "settings" not in made:
            return UNKNOWN
        wanted = self.wanted.get(name)
        same = wanted and made["settings"] == wanted.settings and wanted.versions.items() <= made["versions"].items()
        return CURRENT if same else STALE

    def changed(self, name: str) -> str:
        """What has changed since a stale figure was measured."""
        if name not in self.wanted:
            return "it is no longer part of the experiment"
        before, now = self.figures[name]["made"]["versions"], self.wanted[name].versions
        differing = [name for name in now if before.get(name) != now[name]]
        return ", ".join(f"{n} {before.get(n, '-')} to {now.get(n, '-')}" for n in differing) or "its settings"
