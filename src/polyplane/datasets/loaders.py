"""`load_NAME`: loaders of the papers' data sets from a folder, the user's cache, or their original sources."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.utils import Bunch

from polyplane.datasets.sources import DATASETS, Dataset
from polyplane.datasets.store import DIGEST, fetch, read_arrays, verify

__all__ = [
    "load_a9a", "load_adult", "load_breast_cancer_wisconsin", "load_covtype", "load_dataset", "load_heart",
    "load_ijcnn1", "load_ilpd", "load_ionosphere", "load_letter", "load_mnist", "load_news20", "load_pima",
    "load_poker", "load_rcv1", "load_rcv1_subsets", "load_url", "load_usps", "load_w8a",
]  # fmt: skip

_DOCSTRING = """{title}

{summary}
The file ``{name}.npz`` is read from the folder in the environment variable ``POLYPLANE_DATA`` if it exists there,
otherwise from the cache. If it is not in the cache, the data set is downloaded from its original source, verified, and
stored in the cache.

Parameters
----------
return_X_y : bool, default=False
    If True, return only the training rows and their labels.
data_home : path, default=None
    The cache folder. If None, the cache folder of the operating system.
download_if_missing : bool, default=True
    Whether to download the data set if it is not found. Requires ``pip install "polyplane[data]"``.

Returns
-------
data : Bunch
    `data`, `target`, `data_test` and `target_test` if the data set has test rows, `feature_names` and
    `target_names` if known, and `DESCR`. If `return_X_y` is True, the tuple ``(data, target)``.

Raises
------
FileNotFoundError
    If the data set is not found and cannot be downloaded.
ValueError
    If a file has a wrong checksum; no file is changed.

References
----------
{citation}
"""


class Loader(Protocol):
    """Type of every ``load_NAME``."""

    __name__: str

    def __call__(
        self,
        *,
        return_X_y: bool = False,
        data_home: str | os.PathLike[str] | None = None,
        download_if_missing: bool = True,
    ) -> Any:
        """Load the data set."""


def load_dataset(
    name: str,
    *,
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Any:
    """Load a data set by its name: ``load_dataset("mnist")`` is ``load_mnist()``.

    Parameters
    ----------
    name : str
        Name of the data set.
    return_X_y, data_home, download_if_missing
        As in `load_mnist`.

    Returns
    -------
    data : Bunch or tuple
        As in `load_mnist`.

    Examples
    --------
    >>> from polyplane.datasets import load_dataset
    >>> load_dataset("shuttle")
    Traceback (most recent call last):
    ...
    ValueError: name='shuttle' is not a data set; available are a9a, adult, breast_cancer_wisconsin, covtype, heart, \
ijcnn1, ilpd, ionosphere, letter, mnist, news20, pima, poker, rcv1, rcv1_subsets, url, usps, w8a.
    """
    if name not in DATASETS:
        raise ValueError(f"name={name!r} is not a data set; available are {', '.join(DATASETS)}.")
    dataset = DATASETS[name]
    path = _find(name, data_home)
    if path is None:
        arrays = fetch(name, dataset, cache_folder(data_home), download_if_missing)
    else:
        arrays = read_arrays(path)
        verify(dataset, arrays, str(path))
    bunch = _bunch(name, dataset, arrays)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _find(name: str, data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return the file of a data set; None if it is not found."""
    given = os.environ.get("POLYPLANE_DATA")
    if given and (Path(given) / f"{name}.npz").is_file():
        return Path(given) / f"{name}.npz"
    kept = cache_folder(data_home) / f"{name}.npz"
    return kept if kept.is_file() else None


def cache_folder(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of downloaded data sets: the given one, or the cache folder of the operating system."""
    if data_home is not None:
        return Path(data_home).expanduser()
    try:
        from pooch import os_cache
    except ImportError:
        return Path.home() / ".cache" / "polyplane"
    return Path(os_cache("polyplane"))


def _bunch(name: str, dataset: Dataset, arrays: dict[str, Any]) -> Bunch:
    bunch = Bunch(data=arrays.pop("X_train"), target=arrays.pop("y_train"))
    if "y_test" in arrays:
        bunch.update(data_test=arrays.pop("X_test"), target_test=arrays.pop("y_test"))
    if dataset.feature_names:
        bunch.feature_names = np.array(dataset.feature_names)
    if dataset.target_names:
        bunch.target_names = np.array(dataset.target_names)
    bunch.update({key: value for key, value in arrays.items() if not key.startswith(DIGEST.format(""))})
    n_test = len(bunch.target_test) if "target_test" in bunch else 0
    bunch.DESCR = dataset.describe(name, len(bunch.target), n_test)
    return bunch


def _loader(name: str) -> Loader:
    dataset = DATASETS[name]

    def load(**options: Any) -> Any:
        return load_dataset(name, **options)

    whole = signature(load_dataset)
    load.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])  # type: ignore[attr-defined]
    load.__name__ = load.__qualname__ = f"load_{name}"
    load.__doc__ = _DOCSTRING.format(
        title=dataset.title,
        name=name,
        summary=dataset.describe(name, *dataset.shape[:2]).split("\n")[1] + f" Licence: {dataset.licence}.",
        citation=dataset.citation,
    )
    return load


load_a9a = _loader("a9a")
load_adult = _loader("adult")
load_breast_cancer_wisconsin = _loader("breast_cancer_wisconsin")
load_covtype = _loader("covtype")
load_heart = _loader("heart")
load_ijcnn1 = _loader("ijcnn1")
load_ilpd = _loader("ilpd")
load_ionosphere = _loader("ionosphere")
load_letter = _loader("letter")
load_mnist = _loader("mnist")
load_news20 = _loader("news20")
load_pima = _loader("pima")
load_poker = _loader("poker")
load_rcv1 = _loader("rcv1")
load_rcv1_subsets = _loader("rcv1_subsets")
load_url = _loader("url")
load_usps = _loader("usps")
load_w8a = _loader("w8a")
