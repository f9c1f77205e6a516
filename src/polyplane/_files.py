"""Atomic writing of files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    If writing fails, because of an error, a full disk or the end of the process, `path` does not change. After an error
    the temporary file is removed; a killed process may leave a file named ``.<name>.<random>.tmp``.

    Parameters
    ----------
    path : str or path-like
        The file to write. Links are followed, and the permissions of an existing file are kept.

    Yields
    ------
    file : binary file
        The temporary file, open for reading and writing.
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    temporary = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.tmp")
    with _named(path, temporary):
        descriptor = _create(temporary)
        try:
            with open(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    _sync_folder(target.parent)


@contextmanager
def _named(path: str | os.PathLike[str], temporary: Path) -> Iterator[None]:
    """Replace the temporary file name in errors by `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _create(path: Path) -> int:
    # 0o666 minus the umask, as for any new file: with the private mode of `tempfile`, other users could not read it.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)


def _mode(target: Path) -> int | None:
    """Return the permissions of an existing file; other objects, such as devices, are an error."""
    try:
        found = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise OSError(f"{target} exists and is not a regular file, so it cannot be replaced; choose another path.")
    return stat.S_IMODE(found)


def _sync_folder(folder: Path) -> None:
    """Flush the folder to disk, so that the new name survives a power failure, if the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
