"""An explanation of a row, as data, text or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.inspection._result import Explanation, data_frame
from polyplane.inspection.rules import number, quoted


@dataclass(frozen=True, eq=False)
class Flip:
    """The smallest change of a row for which another class is predicted, proven or found by local search.

    Parameters
    ----------
    label : object
        The label of that class.
    values : ndarray of shape (n_features,)
        The changed row, in the units of the data.
    change : ndarray of shape (n_features,)
        What was added.
    distance : float
        The length of the change, each feature measured in its scale.
    proven : bool
        Whether no smaller change leads to that class, or to any other where none was asked for; in a committee the
        change is found by local search.
    """

    label: Any
    values: np.ndarray
    change: np.ndarray
    distance: float
    proven: bool = True


@dataclass(frozen=True, eq=False)
class RowExplanation(Explanation):
    r"""Why a class is predicted for a row.

    The winning plane :math:`p` is ahead of the best plane :math:`q` of another class by

    .. math:: (w_p - w_q) x + b_p - b_q = \text{base} + \sum_j (w_{pj} - w_{qj}) (x_j - r_j)

    where the base is the difference at the reference row :math:`r`; the terms of the sum are the features' shares. In a
    committee :math:`p` and :math:`q` are the means of the machines' best planes of the two classes at the row.

    Parameters
    ----------
    label, rival : object
        The predicted label, and the next best one.
    plane, rival_plane : int or None
        The planes that speak for them, counted within their classes from 1; None in a committee.
    difference, base : float
        The score difference at the row, and at the reference.
    shares : ndarray of shape (n_features,)
        Each feature's share of the difference; with the base they sum to it.
    values, reference : ndarray of shape (n_features,)
        The row and the reference, in the units of the data.
    feature_names : tuple of str
        Names of the features.
    imputed : tuple of int
        The features that were missing and have been filled in.
    scale : ndarray of shape (n_features,)
        The change of each feature that counts as 1 in distances.
    flip : Flip or None
        The smallest change for which another class is predicted; None when there is none within the bounds, or when
        the search in a committee found none.
    machines : int or None
        The number of machines of a committee; None for a single one.
    searched : bool
        Whether a change was looked for.
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
        """The features that have a share, the largest first."""
        order = np.argsort(-np.abs(self.shares), kind="stable")
        return order[self.shares[order] != 0].tolist()

    def by_change(self) -> list[int]:
        """The features that the flip changes noticeably, the largest change, measured in its scale, first."""
        ways = np.zeros(1) if self.flip is None else np.abs(self.flip.change) / self.scale
        order = np.argsort(-ways, kind="stable")
        return order[ways[order] > 1e-6 * ways.max()].tolist()

    def to_text(self, top: int | None = None) -> str:
        """The explanation in words, with the `top` most important features; None: with all."""
        lines = [self._headline()]
        order = self.by_share()
        shown = order if top is None else order[:top]
        parts = [(_signed(self.shares[j]), self._reason(j)) for j in shown]
        if len(order) > len(shown):
            rest = float(self.shares[order[len(shown) :]].sum())
            parts.append((_signed(rest), f"from {len(order) - len(shown)} other features together"))
        parts.append((_signed(self.base), "at the reference row"))
        width = max(len(share) for share, _ in parts)
        lines += [f"  {share:>{width}}  {reason}" for share, reason in parts]
        return "\n".join([*lines, *self._flip_lines(top)])

    def to_dict(self) -> dict[str, Any]:
        """The explanation in the types of JSON."""
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
        """A pandas DataFrame with a row for each feature, the largest share first."""
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
                f"The predicted class is {self.label!r}, ahead of class {self.rival!r} by a mean score of "
                f"{number(self.difference)} over {self.machines} machines:"
            )
        return (
            f"The predicted class is {self.label!r} (its plane {self.plane}), ahead of class {self.rival!r} "
            f"(plane {self.rival_plane}) by a score of {number(self.difference)}:"
        )

    def _reason(self, j: int) -> str:
        filled = ", filled in" if j in self.imputed else ""
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
            return [f"Class {self.flip.label!r} is predicted already."]
        shown = order if top is None else order[:top]
        far = number(self.flip.distance)
        smallest = "The smallest change" if self.flip.proven else "The smallest change found by local search"
        lines = [f"{smallest} that leads to class {self.flip.label!r} (at a distance of {far}):"]
        for j in shown:
            digits = _digits_apart(self.values[j], self.flip.values[j])
            lines.append(
                f"  {quoted(self.feature_names[j])}: {number(self.values[j], digits)} -> "
                f"{number(self.flip.values[j], digits)}"
            )
        if len(order) > len(shown):
            lines.append(f"  and less in {len(order) - len(shown)} other features")
        return lines


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "") + number(float(value))


def _digits_apart(a: float, b: float) -> int:
    """As many digits as tell two numbers apart, four or more."""
    return next((digits for digits in range(4, 12) if number(float(a), digits) != number(float(b), digits)), 12)
