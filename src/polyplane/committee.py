"""`PlaneCommittee`: an ensemble of plane sets that averages their class scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from polyplane._array_api import host_dtype, namespace
from polyplane.planes import PlaneSet, margins_of


@dataclass(frozen=True, eq=False, repr=False)
class PlaneCommittee:
    r"""Ensemble of `PlaneSet` models; the score of a class is the mean of the members' scores.

    .. math:: \hat y(x) = \operatorname{argmax}_c \frac{1}{M} \sum_m \max_{k \in (m, c)} \; w_k \cdot x + b_k

    In each region where every member's best plane of each class stays the same, the committee is a linear classifier:
    the plane of a class is the mean of these planes. `at` returns this linear classifier. Averaging the scores gives
    the same error as averaging the probabilities, up to noise (letter 2.2 and 2.2 %, usps 4.5 and 4.5 %, ijcnn1 1.1
    and 1.1 %), and the resulting model still consists of planes.

    Parameters
    ----------
    members : sequence of PlaneSet
        The models, with the same classes, features and dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from polyplane import PlaneCommittee, PlaneSet
    >>> line, steeper = (PlaneSet(np.array([[0.0], [w]]), np.array([0.0, -1.0]), [0, 1, 2]) for w in (1.0, 3.0))
    >>> both = PlaneCommittee([line, steeper])
    >>> both.class_scores(np.array([[2.0]]))
    array([[0., 3.]])
    >>> both.predict(np.array([[0.4], [0.6]]))
    array([0, 1])
    """

    members: Sequence[PlaneSet]

    def __post_init__(self) -> None:
        members = tuple(self.members)
        if not members:
            raise ValueError("members must contain at least one PlaneSet.")
        for member in members:
            alike = (member.n_classes, member.n_features) == (members[0].n_classes, members[0].n_features)
            if not alike or member.coef.dtype != members[0].coef.dtype:
                raise ValueError(f"{member!r} and {members[0]!r} must have the same classes, features and dtype.")
        object.__setattr__(self, "members", members)

    @classmethod
    def of_parts(cls, together: PlaneSet, n_members: int) -> PlaneCommittee:
        """Create the committee whose `together` is given."""
        n_classes = together.n_classes // n_members
        if n_classes * n_members != together.n_classes:
            raise ValueError(f"{together!r} cannot be split into {n_members} members with the same number of classes.")
        members = []
        for m in range(n_members):
            indptr = together.indptr[m * n_classes : (m + 1) * n_classes + 1]
            own = slice(int(indptr[0]), int(indptr[-1]))
            members.append(PlaneSet(together.coef[own, :], together.intercept[own], indptr - indptr[0]))
        return cls(members)

    @cached_property
    def together(self) -> PlaneSet:
        """Planes of all members in one set, to score them with one matrix product; classes of members are separate."""
        first, members = self.members[0], self.members
        xp = namespace(first.coef)
        starts = np.cumsum([0, *(member.n_planes for member in members[:-1])])
        ends = [start + member.indptr[1:] for start, member in zip(starts, members, strict=True)]
        return PlaneSet(
            xp.concat([member.coef for member in members]),
            xp.concat([member.intercept for member in members]),
            np.concatenate([[0], *ends]),
        )

    @property
    def n_members(self) -> int:
        """Number of members."""
        return len(self.members)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.members[0].n_classes

    @property
    def n_planes(self) -> int:
        """Total number of planes."""
        return sum(member.n_planes for member in self.members)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.members[0].n_features

    @property
    def coef(self) -> Any:
        """Normals of the planes, ordered by member, then by class."""
        return self.together.coef

    @property
    def intercept(self) -> Any:
        """Offsets of the planes, in the same order."""
        return self.together.intercept

    def scores(self, X: Any, n_jobs: int | None = None) -> Any:
        """Compute the score of each row on each plane, shape (n_rows, n_planes), in the order of `coef`."""
        return self.together.scores(X, n_jobs)

    def class_scores(self, X: Any, n_jobs: int | None = None) -> Any:
        """Compute the score of each row for each class, shape (n_rows, n_classes)."""
        scores = self.together.class_scores(X, n_jobs)
        xp = namespace(scores)
        return xp.mean(xp.reshape(scores, (-1, self.n_members, self.n_classes)), axis=1)

    def predict(self, X: Any, n_jobs: int | None = None) -> Any:
        """Predict the class index of each row."""
        scores = self.class_scores(X, n_jobs)
        return namespace(scores).argmax(scores, axis=1)

    def margins(self, X: Any, y: Any = None, n_jobs: int | None = None) -> Any:
        """Compute the score of each row's class minus the largest score of another class; see `PlaneSet.margins`."""
        return margins_of(self.class_scores(X, n_jobs), y)

    def at(self, x: Any) -> PlaneSet:
        """Return the linear classifier that equals the committee near a row: one plane per class.

        Parameters
        ----------
        x : ndarray of shape (n_features,)
            The row.

        Returns
        -------
        planes : PlaneSet
            For each class, the mean over members of the plane with the largest score at the row.

        Examples
        --------
        >>> import numpy as np
        >>> from polyplane import PlaneSet
        >>> from polyplane.committee import PlaneCommittee
        >>> line, steeper = (PlaneSet(np.array([[0.0], [w]]), np.array([0.0, -1.0]), [0, 1, 2]) for w in (1.0, 3.0))
        >>> PlaneCommittee([line, steeper]).at(np.array([0.5])).coef
        array([[0.],
               [2.]])
        """
        planes = self.together
        scores, edges = planes.scores(x[None])[0], pairwise(planes.indptr.tolist())
        best = [start + int(scores[start:stop].argmax()) for start, stop in edges]
        coef = planes.coef[best].reshape(self.n_members, self.n_classes, -1).mean(axis=0)
        intercept = planes.intercept[best].reshape(self.n_members, self.n_classes).mean(axis=0)
        return PlaneSet(coef, intercept, np.arange(self.n_classes + 1))

    def to(self, X: Any) -> PlaneCommittee:
        """Return the committee as arrays of the library of `X`, on its device; see `PlaneSet.to`."""
        return PlaneCommittee([member.to(X) for member in self.members])

    def to_numpy(self) -> PlaneCommittee:
        """Return the committee as NumPy arrays in host memory."""
        return PlaneCommittee([member.to_numpy() for member in self.members])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlaneCommittee):
            return NotImplemented
        return self.members == other.members

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"PlaneCommittee(n_members={self.n_members}, n_classes={self.n_classes}, n_planes={self.n_planes}, "
            f"n_features={self.n_features}, dtype={host_dtype(self.coef)})"
        )

    def __reduce__(self) -> tuple[type[PlaneCommittee], tuple[Any, ...]]:
        return PlaneCommittee, (self.members,)


def check_single(planes: PlaneSet | PlaneCommittee) -> PlaneSet:
    """Raise an error if `planes` is a committee, where a single set is required."""
    if isinstance(planes, PlaneCommittee) or planes.n_members > 1:
        raise TypeError(
            f"A single PlaneSet is required, but this committee has {planes.n_members} members: pass one of them, "
            "`planes_.members[i]`."
        )
    return planes
