"""Parquet files, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polyplane.readers._columns import LABEL, Columns, choose_columns
from polyplane.readers._input_file import InputFile, seekable
from polyplane.readers._rows import (
    MixedLabelsError,
    NotNumbersError,
    ReadOptions,
    Rows,
    settle_labels,
    text_labels,
    wants_text,
    whole_labels,
)

#: Maximum number of values read at a time.
VALUES = 1 << 20


def parquet_pieces(input_file: InputFile, options: ReadOptions) -> Iterator[Rows]:
    """Yield the rows in batches."""
    with input_file.open() as opened, seekable(opened) as file:
        table = open_parquet(file, input_file.name)
        columns = choose_columns(table.schema_arrow.names, options, input_file.name)
        _check_types(table.schema_arrow, columns, input_file.name)
        first = 1
        for batch in table.iter_batches(max(1, VALUES // len(columns.header))):
            yield _piece(batch, columns, first, options, input_file.name)
            first += batch.num_rows


def open_parquet(file: Any, name: str) -> Any:
    """Open a Parquet file with Arrow."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError(f'{name} is a Parquet file: pip install "polyplane[tables]" to read it.') from None
    try:
        return parquet.ParquetFile(file)
    except (ValueError, OSError) as error:  # base classes of Arrow's errors
        raise ValueError(f"{name} is not a Parquet file, or is damaged: {error}") from None


def _is_numeric(column_type: Any) -> bool:
    from pyarrow import types

    return any(test(column_type) for test in (types.is_integer, types.is_floating, types.is_boolean))


def _check_types(schema: Any, columns: Columns, name: str) -> None:
    for j, (cell, use) in enumerate(zip(columns.header, columns.uses, strict=True)):
        column_type = schema.field(j).type
        if use >= 0 and not _is_numeric(column_type):
            raise NotNumbersError(
                f"{name}: column {cell!r} is of type {column_type}; encode such columns as numbers first (for "
                "instance one-hot)."
            )


def _piece(batch: Any, columns: Columns, first: int, options: ReadOptions, name: str) -> Rows:
    X = np.empty((batch.num_rows, len(columns.names)), dtype=options.dtype)
    y = None
    for j, (cell, use) in enumerate(zip(columns.header, columns.uses, strict=True)):
        if use == LABEL:
            y = _labels(batch.column(j), options, first, name)
        elif use >= 0:
            X[:, use] = _numbers(batch.column(j), cell, first, name)
    lines = np.arange(first, first + batch.num_rows)
    return Rows(X, y, columns.names, lines, {"format": "parquet", "label": columns.label})


def _numbers(column: Any, cell: str, first: int, name: str) -> np.ndarray:
    values = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)  # missing values become NaN
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = first + int(wrong.argmax())
        raise NotNumbersError(
            f"{name}, row {row}, column {cell!r}: the value is missing or infinite; impute missing values or drop "
            "such rows first."
        )
    return values


def _labels(column: Any, options: ReadOptions, first: int, name: str) -> np.ndarray:
    if column.null_count:
        row = first + int(np.asarray(column.is_null()).argmax())
        raise ValueError(f"{name}, row {row}: the row has no label.")
    numeric = _is_numeric(column.type)
    if wants_text(options, not numeric):
        return text_labels([str(cell) for cell in column.to_pylist()])
    if not numeric:
        raise MixedLabelsError(
            f"{name}: the label column contains {column.type}, but the labels of the model are numbers."
        )
    from pyarrow import types

    if types.is_integer(column.type):
        return whole_labels(column.to_numpy(zero_copy_only=False), options, name)
    values = column.cast("float64").to_numpy(zero_copy_only=False)
    if not np.isfinite(values).all():
        raise ValueError(f"{name}, row {first + int((~np.isfinite(values)).argmax())}: the row has no label.")
    return settle_labels(values, options, name)
