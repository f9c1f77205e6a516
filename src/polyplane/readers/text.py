"""Numbers in text, read block by block into matrices: svmlight (LIBSVM) rows, and CSV or TSV with a header.

Tables with columns of any kind are read through Arrow (`polyplane.readers.tables`), which does not replace this reader
of CSV. Of 100,000 rows with 20 numbers, `read_table` takes 4.2 to 5.6 times as long to give a matrix; Arrow's parser
alone takes 0.9 to 1.5 times as long with one thread (benchmarks/peers/csv_speed.py), but skips lines without an error
after an unclosed quotation mark, ends rows at a carriage return, does not know line numbers after empty lines, and
every installation would need its 55 MB.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
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

#: The largest feature index, because of 32-bit indices.
MAX_INDEX = 2**31 - 2
#: The entries of a tally: the line, the position and the column where parsing stopped, and the numbers of rows and of
#: hard numbers.
LINE, POSITION, COLUMN, N_ROWS, N_HARD = range(5)
#: The reason why parsing of a block stopped.
DONE, BAD_VALUE, BAD_INDEX, LARGE_INDEX, EMPTY, FEW_COLUMNS, MANY_COLUMNS, BAD_QUOTE = range(8)
#: A hard number has at least five characters ("1e281"), and one after it.
MIN_HARD_LENGTH = 6
#: Shorter texts are parsed in plain Python, which is faster than importing Numba and loading the kernels.
SMALL_TEXT_BYTES = 1 << 16
#: The message for other encodings, which cannot be detected; with a wrong guess, distinct labels could become equal.
NOT_UTF8 = "the text is not UTF-8; convert the file first (for instance iconv -f LATIN1 -t UTF-8)"

_NUMBER = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"  # one way to read each number: linear time
_IS_NUMBER = re.compile(_NUMBER)
_LINE = re.compile(rb"[ \t\r]*(?:([^\s:#]+)((?:[ \t\r]+\d{1,9}:" + _NUMBER + rb")*)[ \t\r]*)?(?:#.*)?", re.DOTALL)


class Parsed(NamedTuple):
    """The rows of a block of text, as the kernels write them.

    `values` is a matrix; for sparse rows, CSR with `indices` (in the order of the text) and `indptr`. `labels` is NaN
    if the label is not a number, `spans` is its position in the text, and `lines` its line. `hard` lists the numbers to
    parse with `float`: row, position among the values (-1 for a label) and span. `tally` is described above.
    """

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    spans: np.ndarray
    lines: np.ndarray
    hard: np.ndarray
    tally: np.ndarray


class Block(NamedTuple):
    """A block of complete lines, parsed, of a file with this name."""

    name: str
    text: np.ndarray
    out: Parsed
    options: ReadOptions

    @property
    def lines(self) -> np.ndarray:
        """The line of each row."""
        return self.out.lines[: self.out.tally[N_ROWS]].copy()

    def parse_hard_numbers(self) -> None:
        """Parse the numbers that the kernel left to `float`."""
        values = self.out.values.reshape(-1)
        for row, position, start, stop in map(np.ndarray.tolist, self.out.hard[: self.out.tally[N_HARD]]):
            value = float(bytes(self.text[start:stop]))
            if not np.isfinite(value):
                line, found = self.out.lines[row], word_at(self.text, start)
                raise ValueError(f"{self.name}, line {line}: the number {found} is too large.")
            if position < 0:
                self.out.labels[row] = value
            else:
                values[position] = value

    def labels(self) -> np.ndarray | None:
        """Return the labels, as numbers or as strings."""
        if self.options.labels == "ignore":
            return None
        lines, n_rows = self.lines, self.out.tally[N_ROWS]
        spans = self.out.spans[:n_rows]
        is_long = spans[:, 1] - spans[:, 0] > MAX_LABEL_BYTES
        if is_long.any():
            where = f"{self.name}, line {lines[is_long.argmax()]}"
            raise ValueError(
                f"{where}: the label has more than {MAX_LABEL_BYTES >> 20} MB, the maximum length of a label."
            )
        return convert_labels(
            self.out.labels[:n_rows].copy(),
            spans[:, 0] == spans[:, 1],
            lambda: [_whole(self.text, span) for span in spans.tolist()],
            lambda: self._label_texts(spans, lines),
            lambda row: f"line {lines[row]}",
            self.options,
            self.name,
        )

    def _label_texts(self, spans: np.ndarray, lines: np.ndarray) -> list[str]:
        raw, cells = self.text.tobytes(), []
        for row, (start, stop) in enumerate(spans.tolist()):
            try:
                cells.append(raw[start:stop].decode().replace('""', '"'))
            except UnicodeDecodeError:
                raise ValueError(f"{self.name}, line {lines[row]}, the label: {NOT_UTF8}.") from None
        return cells


def _whole(text: np.ndarray, span: list[int]) -> int | None:
    """Return a label as an exact integer, if it is one with at most 20 digits; a float would lose digits."""
    label = Decimal(bytes(text[slice(*span)]).decode())
    if label.adjusted() >= 20 or label != label.to_integral_value():
        return None
    return int(label)


def word_at(text: np.ndarray, position: int) -> str:
    """Return the word at a position, for messages."""
    word = bytes(text[position : position + 40]).split(b"\n")[0].split()
    return repr(word[0].decode(errors="replace")[:30]) if word else "nothing"


def not_a_number(found: str) -> str:
    """Return the error message for a value that is not a number."""
    bare = found.strip("'").lower().lstrip("+-")
    if bare in ("nan", "inf", "infinity", "na", "null", "none", "?"):
        return f"the value {found} is missing or infinite; impute missing values or drop such rows first"
    return f"expected a number, found {found}"


def _allocate(
    size: int, n_rows: int, values: np.ndarray, indices: np.ndarray | None = None, indptr: np.ndarray | None = None
) -> Parsed:
    """Allocate arrays for any block of `size` characters; unused parts need no memory."""
    none = np.empty(0, dtype=np.int64)
    return Parsed(
        values,
        none if indices is None else indices,
        none if indptr is None else indptr,
        np.empty(n_rows),
        np.empty((n_rows, 2), dtype=np.int64),
        np.empty(n_rows, dtype=np.int64),
        np.empty((size // MIN_HARD_LENGTH + 1, 4), dtype=np.int64),
        np.zeros(5, dtype=np.int64),
    )


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
            raise ValueError(_beyond(input_file.name, _line_of(piece, X.indices.argmax()), largest, options))
        X = sparse.csr_matrix((X.data, X.indices - np.int32(base), X.indptr), shape=(X.shape[0], max(1, n_features)))
        X.has_canonical_format = True
        yield piece._replace(X=X, facts={"format": "svmlight", "zero_based": base == 0})


def _svmlight_blocks(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of each block, before it is known whether indices start at 0 or 1."""
    limit = MAX_INDEX if options.n_features is None else options.n_features - (options.zero_based is True)
    name, line = input_file.name, 1
    with input_file.open() as file:
        for text, size in line_blocks(file, name):
            out = _parse_small_svmlight(text[:size], limit) if line == 1 else None
            if out is None:
                out = _parse_svmlight(text, size, line, limit, options, name)
            line = int(out.tally[LINE])
            if out.tally[N_ROWS]:
                block = Block(name, text, out, options)
                block.parse_hard_numbers()
                yield Rows(_sparse_matrix(block), block.labels(), None, block.lines, {})


