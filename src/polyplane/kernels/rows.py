"""The operations of the training loops, for dense and sparse data.

A kernel takes its data as `rows` and its planes as `PlaneSums`. It can compute the scores of row ``i`` for all planes
(`scores`), and add a multiple of row ``i`` to one plane (`add`). Both are implemented for `DenseRows`, `SparseRows` and
`CentredRows` of either, and selected by type at compile time, so that each kernel is written once.

If a plane is a separate vector, `score` and `add_to` do the same for dense and sparse rows.
"""

from typing import Any, NamedTuple

import numpy as np

from polyplane.kernels.jit import PART, cgutils, intrinsic, ir, kernel, overload, part, summing_part, types

# Positions in sparse rows are unsigned: for signed ones, Numba checks at each use whether they count from the end.
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


class DenseRows(NamedTuple):
    """A C-ordered matrix."""

    values: np.ndarray


class SparseRows(NamedTuple):
    """The three arrays of a CSR matrix."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class CentredRows(NamedTuple):
    """Rows ``factor * (x - centre)`` of stored dense or sparse rows x, which do not change.

    `along` contains the dot product of each row with the centre, `square` that of the centre with itself.
    """

    rows: DenseRows | SparseRows
    along: np.ndarray
    square: float
    factor: float


class PlaneSums(NamedTuple):
    """Unscaled planes, stored by feature.

    `coef` has shape (n_features, n_planes), so that the weights of one feature are contiguous: each non-zero value of a
    row accesses one or two cache lines. `bias_input` is the value of the constant feature, 0 without an intercept.
    `shift`, for centred rows only, is the multiple of the centre to subtract from `coef` of each plane.
    """

    coef: np.ndarray
    intercept: np.ndarray
    bias_input: float
    shift: np.ndarray = np.zeros(0)


@intrinsic  # type: ignore[untyped-decorator]
def borrowed(typing_context: Any, value: Any) -> Any:
    """Return the same arrays, or tuples of arrays, without reference counting.

    The caller of a kernel holds its arguments until it returns. Otherwise each access to an array in a tuple, and each
    view of a row, would change a reference count in memory that threads share.
    """

    def uncounted(context: Any, builder: Any, kind: Any, stored: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            for i, member in enumerate(kind.types):
                part = uncounted(context, builder, member, builder.extract_value(stored, i))
                stored = builder.insert_value(stored, part, i)
        elif isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value=stored)
            array.meminfo = array.meminfo.type(None)
            array.parent = array.parent.type(None)
            stored = array._getvalue()
        return stored

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return uncounted(context, builder, signature.args[0], args[0])

    return value(value), generate


def scores(rows: Any, i: int, planes: PlaneSums, out: np.ndarray) -> None:
    """Write the score of row `i` for each plane into `out`. Callable from kernels only."""


def add(rows: Any, i: int, planes: PlaneSums, k: int, amount: float) -> None:
    """Add `amount` times row `i` to plane `k`. Callable from kernels only."""


def score(rows: Any, i: int, w: np.ndarray, intercept: float) -> Any:
    """Compute the score of row `i` for a plane with float64 weights `w`. Callable from kernels only.

    Sums are computed in float64, also for float32 rows: memory access is the bottleneck.
    """


def add_to(total: np.ndarray, rows: Any, i: int, amount: float) -> None:
    """Add `amount` times row `i` to a vector. Callable from kernels only."""


def _prefetch(rows: Any, i: int) -> None:
    """Load row `i` into the cache."""


#: Compiled once for all kernels that call it, with the same floating-point options, and inlined by the optimiser.
#: Inlining before type inference (``inline="always"``) would compile it again for each call.
AS_CALLER = {**PART, "forceinline": True}


def _chosen(rows: Any, dense: Any, sparse: Any, centred: Any = None) -> Any:
    """Return the implementation for a type of rows."""
    kinds: dict[Any, Any] = {DenseRows: dense, SparseRows: sparse, CentredRows: centred}
    return kinds.get(getattr(rows, "instance_class", None))


@overload(scores, jit_options=AS_CALLER)
def _scores(rows: Any, i: int, planes: PlaneSums, out: np.ndarray) -> Any:
    return _chosen(rows, _dense_scores, _sparse_scores, _centred_scores)


@overload(_prefetch, jit_options=AS_CALLER)
def _prefetched(rows: Any, i: int) -> Any:
    return _chosen(rows, _dense_prefetch, _sparse_prefetch, _centred_prefetch)


@overload(add, jit_options=AS_CALLER)
def _add(rows: Any, i: int, planes: PlaneSums, k: int, amount: float) -> Any:
    return _chosen(rows, _dense_add, _sparse_add, _centred_add)


@overload(score, jit_options=AS_CALLER)
def _score(rows: Any, i: int, w: np.ndarray, intercept: float) -> Any:
    return _chosen(rows, _dense_score, _sparse_score)


@overload(add_to, jit_options=AS_CALLER)
def _add_to(total: np.ndarray, rows: Any, i: int, amount: float) -> Any:
    return _chosen(rows, _dense_add_to, _sparse_add_to)


# Rows are visited in random order, which no processor foresees: reading one takes longer than computing its scores.

#: A row is prefetched so many visits before its own; size of a cache line, and maximum size of what is prefetched of an
#: array, in bytes.
AHEAD, LINE, PREFETCHED = 4, 64, 4096


@part
def prefetch_ahead(rows: Any, order: np.ndarray, visit: int, skip: np.ndarray) -> None:
    """Load the row that is visited soon after `visit` into the cache, unless it is skipped."""
    ahead = order[min(visit + AHEAD, order.shape[0] - 1)]
    if skip[ahead] == 0:
        _prefetch(rows, ahead)


def _dense_prefetch(rows: Any, i: int) -> Any:
    _prefetch_part(rows.values[i], 0, rows.values.shape[1])


def _sparse_prefetch(rows: Any, i: int) -> Any:
    _prefetch_part(rows.data, rows.indptr[i], rows.indptr[i + 1])
    _prefetch_part(rows.indices, rows.indptr[i], rows.indptr[i + 1])


def _centred_prefetch(rows: Any, i: int) -> Any:
    _prefetch(rows.rows, i)


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch_part(typing_context: Any, values: Any, start: Any, stop: Any) -> Any:
    """Load ``values[start:stop]`` into the cache, at most its first `PREFETCHED` bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(values)(context, builder, value=args[0])
        index, number, size = context.get_value_type(types.intp), ir.IntType(32), values.dtype.bitwidth // 8
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        load = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        most = builder.add(args[1], index(PREFETCHED // size))
        last = builder.select(builder.icmp_signed("<", args[2], most), args[2], most)
        with cgutils.for_range_slice(builder, args[1], last, index(LINE // size), index) as (p, _):
            address = builder.bitcast(builder.gep(array.data, [p]), byte)
            builder.call(load, [address, number(0), number(3), number(1)])  # to read, often, data
        return context.get_dummy_value()

    return types.void(values, types.intp, types.intp), generate


# Scores are summed over four features at a time, which needs one pass over the scores instead of four. For 48 planes
# and 75 non-zero values this takes a third of the time of the plain double loop. For a single plane, the score is a dot
# product: vectorised by reassociation for a dense row, with four scalar sums for a sparse row, because vector gathers
# are slower.


def _dense_scores(rows: Any, i: int, planes: PlaneSums, out: np.ndarray) -> Any:
    x, coef = rows.values[i], planes.coef
    n_features, n_planes = coef.shape
    if n_planes == 1:
        out[0] = planes.intercept[0] + _dot(x, coef[:, 0])
        return
    if n_planes >= NARROWEST:
        _wide_scores(x, None, 0, n_features, coef, planes.intercept, out)
        return
    for k in range(n_planes):
        out[k] = planes.intercept[k]
    whole = n_features - n_features % 4
    for j in range(0, whole, 4):
        a, b, c, d = coef[j], coef[j + 1], coef[j + 2], coef[j + 3]
        for k in range(n_planes):
            out[k] += x[j] * a[k] + x[j + 1] * b[k] + x[j + 2] * c[k] + x[j + 3] * d[k]
    for j in range(whole, n_features):
        for k in range(n_planes):
            out[k] += x[j] * coef[j, k]


def _sparse_scores(rows: Any, i: int, planes: PlaneSums, out: np.ndarray) -> Any:
    x, at, coef = rows.data, rows.indices, planes.coef
    start, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    n_planes = coef.shape[1]
    if n_planes == 1:
        out[0] = planes.intercept[0] + _sparse_dot(x, at, start, stop, coef)
        return
    if n_planes >= NARROWEST:
        _wide_scores(x, at, start, stop, coef, planes.intercept, out)
        return
    for k in range(n_planes):
        out[k] = planes.intercept[k]
    whole = stop - (stop - start) % FOUR
    for p in range(start, whole, FOUR):
        x_a, x_b, x_c, x_d = x[p], x[p + ONE], x[p + TWO], x[p + THREE]
        a, b, c, d = np.uint64(at[p]), np.uint64(at[p + ONE]), np.uint64(at[p + TWO]), np.uint64(at[p + THREE])
        for k in range(n_planes):
            out[k] += x_a * coef[a, k] + x_b * coef[b, k] + x_c * coef[c, k] + x_d * coef[d, k]
    for p in range(whole, stop):
        a = np.uint64(at[p])
        for k in range(n_planes):
            out[k] += x[p] * coef[a, k]


#: Numbers of planes whose scores are summed in registers together.
NARROWEST, WIDE, WIDEST = 16, 32, 48


@part
def _wide_scores(
    x: np.ndarray,
    at: np.ndarray | None,
    start: Any,
    stop: Any,
    coef: np.ndarray,
    intercept: np.ndarray,
    out: np.ndarray,
) -> None:
    """Compute the scores of at least `NARROWEST` planes in blocks; the last one may overlap the one before."""
    n_planes, first = coef.shape[1], 0
    while first < n_planes:
        left = n_planes - first
        if left >= WIDEST:
            _scores_of_block(x, at, start, stop, coef, intercept, first, out, WIDEST)
            first += WIDEST
        elif left > NARROWEST and n_planes >= WIDE:
            _scores_of_block(x, at, start, stop, coef, intercept, min(first, n_planes - WIDE), out, WIDE)
            first += WIDE
        else:
            _scores_of_block(x, at, start, stop, coef, intercept, min(first, n_planes - NARROWEST), out, NARROWEST)
            first += NARROWEST


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def _scores_of_block(
    typing_context: Any,
    x: Any,
    at: Any,
    start: Any,
    stop: Any,
    coef: Any,
    intercept: Any,
    first: Any,
    out: Any,
    width: Any,
) -> Any:
    """Compute the scores of `width` planes, from `first` on, for the values ``x[start:stop]`` of the features `at`.

    The sums stay in vector registers; Numba's loops over the planes load and store them for every four features. They
    are added in the same order, four features at a time.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, index = context.get_value_type(coef.dtype), context.get_value_type(types.intp)
        vector, positions = ir.VectorType(number, NARROWEST), ir.VectorType(ir.IntType(32), NARROWEST)
        values, weights, offsets, results = (
            context.make_array(kind)(context, builder, value=args[i])
            for i, kind in ((0, x), (4, coef), (5, intercept), (7, out))
        )
        n_planes = builder.extract_value(weights.shape, 1)

        def parts_at(pointer: Any, position: Any) -> list[Any]:
            pointer = builder.bitcast(builder.gep(pointer, [position]), ir.PointerType(vector))
            return [builder.gep(pointer, [index(i)]) for i in range(width.literal_value // NARROWEST)]

        def loaded(part: Any) -> Any:
            found = builder.load(part)
            found.align = coef.dtype.bitwidth // 8
            return found

        def products(p: Any) -> list[Any]:
            feature = p
            if isinstance(at, types.Array):
                places = context.make_array(at)(context, builder, value=args[1])
                feature = context.cast(builder, builder.load(builder.gep(places.data, [p])), at.dtype, types.intp)
            value = context.cast(builder, builder.load(builder.gep(values.data, [p])), x.dtype, coef.dtype)
            value = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
            value = builder.shuffle_vector(value, value, ir.Constant(positions, [0] * NARROWEST))
            parts = parts_at(weights.data, builder.add(builder.mul(feature, n_planes), args[6]))
            return [builder.fmul(value, loaded(part), flags=("contract",)) for part in parts]

        def plus(one: list[Any], other: list[Any]) -> list[Any]:
            return [builder.fadd(a, b, flags=("contract",)) for a, b in zip(one, other, strict=True)]

        totals = [cgutils.alloca_once_value(builder, loaded(part)) for part in parts_at(offsets.data, args[6])]
        whole = builder.sub(args[3], builder.and_(builder.sub(args[3], args[2]), index(3)))
        for low, high, step in ((args[2], whole, 4), (whole, args[3], 1)):
            with cgutils.for_range_slice(builder, low, high, index(step), index) as (p, _):
                found = products(p)
                for more in range(1, step):
                    found = plus(found, products(builder.add(p, index(more))))
                for total, now in zip(totals, plus([builder.load(each) for each in totals], found), strict=True):
                    builder.store(now, total)
        for total, result in zip(totals, parts_at(results.data, args[6]), strict=True):
            builder.store(builder.load(total), result).align = coef.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(x, at, types.intp, types.intp, coef, intercept, types.intp, out, width), generate


@summing_part
def _dot(x: np.ndarray, w: np.ndarray) -> Any:
    total = x[0] * w[0]
    for j in range(1, x.shape[0]):
        total += x[j] * w[j]
    return total


@part
def _sparse_dot(x: np.ndarray, at: np.ndarray, start: Any, stop: Any, w: np.ndarray) -> Any:
    whole = stop - (stop - start) % FOUR
    a = b = c = d = w.dtype.type(0)
    for p in range(start, whole, FOUR):
        a += x[p] * w[np.uint64(at[p]), 0]
        b += x[p + ONE] * w[np.uint64(at[p + ONE]), 0]
        c += x[p + TWO] * w[np.uint64(at[p + TWO]), 0]
        d += x[p + THREE] * w[np.uint64(at[p + THREE]), 0]
    for p in range(whole, stop):
        a += x[p] * w[np.uint64(at[p]), 0]
    return (a + b) + (c + d)


def _dense_add(rows: Any, i: int, planes: PlaneSums, k: int, amount: float) -> Any:
    coef = planes.coef
    for j in range(coef.shape[0]):
        coef[j, k] += amount * rows.values[i, j]
    planes.intercept[k] += amount * planes.bias_input


def _sparse_add(rows: Any, i: int, planes: PlaneSums, k: int, amount: float) -> Any:
    x, at, coef = rows.data, rows.indices, planes.coef
    for p in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        coef[np.uint64(at[p]), k] += amount * x[p]
    planes.intercept[k] += amount * planes.bias_input


def _dense_score(rows: Any, i: int, w: np.ndarray, intercept: float) -> Any:
    return intercept + _float64_dot(rows.values[i], w)


def _sparse_score(rows: Any, i: int, w: np.ndarray, intercept: float) -> Any:
    x, at = rows.data, rows.indices
    p, stop = np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])
    a, b, c, d = float(intercept), 0.0, 0.0, 0.0
    while p + FOUR <= stop:
        a += x[p] * w[np.uint64(at[p])]
        b += x[p + ONE] * w[np.uint64(at[p + ONE])]
        c += x[p + TWO] * w[np.uint64(at[p + TWO])]
        d += x[p + THREE] * w[np.uint64(at[p + THREE])]
        p += FOUR
    while p < stop:
        a += x[p] * w[np.uint64(at[p])]
        p += ONE
    return (a + b) + (c + d)


@summing_part
def _float64_dot(x: np.ndarray, w: np.ndarray) -> float:
    total = 0.0
    for j in range(w.shape[0]):
        total += x[j] * w[j]
    return total


def _dense_add_to(total: np.ndarray, rows: Any, i: int, amount: float) -> Any:
    x = rows.values[i]
    for j in range(x.shape[0]):
        total[j] += amount * x[j]


def _sparse_add_to(total: np.ndarray, rows: Any, i: int, amount: float) -> Any:
    x, at = rows.data, rows.indices
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        total[np.uint64(at[p])] += amount * x[p]


# For centred rows z = f (x - c), the normal u and offset b of a plane are stored as f u = coef - shift c and
# intercept = b - f u c, so that u z + b = coef x - shift (c x) + intercept. Adding a z to u then adds a f^2 x to coef.


def _centred_scores(rows: Any, i: int, planes: PlaneSums, out: np.ndarray) -> Any:
    scores(rows.rows, i, planes, out)
    for k in range(planes.shift.shape[0]):
        out[k] -= planes.shift[k] * rows.along[i]


def _centred_add(rows: Any, i: int, planes: PlaneSums, k: int, amount: float) -> Any:
    part = amount * rows.factor * rows.factor
    add(rows.rows, i, planes, k, part)
    planes.intercept[k] += (amount - part) * planes.bias_input - part * (rows.along[i] - rows.square)
    planes.shift[k] += part


@kernel
def widen_ranges(data: np.ndarray, indices: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Update the minimum `low` and the maximum `high` of each feature by the values of a CSR matrix."""
    for p in range(data.shape[0]):
        j, x = indices[p], data[p]
        low[j] = min(low[j], x)
        high[j] = max(high[j], x)
