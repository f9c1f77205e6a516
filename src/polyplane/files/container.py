"""The container of a model file: named arrays and text in the safetensors format, with a checksum.

The file consists of eight bytes (the length of the header), the header (JSON) and the arrays. It is written and read in
one pass without copying the arrays, and the same model always gives the same bytes. The checksum is the SHA-256 of the
whole file, with its own 64 digits replaced by zeros, so that it covers every byte.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (8, 4, 2)},
    **{f"{kind.upper()}{8 * size}": np.dtype(f"<{kind}{size}") for kind in "iu" for size in (8, 4, 2, 1)},
    "BOOL": np.dtype("?"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}

#: Maximum length of the header in the safetensors format.
LONGEST_HEADER = 100_000_000
#: Maximum number of objects and lists in a header: each needs some hundred bytes of memory, but two in the file. Long
#: headers, as of tables with many columns, may have one per BYTES_PER_NODE bytes. Feature names and labels, of which
#: there may be millions, are strings.
MOST_NODES, BYTES_PER_NODE = 1 << 17, 24
#: The start of the header: the position of the checksum is the same in all files.
OPENING = b'{"__metadata__":{"sha256":"'
ZEROS = b"0" * 64
#: A string (with possessive quantifiers, to avoid backtracking), or the start of an object or a list.
_TEXT_OR_NODE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{]', re.DOTALL)
DIGEST_AT = 8 + len(OPENING)


class DamagedError(ValueError):
    """An error in a file; the message continues a sentence that starts with the file name: "is truncated"."""


class Slot(NamedTuple):
    """The position of an array, relative to the end of the header."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """The first part of a file."""

    raw: bytes  # including the eight bytes before it
    metadata: dict[str, str]
    slots: list[Slot]


def write_container(file: BinaryIO, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write arrays (in C order, by decreasing item size, so that each is aligned) and text, and then the checksum."""
    entries: dict[str, Any] = {"__metadata__": {"sha256": ZEROS.decode(), **metadata}}
    ordered, start = [], 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        stop = start + little.nbytes
        entries[name] = {"dtype": NAMES[little.dtype], "shape": list(little.shape), "data_offsets": [start, stop]}
        ordered.append(little)
        start = stop
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > LONGEST_HEADER:
        raise ValueError("The feature names and labels take more than 100 MB, the maximum of a model file.")
    digest = hashlib.sha256()
    parts: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text, *map(_bytes_of, ordered)]
    for part in parts:
        digest.update(part)
        file.write(part)
    file.seek(DIGEST_AT)
    file.write(digest.hexdigest().encode())


def _bytes_of(array: np.ndarray) -> memoryview:
    view: Any = array.reshape(-1).view(np.uint8)
    return memoryview(view)


def read_header(file: BinaryIO) -> Header:
    """Read and validate the header, so that no more memory is allocated than the size of the file."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= LONGEST_HEADER:
        raise DamagedError("is not a model file of Polyplane")
    text = file.read(length)
    if not text.startswith(b'{"'):
        raise DamagedError("is not a model file of Polyplane")
    if len(text) < length:
        raise DamagedError("is truncated")
    entries = parse_json(text)
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise DamagedError("has a damaged header")
    slots = [_slot(name, entry) for name, entry in entries.items()]
    slots.sort(key=lambda slot: (slot.start, slot.stop))
    end = 0
    for slot in slots:  # without gaps and overlaps
        if slot.start != end:
            raise DamagedError(f"has a damaged entry for the array {slot.name!r} in its header")
        end = slot.stop
    n_extra = size - 8 - length - end
    if n_extra:
        raise DamagedError("is truncated" if n_extra < 0 else f"has {n_extra} extra bytes at its end")
    return Header(length.to_bytes(8, "little") + text, metadata, slots)


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object strictly: without duplicate names and NaN."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name occurs twice")
        return found

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a JSON number")

    most = max(MOST_NODES, len(text) // BYTES_PER_NODE)
    if _n_nodes(text, most) > most:
        raise DamagedError(f"has more than {most:,} objects and lists in its header, the maximum number")
    try:
        found = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except ValueError as error:
        raise DamagedError("has a damaged header") from error
    if not isinstance(found, dict):
        raise DamagedError("has a damaged header")
    return found


def _n_nodes(text: str | bytes, most: int) -> int:
    """Count the objects and lists; brackets in strings are excluded only if this matters."""
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    n_nodes = raw.count(b"{") + raw.count(b"[")
    if n_nodes <= most:
        return n_nodes
    return sum(raw[found.start()] != ord('"') for found in _TEXT_OR_NODE.finditer(raw))


def _slot(name: str, entry: Any) -> Slot:
    match entry:
        case {"dtype": str(code), "shape": [*shape], "data_offsets": [start, stop], **rest} if not rest:
            sound = all(type(number) is int and 0 <= number < 2**48 for number in (*shape, start, stop))
            dtype = DTYPES.get(code)
            if sound and dtype is not None and stop - start == math.prod(shape) * dtype.itemsize:
                return Slot(name, dtype, tuple(shape), start, stop)
    raise DamagedError(f"has a damaged entry for the array {name!r} in its header")


def read_arrays(file: BinaryIO, header: Header) -> dict[str, np.ndarray]:
    """Read the arrays after the header, and verify the checksum."""
    digest = hashlib.sha256(header.raw[:DIGEST_AT] + ZEROS + header.raw[DIGEST_AT + 64 :])
    arrays = {}
    for slot in header.slots:
        try:
            array = np.empty(slot.shape, dtype=slot.dtype)
        except (ValueError, MemoryError) as error:
            raise DamagedError(f"does not fit into memory: its array {slot.name!r} is too large") from error
        view = _bytes_of(array)
        if file.readinto(view) != len(view):  # type: ignore[attr-defined]
            raise DamagedError("is truncated")
        digest.update(view)
        # NumPy and Numba may interpret other values of booleans differently.
        if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
            raise DamagedError(f"has other bytes than 0 and 1 in its boolean array {slot.name!r}")
        arrays[slot.name] = array.astype(slot.dtype.newbyteorder("="), copy=False)
    if header.raw[8:DIGEST_AT] != OPENING or header.metadata.get("sha256") != digest.hexdigest():
        raise DamagedError("was changed after it was written: its checksum does not match")
    return arrays


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
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(f"{target} exists and is not a regular file, so it cannot be replaced; choose another path.")
    temporary = target.with_name(f".{target.name[:200]}.{os.urandom(4).hex()}.tmp")
    # 0o666 minus the umask, as for any new file: with the private mode of `tempfile`, other users could not read it.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
        try:
            with open(descriptor, "w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:  # name the path, not the temporary file
        if error.errno is None or error.filename not in (None, temporary, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    _sync_folder(target.parent)


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