def _parse_svmlight(text: np.ndarray, size: int, line: int, limit: int, options: ReadOptions, name: str) -> Parsed:
    from polyplane.readers.kernels import parse_svmlight

    max_values, max_rows = size // 4 + 2, size // 2 + 2  # a value needs four characters, a row two
    indices, indptr = np.empty(max_values, dtype=np.int32), np.empty(max_rows + 1, dtype=np.int64)
    out = _allocate(size, max_rows, np.empty(max_values), indices, indptr)
    status = parse_svmlight(text, size, line, limit, out)
    if status == DONE:
        return out
    line, position = int(out.tally[LINE]), int(out.tally[POSITION])
    if status == LARGE_INDEX:
        raise ValueError(_beyond(name, line, int(bytes(text[position : position + 20]).partition(b":")[0]), options))
    found = word_at(text, position)
    reason = not_a_number(found) if status == BAD_VALUE else f"expected index:value, found {found}"
    raise ValueError(f"{name}, line {line}: {reason}.")


def _sparse_matrix(block: Block) -> Any:
    """Return the values of a block as a matrix with sorted, distinct indices."""
    out = block.out
    indptr = out.indptr[: out.tally[N_ROWS] + 1].copy()
    values, indices = out.values[: indptr[-1]].astype(block.options.dtype), out.indices[: indptr[-1]].copy()
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


def _beyond(name: str, line: int, index: int, options: ReadOptions) -> str:
    if options.n_features is None:
        return f"{name}, line {line}: feature index {index} is too large."
    return f"{name}, line {line}: feature index {index} is out of range: {options.n_features} features are expected."


