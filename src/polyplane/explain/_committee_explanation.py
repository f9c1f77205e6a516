"""`CommitteeExplanation`: explanation of a committee as text, dict or data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.committee import PlaneCommittee
from polyplane.explain._result import Explanation, data_frame, listed
from polyplane.explain.rules import number, quoted

#: Note about the members.
MEMBERS = "Each member is a PlaneSet, `planes_.members[i]`."


@dataclass(frozen=True, eq=False)
class CommitteeExplanation(Explanation):
    r"""Importance of the features in a committee of several members.

    Near a row, a committee is a linear classifier with one plane per class (`PlaneCommittee.at`). The score of the
    predicted class :math:`c` exceeds that of the second-best class :math:`d` by :math:`(w_c - w_d) x + b_c - b_d`. The
    importance of feature :math:`j` is the mean of :math:`|w_{cj} - w_{dj}| s_j` over rows: the change of this
    difference when the feature changes by its standard deviation :math:`s_j`.

    Parameters
    ----------
    learner : str
        Class name of the estimator.
    classes : list
        Class labels.
    feature_names : tuple of str
        Names of the features.
    planes : PlaneCommittee
        The exact planes, in the units of the data.
    importance : ndarray of shape (n_features,)
        Importance of each feature. Without rows, it is the standard deviation of its weights over all planes, times the
        scale of the feature.
    weights : ndarray of shape (n_classes, n_features)
        Mean weights of each class over the rows of this predicted class; without rows, over all planes of the class.
    n_rows : int or None
        Number of rows; None without rows.
    shares : ndarray of shape (n_classes,) or None
        Fraction of the rows for which each class is predicted.
    typical : list of tuple of int
        Indices of the rows nearest to the mean of the rows of each predicted class.
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
        """Number of planes of each class, over all members."""
        return np.sum([np.diff(member.indptr) for member in self.planes.members], axis=0)

    def by_importance(self) -> list[int]:
        """Return the features, the most important first."""
        return np.argsort(-self.importance, kind="stable").tolist()

    def typical_rows(self) -> list[int]:
        """Return typical rows, alternating between the classes."""
        return [i for place in range(3) for rows in self.typical for i in rows[place : place + 1]]

    def pictures(self) -> list[tuple[str, np.ndarray]]:
        """Return a name and the weights of each class."""
        return [(str(label), weights) for label, weights in zip(self.classes, self.weights, strict=True)]

    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` most important features; if None, with all."""
        lines = [
            f"The predicted class has the highest mean score over {self.planes.n_members} members; in each member, the "
            "score of a class is the highest score of its planes.",
            f"Importance of the features{self._looked_at()}:",
        ]
        order = self.by_importance()
        shown = order if top is None else order[:top]
        sizes = [number(float(self.importance[j])) for j in shown]
        width = max(len(size) for size in sizes)
        lines += [f"  {size:>{width}}  {quoted(self.feature_names[j])}" for size, j in zip(sizes, shown, strict=True)]
        if len(order) > len(shown):
            lines.append(f"  {len(order) - len(shown)} other features are less important")
        return "\n".join([*lines, *map(self._of_class, range(len(self.classes))), MEMBERS])

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON types."""
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
        """Return a pandas DataFrame with a row for each feature, the most important first."""
        order = self.by_importance()
        return data_frame({"feature": [self.feature_names[j] for j in order], "importance": self.importance[order]})

    def _looked_at(self) -> str:
        if self.n_rows is None:
            return " (standard deviation of their weights over the planes)"
        return " (change of the lead over the second class per standard deviation)"

    def _of_class(self, c: int) -> str:
        text = f"Class {self.classes[c]!r}: {self.n_planes[c]} planes"
        if self.shares is None:
            return f"{text}."
        such = f", such as {listed(self.typical[c])}" if self.typical[c] else ""
        return f"{text}, predicted for {100 * self.shares[c]:.1f} % of the rows{such}."
