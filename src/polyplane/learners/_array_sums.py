"""The sums over rows of the cutting-plane SVM as matrix products, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane._array_api import astype, at_least, host_dtype, like, namespace, to_numpy, widest_float
from polyplane.scaling import row_blocks


class ArrayRowSums:
    """The same sums as those of `RowSums`, over arrays of any library.

    Arrays with one entry per row are on the device of the rows; planes, sums and cuts are on the host. Sums are
    computed in float64, if the device supports it, even over float32 rows: cuts depend on signs, so sums that differ in
    their last digits lead to different cuts.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The rows; never copied.
    target : ndarray of shape (n_rows,)
        Sign of each row for one plane, class of each row for more.
    weight : ndarray of shape (n_rows,)
        Weight of each row.
    n_planes : int
        1 for two classes, otherwise the number of classes.
    bias_input : float
        Value of the constant feature, the last one of the planes.
    """

    def __init__(self, X: Any, target: np.ndarray, weight: np.ndarray, n_planes: int, bias_input: float) -> None:
        self.X, self.xp, self.bias_input = X, namespace(X), bias_input
        self.dtype, self.wide = host_dtype(X), widest_float(X)
        self.binary = n_planes == 1
        self.weight = like(weight, X, self.wide)
        # For two classes, the signs; for more, a mask of the column of each row's class.
        self.sign: Any = like(target, X, X.dtype)[:, None] if self.binary else None
        self.own: Any = None if self.binary else like(target[:, None] == np.arange(n_planes), X)
        self.current = self.candidate = like(np.zeros((1, n_planes)), X, X.dtype)

    def set_current(self, planes: np.ndarray) -> None:
        """Set the current planes, and the candidate."""
        self.set_candidate(planes)
        self.current = self.candidate

    def set_candidate(self, planes: np.ndarray) -> None:
        """Set the candidate: the only product with X in an iteration."""
        xp = self.xp
        outputs = self._outputs(planes)
        if self.binary:
            self.candidate = astype(1.0 - self.sign * outputs, self.X.dtype)
            return
        zero = xp.zeros_like(outputs)
        mine = xp.sum(xp.where(self.own, outputs, zero), axis=1, keepdims=True)
        self.candidate = xp.where(self.own, zero, outputs + (1.0 - mine))

    def _outputs(self, planes: np.ndarray) -> Any:
        """Scores of all rows; for a single plane in float64, at no cost in time, since memory is the bottleneck."""
        dtype = self.wide if self.binary else self.X.dtype
        coef = like(planes[:, :-1], self.X, dtype).T
        intercept = like(self.bias_input * planes[:, -1], self.X, dtype)
        parts = [astype(self.X[block, :], dtype) @ coef + intercept for block in row_blocks(self.X)]
        return astype(parts[0] if len(parts) == 1 else self.xp.concat(parts), self.X.dtype)

    def risks(self, steps: list[float]) -> np.ndarray:
        """The weighted sum of the losses at `steps` on the line from the current planes (0) to the candidate (1)."""
        xp = self.xp
        current, along = self._line()
        points = current[:, :, None] + along[:, :, None] * like(np.array(steps), self.X, self.wide)
        return np.asarray(to_numpy(self.weight @ at_least(xp.max(points, axis=1), 0.0)), dtype=float)

    def slope(self) -> float:
        """The right derivative of the risk at the current planes, in the direction of the candidate."""
        return float(self.weight @ self._first_lines()[1])

    def kinks(self, furthest: float) -> tuple[np.ndarray, np.ndarray]:
        """The sorted points up to `furthest` at which the slope of the risk jumps, and the jumps.

        All rows advance together along the upper envelopes of their lines, each to its next kink.
        """
        xp = self.xp
        lines, slopes = self._lines()
        value, slope = self._first_lines()
        found = []
        while True:
            steeper = slopes > slope[:, None]
            rise = xp.where(steeper, slopes - slope[:, None], xp.ones_like(slopes))
            crossings = xp.where(steeper, (value[:, None] - lines) / rise, xp.full_like(slopes, xp.inf))
            crossing = xp.min(crossings, axis=1)
            goes_on = crossing <= furthest
            if not xp.any(goes_on):
                break
            first = crossings == crossing[:, None]
            best = xp.max(xp.where(first & steeper, slopes, xp.full_like(slopes, -xp.inf)), axis=1)
            chosen = first & (slopes == best[:, None])
            found.append((crossing[goes_on], (self.weight * (best - slope))[goes_on]))
            next_value = xp.max(xp.where(chosen, lines, xp.full_like(lines, -xp.inf)), axis=1)
            value, slope = xp.where(goes_on, next_value, value), xp.where(goes_on, best, slope)
        if not found:
            return np.empty(0), np.empty(0)
        at, rises = (xp.concat(parts) for parts in zip(*found, strict=True))
        order = xp.argsort(at)
        return to_numpy(xp.take(at, order)).astype(float), to_numpy(xp.take(rises, order)).astype(float)

    def cut(self, mu: float) -> tuple[np.ndarray, float]:
        """Sub-gradient and offset of the cut at a point of the line from the current planes to the candidate."""
        xp = self.xp
        violations, weight = self._at(mu), self.weight[:, None]
        if self.binary:
            taken = astype(violations >= 0, self.wide) * weight
            shares = -astype(self.sign, self.wide) * taken
        else:
            rivals = xp.where(self.own, xp.full_like(violations, -xp.inf), violations)
            taken = astype(xp.max(rivals, axis=1, keepdims=True) >= 0, self.wide) * weight
            columns = like(np.arange(rivals.shape[1]), self.X)
            rival = astype(xp.argmax(rivals, axis=1)[:, None] == columns, self.wide)
            shares = (rival - astype(self.own, self.wide)) * taken
        # A single transfer to the host: the sums, the totals of the shares, and the offset.
        flat = xp.concat([xp.reshape(self._sums(shares), (-1,)), xp.sum(shares, axis=0), xp.sum(taken, axis=0)])
        *numbers, offset = to_numpy(flat).tolist()
        sums, totals = np.split(np.array(numbers), [-shares.shape[1]])
        return np.column_stack([sums.reshape(shares.shape[1], -1), self.bias_input * totals]), offset

    def _sums(self, shares: Any) -> Any:
        """Sums of the rows times `shares`, shape (n_planes, n_features)."""
        blocks = row_blocks(self.X)
        return sum(shares[block, :].T @ astype(self.X[block, :], shares.dtype) for block in blocks)

    def move(self, mu: float) -> None:
        """Move the current planes to a point of the line to the candidate."""
        self.current = astype(self._at(mu), self.X.dtype)

    def _line(self) -> tuple[Any, Any]:
        """Violations at the current planes, and their change to the candidate."""
        current = astype(self.current, self.wide)
        return current, astype(self.candidate, self.wide) - current

    def _at(self, mu: float) -> Any:
        """Violations at a point of the line."""
        current, along = self._line()
        return current + mu * along

    def _lines(self) -> tuple[Any, Any]:
        """The lines whose maximum is the loss of each row, including 0: values at the current planes, and slopes."""
        current, along = self._line()
        zero = self.xp.zeros_like(current[:, :1])
        return self.xp.concat([zero, current], axis=1), self.xp.concat([zero, along], axis=1)

    def _first_lines(self) -> tuple[Any, Any]:
        """Value and slope, just after 0, of the largest line of each row."""
        xp = self.xp
        lines, slopes = self._lines()
        value = xp.max(lines, axis=1)
        slope = xp.max(xp.where(lines == value[:, None], slopes, xp.full_like(slopes, -xp.inf)), axis=1)
        return value, slope
