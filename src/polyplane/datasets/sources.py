"""The data sets of the papers: their catalogue, and parsers of the files of their original sources."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import tarfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Dataset:
    """An entry of the catalogue, ``catalogue.toml``, which describes the fields."""

    title: str
    licence: str
    citation: str
    shape: tuple[int, int, int]
    files: Sequence[dict[str, str]] = ()
    parser: dict[str, Any] | None = None
    content: dict[str, str] = field(default_factory=dict)
    feature_names: Sequence[str] = ()
    target_names: Sequence[str] = ()
    head_of_test: int = 0

    @property
    def urls(self) -> list[str]:
        """The addresses of the files."""
        return [file["url"] for file in self.files]

    def parse(self, paths: Sequence[Path]) -> dict[str, Any]:
        """Convert the files of the original source to arrays."""
        options = dict(self.parser or {})
        arrays: dict[str, Any] = PARSERS[options.pop("format")](paths, **options)
        return arrays

    def describe(self, name: str, n_train: int, n_test: int) -> str:
        """Return the text of `DESCR`."""
        split = f"{n_train:,} training rows, {n_test:,} test rows" if n_test else f"{n_train:,} rows"
        origins = ", ".join(self.urls) or "not public: derived from the topics of RCV1-v2"
        return (
            f"{name}: {self.title}\n{split}, {self.shape[2]:,} features.\n"
            f"Source: {origins}\nLicence: {self.licence}\nCitation: {self.citation}\n"
        )


def file_name(url: str) -> str:
    """Return the name of a file in the cache: the part of the URL after ``#``, or else after the last slash."""
    return unquote(url.rsplit("/", 1)[1].rsplit("#", 1)[-1])


def opened(path: Path, mode: str) -> Any:
    """Open a file as bytes or as text, decompressed according to its name."""
    return _OPENERS.get(path.suffix, open)(path, mode, encoding="utf-8" if mode == "rt" else None)


def parse_svmlight(
    paths: Sequence[Path], n_features: int, n_train: int = 1, dtype: DTypeLike = np.float32, dense: bool = False
) -> dict[str, Any]:
    """Parse svmlight files: the first `n_train` contain training rows, the others test rows."""
    arrays: dict[str, Any] = {}
    for part, own in (("train", paths[:n_train]), ("test", paths[n_train:])):
        if own:
            X, y = _stack([_read_svmlight(opened(path, "rb"), n_features) for path in own])
            X = X.astype(dtype)
            arrays |= {f"X_{part}": X.toarray() if dense else X, f"y_{part}": y}
    return arrays


def _read_svmlight(file: IO[bytes], n_features: int) -> tuple[Any, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    with file:
        X, y = load_svmlight_file(file, n_features=n_features, zero_based=False, dtype=np.float32)
    return X, y.astype(np.int8)


def _stack(pairs: Sequence[tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray]:
    """Concatenate pairs of rows and labels."""
    X = pairs[0][0] if len(pairs) == 1 else sparse.vstack([X for X, _ in pairs], format="csr")
    return X, np.concatenate([y for _, y in pairs])


def parse_table(
    paths: Sequence[Path],
    label: int = -1,
    delimiter: str = ",",
    dtype: DTypeLike = np.float32,
    codes: dict[str, float] | None = None,
    labels: dict[str, str] | None = None,
    numbered: bool = False,
) -> dict[str, Any]:
    """Parse text with one row per line: training rows in the first file, test rows in a second, if any.

    `label` is the column of the label. An empty `delimiter` is any whitespace. `codes` maps words to numbers, `labels`
    maps words to labels; other labels are numbers. If `numbered`, the first column is the row number and not a feature.
    Lines that start with ``@`` or ``%`` belong to the ARFF header and are skipped.
    """
    words = (codes or {}) | {word: float(n) for n, word in enumerate(labels or {})}

    def number(word: str) -> float:
        word = word.strip()
        return words[word] if word in words else float(word)

    arrays: dict[str, Any] = {}
    for part, path in zip(("train", "test"), paths, strict=False):
        with opened(path, "rt") as file:
            lines = (line for line in file if line.strip() and line[0] not in "@%")
            converters: Any = number if words else None
            cells = np.loadtxt(lines, delimiter=delimiter or None, converters=converters, ndmin=2)
        if numbered:
            arrays["id"] = cells[:, 0].astype(np.int64)
        y = cells[:, label].astype(np.int8)
        arrays[f"X_{part}"] = np.delete(cells, [label, 0] if numbered else [label], axis=1).astype(dtype)
        arrays[f"y_{part}"] = np.array(list(labels.values()))[y] if labels else y
    return arrays


def parse_idx(paths: Sequence[Path]) -> dict[str, Any]:
    """Parse the four files of MNIST: training images and labels, test images and labels."""
    arrays = {}
    for key, path in zip(("X_train", "y_train", "X_test", "y_test"), paths, strict=True):
        with opened(path, "rb") as file:
            content = file.read()
        n_axes = content[3]
        shape = np.frombuffer(content, ">i4", n_axes, offset=4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes)
        arrays[key] = values.reshape(shape[0], -1) if n_axes > 1 else values
    return arrays


ADULT_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race",
    "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country",
]  # fmt: skip
ADULT_NUMERIC = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}


