"""Numbers in text, read block by block into matrices: svmlight (LIBSVM) rows, and CSV or TSV with a header.

Each line can be parsed in Python, which knows the whole format and says what is wrong with a line. In long texts, lines
in the common form are parsed by the kernels, about fifty times as fast.

Tables with columns of any kind are read through Arrow (`polyplane.readers.tables`), which does not replace this reader
of CSV. Of 100,000 rows with 20 numbers, `read_table` takes 4.2 to 5.6 times as long to give a matrix; Arrow's parser
alone takes 0.9 to 1.5 times as long with one thread (benchmarks/peers/csv_speed.py), but skips lines without an error
after an unclosed quotation mark, ends rows at a carriage return, does not know line numbers after empty lines, and
every installation would need its 55 MB.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyplane.readers.rows import (
    LABEL,
    MAX_LABEL_BYTES,
    ColumnUses,
    NotNumbersError,
    ReadOptions,
    Rows,
    choose_columns,
    convert_labels,
    header_too_long,
    parse_header,
)
from polyplane.readers.source import MAX_HEADER_BYTES, InputFile, line_blocks

#: The largest feature index, because of 32-bit indices, and a number of digits that any larger index has.
MAX_INDEX, MAX_INDEX_DIGITS = 2**31 - 2, 18
#: The entries of a tally: the line and the position where parsing goes on, and the numbers of rows and sparse values.
LINE, POSITION, N_ROWS, N_VALUES = range(4)
#: Shorter texts are parsed in plain Python, which is faster than importing Numba and loading the kernels.
SMALL_TEXT_BYTES = 1 << 16
#: The message for other encodings, which cannot be detected; with a wrong guess, distinct labels could become equal.
NOT_UTF8 = "the text is not UTF-8; convert the file first (for instance iconv -f LATIN1 -t UTF-8)"

_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")  # one way to read each number: linear time
_WORD = re.compile(rb"[^ \t\r]+")


class Parsed(NamedTuple):
    """The rows of a block of text.

    `values` is a matrix; for sparse rows, CSR with `indices` (in the order of the text) and `indptr`. `labels` is NaN
    if the label is not a number, `spans` is its position in the text, and `lines` its line. `tally` is described above.
    """

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    spans: np.ndarray
    lines: np.ndarray
    tally: np.ndarray

    @classmethod
    def empty(cls, first_line: int, n_rows: int, n_features: int | None, n_sparse: int = 0) -> Parsed:
        """Allocate arrays for at most so many rows and sparse values; unused parts need no memory."""
        return cls(
            np.empty(n_sparse) if n_features is None else np.empty((n_rows, n_features)),
            np.empty(n_sparse, dtype=np.int32),
            np.zeros(n_rows + 1, dtype=np.int64),
            np.empty(n_rows),
            np.empty((n_rows, 2), dtype=np.int64),
            np.empty(n_rows, dtype=np.int64),
            np.array([first_line, 0, 0, 0]),
        )


class Block:
    """A block of complete lines, of a file with this name, and its rows."""

    def __init__(self, name: str, text: bytes, rows: Parsed, options: ReadOptions) -> None:
        self.name, self.text, self.rows, self.options = name, text, rows, options

    @property
    def n_rows(self) -> int:
        """The number of rows so far."""
        return int(self.rows.tally[N_ROWS])

    @property
    def lines(self) -> np.ndarray:
        """The line of each row."""
        return self.rows.lines[: self.n_rows].copy()

    def parse(self, parse_common: Callable[[], None], parse_line: Callable[[Block, int, bytes], None]) -> None:
        """Parse all lines: those in the common form by a kernel, the others, and all of short texts, one by one."""
        tally = self.rows.tally
        while tally[POSITION] < len(self.text):
            if len(self.text) > SMALL_TEXT_BYTES:
                parse_common()
            start = int(tally[POSITION])
            if start < len(self.text):
                stop = self.text.index(b"\n", start)
                self.rows.lines[self.n_rows] = tally[LINE]
                parse_line(self, start, self.text[start:stop])
                tally[POSITION], tally[LINE] = stop + 1, tally[LINE] + 1

    def error(self, reason: str, kind: type[ValueError] = ValueError) -> ValueError:
        """Return the error of the current line."""
        return kind(f"{self.name}, line {self.rows.tally[LINE]}{reason}.")

    def keep_label(self, word: bytes, start: int) -> None:
        """Keep the label of the current row, which starts at this position."""
        value = _number(word)
        if np.isinf(value):
            raise self.error(f": {fault_of(word)}")
        self.rows.labels[self.n_rows], self.rows.spans[self.n_rows] = value, (start, start + len(word))

    def labels(self) -> np.ndarray | None:
        """Return the labels, as numbers or as strings."""
        if self.options.labels == "ignore":
            return None
        lines, spans = self.lines, self.rows.spans[: self.n_rows]
        is_long = spans[:, 1] - spans[:, 0] > MAX_LABEL_BYTES
        if is_long.any():
            where = f"{self.name}, line {lines[is_long.argmax()]}"
            raise ValueError(
                f"{where}: the label has more than {MAX_LABEL_BYTES >> 20} MB, the maximum length of a label."
            )
        return convert_labels(
            self.rows.labels[: self.n_rows].copy(),
            spans[:, 0] == spans[:, 1],
            lambda: self._label_texts(spans, lines),
            lambda row: f"line {lines[row]}",
            self.options,
            self.name,
        )

    def _label_texts(self, spans: np.ndarray, lines: np.ndarray) -> list[str]:
        cells = []
        for row, (start, stop) in enumerate(spans.tolist()):
            try:
                cells.append(self.text[start:stop].decode().replace('""', '"'))
            except UnicodeDecodeError:
                raise ValueError(f"{self.name}, line {lines[row]}, the label: {NOT_UTF8}.") from None
        return cells


def _number(word: bytes) -> float:
    """Parse a number, which can be infinite; other words are NaN."""
    return float(word) if _NUMBER.fullmatch(word) else np.nan


def _shown(word: bytes) -> str:
    """Return a word for messages."""
    return repr(word.decode(errors="replace")[:30]) if word else "nothing"


def fault_of(word: bytes) -> str:
    """Return what is wrong with a word that is not a finite number."""
    found, bare = _shown(word), word.decode(errors="replace").lower().lstrip("+-")
    if _NUMBER.fullmatch(word):
        return f"the number {found} is too large"
    if bare in ("nan", "inf", "infinity", "na", "null", "none", "?"):
        return f"the value {found} is missing or infinite; impute missing values or drop such rows first"
    return f"expected a number, found {found}"


def svmlight_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of each block of svmlight text."""
    pieces = _svmlight_blocks(input_file, options)
    if options.whole:  # the first index is certain only after the whole file
        kept = list(pieces)
        options.decided["base"] = int(all(piece.X.indices.min(initial=1) > 0 for piece in kept))
        pieces = iter(kept)
    n_features = options.n_features or 0
    for piece in pieces:
        X, base = piece.X, _base(options, piece, input_file.name)
        largest = int(X.indices.max(initial=0))
        n_features = max(n_features, largest + 1 - base)
        if options.n_features is not None and n_features > options.n_features:
            line = _line_of(piece, X.indices.argmax())
            raise ValueError(f"{input_file.name}, line {line}: {_beyond(largest, options)}.")
        X = sparse.csr_matrix((X.data, X.indices - np.int32(base), X.indptr), shape=(X.shape[0], max(1, n_features)))
        X.has_canonical_format = True
        yield piece._replace(X=X, facts={"format": "svmlight", "zero_based": base == 0})


