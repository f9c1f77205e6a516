"""`read_table` and `table_batches`: tables with columns of any kind, from files of many formats, as Arrow tables."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import secrets
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from polyplane.inputs.frames import text_of
from polyplane.readers.rows import MAX_BATCH_VALUES, MAX_EXACT_INTEGER, check_names, header_too_long, parse_header
from polyplane.readers.source import BLOCK_BYTES, MAX_HEADER_BYTES, InputFile, seekable
from polyplane.tables.encoder import GAPS

#: Formats of files with several tables, and all formats of tables.
NAMED_TABLES = ("excel", "sqlite", "duckdb")
TABLE_FORMATS = ("csv", "parquet", "arrow", "json", *NAMED_TABLES)
#: Maximum size of files that are read as a whole, uncompressed.
MAX_WHOLE_BYTES = 1 << 29
#: Names of an unnamed index column written by pandas: empty, as read again by pandas, or in Parquet.
_INDEX = re.compile(r"(Unnamed: 0)?|__index_level_\d+__")
#: A header: the first line outside of quotation marks.
_HEADER = re.compile(r'[\r\n ]*+(?:[^"\r\n]++|"[^"]*+")*+[\r\n]')
#: Byte order marks of encodings other than UTF-8, the longer ones first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: The same rules as in `TableEncoder`: plain numbers, and strings that would lose leading zeros.
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_LEADING_ZERO = r"^[+-]?0\d+$"
#: These, a zero whose sign integers lose, and integers that may be beyond 2^53, which floats would merge.
_INEXACT = _LEADING_ZERO + r"|^-0$|^[+-]?\d{16,}$"


@dataclass(eq=False, repr=False)
class TableBatches:
    """Iterable over the batches of a table, returned by `table_batches`; it can be iterated over repeatedly.

    Attributes
    ----------
    index : tuple of str
        Index columns written by pandas, omitted unless `keep_index`. Available once the first batch has been read.
    """

    input_file: InputFile
    batch_size: int | None
    format: str
    encoding: str | None
    columns: Collection[str] | None
    keep_index: bool
    table: str | None
    index: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name = self.input_file.name
        if self.format not in TABLE_FORMATS:
            raise ValueError(
                f"{name} is in {self.format} format; tables are read from CSV, TSV, Parquet, Arrow, Excel, "
                "JSON, SQLite and DuckDB files."
            )
        if self.table is not None and self.format not in NAMED_TABLES:
            raise ValueError(f"table={self.table!r}: {name} is in {self.format} format, which has a single table.")

    def __iter__(self) -> Iterator[Any]:
        import_pyarrow(self.input_file.name)
        pieces = {"csv": self._csv, "parquet": self._parquet}.get(self.format, self._whole)()
        return _regroup(pieces, self.batch_size)

    def _csv(self) -> Iterator[Any]:
        import pyarrow

        with self.input_file.open() as file:
            text = _DelimitedText(file, self.input_file, self.encoding)
            names = [name or ("" if j == 0 else f"Unnamed: {j}") for j, name in enumerate(text.names)]
            indices = self._column_indices(names, [])
            for batch in text.batches(indices):
                yield pyarrow.Table.from_batches([batch]).rename_columns([names[j] for j in indices])

    def _whole(self) -> Iterator[Any]:
        """Yield a table that is read as a whole."""
        table = WHOLE[self.format](self.input_file, self.table)
        metadata = table.schema.pandas_metadata or {}
        indices = self._column_indices(table.column_names, metadata.get("index_columns", []))
        for field in (table.schema.field(j) for j in indices):
            self._check_type(field)
        yield table.select(indices).replace_schema_metadata(None)

    def _check_type(self, field: Any) -> None:
        import pyarrow

        if pyarrow.types.is_nested(field.type):
            raise ValueError(
                f"{self.input_file.name}: column {field.name!r} has the unsupported type {field.type}; columns must be "
                "numbers, text, booleans or dates. Omit it, or split it into such columns."
            )

    def _parquet(self) -> Iterator[Any]:
        import pyarrow

        with open_parquet(self.input_file) as table:
            schema = table.schema_arrow
            indices = self._column_indices(schema.names, (schema.pandas_metadata or {}).get("index_columns", []))
            for field in (schema.field(j) for j in indices):
                self._check_type(field)
            names, n_rows = [schema.names[j] for j in indices], max(1, MAX_BATCH_VALUES // 8 // len(indices))
            for batch in table.iter_batches(n_rows, columns=names):
                yield pyarrow.Table.from_batches([batch]).select(names).replace_schema_metadata(None)

    def _column_indices(self, names: Sequence[str], index: Sequence[Any]) -> list[int]:
        """Return the indices of the columns to read."""
        name = self.input_file.name
        check_names(names, name)
        is_index = [(j == 0 or cell[:2] == "__") and _INDEX.fullmatch(cell) is not None for j, cell in enumerate(names)]
        self.index = tuple(cell for cell, found in zip(names, is_index, strict=True) if found or cell in index)
        if self.columns is not None:
            wanted = set(self.columns)
            indices = [j for j, cell in enumerate(names) if cell in wanted]
        else:
            indices = [j for j, cell in enumerate(names) if self.keep_index or cell not in self.index]
        if not indices:
            raise ValueError(f"{name} has none of the requested columns; its columns are {', '.join(names[:10])}.")
        return indices


def read_table(
    path: str | os.PathLike[str] | InputFile,
    *,
    format: str | None = None,
    encoding: str | None = None,
    columns: Collection[str] | None = None,
    keep_index: bool = False,
    table: str | None = None,
    numbers: bool = True,
) -> Any:
    r"""Read a raw table with columns of any kind.

    Parameters
    ----------
    path : str or path
        A file in CSV or TSV (with a header; separated by comma, semicolon, tab or bar), Parquet, Arrow (Feather), Excel
        (.xlsx; needs openpyxl) or JSON (rows or columns, or a row per line) format, plain or compressed by gzip, bzip2
        or xz, or a SQLite or DuckDB (needs duckdb) database; ``"-"`` is standard input.
    format : {"csv", "parquet", "arrow", "excel", "json", "sqlite", "duckdb"}, default=None
        The format. None: detected from content and extension.
    encoding : str, default=None
        CSV: the text encoding, such as "latin-1". None: UTF-8, or as indicated by a byte order mark. Bytes that cannot
        be decoded are an error.
    columns : collection of str, default=None
        The columns to read, if the file has them. None: all.
    keep_index : bool, default=False
        Keep the column of an unnamed index written by pandas.
    table : str, default=None
        Excel and databases: the name of the sheet or table. None: the first sheet, or the only table.
    numbers : bool, default=True
        CSV: parse columns that contain only numbers and missing values ("", "?", "NA", ...) as numbers, unless that
        loses information, as in 00501. False: keep all values as strings.

    Returns
    -------
    table : pyarrow.Table
        The table. Parquet columns keep their types; CSV columns are numbers or strings, and `TableClassifier` and
        `TableEncoder` infer categories, booleans and dates.

    Raises
    ------
    ValueError
        If the file is invalid; the message names the line and the problem.

    See Also
    --------
    table_batches : Read a table in batches, in bounded memory.
    read : Read numeric data as a matrix.

    Examples
    --------
    >>> import tempfile
    >>> from polyplane.readers import read_table
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write('work;age;city\nState;39;"Paris; France"\n?;;Oslo\nPrivate;50;\n')
    ...     file.flush()
    ...     table = read_table(file.name)
    >>> table.to_pydict()
    {'work': ['State', '?', 'Private'], 'age': [39, None, 50], 'city': ['Paris; France', 'Oslo', '']}
    """
    how: Any = {"encoding": encoding, "columns": columns, "keep_index": keep_index, "table": table}
    found = whole_table(table_batches(path, None, format=format, **how))
    return typed(found, set(found.column_names), GAPS) if numbers else found


def table_batches(
    path: str | os.PathLike[str] | InputFile,
    batch_size: int | None = 65_536,
    *,
    format: str | None = None,
    encoding: str | None = None,
    columns: Collection[str] | None = None,
    keep_index: bool = False,
    table: str | None = None,
) -> TableBatches:
    r"""Read a raw table in batches, in bounded memory.

    Parameters
    ----------
    path : str or path
        As for `read_table`.
    batch_size : int or None, default=65536
        Rows per batch, fewer if they have more than 8 million cells. None: batches of a few MB.
    format, encoding, columns, keep_index, table
        As for `read_table`.

    Returns
    -------
    parts : TableBatches
        An iterable of ``pyarrow.Table``. It can be iterated over repeatedly, except for standard input. Values of CSV
        files are strings, because a batch does not determine the type of a whole column.

    Examples
    --------
    >>> import tempfile
    >>> from polyplane.readers import table_batches
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("work,age\nState,39\nPrivate,50\nPrivate,38\n")
    ...     file.flush()
    ...     [part.column("age").to_pylist() for part in table_batches(file.name, batch_size=2)]
    [['39', '50'], ['38']]
    """
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size={batch_size} must be 1 or more.")
    if format is not None and format not in TABLE_FORMATS:
        raise ValueError(f"format={format!r} must be one of {', '.join(map(repr, TABLE_FORMATS))}.")
    try:
        "".encode("utf-8" if encoding is None else encoding)
    except LookupError:  # also of encodings that are not of text, such as base64
        raise ValueError(f"encoding={encoding!r} is not a known encoding; common ones are utf-8 and latin-1.") from None
    input_file = path if isinstance(path, InputFile) else InputFile(path)
    format = format or input_file.format()
    return TableBatches(input_file, batch_size, format, encoding, columns, keep_index, table)


def whole_table(parts: TableBatches) -> Any:
    """Read all batches into one table."""
    found = list(parts)
    return import_pyarrow(parts.input_file.name).concat_tables(found)


def import_pyarrow(name: str) -> Any:
    """Import Arrow, which reads tables."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f'{name} is a table: pip install "polyplane[tables]" to read it.') from None
    return pyarrow


