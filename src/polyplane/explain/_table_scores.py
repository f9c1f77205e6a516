"""Scores of a `TableModel` as sums over the columns of the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyplane.tables._model import Member, TableModel

#: Number of points on the path from the reference to a row: increased until the sum of the contributions is accurate.
LEAST_NODES, MOST_NODES, TOLERANCE = 16, 1024, 1e-7


@dataclass(frozen=True, eq=False)
class TableScores:
    r"""Scores of all planes of all members as sums over columns.

    The score of plane :math:`k` is :math:`s_k(x) = s_k(r) + \sum_j \Delta_{kj}`, where :math:`\Delta_{kj}` is the
    change of the score if only column :math:`j` changes from its value in the reference row :math:`r` to its value in
    :math:`x`.

    Parameters
    ----------
    model : TableModel
        The model.
    reference : ndarray of shape (n_features,)
        The encoded reference row.
    """

    model: TableModel
    reference: np.ndarray

    @cached_property
    def starts(self) -> np.ndarray:
        """Index of the first plane of each class, member by member."""
        sizes = np.concatenate([np.diff(member.planes.indptr) for member in self.model.members])
        return np.append(0, np.cumsum(sizes))

    @property
    def is_additive(self) -> bool:
        """Whether each class has one plane in each member, so that class scores are sums over columns."""
        return bool((np.diff(self.starts) == 1).all())

    @cached_property
    def at_reference(self) -> np.ndarray:
        """Scores of the planes at the reference row, shape (n_planes,)."""
        return self.planes(self.reference[None])[0]

    def planes(self, Z: np.ndarray) -> np.ndarray:
        """Compute the scores of the planes for encoded rows, shape (n_rows, n_planes)."""
        parts = [member.plane_scores(Z) for member in self.model.members]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def classes(self, scores: np.ndarray) -> np.ndarray:
        """Compute the log-probabilities of the classes, up to a constant, from plane scores, along the last axis."""
        sums, top = self._sums(scores)
        return self._mean(np.log(sums) + top)

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """Compute the weight of each plane in the score of its class, from 0 to 1, along the last axis."""
        sums, top = self._sums(scores)
        sizes = np.diff(self.starts)
        return np.exp(scores - np.repeat(top, sizes, axis=-1)) / np.repeat(sums, sizes, axis=-1)

    def column(self, j: int, features: np.ndarray) -> np.ndarray:
        """Compute the contributions of encoded values of column `j` to the scores, shape (n_values, n_planes)."""
        rows = np.repeat(self.reference[None], len(features), axis=0)
        rows[:, self.model.encoding.places[j]] = features
        return self.planes(rows) - self.at_reference

    def columns(self, Z: np.ndarray) -> np.ndarray:
        """Compute the contribution of each column to the scores of the planes, shape (n_rows, n_columns, n_planes)."""
        return np.concatenate([self._columns_of(member, Z) for member in self.model.members], axis=2)

    def of_row(self, z: np.ndarray) -> np.ndarray:
        """Compute the same for one encoded row, shape (n_columns, n_planes): exactly 0 at the reference value."""
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
        """Compute the contribution of each column to the scores of the planes of a member."""
        places = self.model.encoding.places
        sources = np.array([j for j, _ in member.preparation.sources])
        if (sources < 0).any():  # a feature that depends on all columns: columns are changed one by one
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
        r"""Compute the contribution of each column to the scores of the classes, shape (n_rows, n_columns, n_classes).

        The contribution is the Aumann-Shapley value :math:`\int_0^1 \sum_k p_k(t) \Delta_{kj} dt`, an integral along
        the straight line from the reference to the row, where :math:`p_k(t)` is the weight of plane :math:`k` in the
        score of its class. The contributions of all columns sum to the score at the row minus that at the reference.

        Parameters
        ----------
        parts : ndarray of shape (n_rows, n_columns, n_planes)
            The contribution of each column to the scores of the planes.
        """
        weighted = parts * self._mean_shares(parts.sum(axis=1))[:, None]
        return self._mean(np.add.reduceat(weighted, self.starts[:-1], axis=-1))

    def _mean_shares(self, change: np.ndarray) -> np.ndarray:
        """Compute the mean weights of the planes on the line from the reference, shape (n_rows, n_planes)."""
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
        """Return the sum of exponentials relative to the largest score, and this score, by member and class."""
        top = np.maximum.reduceat(scores, self.starts[:-1], axis=-1)
        shifted = np.exp(scores - np.repeat(top, np.diff(self.starts), axis=-1))
        return np.add.reduceat(shifted, self.starts[:-1], axis=-1), top

    def _mean(self, by_machine: np.ndarray) -> np.ndarray:
        """Compute the mean over the members, divided by the temperature."""
        apart = by_machine.reshape(*by_machine.shape[:-1], len(self.model.members), self.model.n_classes)
        return apart.mean(axis=-2) / self.model.temperature