def _svmlight_blocks(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of each block, before it is known whether indices start at 0 or 1."""
    limit = MAX_INDEX if options.n_features is None else options.n_features - (options.zero_based is True)
    line = 1
    with input_file.open() as file:
        for text in line_blocks(file, input_file.name):
            # A value needs four characters, a row two.
            rows = Parsed.empty(line, len(text) // 2 + 2, None, len(text) // 4 + 2)
            block = Block(input_file.name, text, rows, options)
            block.parse(partial(_parse_svmlight, text, limit, rows), partial(_parse_sparse_line, limit))
            line = int(rows.tally[LINE])
            if block.n_rows:
                yield Rows(_sparse_matrix(block), block.labels(), None, block.lines, {})


def _parse_svmlight(text: bytes, limit: int, rows: Parsed) -> None:
    from polyplane.readers.kernels import parse_svmlight

    parse_svmlight(np.frombuffer(text, np.uint8), limit, rows)


def _parse_sparse_line(limit: int, block: Block, start: int, line: bytes) -> None:
    """Parse a line of svmlight text."""
    content = line.partition(b"#")[0]
    words, rows = _WORD.finditer(content), block.rows
    first = next(words, None)
    if first is None:
        return
    label, row, p = first[0], block.n_rows, int(rows.tally[N_VALUES])
    if b":" in label:  # a feature, or a qid: the row has no label
        label, words = b"", _WORD.finditer(content)
    block.keep_label(label, start + first.start())
    for word in words:
        index, colon, number = word[0].partition(b":")
        if index == b"qid" and colon:
            continue
        if not (colon and index.isdigit()):
            raise block.error(f": expected index:value, found {_shown(word[0])}")
        if len(index) > MAX_INDEX_DIGITS or int(index) > limit:
            raise block.error(f": {_beyond(index[:20].decode(), block.options)}")
        value = _number(number)
        if not np.isfinite(value):
            raise block.error(f": {fault_of(number)}")
        rows.indices[p], rows.values[p] = int(index), value
        p += 1
    rows.indptr[row + 1], rows.tally[[N_ROWS, N_VALUES]] = p, (row + 1, p)


def _sparse_matrix(block: Block) -> Any:
    """Return the values of a block as a matrix with sorted, distinct indices."""
    rows = block.rows
    indptr = rows.indptr[: block.n_rows + 1].copy()
    values, indices = rows.values[: indptr[-1]].astype(block.options.dtype), rows.indices[: indptr[-1]].copy()
    X = sparse.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, MAX_INDEX + 1))
    if not X.has_canonical_format:
        X.sort_indices()
        repeated = 1 + np.flatnonzero(X.indices[1:] == X.indices[:-1])
        repeated = repeated[~np.isin(repeated, indptr)]
        if len(repeated):
            line = block.lines[np.searchsorted(indptr, repeated[0], side="right") - 1]
            raise ValueError(f"{block.name}, line {line}: duplicate feature index.")
    return X


def _base(options: ReadOptions, piece: Rows, name: str) -> int:
    """Return the first index, 0 or 1: as specified, or by the smallest index of the file (of a stream: its start)."""
    smallest = int(piece.X.indices.min(initial=1))
    if options.zero_based == "auto" and "base" not in options.decided:
        options.decided["base"] = 0 if smallest == 0 else 1
    base = int(options.decided["base"] if options.zero_based == "auto" else not options.zero_based)
    if smallest < base:
        line = _line_of(piece, (piece.X.indices == 0).argmax())
        raise ValueError(
            f"{name}, line {line}: feature index 0, but indices were assumed to start at 1; set zero_based "
            "(--zero-based on the command line)."
        )
    return base


def _line_of(piece: Rows, position: Any) -> int:
    """Return the line of the value at a position."""
    return int(piece.lines[np.searchsorted(piece.X.indptr, position, side="right") - 1])


def _beyond(index: int | str, options: ReadOptions) -> str:
    if options.n_features is None:
        return f"feature index {index} is too large"
    return f"feature index {index} is out of range: {options.n_features} features are expected"


def csv_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of each block of delimited text."""
    name, columns, delimiter, line = input_file.name, None, ",", 1
    with input_file.open() as file:
        for text in line_blocks(file, name):
            if columns is None:
                header = re.search(rb"\S[^\n]*", text)
                if header is None:
                    continue
                if header.end() - header.start() > MAX_HEADER_BYTES:
                    raise header_too_long(name)
                try:
                    first = header[0].strip().decode()
                except UnicodeDecodeError:
                    raise ValueError(f"{name}, the header: {NOT_UTF8}.") from None
                if "\r" in first:
                    raise ValueError(
                        f"{name}: lines end with a carriage return alone; convert the line endings to newlines."
                    )
                delimiter, names, _ = parse_header(io.StringIO(first), name)
                columns = choose_columns(names, options, name)
                line, text = 2 + text.count(b"\n", 0, header.start()), text[header.end() + 1 :]
            # A cell needs one character, a feature two.
            max_rows = len(text) // (len(columns.uses) + len(columns.names)) + 2
            rows = Parsed.empty(line, max_rows, len(columns.names))
            block = Block(name, text, rows, options)
            parse_line = partial(_parse_delimited_line, columns, _cell_pattern(delimiter))
            block.parse(partial(_parse_delimited, text, delimiter, columns.uses, rows), parse_line)
            line = int(rows.tally[LINE])
            if block.n_rows:
                y = block.labels() if columns.label is not None else None
                X = rows.values[: block.n_rows].astype(options.dtype)
                yield Rows(X, y, columns.names, block.lines, {"format": "csv", "label": columns.label})


def _parse_delimited(text: bytes, delimiter: str, uses: np.ndarray, rows: Parsed) -> None:
    from polyplane.readers.kernels import parse_delimited

    parse_delimited(np.frombuffer(text, np.uint8), ord(delimiter), uses, rows)


def _cell_pattern(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern of a cell, in quotes or not, with the delimiter after it, or the end of the line."""
    end = re.escape(delimiter).encode()
    return re.compile(rb' *+(?:"((?:[^"]|"")*+)" *+|((?!")[^' + end + rb"]*+))(" + end + rb"|\Z)")


def _parse_delimited_line(
    columns: ColumnUses, pattern: re.Pattern[bytes], block: Block, start: int, line: bytes
) -> None:
    """Parse a line of delimited text."""
    line = line.removesuffix(b"\r")
    if not line:
        return
    row, at, expected = block.n_rows, 0, f"columns than the {len(columns.header)} of the header"
    for column, use in zip(columns.header, columns.uses.tolist(), strict=True):
        if at > len(line):
            raise block.error(f": fewer {expected}")
        cell = pattern.match(line, at)
        if cell is None:
            raise block.error(f": column {column!r} has a quoted value that does not end on the same line")
        group = 2 if cell[1] is None else 1
        word = cell[1] if group == 1 else cell[2].rstrip(b" ")
        if use == LABEL:
            block.keep_label(word, start + cell.start(group))
        elif use >= 0:
            block.rows.values[row, use] = _feature(word, column, block)
        at = cell.end() if cell[3] else len(line) + 1
    if at <= len(line):
        raise block.error(f": more {expected}")
    block.rows.tally[N_ROWS] = row + 1


def _feature(word: bytes, column: str, block: Block) -> float:
    """Parse a feature in a column of a table."""
    if not word:
        reason = f": column {column!r} is empty; impute missing values or drop such rows first"
        raise block.error(reason, NotNumbersError)
    value = _number(word)
    if not np.isfinite(value):
        fault = fault_of(word)
        hint = "; encode text columns as numbers first (for instance one-hot)" if fault.startswith("expected") else ""
        reason = f", column {column!r}: {fault}{hint}"
        raise block.error(reason, NotNumbersError if np.isnan(value) else ValueError)
    return value
