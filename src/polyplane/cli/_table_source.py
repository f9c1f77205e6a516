"""The training table: its file, its features, and facts for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from polyplane.cli._common import UserError
from polyplane.cli._labels import find_label

if TYPE_CHECKING:
    from polyplane.cli._train_options import TrainOptions
    from polyplane.readers import TableBatches


class TableFacts(NamedTuple):
    """Facts about a training table.

    Parameters
    ----------
    n_rows, n_columns : int
        Number of rows with a label, and of feature columns.
    label : str
        The label column.
    id : str or None
        The column that identifies the rows.
    index_columns : tuple of str
        Index columns written by pandas.
    n_unlabelled : int
        Number of rows without a label, which are ignored.
    class_counts : dict of label to int
        The number of rows of each class.
    format : str
        CSV or Parquet.
    decimal : str
        The decimal separator.
    seconds : float
        Reading time.
    """

    n_rows: int
    n_columns: int
    label: str
    id: str | None
    index_columns: tuple[str, ...]
    n_unlabelled: int
    class_counts: dict[Any, int]
    format: str
    decimal: str
    seconds: float

    @property
    def metadata(self) -> dict[str, str]:
        """Reading options for the model file."""
        given = {"format": self.format, "label": self.label, "id": self.id}
        return {name: value for name, value in given.items() if value is not None}


class NamedColumns(NamedTuple):
    """The label and id columns given on the command line, and index columns written by pandas."""

    label: str | None
    id: str | None
    index_columns: tuple[str, ...]

    @classmethod
    def of(cls, table: Any, options: TrainOptions, index: tuple[str, ...]) -> Self:
        """Find the columns in a table."""
        found = {option: _named(table, options.reading.get(option), option) for option in ("label", "id")}
        return cls(**found, index_columns=tuple(name for name in index if name not in found.values()))

    @property
    def others(self) -> tuple[str, ...]:
        """Columns that are neither features nor the label."""
        return self.index_columns if self.id is None else (*self.index_columns, self.id)

    def features(self, table: Any, label: str) -> Any:
        """Select the feature columns."""
        X = table.drop_columns([*self.others, label])
        if not X.num_columns:
            raise UserError("The table has no columns other than the label.")
        return X


def open_table(options: TrainOptions, n_rows: int | None = None, columns: set[str] | None = None) -> TableBatches:
    """Open the training file, to be read in batches of `n_rows` rows."""
    from polyplane.readers import table_batches

    reading = {name: options.reading[name] for name in ("format", "encoding") if name in options.reading}
    return table_batches(options.source, n_rows, keep_index=True, columns=columns, **reading)


def _named(table: Any, wanted: str | None, option: str) -> str | None:
    if wanted is None:
        return None
    try:
        return find_label(table.column_names, wanted)
    except UserError as error:
        raise UserError(f"--{option} {wanted}: {error}") from None
