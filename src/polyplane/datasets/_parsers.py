"""Parsers of the files of original sources into arrays."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

#: Files in, arrays out.
Parser = Callable[[Sequence[Path]], dict[str, Any]]

_OPENERS: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file as bytes, decompressed according to its name."""
    opened: IO[bytes] = _OPENERS.get(path.suffix, open)(path, "rb")
    return opened


def open_text(path: Path) -> IO[str]:
    """Open a file as text, decompressed according to its name."""
    opened: IO[str] = _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8")
    return opened


def svmlight(n_features: int, *, n_train: int = 1, dtype: DTypeLike = np.float32, dense: bool = False) -> Parser:
    """Return a parser of svmlight files: the first `n_train` contain training rows, the others test rows."""

    def read(path: Path) -> tuple[Any, np.ndarray]:
        with open_bytes(path) as file:
            return _read_svmlight(file, n_features)

    def parse(paths: Sequence[Path]) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        for part, own in (("train", paths[:n_train]), ("test", paths[n_train:])):
            if own:
                X, y = _stacked([read(path) for path in own])
                X = X.astype(dtype)
                arrays |= {f"X_{part}": X.toarray() if dense else X, f"y_{part}": y}
        return arrays

    return parse


def _read_svmlight(file: IO[bytes], n_features: int) -> tuple[Any, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    pair: tuple[Any, np.ndarray] = load_svmlight_file(file, n_features=n_features, zero_based=False, dtype=np.float32)
    return pair


def _stacked(pairs: Sequence[tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray]:
    """Concatenate pairs of rows and labels."""
    X = pairs[0][0] if len(pairs) == 1 else sparse.vstack([X for X, _ in pairs], format="csr")
    return X, np.concatenate([y for _, y in pairs]).astype(np.int8)


def table(
    *,
    label: int = -1,
    delimiter: str | None = ",",
    dtype: DTypeLike = np.float32,
    codes: dict[str, float] | None = None,
    labels: dict[str, str] | None = None,
    numbered: bool = False,
) -> Parser:
    """Return a parser of text with one row per line: training rows in the first file, test rows in a second, if any.

    `label` is the column of the label. `codes` maps words to numbers, `labels` maps words to labels; other labels are
    numbers. If `numbered`, the first column is the row number and not a feature. Lines that start with ``@`` or ``%``
    belong to the ARFF header and are skipped.
    """
    words = (codes or {}) | {word: float(n) for n, word in enumerate(labels or {})}

    def number(word: str) -> float:
        word = word.strip()
        return words[word] if word in words else float(word)

    def read(path: Path, part: str) -> dict[str, Any]:
        with open_text(path) as file:
            lines = (line for line in file if line.strip() and line[0] not in "@%")
            converters: Any = number if words else None
            cells = np.loadtxt(lines, delimiter=delimiter, converters=converters, ndmin=2)
        y = cells[:, label].astype(np.int8)
        first = {"id": cells[:, 0].astype(np.int64)} if numbered else {}
        used = np.delete(cells, [label, 0] if numbered else [label], axis=1).astype(dtype)
        return first | {f"X_{part}": used, f"y_{part}": np.array(list(labels.values()))[y] if labels else y}

    def parse(paths: Sequence[Path]) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        for part, path in zip(("train", "test"), paths, strict=False):
            arrays |= read(path, part)
        return arrays

    return parse


def idx(paths: Sequence[Path]) -> dict[str, Any]:
    """Parse the four files of MNIST: training images and labels, test images and labels."""
    arrays = {}
    for key, path in zip(("X_train", "y_train", "X_test", "y_test"), paths, strict=True):
        with open_bytes(path) as file:
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


def adult(paths: Sequence[Path]) -> dict[str, Any]:
    """Parse the two files of Adult; words become their index among the sorted words of the column."""
    categorical = [name for name in ADULT_COLUMNS if name not in ADULT_NUMERIC]
    read = []
    for path in paths:
        with open_text(path) as file:
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


def url_days(n_features: int) -> Parser:
    """Return a parser of the archive of malicious URLs: one svmlight file per day; `day` is the day of each row."""

    def parse(paths: Sequence[Path]) -> dict[str, Any]:
        days: dict[int, tuple[Any, np.ndarray]] = {}
        with tarfile.open(paths[0], "r:gz") as archive:
            for member in archive:
                name = Path(member.name)
                file = archive.extractfile(member) if name.suffix == ".svm" else None
                if file is not None:
                    days[int(name.stem.removeprefix("Day"))] = _read_svmlight(file, n_features)
        ordered = [days[day] for day in sorted(days)]
        X, y = _stacked(ordered)
        day = np.repeat(np.array(sorted(days), dtype=np.int16), [len(y) for _, y in ordered])
        return {"X_train": X, "y_train": y, "day": day}

    return parse
