"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write and read in; it takes the place of `path` when the block ends well.

    Whatever happens before that, be it an error, a full disk or the end of the process, `path` stays as it was. An
    error leaves no other file behind either; a process that is killed may leave one named ``.<name>.<random>.tmp``.

    Parameters
    ----------
    path : str or path-like
        The file to write. A link is followed, and the permissions of an existing file are kept.

    Yields
    ------
    file : binary file
        Where to write.
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
    """Let errors speak of the file that the user knows."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _create(path: Path) -> int:
    # 0o666 less the umask, as for any new file: the private mode of `tempfile` would lock out other readers.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)


def _mode(target: Path) -> int | None:
    """The permissions of an existing file; what is not a plain file, such as a device, is not to be replaced."""
    try:
        found = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise OSError(f"{target} is there already, and not a plain file: it cannot be replaced.")
    return stat.S_IMODE(found)


def _sync_folder(folder: Path) -> None:
    """See to it that the new name survives a power failure, where the system can promise that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
