"""`polyplane.tables.members`, under its former name until its last users have moved."""

from polyplane.tables.members import Member, TableModel

__all__ = ["Member", "TableModel"]
