"""`TableModel`, the former form of a fitted table, until its last users have moved to `polyplane.Model`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane._array_api import softmax
from polyplane.inputs.encoding import TableInputs
from polyplane.tables.members import Member, class_scores

__all__ = ["Member", "TableModel"]


@dataclass(frozen=True, eq=False)
class TableModel:
    """The columns, the members and the temperature of a fitted table."""

    encoding: TableInputs
    members: tuple[Member, ...]
    temperature: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.members[0].planes.n_classes

    def encode(self, X: Any, owner: str = "TableClassifier") -> np.ndarray:
        """Encode the rows of a table."""
        return self.encoding.read(X, owner)

    def class_scores(self, Z: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Compute the scores of the classes for encoded rows."""
        return class_scores(self.members, Z, n_jobs)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Convert class scores to probabilities."""
        found: np.ndarray = softmax(scores / self.temperature)
        return found
