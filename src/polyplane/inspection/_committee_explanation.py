"""An explanation of a committee, as data, text or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.committee import PlaneCommittee
from polyplane.inspection._result import Explanation, data_frame, listed
from polyplane.inspection.rules import number, quoted

#: What is said of the machines.
MEMBERS = "Each machine is a set of planes of its own, `planes_.members[i]`."


@dataclass(frozen=True, eq=False)
class CommitteeExplanation(Explanation):
    r"""What a committee of several machines looks at.

    Around a row a committee is a linear machine, with a plane for each class (`PlaneCommittee.at`). There the predicted
    class :math:`c` is ahead of the next best class :math:`d` by :math:`(w_c - w_d) x + b_c - b_d`, and the importance
    of feature :math:`j` is the mean of :math:`|w_{cj} - w_{dj}| s_j` over rows, where :math:`s_j` is the standard
    deviation of the feature: by how much such a change moves the lead.

    Parameters
    ----------
    learner : str
        The name of the estimator.
    classes : list
        The labels.
    feature_names : tuple of str
        Names of the features.
    planes : PlaneCommittee
        The exact planes, in the units of the data.
    importance : ndarray of shape (n_features,)
        The importance of each feature; without rows, the standard deviation of its weights over all planes, times the
        scale of the feature.
    weights : ndarray of shape (n_classes, n_features)
        The plane of each class, the mean over the rows that it is predicted for; without rows, over all its planes.
    n_rows : int or None
        The number of rows looked at.
    shares : ndarray of shape (n_classes,) or None
        The share of the rows that each class is predicted for.
    typical : list of tuple of int
        For each class, rows that are nearest to the mean of those it is predicted for.
    """

    _printed: ClassVar[int] = 8
    learner: str
    classes: list[Any]
    feature_names: tuple[str, ...]
    planes: PlaneCommittee
    importance: np.ndarray
    weights: np.ndarray
    n_rows: int | None
    shares: np.ndarray | None
    typical: list[tuple[int, ...]]

    @property
    def n_planes(self) -> np.ndarray:
        """The number of planes of each class, over all machines."""
        return np.sum([np.diff(member.indptr) for member in self.planes.members], axis=0)

    def by_importance(self) -> list[int]:
        """The features, the most important first."""
        return np.argsort(-self.importance, kind="stable").tolist()

    def typical_rows(self) -> list[int]:
        """Rows that are typical of the classes, in turn."""
        return [i for place in range(3) for rows in self.typical for i in rows[place : place + 1]]

    def pictures(self) -> list[tuple[str, np.ndarray]]:
        """A name and the weights for each class."""
        return [(str(label), weights) for label, weights in zip(self.classes, self.weights, strict=True)]

    def to_text(self, top: int | None = None) -> str:
        """The explanation in words, with the `top` most important features; None: with all."""
        lines = [
            f"The predicted class is that of the highest mean score over {self.planes.n_members} machines; on each of "
            "them the score of a class is that of its best plane.",
            f"The importance of the features{self._looked_at()}:",
        ]
        order = self.by_importance()
        shown = order if top is None else order[:top]
        sizes = [number(float(self.importance[j])) for j in shown]
        width = max(len(size) for size in sizes)
        lines += [f"  {size:>{width}}  {quoted(self.feature_names[j])}" for size, j in zip(sizes, shown, strict=True)]
        if len(order) > len(shown):
            lines.append(f"  and less of {len(order) - len(shown)} other features")
        return "\n".join([*lines, *map(self._of_class, range(len(self.classes))), MEMBERS])

    def to_dict(self) -> dict[str, Any]:
        """The explanation in the types of JSON."""
        by_class = [
            {
                "class": label,
                "planes": count,
                "share": None if self.shares is None else self.shares[c],
                "typical_rows": self.typical[c],
            }
            for c, (label, count) in enumerate(zip(self.classes, self.n_planes, strict=True))
        ]
        return plain(
            {
                "learner": self.learner,
                "machines": self.planes.n_members,
                "classes": self.classes,
                "features": list(self.feature_names),
                "importance": self.importance,
                "by_class": by_class,
                "rows": self.n_rows,
            }
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each feature, the most important first."""
        order = self.by_importance()
        return data_frame({"feature": [self.feature_names[j] for j in order], "importance": self.importance[order]})

    def _looked_at(self) -> str:
        if self.n_rows is None:
            return ", by how much their weights differ from plane to plane"
        return ", by how much a standard deviation of each moves the lead over the second class"

    def _of_class(self, c: int) -> str:
        text = f"Class {self.classes[c]!r}: {self.n_planes[c]} planes"
        if self.shares is None:
            return f"{text}."
        such = f", such as {listed(self.typical[c])}" if self.typical[c] else ""
        return f"{text}, predicted for {100 * self.shares[c]:.1f} % of the rows{such}."
