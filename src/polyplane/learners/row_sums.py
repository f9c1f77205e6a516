"""The sums over rows that the cutting-plane SVM needs, by kernels and by arrays of other libraries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._array_api import ThreadPool, astype, at_least, host_dtype, like, namespace, to_numpy, widest_float
from polyplane.engine.data import as_rows, row_blocks

#: Minimum number of rows per block, the unit of work of a thread, and maximum number of blocks.
BLOCK_ROWS = 4096
MOST_BLOCKS = 16

#: The running sub-gradient is recomputed after this many cuts, to limit rounding errors.
REFRESH = 64


def targets(y: np.ndarray, positive: int | None) -> np.ndarray:
    """The sign of each row for the class `positive` against the rest; if None, the class of each row."""
    return (y if positive is None else np.where(y == positive, 1, -1)).astype(np.int32)


class RowSums:
    r"""The sums over rows that one SVM needs.

    It stores the violations of the rows at the current planes and at the candidate, the solution of the reduced
    problem; points on the line between them need no product with X. `ArrayRowSums` has the same methods for arrays of
    other libraries.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        The rows; never copied.
    target : ndarray of shape (n_rows,)
        Sign of each row for one plane, class of each row for more; see `targets`.
    weight : ndarray of shape (n_rows,)
        Weight of each row.
    n_planes : int
        1 for two classes, otherwise the number of classes.
    bias_input : float
        Value of the constant feature, the last one of the planes.
    threads : ThreadPool
        Threads that share the blocks of rows. The sums do not depend on their number.
    """

    def __init__(
        self, X: Any, target: np.ndarray, weight: np.ndarray, n_planes: int, bias_input: float, threads: ThreadPool
    ) -> None:
        self.X, self.rows, self.target, self.weight = X, as_rows(X), target, weight
        self.bias_input, self.threads = bias_input, threads
        self.dtype, n_rows = X.dtype, len(target)
        self.current = np.empty((n_rows, n_planes), dtype=X.dtype)
        self.candidate = np.empty((n_rows, n_planes), dtype=X.dtype)
        self.binary = n_planes == 1
        self.blocks = _blocks(n_rows, min(MOST_BLOCKS, n_rows // BLOCK_ROWS))
        # Each block sums its part of a cut in its own array; all arrays together are not larger than X.
        size = X.nnz if sparse.issparse(X) else X.size
        self.cut_blocks = _blocks(n_rows, min(len(self.blocks), size // (n_planes * X.shape[1])))
        self.n_cuts = 0
        self.chosen = np.full(n_rows, -1, dtype=np.int32)
        self.normal = np.zeros((n_planes, X.shape[1] + 1))

    def set_current(self, planes: np.ndarray) -> None:
        """Set the current planes, and the candidate."""
        self.set_candidate(planes)
        self.current[:] = self.candidate

    def set_candidate(self, planes: np.ndarray) -> None:
        """Set the candidate: the only product with X in an iteration."""
        if self.binary:
            self._write_violations(planes)
        else:
            self._write_many_violations(planes)

    def _write_violations(self, planes: np.ndarray) -> None:
        """The violations at a single plane in float64.

        Products with float32 rows are summed in float64, at no cost in time.
        """
        from polyplane.kernels.cutting_plane import violations_of_one

        w, intercept = np.ascontiguousarray(planes[0, :-1]), self.bias_input * planes[0, -1]
        out = self.candidate[:, 0]
        self.threads.map(
            lambda block: violations_of_one(self.rows, block.start, w, intercept, self.target[block], out[block]),
            self.blocks,
        )

    def _write_many_violations(self, planes: np.ndarray) -> None:
        """The violations at several planes."""
        from polyplane.kernels.cutting_plane import outputs_on_many, violations_of_many
        from polyplane.kernels.rows import PlaneSums

        X, out = self.X, self.candidate
        coef = np.ascontiguousarray(planes[:, :-1].T, dtype=X.dtype)
        intercept = (self.bias_input * planes[:, -1]).astype(coef.dtype)

        def write(block: slice) -> None:
            if sparse.issparse(X):
                outputs_on_many(self.rows, block.start, PlaneSums(coef, intercept, self.bias_input), out[block])
            else:
                np.matmul(X[block], coef, out=out[block])
                out[block] += intercept
            violations_of_many(out[block], self.target[block])

        self.threads.map(write, self.blocks)

    def risks(self, steps: list[float]) -> np.ndarray:
        """The weighted sum of the losses at `steps` on the line from the current planes (0) to the candidate (1)."""
        from polyplane.kernels.cutting_plane import risk_of_many, risk_of_one

        risk = risk_of_one if self.binary else risk_of_many
        parts = self.threads.map(
            lambda block: [risk(*self._ends(block), self.weight[block], mu) for mu in steps], self.blocks
        )
        total: np.ndarray = np.sum(parts, axis=0)
        return total

    def slope(self) -> float:
        """The right derivative of the risk at the current planes, in the direction of the candidate."""
        from polyplane.kernels.cutting_plane import slope_of_risk

        parts = self.threads.map(
            lambda block: slope_of_risk(self.current[block], self.candidate[block], self.weight[block]), self.blocks
        )
        return float(sum(parts))

    def kinks(self, furthest: float) -> tuple[np.ndarray, np.ndarray]:
        """The sorted points up to `furthest` at which the slope of the risk jumps, and the jumps."""
        from polyplane.kernels.cutting_plane import kinks

        nothing = np.empty(0)

        def of(block: slice) -> tuple[np.ndarray, np.ndarray]:
            lines = self.current[block], self.candidate[block], self.weight[block], furthest
            n = block.stop - block.start if self.binary else kinks(*lines, nothing, nothing)
            at, rise = np.empty(n), np.empty(n)
            n = kinks(*lines, at, rise)
            return at[:n], rise[:n]

        at, rise = (np.concatenate(parts) for parts in zip(*self.threads.map(of, self.blocks), strict=True))
        order = np.argsort(at)
        return at[order], rise[order]

    def cut(self, mu: float) -> tuple[np.ndarray, float]:
        """Sub-gradient and offset of the cut at a point of the line from the current planes to the candidate."""
        before, self.chosen = self.chosen, np.empty_like(self.chosen)
        if self.n_cuts % REFRESH == 0:
            before[:], self.normal[:] = -1, 0.0
        self.n_cuts += 1
        if self.blocks == self.cut_blocks:  # one call on the threads instead of two
            done = self.threads.map(lambda block: (self._choose(block, mu), self._changes(block, before)), self.blocks)
            offsets, parts = zip(*done, strict=True)
        else:
            offsets = tuple(self.threads.map(lambda block: self._choose(block, mu), self.blocks))
            parts = tuple(self.threads.map(lambda block: self._changes(block, before), self.cut_blocks))
        for part in parts:
            self.normal += part
        return self.normal.copy(), float(sum(offsets))

    def _choose(self, block: slice, mu: float) -> float:
        """Choose the columns of the rows of a block; return their part of the offset."""
        from polyplane.kernels.cutting_plane import choose_of_many, choose_of_one

        chosen, weight = self.chosen[block], self.weight[block]
        if self.binary:
            return choose_of_one(*self._ends(block), weight, mu, chosen)  # type: ignore[no-any-return]
        return choose_of_many(*self._ends(block), self.target[block], weight, mu, chosen)  # type: ignore[no-any-return]

    def move(self, mu: float) -> None:
        """Move the current planes to a point of the line to the candidate."""
        from polyplane.kernels.cutting_plane import move

        self.threads.map(
            lambda block: move(self.current[block].reshape(-1), self.candidate[block].reshape(-1), mu), self.blocks
        )

    def _changes(self, block: slice, before: np.ndarray) -> np.ndarray:
        """The change of the sub-gradient by the rows of a block, from the choices `before` to the current ones."""
        from polyplane.kernels.cutting_plane import add_changes

        part = np.zeros_like(self.normal)
        choices = before[block], self.chosen[block], self.target[block], self.weight[block]
        add_changes(self.rows, block.start, *choices, self.bias_input, part)
        return part

    def _ends(self, block: slice) -> tuple[np.ndarray, np.ndarray]:
        """The violations of a block at the current planes and at the candidate; one-dimensional for one plane."""
        current, candidate = self.current[block], self.candidate[block]
        return (current[:, 0], candidate[:, 0]) if self.binary else (current, candidate)


def _blocks(n_rows: int, n_blocks: int) -> list[slice]:
    edges = [0, n_rows] if n_blocks < 2 else np.linspace(0, n_rows, n_blocks + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


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