def _regroup(pieces: Iterator[Any], n_rows: int | None) -> Iterator[Any]:
    """Yield the same rows in batches of `n_rows` (None: as they are read); without rows, one empty batch."""
    import pyarrow

    held, piece, is_empty = [], None, True
    for piece in pieces:
        if not len(piece):
            continue
        most = len(piece) if n_rows is None else max(1, min(n_rows, MAX_BATCH_VALUES // piece.num_columns))
        held.append(piece)
        while sum(map(len, held)) >= most:
            whole = pyarrow.concat_tables(held)
            yield whole.slice(0, most)
            held, is_empty = [whole.slice(most)], False
    rest = pyarrow.concat_tables(held) if held else piece
    if rest is not None and (len(rest) or is_empty):
        yield rest


@contextmanager
def open_parquet(input_file: InputFile) -> Iterator[Any]:
    """Open a Parquet file with Arrow."""
    import_pyarrow(input_file.name)
    from pyarrow import parquet

    with input_file.open() as opened, seekable(opened) as file:
        try:
            table = parquet.ParquetFile(file)
        except (ValueError, OSError) as error:  # base classes of Arrow's errors
            raise ValueError(f"{input_file.name} is not a Parquet file, or is damaged: {error}") from None
        yield table


def _read_arrow(input_file: InputFile, table: str | None) -> Any:
    from pyarrow import ipc

    with input_file.open() as opened, seekable(opened) as file:
        try:
            return ipc.open_file(file).read_all().unify_dictionaries()
        except (ValueError, OSError) as error:  # base classes of Arrow's errors
            raise ValueError(f"{input_file.name} is not an Arrow file, or is damaged: {error}") from None


def _read_excel(input_file: InputFile, table: str | None) -> Any:
    """Read the values of a sheet; the first row that is not empty has the names."""
    try:
        import openpyxl
    except ImportError:
        raise ImportError(f"{input_file.name} is an Excel file: pip install openpyxl to read it.") from None

    with input_file.open() as opened, seekable(opened) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_size(sum(member.file_size for member in archive.infolist()), input_file.name)
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            if table is not None and table not in book.sheetnames:
                raise ValueError(f"it has no sheet {table!r}; its sheets are {', '.join(book.sheetnames)}.")
            sheet = book[table or book.sheetnames[0]]
            rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
        except (ValueError, KeyError, TypeError, AttributeError, OSError, SyntaxError, zipfile.BadZipFile) as error:
            raise ValueError(f"{input_file.name} cannot be read as an Excel file: {str(error).rstrip('.')}.") from None
    if not rows:
        raise ValueError(f"{input_file.name} is empty.")
    header = ["" if cell is None else str(text_of(cell)) for cell in rows[0]]
    names = [name or ("" if j == 0 else f"Unnamed: {j}") for j, name in enumerate(header)]
    return _of_objects(names, [[row[j] if j < len(row) else None for row in rows[1:]] for j in range(len(names))])


def _read_json(input_file: InputFile, table: str | None) -> Any:
    """Read a list of rows, a dict of columns, or a row per line."""
    with input_file.open() as file:
        raw = file.read(MAX_WHOLE_BYTES + 1)
    _check_size(len(raw), input_file.name)
    try:
        text = raw.decode("utf-8-sig").strip()
        is_lines = text.startswith("{") and "\n{" in text.replace("\r", "")
        found = [json.loads(line) for line in text.splitlines() if line.strip()] if is_lines else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{input_file.name} is not JSON: {error}.") from None
    if isinstance(found, dict) and not all(isinstance(values, list) for values in found.values()):
        found = [found]
    if isinstance(found, list) and found and all(isinstance(row, dict) for row in found):
        names = list(dict.fromkeys(name for row in found for name in row))
        found = {name: [row.get(name) for row in found] for name in names}
    if not isinstance(found, dict) or not found or len({len(values) for values in found.values()}) != 1:
        raise ValueError(
            f"{input_file.name} is no table: it must be a list of rows with names, or columns of one length."
        )
    return _of_objects(list(found), list(found.values()))


def _read_sqlite(input_file: InputFile, table: str | None) -> Any:
    import sqlite3

    path = _database(input_file)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
            name = _only_table([name for (name,) in tables if not name.startswith("sqlite_")], table, input_file.name)
            rows = database.execute(f"SELECT * FROM {_quoted(name)}")
            names, values = [column[0] for column in rows.description], rows.fetchall()
            kinds = [kind.lower() for _, _, kind, *_ in database.execute(f"PRAGMA table_info({_quoted(name)})")]
    except sqlite3.Error as error:
        raise ValueError(f"{input_file.name} cannot be read by SQLite: {error}.") from None
    columns = [[row[j] for row in values] for j in range(len(names))]
    for j, kind in enumerate(kinds):  # SQLite stores booleans as integers
        if kind in ("bool", "boolean") and set(columns[j]) <= {0, 1, None}:
            columns[j] = [None if value is None else bool(value) for value in columns[j]]
    return _of_objects(names, columns)


def _read_duckdb(input_file: InputFile, table: str | None) -> Any:
    try:
        import duckdb
    except ImportError:
        raise ImportError(f"{input_file.name} is a DuckDB database: pip install duckdb to read it.") from None

    path = _database(input_file)
    try:
        with closing(duckdb.connect(str(path), read_only=True)) as database:
            tables = database.execute("SELECT table_name FROM information_schema.tables ORDER BY 1").fetchall()
            name = _only_table([name for (name,) in tables], table, input_file.name)
            return database.sql(f"SELECT * FROM {_quoted(name)}").to_arrow_table()
    except duckdb.Error as error:
        raise ValueError(f"{input_file.name} cannot be read by DuckDB: {str(error).splitlines()[0]}") from None


def _database(input_file: InputFile) -> Path:
    path = Path(input_file.path)
    if not path.is_file():
        raise ValueError(f"{input_file.name}: a database must be a file.")
    return path


def _only_table(tables: Sequence[str], wanted: str | None, name: str) -> str:
    if wanted is None and len(tables) == 1:
        return tables[0]
    if wanted is None or wanted not in tables:
        problem = f"has {len(tables)} tables" if wanted is None else f"has no table {wanted!r}"
        raise ValueError(f"{name} {problem}: {', '.join(tables)}; give one of them as `table` (--table NAME).")
    return wanted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_size(n_bytes: int, name: str) -> None:
    if n_bytes > MAX_WHOLE_BYTES:
        raise ValueError(f"{name} has more than {MAX_WHOLE_BYTES >> 20} MB: convert it to Parquet.")


def _of_objects(names: list[str], columns: list[list[Any]]) -> Any:
    """Return a table of columns of Python objects; those of several types become strings."""
    import pyarrow

    arrays = []
    for name, values in zip(names, columns, strict=True):
        if any(isinstance(value, list | dict) for value in values):
            raise ValueError(
                f"Column {name!r} contains lists or objects; columns must be numbers, text, booleans or dates."
            )
        try:
            if len(set(map(type, values)) - {type(None), int, float}) > 1:
                raise pyarrow.ArrowTypeError
            arrays.append(pyarrow.array(values, from_pandas=True))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
            arrays.append(pyarrow.array([text_of(value) for value in values], pyarrow.string()))
    return pyarrow.Table.from_arrays(arrays, names=names)


#: Formats of tables that are read as a whole.
WHOLE = {
    "arrow": _read_arrow,
    "excel": _read_excel,
    "json": _read_json,
    "sqlite": _read_sqlite,
    "duckdb": _read_duckdb,
}


class _DelimitedText(io.RawIOBase):
    """A delimited text: its header is parsed, and its rows are a binary file in UTF-8, with an additional last row."""

    def __init__(self, file: Any, input_file: InputFile, encoding: str | None) -> None:
        self.input_file, self.name = input_file, input_file.name
        if encoding is None:
            start = file.peek(4)
            encoding = next((found for mark, found in _MARKS.items() if start.startswith(mark)), "utf-8")
        self.encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding  # a mark may be present
        parts = self._decoded(file)
        text = next((part for part in parts if part.strip()), "")
        if not text:
            raise ValueError(f"{self.name} is empty.")
        while len(text) < MAX_HEADER_BYTES and not _HEADER.match(text) and (part := next(parts, None)) is not None:
            text += part
        header = io.StringIO(text, newline="")
        self.delimiter, self.names, self.header_lines = parse_header(header, self.name)
        rest = header.read()
        if not rest and len(text) >= MAX_HEADER_BYTES:
            raise header_too_long(self.name)
        #: The start of an additional last row, random so that no file contains it: if a quotation mark is not closed,
        #: Arrow does not return the row, and raises no error.
        self._end = f"\x1f{secrets.token_hex(16)}\x1f"
        end = f"\n{self._end}{self.delimiter * (len(self.names) - 1)}\n"
        self._parts, self._held = chain([rest], parts, [end]), bytearray()

    def _decoded(self, file: Any) -> Iterator[str]:
        """Yield the decoded text; invalid bytes are an error that names their line."""
        decoder, line, raw = codecs.getincrementaldecoder(self.encoding)(), 1, b"\n"
        while raw:
            raw = file.read(BLOCK_BYTES)
            try:
                text = decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].decode(self.encoding, errors="replace").count("\n")
                shown = "UTF-8" if self.encoding == "utf-8-sig" else self.encoding
                raise ValueError(
                    f"{self.name}, line {line}: byte 0x{error.object[error.start]:02x} is not {shown}; specify the "
                    "encoding of the file (for instance --encoding latin-1)."
                ) from None
            before, zero, _ = text.partition("\0")
            line += before.count("\n")
            if zero:
                raise ValueError(f"{self.name}, line {line}: the file contains a zero byte, so it is not a text file.")
            yield text

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._held) < size:
            part = next(self._parts, None)
            if part is None:
                break
            self._held += part.encode()
        size = len(self._held) if size < 0 else size
        found = bytes(self._held[:size])
        del self._held[:size]
        return found

    def batches(self, indices: Collection[int]) -> Iterator[Any]:
        """Yield the rows as record batches of strings; columns are selected, and named, by their indices `indices`."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        wrong: list[Any] = []

        def keep_wrong_row(row: Any) -> str:
            wrong.append(row)
            return "error"

        names = [str(j) for j in range(len(self.names))]
        taken = [str(j) for j in sorted({0, *indices})]  # the first column marks the last row
        parsing = {"delimiter": self.delimiter, "newlines_in_values": True, "invalid_row_handler": keep_wrong_row}
        converting = {
            "column_types": dict.fromkeys(names, pyarrow.string()),
            "include_columns": taken,
            "strings_can_be_null": False,
            "check_utf8": False,  # encoded here, so it is valid
        }
        try:
            reader = arrow_csv.open_csv(
                pyarrow.PythonFile(self, mode="r"),
                arrow_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=names),
                arrow_csv.ParseOptions(**parsing),
                arrow_csv.ConvertOptions(**converting),
            )
            is_complete = False
            for batch in reader:  # to its end: Arrow reads ahead in a thread, which must not outlive the interpreter
                is_last = bool(len(batch)) and batch.column(0)[-1].as_py() == self._end
                yield batch.slice(0, len(batch) - is_last).select([str(j) for j in indices])
                is_complete = is_complete or is_last
        except pyarrow.ArrowInvalid as error:
            raise ValueError(self._message(wrong, error)) from None
        if not is_complete:
            raise ValueError(f"{self._where()}: a closing quotation mark is missing.")

    def _message(self, wrong: list[Any], error: Exception) -> str:
        """Return the message for an error of Arrow."""
        if "straddl" in str(error):
            size = f"{BLOCK_BYTES >> 20} MB"
            return f"{self._where()}: a row of more than {size} starts here; a closing quotation mark may be missing."
        if not wrong:
            return f"{self.name} cannot be read: {str(error).rstrip('.')}."
        row = wrong[0]
        if self._end in row.text:
            return f"{self._where()}: a closing quotation mark is missing."
        where = self._where(len(self.names), f"{self.name}, row {row.number - 1} (from 0)")
        amount = "fewer" if row.actual_columns < row.expected_columns else "more"
        return f"{where}: {amount} columns than the {len(self.names)} of the header."

    def _where(self, n_columns: int | None = None, unknown: str | None = None) -> str:
        """Return the first line of the last row, or of the first row with other than `n_columns` columns.

        If the text cannot be read again: `unknown`, or the name of the file.
        """
        start = found = None
        try:
            with self.input_file.open() as file:
                text = io.TextIOWrapper(file, self.encoding, newline="")
                rows = csv.reader(_short_lines(text), delimiter=self.delimiter)
                start = 1
                for cells in rows:
                    if cells and start > self.header_lines:
                        found = start
                        if n_columns is not None and len(cells) != n_columns:
                            break
                    start = rows.line_num + 1
                text.detach()
        except csv.Error:  # a line or a cell is too long for Python's parser: this is the invalid row
            found = start
        except ValueError:  # a pipe
            found = None
        return f"{self.name}, line {found}" if found is not None else unknown or self.name


def _short_lines(text: io.TextIOBase) -> Iterator[str]:
    """Yield the lines of a text; a line that is longer than a header may be is an error of the parser."""
    while line := text.readline(MAX_HEADER_BYTES):
        if len(line) == MAX_HEADER_BYTES:
            raise csv.Error
        yield line


def typed(table: Any, columns: Collection[str], gaps: Collection[str]) -> Any:
    """Convert those string columns to numbers that contain only numbers and missing values.

    The fitted state of a `TableEncoder` is the same before and after the conversion, which Arrow does a hundred times
    as fast as Python.
    """
    import pyarrow
    from pyarrow import types

    found, missing = [], pyarrow.array(sorted(gaps))
    for field, column in zip(table.schema, table.columns, strict=True):
        is_text = types.is_string(field.type) or types.is_large_string(field.type)
        numbers = _numbers(column, missing) if is_text and field.name in columns else None
        found.append(column if numbers is None else numbers)
    return pyarrow.table(found, names=table.column_names)


def _numbers(texts: Any, missing: Any) -> Any:
    """Convert strings to integers or floats; None if one of them is not a number, or all are equal or missing."""
    import pyarrow
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(texts)
    is_missing = compute.is_in(texts, value_set=missing.cast(texts.type))
    texts = compute.if_else(is_missing, pyarrow.scalar(None, texts.type), texts)
    if not compute.all(compute.match_substring_regex(texts, _NUMBER), min_count=1).as_py():
        return None
    if compute.any(compute.match_substring_regex(texts, _INEXACT)).as_py():
        return None
    try:
        values = texts.cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:  # "+5", which Arrow does not support
        return None
    extremes = compute.min_max(values).as_py()
    if extremes["min"] == extremes["max"]:  # constant: an encoder treats it as a level, identified by its string
        return None
    if max(map(abs, extremes.values())) >= MAX_EXACT_INTEGER:  # such as 1e+17
        return values
    try:
        return values.cast(pyarrow.int64())
    except pyarrow.ArrowInvalid:  # not all of them are integers
        return values
