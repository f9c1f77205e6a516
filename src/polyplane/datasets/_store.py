"""Data sets as `.npz` files: reading, writing and verification by checksum.

The file of a data set contains `X_train`, `y_train` and, if there are test rows, `X_test`, `y_test`. A sparse matrix is
stored as `X_train_data`, `X_train_indices`, `X_train_indptr` and `X_train_shape`. Other arrays are optional.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from polyplane.datasets._catalogue import Dataset

Arrays = Mapping[str, Any]
#: Errors that reading a damaged file may raise.
_DAMAGES = (
    AttributeError, BadZipFile, EOFError, LookupError, NotImplementedError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError, struct.error, zlib.error,
)  # fmt: skip
#: Names of the checksums in a cached file, for parts whose checksum is not in the catalogue.
DIGEST = "sha256_{}"


def read_arrays(path: Path) -> dict[str, Any]:
    """Read all arrays of a file, and assemble sparse matrices.

    Raises
    ------
    ValueError
        If the file is damaged or has a different format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored}
        for part in ("X_train", "X_test"):
            if f"{part}_shape" in arrays:
                arrays[part] = _take_matrix(arrays, part)
        for part in parts(arrays) or ["train"]:
            if arrays[f"X_{part}"].shape[:1] != arrays[f"y_{part}"].shape:
                raise ValueError(f"X_{part} and y_{part} differ in length")
    except _DAMAGES as error:
        raise ValueError(f"{path} is damaged or does not have the format of a Polyplane data set: {error}") from None
    return arrays


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write a file with a checksum of each part."""
    stored: dict[str, Any] = {DIGEST.format(part): np.array(digest(arrays, part)) for part in parts(arrays)}
    for key, value in arrays.items():
        if sparse.issparse(value):
            stored |= {f"{key}_{piece}": getattr(value, piece) for piece in ("data", "indices", "indptr", "shape")}
        else:
            stored[key] = value
    with path.open("wb") as file:
        np.savez_compressed(file, **stored)
        file.flush()
        os.fsync(file.fileno())


def parts(arrays: Arrays) -> list[str]:
    """Return which of ``train`` and ``test`` are present."""
    return [part for part in ("train", "test") if f"y_{part}" in arrays]


def digest(arrays: Arrays, part: str, n_rows: int | None = None) -> str:
    """Compute the SHA256 of the (first) rows and labels of a part: of their dtypes, shapes and values."""
    X, y = arrays[f"X_{part}"][:n_rows], arrays[f"y_{part}"][:n_rows]
    pieces = [y]
    if sparse.issparse(X):
        if not X.has_sorted_indices:
            X = X.sorted_indices()
        pieces += [np.array(X.shape), X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data]
    else:
        pieces.append(X)
    total = hashlib.sha256()
    for piece in pieces:
        piece = np.ascontiguousarray(piece)
        if piece.dtype.kind == "f":  # negative zeros and NaNs have several representations
            piece = np.where(np.isnan(piece), piece.dtype.type(np.nan), piece + 0)
        piece = piece.astype(piece.dtype.newbyteorder("<"), copy=False)
        total.update(f"{piece.dtype.str}{piece.shape}".encode())
        total.update(piece.data if piece.dtype.kind != "U" else piece.tobytes())
    return total.hexdigest()


def verify(dataset: Dataset, arrays: dict[str, Any], origin: str) -> None:
    """Raise an error if the shapes or checksums of arrays are not those of the data set."""
    for part, n_rows in zip(("train", "test"), dataset.shape[:2], strict=True):
        if part not in parts(arrays):
            if part == "train" or part in dataset.content:
                raise ValueError(f"{origin} is truncated or altered: it has no {part} rows.")
            continue
        shape = arrays[f"X_{part}"].shape
        known_rows = {n_rows, dataset.head_of_test} if part == "test" else {n_rows}
        if shape[0] not in known_rows or shape[1:] != dataset.shape[2:]:
            expected = (n_rows, dataset.shape[2])
            raise ValueError(f"{origin} is truncated or altered: its {part} rows are {shape}, not {expected}.")
        wanted = dataset.content.get(part) or arrays.get(DIGEST.format(part))
        n_known = dataset.head_of_test if part == "test" and part in dataset.content else 0
        if wanted is not None and digest(arrays, part, n_known or None) != str(wanted):
            raise ValueError(f"{origin} is truncated or altered: the checksum of its {part} rows is wrong.")


def _take_matrix(arrays: dict[str, Any], key: str) -> Any:
    """Assemble a CSR matrix from its pieces and remove these from `arrays`."""
    data, indices, indptr = (arrays.pop(f"{key}_{piece}") for piece in ("data", "indices", "indptr"))
    matrix = sparse.csr_matrix((data, indices, indptr), shape=tuple(arrays.pop(f"{key}_shape")))
    matrix.check_format(full_check=True)
    return matrix
