"""Data sets kept as `.npz` files in a local folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch


def load_local(name: str, folder: str | os.PathLike[str] | None = None) -> Bunch:
    """Read ``NAME.npz`` from a folder.

    Parameters
    ----------
    name : str
        Name of the set.
    folder : path, default=None
        The folder; by default the one that the environment variable ``POLYPLANE_DATA`` names.

    Returns
    -------
    data : Bunch
        `data` and `target`, and where the set has a split of its own `data_test` and `target_test`.
    """
    folder = folder or os.environ.get("POLYPLANE_DATA")
    if not folder:
        raise FileNotFoundError(
            f"The data set {name!r} is not at hand: set POLYPLANE_DATA to the folder with {name}.npz."
        )
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"The data set {name!r} is not at hand: there is no file {path}.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            bunch = Bunch(data=_matrix(arrays, "X_train"), target=arrays["y_train"])
            if "y_test" in arrays:
                bunch.update(data_test=_matrix(arrays, "X_test"), target_test=arrays["y_test"])
    except (BadZipFile, KeyError, TypeError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a data set in the form described, or is damaged: {error}") from None
    return bunch


def _matrix(arrays: Any, key: str) -> Any:
    if key in arrays:
        return arrays[key]
    parts = tuple(arrays[f"{key}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_matrix(parts, shape=tuple(arrays[f"{key}_shape"]))
