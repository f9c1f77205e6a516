"""Scores of a `TableModel` as sums over the columns of the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyplane.tables._model import Member, TableModel

#: Points of the path from the reference to a row: as many as the sum of the contributions asks for, from the least on.
LEAST_NODES, MOST_NODES, TOLERANCE = 16, 1024, 1e-7


@dataclass(frozen=True, eq=False)
class TableScores:
    r"""The scores of all planes of all machines, column by column.

    The score of plane :math:`k` is :math:`s_k(x) = s_k(r) + \sum_j \Delta_{kj}`, where :math:`\Delta_{kj}` is what
    column :math:`j` adds when it alone changes from its value in the reference row :math:`r` to that in :math:`x`.

    Parameters
    ----------
    model : TableModel
        The model.
    reference : ndarray of shape (n_features,)
        The reference row, encoded.
    """

    model: TableModel
    reference: np.ndarray

    @cached_property
    def starts(self) -> np.ndarray:
        """Where the planes of each class begin, machine by machine."""
        sizes = np.concatenate([np.diff(member.planes.indptr) for member in self.model.members])
        return np.append(0, np.cumsum(sizes))

    @property
    def is_additive(self) -> bool:
        """Whether each class has one plane in each machine: its score is a sum over columns then."""
        return bool((np.diff(self.starts) == 1).all())

    @cached_property
    def at_reference(self) -> np.ndarray:
        """Scores of the planes at the reference row, shape (n_planes,)."""
        return self.planes(self.reference[None])[0]

    def planes(self, Z: np.ndarray) -> np.ndarray:
        """Scores of the planes for encoded rows, shape (n_rows, n_planes)."""
        parts = [member.plane_scores(Z) for member in self.model.members]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def classes(self, scores: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities of the classes but for a constant, from scores of planes; last axis."""
        sums, top = self._sums(scores)
        return self._mean(np.log(sums) + top)

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """How much each plane counts in the score of its class, from 0 to 1; last axis."""
        sums, top = self._sums(scores)
        sizes = np.diff(self.starts)
        return np.exp(scores - np.repeat(top, sizes, axis=-1)) / np.repeat(sums, sizes, axis=-1)

    def column(self, j: int, features: np.ndarray) -> np.ndarray:
        """What values of column `j`, given by features, add to the scores of planes, shape (n_values, n_planes)."""
        rows = np.repeat(self.reference[None], len(features), axis=0)
        rows[:, self.model.encoding.places[j]] = features
        return self.planes(rows) - self.at_reference

    def columns(self, Z: np.ndarray) -> np.ndarray:
        """What each column adds to the scores of the planes, shape (n_rows, n_columns, n_planes)."""
        return np.concatenate([self._columns_of(member, Z) for member in self.model.members], axis=2)

    def of_row(self, z: np.ndarray) -> np.ndarray:
        """The same for one encoded row, shape (n_columns, n_planes): exactly 0 where it has the reference value."""
        places = self.model.encoding.places
        changed = [j for j, place in enumerate(places) if (z[place] != self.reference[place]).any()]
        parts = np.zeros((len(places), len(self.at_reference)))
        if changed:
            rows = np.repeat(self.reference[None], len(changed), axis=0)
            for i, j in enumerate(changed):
                rows[i, places[j]] = z[places[j]]
            parts[changed] = self.planes(rows) - self.at_reference
        return parts

    def _columns_of(self, member: Member, Z: np.ndarray) -> np.ndarray:
        """What each column adds to the scores of the planes of a machine."""
        places = self.model.encoding.places
        sources = np.array([j for j, _ in member.preparation.sources])
        if (sources < 0).any():  # a feature of all columns: one column is changed after the other
            base, rows = member.plane_scores(self.reference[None]), np.repeat(self.reference[None], len(Z), axis=0)
            parts = []
            for place in places:
                rows[:, place] = Z[:, place]
                parts.append(member.plane_scores(rows) - base)
                rows[:, place] = self.reference[place]
            return np.stack(parts, axis=1).astype(np.float64)
        change = np.subtract(*map(member.preparation.transform, (Z, self.reference[None])), dtype=np.float64)
        column_of = np.repeat(np.arange(len(places)), [place.stop - place.start for place in places])[sources]
        coef = member.planes.coef.astype(np.float64)
        own = [np.flatnonzero(column_of == j) for j in range(len(places))]
        return np.stack([change[:, features] @ coef[:, features].T for features in own], axis=1)

    def contributions(self, parts: np.ndarray) -> np.ndarray:
        r"""What each column contributes to the scores of the classes, shape (n_rows, n_columns, n_classes).

        On the straight way from the reference to the row all columns change together, and at each point a column adds
        to the score of a class in proportion to what it adds to its planes, each with its share there. The sum along
        the way, :math:`\int_0^1 \sum_k p_k(t) \Delta_{kj} dt`, is the Aumann-Shapley value. Over all columns these sum
        to the score at the row less that at the reference.

        Parameters
        ----------
        parts : ndarray of shape (n_rows, n_columns, n_planes)
            What each column adds to the scores of the planes.
        """
        weighted = parts * self._mean_shares(parts.sum(axis=1))[:, None]
        return self._mean(np.add.reduceat(weighted, self.starts[:-1], axis=-1))

    def _mean_shares(self, change: np.ndarray) -> np.ndarray:
        """The shares of the planes, on average over the way from the reference, shape (n_rows, n_planes)."""
        if self.is_additive:
            return np.ones_like(change)
        rise = self.classes(self.at_reference + change) - self.classes(self.at_reference)
        n_nodes = LEAST_NODES
        while True:
            result = np.zeros_like(change)
            for node, weight in zip(*np.polynomial.legendre.leggauss(n_nodes), strict=True):
                result += 0.5 * weight * self.shares(self.at_reference + 0.5 * (1.0 + node) * change)
            found = self._mean(np.add.reduceat(result * change, self.starts[:-1], axis=-1))
            if np.abs(found - rise).max(initial=0.0) <= TOLERANCE * (1.0 + np.abs(rise).max()) or n_nodes >= MOST_NODES:
                return result
            n_nodes *= 2

    def _sums(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each class in each machine the sum of the exponentials relative to the largest score, and that score."""
        top = np.maximum.reduceat(scores, self.starts[:-1], axis=-1)
        shifted = np.exp(scores - np.repeat(top, np.diff(self.starts), axis=-1))
        return np.add.reduceat(shifted, self.starts[:-1], axis=-1), top

    def _mean(self, by_machine: np.ndarray) -> np.ndarray:
        """Mean over the machines, in units of the temperature."""
        apart = by_machine.reshape(*by_machine.shape[:-1], len(self.model.members), self.model.n_classes)
        return apart.mean(axis=-2) / self.model.temperature
