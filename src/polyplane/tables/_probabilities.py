"""The smallest probability, under its former name until its last users have moved."""

from polyplane.tables.members import LEAST_PROBABILITY as LEAST

__all__ = ["LEAST"]
