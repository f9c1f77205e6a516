"""Readers of data files: svmlight, CSV and Parquet."""

from polyplane.readers.matrices import Batches, batches, read
from polyplane.readers.rows import Rows
from polyplane.readers.tables import TableBatches, read_table, table_batches

__all__ = ["Batches", "Rows", "TableBatches", "batches", "read", "read_table", "table_batches"]
