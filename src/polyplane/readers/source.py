"""Input files, plain or compressed, and standard input; detection of their format."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

EXTENSIONS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".xlsx": "excel",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
#: How files of other formats begin, at some position.
BEGINNINGS = {
    (0, b"PAR1"): "parquet",
    (0, b"ARROW1"): "arrow",
    (0, b"SQLite format 3\0"): "sqlite",
    (8, b"DUCK"): "duckdb",
}
#: Block size for reading and parsing text, and maximum length of a line and of a header.
BLOCK_BYTES, MAX_LINE_BYTES, MAX_HEADER_BYTES = 1 << 22, 1 << 26, 1 << 24
#: Larger compressed or piped files are copied to disk if random access is needed.
MAX_SPOOLED_BYTES = 1 << 26
#: How compressed files begin.
COMPRESSIONS: dict[bytes, Any] = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ\x00": lzma}
DELIMITERS = ",;\t|"
_SPARSE_LINE = re.compile(rb"\s*([^\s:]+\s+)?(qid:\d+\s+)?\d+:\S")


class InputFile:
    """A file that can be opened repeatedly, or a pipe or standard input (``-``), which can be read only once.

    Parameters
    ----------
    path : str or path
        The file, or ``"-"``.
    keep : bool
        Keep the content of a pipe, so that it can be opened repeatedly, too.
    """

    def __init__(self, path: str | os.PathLike[str], keep: bool = False) -> None:
        self.path = path
        self.is_stdin = str(path) == "-"
        self.name = "standard input" if self.is_stdin else str(path)
        self._pipe = _Pipe(path) if self.is_stdin or _is_pipe(path) else None
        self._kept: bytes | None = None
        self._piped: Any = None  # the pipe, decompressed
        self._used = False
        if keep and self._pipe is not None:
            self._kept, self._pipe = self._pipe.readall(), None

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the uncompressed content, as a file with `peek`."""
        if self._used:
            name = "Standard input" if self.is_stdin else self.name
            raise ValueError(f"{name} can be read only once; save it in a file first.")
        self._used = self._pipe is not None
        with self._reading() as file:
            yield file

    def format(self) -> str:
        """Detect the format from the content, or else from the extension: svmlight, csv, parquet and others."""
        with self._reading() as file:
            start = file.peek(1)
        if not start:
            raise ValueError(f"{self.name} is empty.")
        for (position, beginning), format in BEGINNINGS.items():
            if start.startswith(beginning, position):
                return format
        suffixes = [suffix.lower() for suffix in Path(self.name).suffixes]
        known = [EXTENSIONS[suffix] for suffix in suffixes[-2:] if suffix in EXTENSIONS]
        if start.startswith(b"PK\x03\x04") and known[-1:] == ["excel"]:
            return "excel"
        if start.startswith((b"PK\x03\x04", b"\x93NUMPY")) or suffixes[-1:] in ([".npz"], [".npy"]):
            raise ValueError(
                f"{self.name} is a NumPy file or another archive, which is not read here: load it with numpy.load, a "
                "large .npy file with mmap_mode='r', and pass the arrays to fit or, in slices, to fit_stream."
            )
        if known and known[-1] in ("parquet", "excel"):
            what = {"parquet": "a Parquet", "excel": "an Excel"}[known[-1]]
            raise ValueError(f"{self.name} has the extension of {what} file, but different content.")
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return known[-1] if known else "csv"
        if b"\0" in start:
            raise ValueError(f"{self.name} is neither text nor Parquet.")
        return known[-1] if known else _text_format(start, self.name)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Open the file for reading; errors of damaged compressed files become a ValueError that names the file."""
        try:
            if self._pipe is not None:
                self._piped = self._piped or _decompressed(self._pipe)
                yield self._piped
            else:
                with Path(self.path).open("rb") if self._kept is None else BytesIO(self._kept) as raw:
                    yield _decompressed(raw)
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise ValueError(f"{self.name} is damaged: {str(error).rstrip('.')}.") from None


@contextmanager
def seekable(opened: Any) -> Iterator[Any]:
    """Return a file with random access: the opened file, or a temporary copy of a compressed file or a pipe."""
    if isinstance(opened, BufferedReader) and opened.seekable():
        yield opened
        return
    with tempfile.SpooledTemporaryFile(max_size=MAX_SPOOLED_BYTES) as copy:
        shutil.copyfileobj(opened, copy)
        copy.seek(0)
        yield copy


def line_blocks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield blocks of complete lines; the last line is ended, too."""
    mark = codecs.BOM_UTF8  # has no meaning in UTF-8
    while block := file.read(BLOCK_BYTES).removeprefix(mark):
        if not block.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES)
            if len(rest) == MAX_LINE_BYTES:
                raise ValueError(
                    f"{name} has a line of more than {MAX_LINE_BYTES >> 20} MB, the maximum length of a line."
                )
            block += rest
        yield block if block.endswith(b"\n") else block + b"\n"
        mark = b""


class _Pipe(RawIOBase):
    """A pipe or standard input. Reads wait for all requested bytes: format detection needs them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if str(path) == "-" and sys.stdin is None:
            raise ValueError("Standard input is closed.")
        self.is_stdin = str(path) == "-"
        self.file: Any = sys.stdin.buffer if self.is_stdin else open(path, "rb")  # noqa: SIM115

    def close(self) -> None:
        if not self.is_stdin:
            self.file.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return int(self.file.readinto(buffer))


def _is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether this is the path of a pipe, a device or the like."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _decompressed(raw: Any) -> Any:
    file = raw if hasattr(raw, "peek") else BufferedReader(raw)
    start = file.peek(6)
    module = next((module for magic, module in COMPRESSIONS.items() if start.startswith(magic)), None)
    return file if module is None else module.open(file)


def _text_format(start: bytes, name: str) -> str:
    """Detect the format of text from its first line: svmlight if it matches, else CSV if it has delimiters."""
    lines = (line for line in start.splitlines() if line.strip() and not line.lstrip().startswith(b"#"))
    line = next(lines, b"")
    if not line:
        raise ValueError(f"{name} has no rows.")
    if _SPARSE_LINE.match(line):
        return "svmlight"
    if any(delimiter.encode() in line for delimiter in DELIMITERS):
        return "csv"
    if len(line.split()) == 1 and any(map(_SPARSE_LINE.match, lines)):  # a label alone is a row of zeros
        return "svmlight"
    raise ValueError(
        f"{name}: the first line is neither 'label index:value ...' (svmlight) nor a header with commas or tabs (CSV)."
    )