def parse_adult(paths: Sequence[Path]) -> dict[str, Any]:
    """Parse the two files of Adult; words become their index among the sorted words of the column."""
    categorical = [name for name in ADULT_COLUMNS if name not in ADULT_NUMERIC]
    read = []
    for path in paths:
        with opened(path, "rt") as file:
            rows = csv.reader(file, skipinitialspace=True)
            read.append([row for row in rows if len(row) == len(ADULT_COLUMNS) + 1])  # skip comment lines
    columns = list(zip(*(row for rows in read for row in rows), strict=True))
    arrays: dict[str, Any] = {"feature_names": np.array(ADULT_COLUMNS), "categorical": np.array(categorical)}
    X = np.empty((len(columns[0]), len(ADULT_COLUMNS)), dtype=np.float32)
    for j, name in enumerate(ADULT_COLUMNS):
        if name in categorical:
            arrays[f"levels_{name}"], X[:, j] = np.unique(np.array(columns[j]), return_inverse=True)
        else:
            X[:, j] = np.array(columns[j], dtype=np.float64)
    y = np.array([word.rstrip(".") for word in columns[-1]])
    n_train = len(read[0])
    return arrays | {"X_train": X[:n_train], "y_train": y[:n_train], "X_test": X[n_train:], "y_test": y[n_train:]}


def parse_url_days(paths: Sequence[Path], n_features: int) -> dict[str, Any]:
    """Parse the archive of malicious URLs: one svmlight file per day; `day` is the day of each row."""
    days: dict[int, tuple[Any, np.ndarray]] = {}
    with tarfile.open(paths[0], "r:gz") as archive:
        for member in archive:
            name = Path(member.name)
            file = archive.extractfile(member) if name.suffix == ".svm" else None
            if file is not None:
                days[int(name.stem.removeprefix("Day"))] = _read_svmlight(file, n_features)
    ordered = [days[day] for day in sorted(days)]
    X, y = _stack(ordered)
    day = np.repeat(np.array(sorted(days), dtype=np.int16), [len(y) for _, y in ordered])
    return {"X_train": X, "y_train": y, "day": day}


PARSERS: dict[str, Callable[..., dict[str, Any]]] = {
    "adult": parse_adult,
    "idx": parse_idx,
    "svmlight": parse_svmlight,
    "table": parse_table,
    "url_days": parse_url_days,
}
_CATALOGUE = tomllib.loads((package_files("polyplane.datasets") / "catalogue.toml").read_text("utf-8"))
DATASETS = {name: Dataset(**entry | {"shape": tuple(entry["shape"])}) for name, entry in _CATALOGUE.items()}
