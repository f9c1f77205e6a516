"""CSV and TSV as tables of strings: decoded, validated and parsed by Arrow."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from polyplane.readers._columns import check_number_of_columns
from polyplane.readers._csv import DELIMITERS, is_number
from polyplane.readers._input_file import BLOCK, InputFile

#: An additional last row: if a quotation mark is not closed, Arrow does not return it, and raises no error.
_END = "\x1fend of the rows\x1f"
#: Byte order marks of encodings other than UTF-8, the longer ones first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class TextTable(NamedTuple):
    """The format of a text table, and the column names of its header."""

    name: str
    encoding: str
    delimiter: str
    names: list[str]
    header_lines: int


def check_encoding(encoding: str | None) -> None:
    """Raise an error for unknown text encodings."""
    if encoding is None:
        return
    try:
        is_text = codecs.lookup(encoding)._is_text_encoding
    except LookupError:
        is_text = False
    if not is_text:
        raise ValueError(f"encoding={encoding!r} is not a known encoding; common ones are utf-8 and latin-1.")


def open_text(file: Any, name: str, encoding: str | None) -> tuple[TextTable, Iterator[str]]:
    """Return the header of a text, and an iterator over the text after it."""
    if encoding is None:
        start = file.peek(4)
        encoding = next((found for mark, found in _MARKS.items() if start.startswith(mark)), "utf-8-sig")
    elif codecs.lookup(encoding).name == "utf-8":
        encoding = "utf-8-sig"  # with or without a byte order mark
    parts = _decoded(file, name, encoding)
    text = next((part for part in parts if part.strip()), "")
    if not text:
        raise ValueError(f"{name} is empty.")
    header = io.StringIO(text, newline="")
    delimiter = _delimiter(text)
    rows = csv.reader(header, delimiter=delimiter, skipinitialspace=True)
    try:
        cells = next((row for row in rows if any(cell.strip() for cell in row)), [])
    except csv.Error as error:
        raise ValueError(f"{name}: the header cannot be read, {error}.") from None
    if not cells:
        raise ValueError(f"{name}: the header contains no column names.")
    check_number_of_columns(len(cells), name)
    names = [cell.strip() for cell in cells]
    if all(is_number(cell) for cell in names):
        raise ValueError(f"{name} has no header: the first line must contain the column names, not numbers.")
    table = TextTable(name, encoding, delimiter, names, rows.line_num)
    return table, _chain(header.read(), parts)


def read_texts(table: TextTable, parts: Iterator[str], places: Collection[int], input_file: InputFile) -> Iterator[Any]:
    """Yield the rows as Arrow record batches of strings; columns are selected, and named, by their indices `places`."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    wrong: list[Any] = []

    def complain(row: Any) -> str:
        wrong.append(row)
        return "error"

    names = [str(j) for j in range(len(table.names))]
    taken = [str(j) for j in sorted({0, *places})]  # the first column marks the last row
    try:
        reader = arrow_csv.open_csv(
            pyarrow.PythonFile(_Utf8File(parts, _end(table)), mode="r"),
            arrow_csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
            arrow_csv.ParseOptions(delimiter=table.delimiter, newlines_in_values=True, invalid_row_handler=complain),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()),
                include_columns=taken,
                strings_can_be_null=False,
                check_utf8=False,  # encoded here, so it is valid
            ),
        )
        is_complete = False
        for batch in reader:  # to its end: Arrow reads ahead in a thread, which must not outlive the interpreter
            is_last = bool(len(batch)) and batch.column(0)[-1].as_py() == _END
            yield batch.slice(0, len(batch) - is_last).select([str(j) for j in places])
            is_complete = is_complete or is_last
    except pyarrow.ArrowInvalid as error:
        raise ValueError(_message(table, wrong, error, input_file)) from None
    if not is_complete:
        raise ValueError(_not_closed(table, input_file))


def _decoded(file: Any, name: str, encoding: str) -> Iterator[str]:
    """Yield the decoded text; invalid bytes are an error that names their line."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    while True:
        raw = file.read(BLOCK)
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].decode(encoding, errors="replace").count("\n")
            shown = "UTF-8" if encoding == "utf-8-sig" else encoding
            raise ValueError(
                f"{name}, line {line}: byte 0x{error.object[error.start]:02x} is not {shown}; specify the encoding of "
                "the file (for instance --encoding latin-1)."
            ) from None
        if "\0" in text:
            line += text[: text.index("\0")].count("\n")
            raise ValueError(f"{name}, line {line}: the file contains a zero byte, so it is not a text file.")
        line += text.count("\n")
        yield text
        if not raw:
            return


def _delimiter(text: str) -> str:
    """Return the most frequent delimiter of the header, outside of quotation marks."""
    line = text.lstrip("\r\n ").partition("\n")[0]
    bare = re.sub(r'"[^"]*"?', "", line)
    return max(DELIMITERS, key=bare.count)


def _chain(first: str, parts: Iterator[str]) -> Iterator[str]:
    yield first
    yield from parts


def _end(table: TextTable) -> str:
    return "\n" + _END + table.delimiter * (len(table.names) - 1) + "\n"


class _Utf8File(io.RawIOBase):
    """The parts of a text, and its additional last row, as a binary file."""

    def __init__(self, parts: Iterator[str], end: str) -> None:
        self._parts, self._end, self._held = parts, end, bytearray()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._held) < size:
            part = next(self._parts, None)
            if part is None:
                part, self._end = self._end, ""
                if not part:
                    break
            self._held += part.encode()
        size = len(self._held) if size < 0 else size
        found = bytes(self._held[:size])
        del self._held[:size]
        return found


def _message(table: TextTable, wrong: list[Any], error: Exception, input_file: InputFile) -> str:
    """Return the message for an error of Arrow."""
    if "straddl" in str(error):
        line = _line(table, input_file, lambda cells: False)
        where = table.name if line is None else f"{table.name}, line {line}"
        return f"{where}: a row of more than {BLOCK >> 20} MB starts here; a closing quotation mark may be missing."
    if not wrong:
        return f"{table.name} cannot be read: {str(error).rstrip('.')}."
    row = wrong[0]
    if _END in row.text:
        return _not_closed(table, input_file)
    line = _line(table, input_file, lambda cells: len(cells) != len(table.names))
    where = f"row {row.number - 1} (from 0)" if line is None else f"line {line}"
    amount = "fewer" if row.actual_columns < row.expected_columns else "more"
    return f"{table.name}, {where}: {amount} columns than the {len(table.names)} of the header."


def _not_closed(table: TextTable, input_file: InputFile) -> str:
    line = _line(table, input_file, lambda cells: False)
    where = table.name if line is None else f"{table.name}, line {line}"
    return f"{where}: a closing quotation mark is missing."


def _line(table: TextTable, input_file: InputFile, is_wanted: Any) -> int | None:
    """Return the first line of the first such row, or of the last row; None if the text cannot be read again."""
    begins = last = None
    try:
        with input_file.open() as file:
            text = io.TextIOWrapper(file, table.encoding, newline="")
            rows = csv.reader(text, delimiter=table.delimiter)
            begins = 1
            for cells in rows:
                if cells and begins > table.header_lines:
                    last = begins
                    if is_wanted(cells):
                        break
                begins = rows.line_num + 1
            text.detach()
    except csv.Error:  # a cell is too long for Python's parser: this is the invalid row
        return begins
    except ValueError:  # a pipe
        return None
    return last
