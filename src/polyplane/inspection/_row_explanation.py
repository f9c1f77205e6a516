"""An explanation of a row: what it holds and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.inspection._result import as_html, data_frame, plain
from polyplane.inspection.rules import number, quoted


@dataclass(frozen=True, eq=False)
class Flip:
    """The smallest change that gives a row another class.

    Parameters
    ----------
    label : object
        The label it gets.
    values : ndarray of shape (n_features,)
        The changed row, in the units of the data.
    change : ndarray of shape (n_features,)
        What was added.
    distance : float
        The length of the change, each feature measured in its scale.
    """

    label: Any
    values: np.ndarray
    change: np.ndarray
    distance: float


@dataclass(frozen=True, eq=False)
class RowExplanation:
    r"""Why a row is given its class.

    The winning plane :math:`p` is ahead of the best plane :math:`q` of another class by

    .. math:: (w_p - w_q) x + b_p - b_q = \text{base} + \sum_j (w_{pj} - w_{qj}) (x_j - r_j)

    where the base is the difference at the reference row :math:`r`; the terms of the sum are the features' shares.

    Parameters
    ----------
    label, rival : object
        The label given, and the next best one.
    plane, rival_plane : int
        The planes that speak for them, counted within their classes from 1.
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
        The smallest change that gives another class; None when there is none within the bounds.
    """

    label: Any
    plane: int
    rival: Any
    rival_plane: int
    difference: float
    base: float
    shares: np.ndarray
    values: np.ndarray
    reference: np.ndarray
    feature_names: tuple[str, ...]
    imputed: tuple[int, ...]
    scale: np.ndarray
    flip: Flip | None

    def to_text(self, top: int | None = None) -> str:
        """The explanation in words, with the `top` most important features; None: with all."""
        lines = [
            f"The row is given class {self.label!r} (plane {self.plane} of it), ahead of class {self.rival!r} "
            f"(plane {self.rival_plane}) by a score of {number(self.difference)}:"
        ]
        order = [j for j in np.argsort(-np.abs(self.shares), kind="stable") if self.shares[j] != 0]
        shown = order if top is None else order[:top]
        parts = [(_signed(self.shares[j]), self._told(j)) for j in shown]
        if len(order) > len(shown):
            rest = float(self.shares[order[len(shown) :]].sum())
            parts.append((_signed(rest), f"from {len(order) - len(shown)} other features together"))
        parts.append((_signed(self.base), "at the reference row"))
        width = max(len(share) for share, _ in parts)
        lines += [f"  {share:>{width}}  {told}" for share, told in parts]
        return "\n".join([*lines, *self._flip_lines(top)])

    def to_dict(self) -> dict[str, Any]:
        """The explanation in the types of JSON."""
        flip = None
        if self.flip is not None:
            named = zip(self.feature_names, self.flip.values, self.flip.change, strict=True)
            changes = {name: value for name, value, change in named if change != 0}
            flip = {"label": self.flip.label, "distance": self.flip.distance, "changes": changes}
            flip["values"] = self.flip.values
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

    def _repr_html_(self) -> str:
        return as_html(str(self))

    def __str__(self) -> str:
        return self.to_text(top=10)

    def _told(self, j: int) -> str:
        filled = ", filled in" if j in self.imputed else ""
        name, value, reference = quoted(self.feature_names[j]), self.values[j], self.reference[j]
        return f"{name} = {number(value)} (reference {number(reference)}{filled})"

    def _flip_lines(self, top: int | None) -> list[str]:
        if self.flip is None:
            return ["No change within the bounds gives it another class."]
        ways = np.abs(self.flip.change) / self.scale
        order = [j for j in np.argsort(-ways, kind="stable") if ways[j] > 1e-6 * ways.max()]
        if not order:
            return [f"It is class {self.flip.label!r} already."]
        shown = order if top is None else order[:top]
        far = number(self.flip.distance)
        lines = [f"The smallest change that makes it class {self.flip.label!r} (at a distance of {far}):"]
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
