"""Readers of data files: svmlight, CSV and Parquet."""

from polyplane.readers._read import Batches, batches, read
from polyplane.readers._rows import Rows
from polyplane.readers._tables import TableBatches, read_table, table_batches

__all__ = ["Batches", "Rows", "TableBatches", "batches", "read", "read_table", "table_batches"]