def csv_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows of each block of delimited text."""
    name, columns, delimiter, line = input_file.name, None, ",", 1
    with input_file.open() as file:
        for whole, size in line_blocks(file, name):
            text, out = whole[:size], None
            if columns is None:
                header = re.search(rb"\S[^\n]*", text.data)
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
                line, text = 2 + bytes(text[: header.start()]).count(b"\n"), text[header.end() + 1 :]
                out = _parse_small_table(text, line, delimiter, columns.uses.tolist())
            if out is None:
                out = _parse_delimited(text, line, delimiter, columns, name)
            line = int(out.tally[LINE])
            if not out.tally[N_ROWS]:
                continue
            block = Block(name, text, out, options)
            block.parse_hard_numbers()
            y = block.labels() if columns.label is not None else None
            X = out.values[: out.tally[N_ROWS]].astype(options.dtype)
            yield Rows(X, y, columns.names, block.lines, {"format": "csv", "label": columns.label})


def _parse_delimited(text: np.ndarray, line: int, delimiter: str, columns: ColumnUses, name: str) -> Parsed:
    from polyplane.readers.kernels import parse_delimited

    size = len(text)
    max_rows = size // (len(columns.uses) + len(columns.names)) + 2  # a cell needs one character, a feature two
    out = _allocate(size, max_rows, np.empty((max_rows, len(columns.names))))
    status = parse_delimited(text, size, line, ord(delimiter), columns.uses, out)
    if status == DONE:
        return out
    where, position = f"{name}, line {int(out.tally[LINE])}", int(out.tally[POSITION])
    column = columns.header[int(out.tally[COLUMN])]
    if status in (FEW_COLUMNS, MANY_COLUMNS):
        amount = "fewer" if status == FEW_COLUMNS else "more"
        raise ValueError(f"{where}: {amount} columns than the {len(columns.header)} of the header.")
    if status == BAD_QUOTE:
        raise ValueError(f"{where}: column {column!r} has a quoted value that does not end on the same line.")
    if status == EMPTY:
        raise NotNumbersError(f"{where}: column {column!r} is empty; impute missing values or drop such rows first.")
    cell = bytes(text[position : position + 60]).split(b"\n")[0].decode(errors="replace")
    reason = not_a_number(repr(cell.split(delimiter)[0].strip().strip('"')[:30]))
    hint = "; encode text columns as numbers first (for instance one-hot)" if reason.startswith("expected") else ""
    raise NotNumbersError(f"{where}, column {column!r}: {reason}{hint}.")


def _parse_small_svmlight(text: np.ndarray, limit: int) -> Parsed | None:
    """Parse complete lines; None if they are many or not in the common form, which is left to the kernel."""
    if len(text) > SMALL_TEXT_BYTES:
        return None
    raw, start, indptr = text.tobytes(), 0, [0]
    values: list[float] = []
    indices: list[int] = []
    labels, spans, lines = [], [], []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        if match[1] is not None:
            for pair in match[2].split():
                index, _, value = pair.partition(b":")
                indices.append(int(index))
                values.append(float(value))
            indptr.append(len(values))
            labels.append(_label(match[1]))
            spans.append((start + match.start(1), start + match.end(1)))
            lines.append(number)
        start += len(line) + 1
    if max(indices, default=0) > limit:
        return None
    out = _allocate(0, len(lines), np.array(values), np.array(indices, dtype=np.int32), np.array(indptr))
    return _filled(out, labels, spans, lines, 1 + raw.count(b"\n"))


def _parse_small_table(text: np.ndarray, line: int, delimiter: str, uses: Sequence[int]) -> Parsed | None:
    """Parse complete lines of a table with columns `uses`; `line` is the number of the first line."""
    if len(text) > SMALL_TEXT_BYTES:
        return None
    raw, start = text.tobytes(), 0
    values, labels, spans, lines = [], [], [], []
    for number, row in enumerate(raw.split(b"\n"), start=line):
        cells, position = row.removesuffix(b"\r").split(delimiter.encode()), start
        start += len(row) + 1
        if cells == [b""]:
            continue
        if len(cells) != len(uses) or b'"' in row or b"\r" in row[:-1]:
            return None
        own = [0.0] * (max(uses) + 1)
        for use, cell in zip(uses, cells, strict=True):
            bare = cell.strip(b" ")
            if use == LABEL:
                labels.append(_label(bare))
                first = position + len(cell) - len(cell.lstrip(b" "))
                spans.append((first, first + len(bare)))
            elif use >= 0:
                if not _IS_NUMBER.fullmatch(bare):
                    return None
                own[use] = float(bare)
            position += len(cell) + 1
        values.append(own)
        lines.append(number)
    out = _allocate(0, len(lines), np.array(values).reshape(-1, max(uses) + 1))
    return _filled(out, labels, spans, lines, line + raw.count(b"\n"))


def _label(word: bytes) -> float:
    return float(word) if _IS_NUMBER.fullmatch(word) else np.nan


def _filled(out: Parsed, labels: Any, spans: Any, lines: Any, next_line: int) -> Parsed | None:
    if not np.isfinite(out.values).all() or np.isinf(labels).any():
        return None
    if labels:
        out.labels[:], out.spans[:] = labels, spans
    out.lines[:] = lines
    out.tally[[N_ROWS, LINE]] = len(lines), next_line
    return out
