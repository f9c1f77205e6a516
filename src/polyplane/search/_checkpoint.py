"""Checkpoints of a search: finished trials in a JSON file, from which the search resumes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import hash as digest_of
from scipy import sparse

from polyplane._array_api import is_foreign, to_numpy
from polyplane.files import replace_file
from polyplane.search._candidates import Settings
from polyplane.search._results import Trial, Trials

FORMAT = "PlaneSearchCV 1"


class Checkpoint:
    """A JSON file with the finished trials of a search.

    Parameters
    ----------
    path : path-like
        The file.
    search : dict
        Everything else that determines the search, as strings by name; a file of a different search is rejected.
    candidates : list of dict
        The parameter settings to compare.
    """

    def __init__(self, path: Any, search: Mapping[str, str], candidates: Sequence[Settings]) -> None:
        self.path = os.fspath(path)
        self._header = {"format": FORMAT, **search, "candidates": [_plain(settings) for settings in candidates]}

    def write(self, trials: Trials) -> None:
        """Replace the file."""
        rows = [
            {"rung": rung, "candidate": candidate, **{name: _numbers(part) for name, part in trial._asdict().items()}}
            for (rung, candidate), trial in trials.items()
        ]
        with replace_file(self.path) as file:
            file.write(json.dumps({**self._header, "trials": rows}, indent=1, allow_nan=False).encode())

    def read(self) -> dict[tuple[int, int], Trial]:
        """Return the finished trials; none if the file does not exist."""
        if not Path(self.path).exists():
            return {}
        try:
            content = json.loads(Path(self.path).read_text(encoding="utf-8"))
            is_ours = content["format"] == FORMAT
            trials = {(int(row["rung"]), int(row["candidate"])): _trial(row) for row in content["trials"]}
        except (ValueError, KeyError, TypeError):
            is_ours = False
        if not is_ours:
            raise ValueError(f"resume: {self.path} is not a checkpoint of PlaneSearchCV; use another file.")
        other = [name for name, value in self._header.items() if content.get(name) != value]
        if other:
            raise ValueError(
                f"resume: {self.path} belongs to a search with different {' and '.join(other)}; use another file, "
                "or start again with resume=False."
            )
        return trials


def fingerprint(*arrays: Any) -> str:
    """Return a string that identifies the content of arrays."""
    return str(digest_of([_as_numpy(array) for array in arrays]))


def _as_numpy(array: Any) -> Any:
    if sparse.issparse(array):
        array = array.tocsr()
        return [array.shape, array.data, array.indices.astype(np.int64), array.indptr.astype(np.int64)]
    return to_numpy(array) if is_foreign(array) else np.asarray(array)


def _plain(settings: Settings) -> Settings:
    """Convert settings to JSON values."""
    values = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
    for name, value in values.items():
        is_plain = value is None or isinstance(value, bool | int | str)
        if not is_plain and not (isinstance(value, float) and math.isfinite(value)):
            raise ValueError(
                f"checkpoint: {name}={value!r} is not a number or a string, which checkpoints cannot store; search "
                "over plain values, or omit checkpoint."
            )
    return values


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def _trial(row: Mapping[str, Any]) -> Trial:
    return Trial(*([math.nan if v is None else float(v) for v in row[name]] for name in Trial._fields))
