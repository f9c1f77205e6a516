"""The two halves of a cutting-plane method: sums over rows, and the cuts that they give."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._array_api import host_dtype, to_numpy
from polyplane._threads import Team
from polyplane._validation import Data

#: Rows are taken in blocks of at least this many: the unit of work of a thread, whatever the number of threads.
BLOCK_ROWS = 4096
MOST_BLOCKS = 16

#: After this many cuts the running sub-gradient is summed afresh, lest rounding errors gather.
REFRESH = 64

#: After this many solutions the factor of the reduced problem is made afresh, for the same reason.
REFACTOR = 16

#: A cut is dropped after this many solutions in a row that make no use of it.
IDLE = 25


@cache
def compiled_kernels() -> bool:
    """Whether Numba is there to compile the sums over rows; without it they are matrix products."""
    return find_spec("numba") is not None


class RowSums:
    r"""The rows of one SVM, seen only through sums over them.

    It stands at one set of planes (`here`) and looks at another (`there`); any point between the two costs no product
    with X. `ArrayRowSums`, over the arrays of other libraries, has the same methods and the same results.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        The rows; never copied.
    target : ndarray of shape (n_rows,)
        Sign of each row for one plane, class of each row for more.
    weight : ndarray of shape (n_rows,)
        Weight of each row.
    n_planes : int
        1 for two classes, otherwise the number of classes.
    bias_input : float
        Value of the constant feature, the last one of the planes.
    team : Team
        Threads that share the blocks of rows. The sums do not depend on their number.
    """

    def __init__(
        self, X: Any, target: np.ndarray, weight: np.ndarray, n_planes: int, bias_input: float, team: Team
    ) -> None:
        self.X, self.target, self.weight = X, target, weight
        self.bias_input, self.team = bias_input, team
        n_rows = len(target)
        self.here = np.empty((n_rows, n_planes), dtype=X.dtype)
        self.there = np.empty((n_rows, n_planes), dtype=X.dtype)
        self.blocks = _blocks(n_rows, min(MOST_BLOCKS, n_rows // BLOCK_ROWS))
        # Each block sums its part of a cut in an array of its own: not more of them than the rows have numbers.
        size = X.nnz if sparse.issparse(X) else X.size
        self.cut_blocks = _blocks(n_rows, min(len(self.blocks), size // (n_planes * X.shape[1])))
        self.n_cuts = 0
        self.chosen = np.full(n_rows, -1, dtype=np.int32)
        self.normal = np.zeros((n_planes, X.shape[1] + 1))

    def stand(self, planes: np.ndarray) -> None:
        """Be at `planes`."""
        self.look(planes)
        self.here[:] = self.there

    def look(self, planes: np.ndarray) -> None:
        """Look at `planes`: the one product with X of an iteration."""
        from polyplane.kernels.cutting_plane import violations

        outputs(self.X, planes, self.bias_input, self.there, self.blocks, self.team)
        self.team.map(lambda block: violations(self.there[block], self.target[block]), self.blocks)

    def risks(self, steps: list[float]) -> np.ndarray:
        """The weighted sum of the losses at each of `steps` of the way from here to there."""
        from polyplane.kernels.cutting_plane import risk

        parts = self.team.map(lambda block: [risk(self._segment(block), mu) for mu in steps], self.blocks)
        total: np.ndarray = np.sum(parts, axis=0)
        return total

    def slope(self) -> float:
        """The right derivative of the risk on the way from here to there."""
        from polyplane.kernels.cutting_plane import slope_of_risk

        return float(sum(self.team.map(lambda block: slope_of_risk(self._segment(block)), self.blocks)))

    def kinks(self, furthest: float) -> tuple[np.ndarray, np.ndarray]:
        """Where up to `furthest` the slope of the risk jumps, sorted, and by how much."""
        from polyplane.kernels.cutting_plane import kinks

        nothing = np.empty(0)

        def of(block: slice) -> tuple[np.ndarray, np.ndarray]:
            segment = self._segment(block)
            binary = segment.here.shape[1] == 1
            n = len(segment.weight) if binary else kinks(segment, furthest, nothing, nothing)
            at, rise = np.empty(n), np.empty(n)
            n = kinks(segment, furthest, at, rise)
            return at[:n], rise[:n]

        at, rise = (np.concatenate(parts) for parts in zip(*self.team.map(of, self.blocks), strict=True))
        order = np.argsort(at)
        return at[order], rise[order]

    def cut(self, mu: float) -> tuple[np.ndarray, float]:
        """Sub-gradient and offset of the cut at a point of the way from here to there."""
        from polyplane.kernels.cutting_plane import choose

        before, self.chosen = self.chosen, np.empty_like(self.chosen)
        if self.n_cuts % REFRESH == 0:
            before[:], self.normal[:] = -1, 0.0
        self.n_cuts += 1
        offset = sum(self.team.map(lambda block: choose(self._segment(block), mu, self.chosen[block]), self.blocks))
        self._add_changes(before)
        return self.normal.copy(), float(offset)

    def move(self, mu: float) -> None:
        """Go to a point of the way from here to there."""
        from polyplane.kernels.cutting_plane import move

        self.team.map(lambda block: move(self._segment(block), mu), self.blocks)

    def _add_changes(self, before: np.ndarray) -> None:
        """Bring the sub-gradient from the choices `before` to the present ones."""
        from polyplane.kernels.cutting_plane import changes

        def of(block: slice) -> np.ndarray:
            n_rows = block.stop - block.start
            row, coefficient = np.empty((2 * n_rows, 2), dtype=np.int32), np.empty(2 * n_rows)
            n = changes(before[block], self.chosen[block], self._segment(block), row, coefficient)
            part = np.zeros_like(self.normal)
            weighted_sum(self.X, block.start, row[:n], coefficient[:n], self.bias_input, part)
            return part

        for part in self.team.map(of, self.cut_blocks):
            self.normal += part

    def _segment(self, block: slice) -> Any:
        from polyplane.kernels.cutting_plane import Segment

        return Segment(self.here[block], self.there[block], self.target[block], self.weight[block])


def outputs(X: Any, planes: np.ndarray, bias_input: float, out: np.ndarray, blocks: list[slice], team: Team) -> None:
    """Write the scores of all rows into `out`.

    A single plane keeps its float64: products with float32 rows are then summed in float64, at no cost in time.
    """
    from polyplane.kernels.cutting_plane import dense_outputs, many_outputs, sparse_outputs
    from polyplane.kernels.rows import PlaneSums, as_rows

    rows = as_rows(X)
    coef = np.ascontiguousarray(planes[:, :-1].T, dtype=np.float64 if len(planes) == 1 else X.dtype)
    intercept = (bias_input * planes[:, -1]).astype(coef.dtype)

    def one_plane(block: slice) -> None:
        score: Any = sparse_outputs if sparse.issparse(X) else dense_outputs
        score(*rows, block.start, coef[:, 0], intercept[0], out[block])

    def many_planes(block: slice) -> None:
        if sparse.issparse(X):
            many_outputs(rows, block.start, PlaneSums(coef, intercept, bias_input), out[block])
        else:
            np.matmul(X[block], coef, out=out[block])
            out[block] += intercept

    team.map(one_plane if len(planes) == 1 else many_planes, blocks)


def weighted_sum(
    X: Any, start: int, row: np.ndarray, coefficient: np.ndarray, bias_input: float, sums: np.ndarray
) -> None:
    """Add multiples of rows to the planes in `sums`: the transposed product of X and sparse coefficients."""
    from polyplane.kernels.cutting_plane import dense_add, sparse_add
    from polyplane.kernels.rows import as_rows

    add: Any = sparse_add if sparse.issparse(X) else dense_add
    add(*as_rows(X), start, row, coefficient, bias_input, sums)


def _blocks(n_rows: int, n_blocks: int) -> list[slice]:
    edges = np.linspace(0, n_rows, max(n_blocks, 1) + 1).astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def fingerprint(data: Data, terms: tuple[Any, ...]) -> bytes:
    """Tells problems apart: cuts are lower bounds for the very rows, labels and weights that they were made of."""
    X = data.X
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (to_numpy(X),)
    digest = hashlib.sha256(repr((tuple(X.shape), host_dtype(X), terms)).encode())
    for part in (*parts, data.y, data.weight):
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()


class Bundle:
    r"""Cuts, and the planes that are best for them.

    Each cut :math:`a_j w + b_j` is a lower bound of the risk :math:`R(w)`; the first is 0. The planes solve

    .. math:: \min_w \frac{1}{2} |w|^2 + C \max_j (a_j w + b_j)
        = \max_{x \ge 0, \sum_j x_j = 1} C \, b x - \frac{1}{2} \Big| C \sum_j x_j a_j \Big|^2

    and the value is a lower bound of the SVM's objective for any :math:`x` of the simplex, optimal or not. The cuts do
    not depend on C, so a bundle serves a path of C's.

    Parameters
    ----------
    shape : tuple of int
        Shape of the planes.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.made = self.solved = 0
        self.shift = 1.0
        self.n_cuts = 1
        self.support = np.zeros(8, dtype=np.intp)
        self.size = 1
        self._allocate(8)
        self.x[0] = 1.0

    def add(self, normal: np.ndarray, offset: float) -> None:
        """Add a cut."""
        n = self.n_cuts
        if n == len(self.offsets):
            self._allocate(n + n // 2)
        self.normals[n], self.offsets[n] = normal.reshape(-1), offset
        self.gram[n, : n + 1] = self.gram[: n + 1, n] = self.normals[: n + 1] @ self.normals[n]
        self.x[n], self.idle[n] = 0.0, 0
        self.n_cuts += 1
        self.made += 1

    def solve(self, C: float, tol: float) -> tuple[np.ndarray, float]:
        """The best planes and the lower bound, within `tol` of its largest value; forgets cuts long out of use."""
        from polyplane.kernels.simplex_qp import Iterate, Quadratic, factorise, minimise

        n = self.n_cuts
        gram, offsets, x = self.gram[:n, :n], self.offsets[:n], self.x[:n]
        iterate = Iterate(x, self.support, self.factor, self.work)
        if self.solved % REFACTOR == 0:
            self.shift = float(gram.diagonal().max()) or 1.0
            factorise(Quadratic(gram, offsets, self.shift), iterate, self.size)
        self.solved += 1
        problem = Quadratic(gram, offsets / C, self.shift)
        self.size = minimise(problem, iterate, self.size, tol / C**2, 10 * n + 100)
        used = self.support[: self.size]
        x[used] /= x[used].sum()
        planes = -C * (x @ self.normals[:n])
        bound = C * float(offsets[used] @ x[used]) - 0.5 * float(planes @ planes)
        self._forget(used)
        return planes.reshape(self.shape), bound

    def _forget(self, used: np.ndarray) -> None:
        """Drop cuts that the last solutions made no use of: the solution, and so the bound, stays what it is."""
        n = self.n_cuts
        self.idle[:n] += 1
        self.idle[used] = self.idle[0] = 0
        if self.idle[:n].max() <= IDLE:
            return
        keep = np.flatnonzero(self.idle[:n] <= IDLE)
        self.support[: self.size] = np.searchsorted(keep, used)
        m = self.n_cuts = len(keep)
        for new, old in enumerate(keep):
            self.normals[new] = self.normals[old]
        self.gram[:m, :m] = self.gram[np.ix_(keep, keep)]
        for array in (self.offsets, self.x, self.idle):
            array[:m] = array[keep]

    def _allocate(self, capacity: int) -> None:
        """Make room; what is not yet written costs no memory."""
        old, n = dict(vars(self)), self.n_cuts
        self.normals = np.zeros((capacity, self.shape[0] * self.shape[1]))
        self.gram = np.zeros((capacity, capacity))
        self.offsets, self.x = np.zeros(capacity), np.zeros(capacity)
        self.idle = np.zeros(capacity, dtype=np.intp)
        for name in ("normals", "offsets", "x", "idle"):
            if name in old:
                getattr(self, name)[:n] = old[name][:n]
        if "gram" in old:
            self.gram[:n, :n] = old["gram"][:n, :n]
        self.support = np.concatenate([self.support[: self.size], np.zeros(capacity - self.size, dtype=np.intp)])
        self.factor, self.work = np.zeros((capacity, capacity)), np.zeros((3, capacity))
        if "factor" in old:
            self.factor[: self.size, : self.size] = old["factor"][: self.size, : self.size]
