"""`load_NAME`: loaders of the papers' data sets from a folder, the user's cache, or their original sources.

A data set is an `.npz` file with `X_train`, `y_train` and, if there are test rows, `X_test`, `y_test`. A sparse matrix
is stored as `X_train_data`, `X_train_indices`, `X_train_indptr` and `X_train_shape`. Other arrays are optional. Files
are verified by checksums.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from inspect import cleandoc, signature
from lzma import LZMAError
from pathlib import Path
from tarfile import TarError
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from polyplane.datasets.sources import DATASETS, Dataset, file_name

__all__ = [
    "load_a9a", "load_adult", "load_breast_cancer_wisconsin", "load_covtype", "load_dataset", "load_heart",
    "load_ijcnn1", "load_ilpd", "load_ionosphere", "load_letter", "load_mnist", "load_news20", "load_pima",
    "load_poker", "load_rcv1", "load_rcv1_subsets", "load_url", "load_usps", "load_w8a",
]  # fmt: skip

Arrays = Mapping[str, Any]
#: Errors that reading a damaged file may raise.
_DAMAGES = (
    AttributeError, BadZipFile, EOFError, LookupError, LZMAError, NotImplementedError, OSError, RuntimeError,
    SyntaxError, TarError, TypeError, ValueError, struct.error, zlib.error,
)  # fmt: skip
#: Names of the checksums in a cached file, for parts whose checksum is not in the catalogue.
DIGEST = "sha256_{}"


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
    given, cache = os.environ.get("POLYPLANE_DATA"), cache_folder(data_home)
    for path in (folder / f"{name}.npz" for folder in (*([Path(given)] if given else []), cache)):
        if path.is_file():
            arrays = read_arrays(path)
            verify(dataset, arrays, str(path))
            break
    else:
        arrays = fetch(name, dataset, cache, download_if_missing)
    bunch = _bunch(name, dataset, arrays)
    return (bunch.data, bunch.target) if return_X_y else bunch


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
        """{title}

        {summary}
        The file ``{name}.npz`` is read from the folder in the environment variable ``POLYPLANE_DATA`` if it exists
        there, otherwise from the cache. If it is not in the cache, the data set is downloaded from its original source,
        verified, and stored in the cache.

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

        Examples
        --------
        >>> from polyplane.datasets import load_{name}
        >>> load_{name}().data.shape  # doctest: +SKIP
        {shape}
        """
        return load_dataset(name, **options)

    whole = signature(load_dataset)
    load.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])  # type: ignore[attr-defined]
    load.__name__ = load.__qualname__ = f"load_{name}"
    load.__doc__ = cleandoc(load.__doc__ or "").format(
        title=dataset.title,
        name=name,
        summary=dataset.describe(name, *dataset.shape[:2]).split("\n")[1] + f" Licence: {dataset.licence}.",
        citation=dataset.citation,
        shape=(dataset.shape[0], dataset.shape[2]),
    )
    return load


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
                pieces = tuple(arrays.pop(f"{part}_{piece}") for piece in ("data", "indices", "indptr"))
                arrays[part] = sparse.csr_matrix(pieces, shape=tuple(arrays.pop(f"{part}_shape")))
                arrays[part].check_format(full_check=True)
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
    pieces = [y, X]
    if sparse.issparse(X):
        X = X if X.has_sorted_indices else X.sorted_indices()
        pieces = [y, np.array(X.shape), X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data]
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


def fetch(name: str, dataset: Dataset, cache: Path, download: bool) -> dict[str, Any]:
    """Return the arrays of a data set from the files of its original source, downloaded unless they are in `cache`.

    Files with a wrong checksum are rejected, and `cache` then remains unchanged.
    """
    missing = [url for url in dataset.urls if not (cache / file_name(url)).is_file()]
    if dataset.parser is None or (missing and not download):
        raise FileNotFoundError(_absent(name, dataset, cache, "was not found"))
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{name}-", dir=cache) as folder:
        work = Path(folder)
        paths = []
        for url in dataset.urls:
            if url in missing:
                _download(url, work / file_name(url), lambda why: _absent(name, dataset, cache, why))
            paths.append((work if url in missing else cache) / file_name(url))
        for path, file in zip(paths, dataset.files, strict=True):
            with path.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest() if "sha256" in file else None
            if found != file.get("sha256"):
                raise ValueError(
                    f"{path.name}, from {file['url']}, is truncated or altered: its checksum is {found}, not "
                    f"{file['sha256']}."
                )
        origin = " and ".join((url.split("#")[0] for url in dataset.urls) if missing else map(str, paths))
        try:
            arrays = dataset.parse(paths)
        except _DAMAGES as error:
            raise ValueError(f"{origin} is truncated or altered: {error}") from error
        verify(dataset, arrays, origin)
        write_arrays(work / "set.npz", arrays)
        os.replace(work / "set.npz", cache / f"{name}.npz")
    return arrays


def _absent(name: str, dataset: Dataset, cache: Path, why: str) -> str:
    if not dataset.files:
        return f"The data set {name!r} {why}, and it is not available for download: put {name}.npz into {cache}."
    urls = " and ".join(url.replace("#", " (as ") + ")" * ("#" in url) for url in dataset.urls)
    return f"The data set {name!r} {why}: put {name}.npz, or the files from {urls}, into {cache}."


def _download(url: str, path: Path, absent: Callable[[str], str]) -> None:
    try:
        import pooch
        import requests
    except ImportError:
        how = 'was not found, and downloading it needs pip install "polyplane[data]"'
        raise FileNotFoundError(absent(how)) from None
    try:
        pooch.HTTPDownloader(progressbar=sys.stderr.isatty() and find_spec("tqdm") is not None)(url, str(path), None)
    except requests.RequestException as error:
        how = f"was not found, and could not be downloaded ({type(error).__name__})"
        raise FileNotFoundError(absent(how)) from error


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
