"""Table models and their rows: columns are matched by name, other columns are ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from polyplane.cli._common import UserError, listed, note
from polyplane.cli._labels import find_label, match_labels

if TYPE_CHECKING:
    import numpy as np

    from polyplane.readers import TableBatches


class TableRows(NamedTuple):
    """Rows of a table.

    Parameters
    ----------
    X : pyarrow.Table
        The columns of the model.
    truth : ndarray of shape (n_rows,) or None
        The class of each row, as an index; -1 if it has no label. None if there is no label column.
    ids : list of str or None
        The id of each row.
    first : int
        The index of the first row in the file.
    """

    X: Any
    truth: np.ndarray | None
    ids: list[str] | None
    first: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.num_rows)


class TableParts:
    """Iterable over the rows of a file in batches; it can be iterated over repeatedly.

    Parameters
    ----------
    loaded : LoadedTable
        The model.
    tables : TableBatches
        The file.
    label, id : str or None
        Columns by name or index.
    needs_label : bool
        Whether a file without the label column is an error.
    """

    def __init__(
        self, loaded: LoadedTable, tables: TableBatches, label: str | None, id: str | None, needs_label: bool
    ) -> None:
        self.loaded, self.tables, self.needs_label = loaded, tables, needs_label
        self.label, self.id, self.id_name = label, id, id

    def __iter__(self) -> Iterator[TableRows]:
        first, name = 0, self.tables.input_file.name
        for table in self.tables:
            if not table.num_rows:
                raise UserError(f"{name} has no rows.")
            yield self._rows(table, first, name)
            first += table.num_rows

    def _rows(self, table: Any, first: int, name: str) -> TableRows:
        label = self._column(table, self.label, "label", is_needed=self.needs_label)
        self.id_name = id_column = self._column(table, self.id, "id", is_needed=False)
        truth = None if label is None else self._truth(table.column(label), first, name)
        ids = None if id_column is None else [_shown(cell) for cell in table.column(id_column).to_pylist()]
        return TableRows(self.loaded.columns_of(table, name), truth, ids, first)

    def _column(self, table: Any, wanted: str | None, option: str, is_needed: bool) -> str | None:
        """Return the name of a column; None if it is optional and missing."""
        if wanted is None:
            if is_needed:
                raise UserError("the model file does not record the label column; specify it with --label COLUMN.")
            return None
        if not is_needed and wanted == self.loaded.metadata.get(option) and wanted not in table.column_names:
            return None
        try:
            return find_label(table.column_names, wanted)
        except UserError as error:
            raise UserError(f"--{option} {wanted}: {error}") from None

    def _truth(self, column: Any, first: int, name: str) -> np.ndarray:
        import numpy as np

        classes = self.loaded.model.classes_
        found, unknown = match_labels(column, self.loaded.gaps, classes)
        if unknown is not None and self.needs_label:
            row, known = first + int(np.argmax(found == -2)), classes.tolist()
            raise UserError(f"{name}, row {row}: unknown label {unknown!r}; the model's classes are {listed(known)}.")
        return np.maximum(found, -1)


class LoadedTable(NamedTuple):
    """A table model, and the metadata of its file about the training data."""

    model: Any
    metadata: Mapping[str, Any]

    @property
    def gaps(self) -> Collection[str]:
        """Strings that stand for a missing value."""
        gaps: Collection[str] = self.model.table_model_.encoding.gaps
        return gaps

    def batches(
        self, data: str, options: Mapping[str, Any], n_rows: int | None = 65_536, *, labels: bool = True
    ) -> TableParts:
        """Read the rows of a file in batches; `options` are those of the command line."""
        from polyplane.readers import table_batches

        reading = {name: options[name] for name in ("format", "encoding") if name in options}
        label = options.get("label", self.metadata.get("label"))
        id_column = options.get("id", self.metadata.get("id"))
        is_by_number = any(name in options for name in ("label", "id"))  # an index counts all columns
        known = [column.name for column in self.model.table_model_.encoding.columns]
        columns = None if is_by_number else {*known, *(name for name in (label, id_column) if name is not None)}
        tables = table_batches(data, n_rows, columns=columns, keep_index=True, **reading)
        return TableParts(self, tables, label, id_column, labels)

    def columns_of(self, table: Any, name: str) -> Any:
        """Select the columns of the model, and parse numeric strings; missing columns are an error that names them."""
        from polyplane.readers.tables import typed

        encoding, there = self.model.table_model_.encoding, set(table.column_names)
        missing = [column.name for column in encoding.columns if column.name not in there]
        if missing:
            names = listed(map(repr, missing), 5)
            raise UserError(f"{name} has no column{'s' if missing[1:] else ''} {names}, which the model requires.")
        table = table.select([column.name for column in encoding.columns])
        for decimal in (".", ","):
            numbers = {c.name for c in encoding.columns if c.kind == "number" and c.decimal == decimal}
            table = typed(table, numbers, decimal, encoding.gaps)
        return table

    def class_scores(self, rows: TableRows) -> np.ndarray:
        """Compute the score of each class."""
        model = self.model.table_model_
        try:
            scores: np.ndarray = model.class_scores(model.encode(rows.X, "the model"), self.model.n_jobs)
        except ValueError as error:
            counted = f" (counting from row {rows.first} of the file)" if rows.first else ""
            raise UserError(f"{error}{counted}") from error
        return scores

    def predict(self, rows: TableRows) -> np.ndarray:
        """Predict the class of each row, as an index."""
        return self.class_scores(rows).argmax(axis=1)

    def outcome(self, rows: TableRows, wanted: Collection[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Predict the class of each row, and the `wanted` columns: "score", "proba"."""
        scores = self.class_scores(rows)
        figures = {"score": lambda: scores, "proba": lambda: self.model.table_model_.probabilities(scores)}
        return scores.argmax(axis=1), {name: figures[name]() for name in wanted}

    def labelled(self, rows: TableRows, name: str) -> tuple[np.ndarray, TableRows]:
        """Return the true classes of rows, as indices, and the rows; unlabelled rows are ignored, with a note."""
        import numpy as np

        assert rows.truth is not None
        kept = np.flatnonzero(rows.truth >= 0)
        if len(kept) < rows.n_rows:
            note(f"{name}: {rows.n_rows - len(kept):,} rows without a label are ignored.")
            ids = None if rows.ids is None else [rows.ids[i] for i in kept]
            rows = TableRows(rows.X.take(kept), rows.truth[kept], ids, rows.first)
        assert rows.truth is not None
        return rows.truth, rows

    def predicting(self, threads: int | None) -> AbstractContextManager[Any]:
        """Set the number of threads for prediction; None: that of training."""
        from joblib import parallel_config

        return parallel_config("threading", n_jobs=threads or self.model.n_jobs or 1)


def _shown(cell: Any) -> str:
    return "" if cell is None else str(cell)
