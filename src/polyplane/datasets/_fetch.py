"""Fetch a set from its public home into the cache: verified, and all or nothing."""

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

from polyplane.datasets._sources import Source
from polyplane.datasets._store import write_arrays

#: What the reading of a damaged file may end in.
_DAMAGES = (ValueError, EOFError, OSError, LookupError, LZMAError, zlib.error, tarfile.TarError)


def fetch(
    name: str, source: Source, home: Path, download: bool, verify: Callable[[Source, dict[str, Any], str], None]
) -> dict[str, Any]:
    """The arrays of a set from the files of its public home, which are downloaded unless they lie in `home`.

    What is not the set, as `verify` sees it, is refused; `home` then stays as it was.
    """
    missing = [url for url in source.files if not (home / file_name(url)).is_file()]
    if source.parse is None or (missing and not download):
        raise FileNotFoundError(_absent(name, source, home, "is not at hand"))
    home.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{name}-", dir=home) as folder:
        work = Path(folder)
        paths = []
        for url, checksum in source.files.items():
            if url in missing:
                _download(url, work / file_name(url), lambda why: _absent(name, source, home, why))
            paths.append((work if url in missing else home) / file_name(url))
            _check_file(paths[-1], checksum, url)
        origin = " and ".join((url.split("#")[0] for url in source.files) if missing else map(str, paths))
        try:
            arrays = source.parse(paths)
        except _DAMAGES as error:
            raise ValueError(f"{origin} is truncated or altered: {error}") from error
        verify(source, arrays, origin)
        write_arrays(work / "set.npz", arrays)
        os.replace(work / "set.npz", home / f"{name}.npz")
    return arrays


def file_name(url: str) -> str:
    """The name of a file at home: after the last slash, or after ``#`` where the URL does not tell it."""
    return unquote(url.rsplit("/", 1)[1].rsplit("#", 1)[-1])


def _absent(name: str, source: Source, home: Path, why: str) -> str:
    if not source.files:
        return f"The data set {name!r} {why}, and has no public home: put {name}.npz into {home}."
    urls = " and ".join(url.replace("#", " (as ") + ")" * ("#" in url) for url in source.files)
    return f"The data set {name!r} {why}: put {name}.npz, or what is at {urls}, into {home}."


def _download(url: str, path: Path, absent: Callable[[str], str]) -> None:
    try:
        import pooch
        import requests
    except ImportError:
        how = 'is not at hand, and fetching it needs pip install "polyplane[data]"'
        raise FileNotFoundError(absent(how)) from None
    bar = DownloadBar(path.name)
    try:
        pooch.HTTPDownloader(progressbar=bar)(url, str(path), None)
    except requests.RequestException as error:
        how = f"is not at hand, and could not be fetched ({type(error).__name__})"
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
    """The progress bar of a download, on a terminal, in the form that pooch asks for.

    Parameters
    ----------
    title : str
        What is being fetched.
    """

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
        """Show that so many bytes more have come."""
        self._bar.update(self._task, advance=n_bytes, total=self.total or None)

    def reset(self) -> None:
        """Begin anew."""
        self._bar.reset(self._task)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop()
