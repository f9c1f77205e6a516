"""Data sets kept as `.npz` files in a local folder."""

from __future__ import annotations

import os
from pathlib import Path

from sklearn.utils import Bunch

from polyplane.datasets._store import read_arrays


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
    arrays = read_arrays(path)
    bunch = Bunch(data=arrays["X_train"], target=arrays["y_train"])
    if "y_test" in arrays:
        bunch.update(data_test=arrays["X_test"], target_test=arrays["y_test"])
    return bunch
