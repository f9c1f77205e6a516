"""`RowExplanation`: explanation of a prediction as text, dict or data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.explain._result import Explanation, data_frame
from polyplane.explain.rules import number, quoted


@dataclass(frozen=True, eq=False)
class Flip:
    """Counterfactual: the smallest change of a row that leads to another class.

    Parameters
    ----------
    label : object
        Label of this class.
    values : ndarray of shape (n_features,)
        The changed row, in the units of the data.
    change : ndarray of shape (n_features,)
        The changed row minus the row.
    distance : float
        Length of the change, with each feature divided by its scale.
    proven : bool
        Whether no smaller change leads to the target class, or to any other class if no target is given. False for a
        committee, where the change is found by local search.
    """

    label: Any
    values: np.ndarray
    change: np.ndarray
    distance: float
    proven: bool = True


@dataclass(frozen=True, eq=False)
class RowExplanation(Explanation):
    r"""Explanation of the predicted class of a row.

    The score of the winning plane :math:`p` exceeds that of the best plane :math:`q` of another class by

    .. math:: (w_p - w_q) x + b_p - b_q = \text{base} + \sum_j (w_{pj} - w_{qj}) (x_j - r_j)

    where the base is the difference at the reference row :math:`r`, and the terms of the sum are the contributions of
    the features. In a committee, :math:`p` and :math:`q` are the means over members of the best planes of the two
    classes at the row.

    Parameters
    ----------
    label, rival : object
        The predicted label, and the label with the second-best score.
    plane, rival_plane : int or None
        Their planes with the largest scores, numbered from 1 within each class; None for a committee.
    difference, base : float
        Score difference of the two classes at the row, and at the reference.
    shares : ndarray of shape (n_features,)
        Contribution of each feature; the contributions and the base sum to the difference.
    values, reference : ndarray of shape (n_features,)
        The row and the reference, in the units of the data.
    feature_names : tuple of str
        Names of the features.
    imputed : tuple of int
        Features whose missing values were imputed.
    scale : ndarray of shape (n_features,)
        Units of the features in distances.
    flip : Flip or None
        The smallest change that leads to another class; None if there is none within the bounds, or if the local search
        of a committee finds none.
    machines : int or None
        Number of members of a committee; None for a single model.
    searched : bool
        Whether a change was searched for.
    """

    _printed: ClassVar[int] = 10
    label: Any
    plane: int | None
    rival: Any
    rival_plane: int | None
    difference: float
    base: float
    shares: np.ndarray
    values: np.ndarray
    reference: np.ndarray
    feature_names: tuple[str, ...]
    imputed: tuple[int, ...]
    scale: np.ndarray
    flip: Flip | None
    machines: int | None = None
    searched: bool = True

    def by_share(self) -> list[int]:
        """Return the features with a non-zero contribution, the largest first."""
        order = np.argsort(-np.abs(self.shares), kind="stable")
        return order[self.shares[order] != 0].tolist()

    def by_change(self) -> list[int]:
        """Return the features that the flip changes noticeably, the largest change relative to its scale first."""
        ways = np.zeros(1) if self.flip is None else np.abs(self.flip.change) / self.scale
        order = np.argsort(-ways, kind="stable")
        return order[ways[order] > 1e-6 * ways.max()].tolist()

    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` most important features; if None, with all."""
        lines = [self._headline()]
        order = self.by_share()
        shown = order if top is None else order[:top]
        parts = [(_signed(self.shares[j]), self._reason(j)) for j in shown]
        if len(order) > len(shown):
            rest = float(self.shares[order[len(shown) :]].sum())
            parts.append((_signed(rest), f"{len(order) - len(shown)} other features"))
        parts.append((_signed(self.base), "at the reference row"))
        width = max(len(share) for share, _ in parts)
        lines += [f"  {share:>{width}}  {reason}" for share, reason in parts]
        return "\n".join([*lines, *self._flip_lines(top)])

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON types."""
        flip = None
        if self.flip is not None:
            named = zip(self.feature_names, self.flip.values, self.flip.change, strict=True)
            changes = {name: value for name, value, change in named if change != 0}
            flip = {"label": self.flip.label, "distance": self.flip.distance, "changes": changes}
            flip |= {"values": self.flip.values, "proven": self.flip.proven}
        return plain(
            {
                "label": self.label,
                "plane": self.plane,
                "rival": self.rival,
                "rival_plane": self.rival_plane,
                "difference": self.difference,
                "base": self.base,
                "features": list(self.feature_names),
                "values": self.values,
                "reference": self.reference,
                "shares": self.shares,
                "machines": self.machines,
                "imputed": [self.feature_names[j] for j in self.imputed],
                "flip": flip,
            }
        )

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each feature, the largest contribution first."""
        frame = data_frame(
            {
                "feature": self.feature_names,
                "value": self.values,
                "reference": self.reference,
                "share": self.shares,
                "flipped": np.nan if self.flip is None else self.flip.values,
            }
        )
        return frame.sort_values("share", key=abs, ascending=False, ignore_index=True, kind="stable")

    def _headline(self) -> str:
        if self.machines is not None:
            return (
                f"The predicted class is {self.label!r}. Its mean score over {self.machines} members exceeds that of "
                f"class {self.rival!r} by {number(self.difference)}:"
            )
        return (
            f"The predicted class is {self.label!r} (plane {self.plane}). Its score exceeds that of class "
            f"{self.rival!r} (plane {self.rival_plane}) by {number(self.difference)}:"
        )

    def _reason(self, j: int) -> str:
        filled = ", imputed" if j in self.imputed else ""
        name, value, reference = quoted(self.feature_names[j]), self.values[j], self.reference[j]
        return f"{name} = {number(value)} (reference {number(reference)}{filled})"

    def _flip_lines(self, top: int | None) -> list[str]:
        if not self.searched:
            return []
        if self.flip is None and self.machines is not None:
            return ["A local search found no change within the bounds that leads to another class."]
        if self.flip is None:
            return ["No change within the bounds leads to another class."]
        order = self.by_change()
        if not order:
            return [f"The predicted class is already {self.flip.label!r}."]
        shown = order if top is None else order[:top]
        far = number(self.flip.distance)
        smallest = "The smallest change" if self.flip.proven else "The smallest change found by local search"
        lines = [f"{smallest} that leads to class {self.flip.label!r} (distance {far}):"]
        for j in shown:
            digits = _digits_apart(self.values[j], self.flip.values[j])
            lines.append(
                f"  {quoted(self.feature_names[j])}: {number(self.values[j], digits)} -> "
                f"{number(self.flip.values[j], digits)}"
            )
        if len(order) > len(shown):
            lines.append(f"  and smaller changes of {len(order) - len(shown)} other features")
        return lines


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "") + number(float(value))


def _digits_apart(a: float, b: float) -> int:
    """Return the number of digits, at least four, at which two numbers differ."""
    return next((digits for digits in range(4, 12) if number(float(a), digits) != number(float(b), digits)), 12)
