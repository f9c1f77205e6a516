"""`TableModel`: the fitted model of a `TableClassifier`, from the columns of a table to class scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from polyplane.inputs.encoding import TableInputs
from polyplane.inputs.frames import read_table
from polyplane.model import Model
from polyplane.planes import PlaneSet
from polyplane.tables._preparation import Preparation
from polyplane.tables._probabilities import soft_class_scores, softmax


class Member(NamedTuple):
    """One member of a committee: a preparation of encoded rows, and planes over the prepared features."""

    preparation: Preparation
    planes: PlaneSet

    def class_scores(self, Z: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Compute the scores of the classes for encoded rows."""
        return soft_class_scores(self.planes, self.preparation.transform(Z), n_jobs)

    def plane_scores(self, Z: np.ndarray) -> np.ndarray:
        """Compute the scores of the planes for encoded rows; each score is a sum over the columns of the table."""
        return self.planes.scores(self.preparation.transform(Z))


@dataclass(frozen=True, eq=False)
class TableModel:
    r"""The fitted model of a table: maps its columns to class scores.

    The score of plane :math:`k` of member :math:`m` is a sum over the columns, :math:`s_{mk}(x) = b_{mk} +
    \sum_j f_{mkj}(x_j)`: planes are linear in the prepared features, and each of these belongs to one column or is a
    sum over columns. The score of a class is the mean over the members of a smooth maximum over its planes,

    .. math:: S_c(x) = \frac{1}{M} \sum_m \log \sum_{k \in (m, c)} e^{s_{mk}(x)}

    and probabilities are the softmax of :math:`S_c(x) / T`.

    Parameters
    ----------
    encoding : TableInputs
        The encoding of columns as numbers.
    members : tuple of Member
        The members of the committee.
    temperature : float
        The softmax temperature :math:`T`.
    """

    encoding: TableInputs
    members: tuple[Member, ...]
    temperature: float

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.members[0].planes.n_classes

    def folded(self, classes: np.ndarray) -> Model:
        """Return the same model with the preparations included in its features and planes."""
        members = [(*m.preparation.fold(m.planes, self.encoding.is_indicator), m.planes.indptr) for m in self.members]
        return Model.of_members(
            self.encoding, members, classes, temperature=self.temperature, learner="TableClassifier"
        )

    def encode(self, X: Any, owner: str = "TableClassifier") -> np.ndarray:
        """Encode the rows of a table, shape (n_rows, n_features)."""
        return self.encoding.encode(read_table(X, self.encoding.gaps), owner)

    def class_scores(self, Z: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Compute the scores of the classes for encoded rows, shape (n_rows, n_classes)."""
        return class_scores(self.members, Z, n_jobs)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Convert class scores to probabilities."""
        return softmax(scores / self.temperature)


def class_scores(members: Sequence[Member], Z: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Compute the scores of the classes for encoded rows: the means over the members."""
    preparations = {id(member.preparation): member.preparation for member in members}
    prepared = {key: preparation.transform(Z) for key, preparation in preparations.items()}
    different = {(id(member.preparation), id(member.planes)): member.planes for member in members}
    parts = {key: soft_class_scores(planes, prepared[key[0]], n_jobs) for key, planes in different.items()}
    return np.mean([parts[id(member.preparation), id(member.planes)] for member in members], axis=0)
