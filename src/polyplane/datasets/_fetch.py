"""Download of a data set from its original source into the cache: verified and atomic."""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from polyplane.datasets._catalogue import Dataset
from polyplane.datasets._store import verify, write_arrays

#: Errors that reading a damaged file may raise.
_DAMAGES = (ValueError, EOFError, OSError, LookupError, LZMAError, zlib.error, tarfile.TarError)


def fetch(name: str, dataset: Dataset, cache: Path, download: bool) -> dict[str, Any]:
    """Return the arrays of a data set from the files of its original source, downloaded unless they are in `cache`.

    Files with a wrong checksum are rejected, and `cache` then remains unchanged.
    """
    missing = [url for url in dataset.files if not (cache / file_name(url)).is_file()]
    if dataset.parse is None or (missing and not download):
        raise FileNotFoundError(_absent(name, dataset, cache, "was not found"))
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{name}-", dir=cache) as folder:
        work = Path(folder)
        paths = []
        for url, checksum in dataset.files.items():
            if url in missing:
                _download(url, work / file_name(url), lambda why: _absent(name, dataset, cache, why))
            paths.append((work if url in missing else cache) / file_name(url))
            _check_file(paths[-1], checksum, url)
        origin = " and ".join((url.split("#")[0] for url in dataset.files) if missing else map(str, paths))
        try:
            arrays = dataset.parse(paths)
        except _DAMAGES as error:
            raise ValueError(f"{origin} is truncated or altered: {error}") from error
        verify(dataset, arrays, origin)
        write_arrays(work / "set.npz", arrays)
        os.replace(work / "set.npz", cache / f"{name}.npz")
    return arrays


def file_name(url: str) -> str:
    """Return the name of a file in the cache: the part of the URL after ``#``, or else after the last slash."""
    return unquote(url.rsplit("/", 1)[1].rsplit("#", 1)[-1])


def _absent(name: str, dataset: Dataset, cache: Path, why: str) -> str:
    if not dataset.files:
        return f"The data set {name!r} {why}, and it is not available for download: put {name}.npz into {cache}."
    urls = " and ".join(url.replace("#", " (as ") + ")" * ("#" in url) for url in dataset.files)
    return f"The data set {name!r} {why}: put {name}.npz, or the files from {urls}, into {cache}."


def _download(url: str, path: Path, absent: Callable[[str], str]) -> None:
    try:
        import pooch
        import requests
    except ImportError:
        how = 'was not found, and downloading it needs pip install "polyplane[data]"'
        raise FileNotFoundError(absent(how)) from None
    bar = DownloadBar(path.name)
    try:
        pooch.HTTPDownloader(progressbar=bar)(url, str(path), None)
    except requests.RequestException as error:
        how = f"was not found, and could not be downloaded ({type(error).__name__})"
        raise FileNotFoundError(absent(how)) from error
    finally:
        bar.close()


def _check_file(path: Path, checksum: str | None, url: str) -> None:
    if checksum is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != checksum:
        raise ValueError(f"{path.name}, from {url}, is truncated or altered: its checksum is {found}, not {checksum}.")


class DownloadBar:
    """Progress bar of a download on a terminal, with the interface of pooch."""

    def __init__(self, title: str) -> None:
        from rich import console, progress

        self.total = 0
        self._bar = progress.Progress(
            progress.TextColumn("[bold]{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            console=console.Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._bar.add_task(title, total=None)
        self._bar.start()

    def update(self, n_bytes: int) -> None:
        """Add to the number of downloaded bytes."""
        self._bar.update(self._task, advance=n_bytes, total=self.total or None)

    def reset(self) -> None:
        """Restart at zero bytes."""
        self._bar.reset(self._task)

    def close(self) -> None:
        """Do nothing: the finished bar remains visible."""
        self._bar.stop()
