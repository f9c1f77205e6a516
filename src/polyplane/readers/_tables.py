"""`read_table` and `table_batches`: raw tables with columns of any kind, from CSV, TSV and Parquet files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from polyplane.readers._input_file import InputFile, seekable
from polyplane.readers._parquet import open_parquet
from polyplane.readers._rows import MOST_VALUES
from polyplane.readers._text_tables import check_encoding, open_text, read_texts
from polyplane.readers._typed import find_decimal, typed
from polyplane.tables.encoder import GAPS

FORMATS = ("csv", "parquet")
#: Names of an unnamed index column written by pandas: empty, as read again by pandas, or in Parquet.
_INDEX = re.compile(r"(Unnamed: 0)?|__index_level_\d+__")


class TableBatches:
    """Iterable over the batches of a table, returned by `table_batches`; it can be iterated over repeatedly.

    Attributes
    ----------
    index : tuple of str
        Index columns written by pandas, omitted unless `keep_index`. Available once the first batch has been read.
    """

    def __init__(
        self,
        input_file: InputFile,
        batch_size: int | None,
        format: str | None,
        encoding: str | None,
        columns: Collection[str] | None,
        keep_index: bool,
    ) -> None:
        self.input_file, self.batch_size = input_file, batch_size
        self.format = format or table_format(input_file)
        self.encoding, self.columns, self.keep_index = encoding, columns, keep_index
        self.index: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        import_pyarrow(self.input_file.name)
        pieces = self._parquet() if self.format == "parquet" else self._csv()
        return _regroup(pieces, self.batch_size)

    def _csv(self) -> Iterator[Any]:
        import pyarrow

        with self.input_file.open() as file:
            text, parts = open_text(file, self.input_file.name, self.encoding)
            names = [name or ("" if j == 0 else f"Unnamed: {j}") for j, name in enumerate(text.names)]
            places = self._places(names, [])
            for batch in read_texts(text, parts, places, self.input_file):
                yield pyarrow.Table.from_batches([batch]).rename_columns([names[j] for j in places])

    def _parquet(self) -> Iterator[Any]:
        import pyarrow

        with self.input_file.open() as opened, seekable(opened) as file:
            table = open_parquet(file, self.input_file.name)
            schema = table.schema_arrow
            places = self._places(schema.names, (schema.pandas_metadata or {}).get("index_columns", []))
            self._check_types([schema.field(j) for j in places])
            names, n_rows = [schema.names[j] for j in places], max(1, MOST_VALUES // 8 // len(places))
            for batch in table.iter_batches(n_rows, columns=names):
                yield pyarrow.Table.from_batches([batch]).select(names).replace_schema_metadata(None)

    def _places(self, names: Sequence[str], index: Sequence[Any]) -> list[int]:
        """Return the indices of the columns to read."""
        name = self.input_file.name
        twice = [cell for cell, n in Counter(names).items() if n > 1]
        if twice:
            raise ValueError(f"{name}: the column {twice[0]!r} occurs twice in the header.")
        is_index = [(j == 0 or cell[:2] == "__") and _INDEX.fullmatch(cell) is not None for j, cell in enumerate(names)]
        self.index = tuple(cell for cell, found in zip(names, is_index, strict=True) if found or cell in index)
        if self.columns is not None:
            wanted = set(self.columns)
            places = [j for j, cell in enumerate(names) if cell in wanted]
        else:
            places = [j for j, cell in enumerate(names) if self.keep_index or cell not in self.index]
        if not places:
            raise ValueError(f"{name} has none of the requested columns; its columns are {', '.join(names[:10])}.")
        return places

    def _check_types(self, fields: Sequence[Any]) -> None:
        from pyarrow import types

        for field in fields:
            if types.is_nested(field.type):
                raise ValueError(
                    f"{self.input_file.name}: column {field.name!r} has the unsupported type {field.type}; columns "
                    "must be numbers, text, booleans or dates. Omit it, or split it into such columns."
                )


def read_table(
    path: str | os.PathLike[str] | InputFile,
    *,
    format: str | None = None,
    encoding: str | None = None,
    columns: Collection[str] | None = None,
    keep_index: bool = False,
    numbers: bool = True,
    decimal: str | None = None,
) -> Any:
    r"""Read a raw table with columns of any kind.

    Parameters
    ----------
    path : str or path
        A file in CSV or TSV (with a header; separated by comma, semicolon, tab or bar) or Parquet format, plain or
        compressed by gzip, bzip2 or xz; ``"-"`` is standard input.
    format : {"csv", "parquet"}, default=None
        The format. None: detected from content and extension.
    encoding : str, default=None
        CSV: the text encoding, such as "latin-1". None: UTF-8, or as indicated by a byte order mark. Bytes that cannot
        be decoded are an error.
    columns : collection of str, default=None
        The columns to read, if the file has them. None: all.
    keep_index : bool, default=False
        Keep the column of an unnamed index written by pandas.
    numbers : bool, default=True
        CSV: parse columns that contain only numbers and missing values ("", "?", "NA", ...) as numbers, unless that
        loses information, as in 00501. False: keep all values as strings.
    decimal : {".", ","}, default=None
        CSV: the decimal separator. None: a comma if some column uses it and none uses a point.

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
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal={decimal!r} must be '.' or ','.")
    parts = table_batches(path, None, format=format, encoding=encoding, columns=columns, keep_index=keep_index)
    table = whole_table(parts)
    return typed(table, set(table.column_names), decimal or find_decimal(table, GAPS), GAPS) if numbers else table


def table_batches(
    path: str | os.PathLike[str] | InputFile,
    batch_size: int | None = 65_536,
    *,
    format: str | None = None,
    encoding: str | None = None,
    columns: Collection[str] | None = None,
    keep_index: bool = False,
) -> TableBatches:
    r"""Read a raw table in batches, in bounded memory.

    Parameters
    ----------
    path : str or path
        As for `read_table`.
    batch_size : int or None, default=65536
        Rows per batch, fewer if they have more than 8 million cells. None: batches of a few MB.
    format, encoding, columns, keep_index
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
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r} must be one of {', '.join(map(repr, FORMATS))}.")
    check_encoding(encoding)
    input_file = path if isinstance(path, InputFile) else InputFile(path)
    return TableBatches(input_file, batch_size, format, encoding, columns, keep_index)


def whole_table(parts: TableBatches) -> Any:
    """Read all batches into one table."""
    found = list(parts)
    return import_pyarrow(parts.input_file.name).concat_tables(found)


def table_format(input_file: InputFile) -> str:
    """Return the format, "csv" or "parquet"; other formats are an error."""
    found = input_file.format()
    if found not in FORMATS:
        raise ValueError(f"{input_file.name} is in {found} format; tables are read from CSV, TSV and Parquet files.")
    return found


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
        most = len(piece) if n_rows is None else max(1, min(n_rows, MOST_VALUES // piece.num_columns))
        held.append(piece)
        while sum(map(len, held)) >= most:
            whole = pyarrow.concat_tables(held)
            yield whole.slice(0, most)
            held, is_empty = [whole.slice(most)], False
    rest = pyarrow.concat_tables(held) if held else piece
    if rest is not None and (len(rest) or is_empty):
        yield rest
