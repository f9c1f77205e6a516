"""States of training. A state declares its fields once; copying, undoing a step, moving to the host, averaging over
partitions and the validated file format follow from the declaration.

A state is a frozen dataclass derived from `State`. The kind of a field follows from its annotation: ``int`` is an
integer, ``float`` any number, ``bool`` a flag, ``np.dtype`` the dtype of the rows, ``bytes`` a SHA-256, another state,
a ``list`` or ``tuple`` of kinds, and ``... | None``. Arrays declare their dtype and the names of their sizes::

    @dataclass(frozen=True, eq=False)
    class PerceptronState(State):
        planes: Annotated[np.ndarray, Array("f", "planes", "features+1")]
        seed: Seed
        epoch: int = 0
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from polyplane._array_api import is_foreign, is_sparse, namespace, put, to_numpy
from polyplane.engine.data import AffineScaling

if TYPE_CHECKING:  # data of training need SciPy, which prediction from files does not
    from polyplane.engine.data import Data


class Array:
    """An array of a state.

    Parameters
    ----------
    dtype : {"f", "i", "b", "int32", "uint8"}
        "f" is float32 or float64, "i" int64, "b" bool; the others are the dtypes themselves.
    *shape : str
        The names of its sizes. Equal names are equal sizes; a size with the name of a field of the method has the value
        of that field. "n+1" is one more than "n".
    in_place : bool, default=True
        Whether steps write into the array. If False, a step replaces the array and never changes its content, so it
        need not be saved before a step.
    by_feature : bool, default=False
        Whether the first axis corresponds to the features and a step on sparse rows writes only to features that occur
        in them: if these are few, only they are saved before a step.
    mixed : bool, default=False
        Whether the arrays of partitions are averaged; otherwise they are the same in all partitions.
    scaled_by : str, default=None
        The field of the same state by which the array is scaled; the array divided by that field is averaged.
    below : str, default=None
        For indices: the name of the size that bounds them; -1 stands for none.
    """

    def __init__(
        self,
        dtype: str,
        *shape: str,
        in_place: bool = True,
        by_feature: bool = False,
        mixed: bool = False,
        scaled_by: str | None = None,
        below: str | None = None,
    ) -> None:
        self.dtype, self.shape, self.below = dtype, shape, below
        self.in_place, self.by_feature = in_place, by_feature
        self.mixed, self.scaled_by = mixed, scaled_by


class Number(NamedTuple):
    """Any number; if `mixed`, it is averaged over partitions."""

    mixed: bool = False


class Whole(NamedTuple):
    """An integer from 0 to `below` - 1, where `below` is a number or the name of a size."""

    below: int | str = 2**62
    mixed: bool = False


class Flag:
    """True or False."""


class FloatType:
    """float32 or float64, as a dtype."""


class Digest:
    """A SHA-256 digest, as bytes."""


class Prototype:
    """An array without rows, with the library, device and dtype of the training rows."""


class Maybe(NamedTuple):
    """A kind, or None."""

    kind: Any


class Tuple(NamedTuple):
    """A fixed number of kinds, as a tuple or as the NamedTuple that `build` returns."""

    kinds: tuple[Any, ...]
    build: Callable[..., Any] = lambda *parts: parts


class Many(NamedTuple):
    """A non-empty list of one kind."""

    kind: Any


class Record(NamedTuple):
    """A nested state."""

    state: Any


#: A seed; below 2**31, because scikit-learn draws 32-bit integers.
Seed = Annotated[int, Whole(2**31)]
#: A number that is averaged over partitions.
MixedNumber = Annotated[float, Number(mixed=True)]
#: An integer that is averaged over partitions.
MixedWhole = Annotated[int, Whole(mixed=True)]
#: An array without rows that identifies the library and device of the rows.
RowsLike = Annotated[Any, Prototype()]
_BY_FEATURE = Array("f", "features", in_place=False)
#: A scaling with one factor for all features, and one with a factor for each.
CommonScaling = Annotated[AffineScaling, Tuple((_BY_FEATURE, Number()), AffineScaling)]
FeatureScaling = Annotated[AffineScaling, Tuple((_BY_FEATURE, _BY_FEATURE), AffineScaling)]


class Snapshot:
    """The values of what a step may overwrite, before the step."""

    def __init__(self, written: Sequence[tuple[Array, Any]], data: Data) -> None:
        touched = _touched_features(data) if any(kind.by_feature for kind, _ in written) else None
        self._saved: list[tuple[Any, Any, Any]] = []
        for kind, array in written:
            at = touched if kind.by_feature else None
            self._saved.append((array, at, copy_array(array) if at is None else np.take(array, at, axis=0)))

    def restore(self) -> None:
        """Restore the values. Ctrl-C is raised after this is done."""
        interrupt = None
        while True:
            try:
                for array, at, before in self._saved:
                    if at is None:
                        array[...] = before
                    else:
                        put(array, at, before)
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


def _touched_features(data: Data) -> np.ndarray | None:
    """The features that occur in sparse rows, possibly repeated, if they are few; else None."""
    if not is_sparse(data.X) or data.X.nnz > data.X.shape[1]:
        return None
    if 8 * data.X.nnz < data.X.shape[1]:  # a pass over all features would take longer than saving some twice
        indices: np.ndarray = data.X.indices
        return indices
    seen = np.zeros(data.X.shape[1], dtype=bool)
    seen[data.X.indices] = True
    return np.flatnonzero(seen)


def copy_array(array: Any) -> Any:
    """A copy with the same memory layout: BLAS sums in another order over a transposed array."""
    return np.array(array, order="K") if isinstance(array, np.ndarray) else namespace(array).asarray(array, copy=True)


def workspace() -> Any:
    """A field for temporary data of a run, which can be recomputed: never copied, saved or written to files."""
    return field(default=None, repr=False, metadata={"workspace": True})


@cache
def kinds_of(state: Any) -> dict[str, Any]:
    """The kind of each field of a type of state, without workspaces."""
    hints = typing.get_type_hints(state, include_extras=True)
    declared = [part.name for part in fields(state) if not part.metadata.get("workspace")]
    return {name: _kind(hints[name], f"{state.__name__}.{name}") for name in declared}


@dataclass(frozen=True, eq=False)
class State:
    """All that is needed to continue training. Subclasses are frozen dataclasses; see the module."""

    #: Names of sizes that are specific to one state, not common to all states of its type in a list.
    own_sizes: ClassVar[tuple[str, ...]] = ()

    # A step replaces scalars (`dataclasses.replace`) and may write into arrays: `save` and `restore` undo that.

    def check(self, sizes: dict[str, int]) -> bool:
        """Whether the fields and the sizes of the model are consistent; called for states from a file."""
        return True

    def replace(self, **changes: Any) -> Self:
        """The state with other values of some fields: `dataclasses.replace` in a tenth of its time."""
        changed = object.__new__(type(self))
        changed.__dict__.update(self.__dict__, **changes)
        return changed

    def copy(self) -> Self:
        """A copy of the state; arrays into which steps never write are shared."""
        if not _written_kinds(type(self)):  # type: ignore[arg-type]
            return self
        return self._mapped(lambda kind, value: copy_array(value) if _is_written(kind) else value)

    def to_host(self) -> Self:
        """Return the state with NumPy arrays."""
        return self._mapped(lambda kind, value: to_numpy(value) if is_foreign(value) else value)

    def trimmed(self, n_features: int) -> Self:
        """The state with arrays that end with the last feature. Nothing is copied."""

        def trim(kind: Any, value: Any) -> Any:
            if not isinstance(kind, Array) or "features" not in kind.shape:
                return value
            return value[tuple(slice(n_features if size == "features" else None) for size in kind.shape)]

        return self._mapped(trim)

    def save(self, data: Data) -> Snapshot:
        """Save what a step on these rows may overwrite."""
        written = {id(array): (kind, array) for kind, array in self._arrays(_written_kinds) if kind.in_place}
        return Snapshot(list(written.values()), data)

    def for_rows(self, data: Data) -> Self:
        """The state for these rows, without the memory of other rows."""
        memory = getattr(self, "rows", None)
        if memory is not None and memory.is_of(data):
            return self.without_workspaces()
        return self.without_rows()

    def without_workspaces(self) -> Self:
        """The state without its workspaces."""
        return self.replace(**_empty_workspaces(type(self)))  # type: ignore[arg-type]

    def without_rows(self) -> Self:
        """The state without the memory of its rows."""
        forgotten: dict[str, Any] = {"rows": None} if hasattr(self, "rows") else {}
        return self.replace(**forgotten).without_workspaces()

    def with_rows_of(self, data: Data) -> Self:
        """The state with the fingerprint of these rows, by which they are recognised."""
        memory = getattr(self, "rows", None)
        if memory is None:
            return self.without_workspaces()
        known: dict[str, Any] = {"rows": memory.replace(fingerprint=data.fingerprint)}
        return self.replace(**known)._mapped(lambda kind, value: value)  # the memory may have workspaces too

    def with_memory_of(self, other: Any) -> Self:
        """The state with another one's memory of the rows."""
        known: dict[str, Any] = {"rows": other.rows} if hasattr(self, "rows") else {}
        return self.replace(**known)

    def with_seed_of(self, other: Any, *numbers: int) -> Self:
        """The state with another one's seed, or with a seed that follows from it and some numbers."""
        seed: dict[str, int] = {"seed": other.seed}
        if numbers:
            seed = {"seed": int(np.random.default_rng([other.seed, *numbers]).integers(2**31))}
        return self.replace(**seed)

    def _mapped(self, function: Callable[[Any, Any], Any]) -> Self:
        """The state with `function(kind, value)` of each field that is not a state, and without workspaces."""
        changed: dict[int, Any] = {}  # an array that occurs twice stays one array

        def once(kind: Any, value: Any) -> Any:
            if id(value) not in changed:
                changed[id(value)] = value, function(kind, value)
            return changed[id(value)][1]

        return _map_state(self, once)

    def _arrays(self, of: Callable[[Any], dict[str, Any]] = kinds_of) -> Iterator[tuple[Array, Any]]:
        """The arrays in the fields that `of` names; by default, in all fields."""
        for name, kind in of(type(self)).items():
            yield from _arrays_in(kind, getattr(self, name), of)


@dataclass(frozen=True, eq=False)
class RowMemory(State):
    """What a state stores about each row. It is valid only for the rows that it belongs to.

    A state keeps it in the field `rows`; subclasses add the fields.
    """

    fingerprint: bytes | None = field(default=None, kw_only=True)

    def is_of(self, data: Data) -> bool:
        """Whether these are the rows that it belongs to."""
        lengths = {array.shape[kind.shape.index("rows")] for kind, array in self._arrays() if "rows" in kind.shape}
        return self.fingerprint is not None and lengths <= {len(data.y)} and self.fingerprint == data.fingerprint


_PLAIN = {int: Whole(), float: Number(), bool: Flag(), bytes: Digest(), np.dtype: FloatType()}


def _kind(hint: Any, name: str) -> Any:
    """The kind that an annotation declares."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return arguments[1]
    if origin in (typing.Union, types.UnionType):
        inner = [argument for argument in arguments if argument is not type(None)]
        if len(inner) == 1 < len(arguments):
            return Maybe(_kind(inner[0], name))
    if origin is tuple:
        return Tuple(tuple(_kind(argument, name) for argument in arguments))
    if origin is list:
        return Many(_kind(arguments[0], name))
    if isinstance(hint, type) and issubclass(hint, State):
        return Record(hint)
    plain = _PLAIN.get(origin or hint)
    if plain is None:
        raise TypeError(f"{name}: {hint} is not supported; annotate arrays as Annotated[np.ndarray, Array(...)].")
    return plain


def _map_state(state: Any, function: Callable[[Any, Any], Any]) -> Any:
    changed = {name: _map(kind, getattr(state, name), function) for name, kind in kinds_of(state.__class__).items()}
    return state.replace(**changed, **_empty_workspaces(state.__class__))


def _map(kind: Any, value: Any, function: Callable[[Any, Any], Any]) -> Any:
    match kind:
        case Maybe():
            return None if value is None else _map(kind.kind, value, function)
        case Tuple():
            parts = zip(kind.kinds, value, strict=True)
            return kind.build(*(_map(inner, part, function) for inner, part in parts))
        case Many():
            return [_map(kind.kind, part, function) for part in value]
        case Record():
            return _map_state(value, function)
        case Array() | Prototype():
            return function(kind, value)
    return value


def _arrays_in(kind: Any, value: Any, of: Callable[[Any], dict[str, Any]]) -> Iterator[tuple[Array, Any]]:
    match kind:
        case Maybe() if value is not None:
            yield from _arrays_in(kind.kind, value, of)
        case Tuple():
            for inner, part in zip(kind.kinds, value, strict=True):
                yield from _arrays_in(inner, part, of)
        case Many():
            for part in value:
                yield from _arrays_in(kind.kind, part, of)
        case Record():
            yield from value._arrays(of)
        case Array():
            yield kind, value


@cache
def _empty_workspaces(state: Any) -> dict[str, None]:
    """The workspaces of a type of state, without contents."""
    return {part.name: None for part in fields(state) if part.metadata.get("workspace")}


def _is_written(kind: Any) -> bool:
    return isinstance(kind, Array) and kind.in_place


@cache
def _written_kinds(state: Any) -> dict[str, Any]:
    """The kinds of the fields of a type of state that hold arrays into which steps write."""
    return {name: kind for name, kind in kinds_of(state).items() if _holds_written(kind)}


def _holds_written(kind: Any) -> bool:
    match kind:
        case Maybe() | Many():
            return _holds_written(kind.kind)
        case Tuple():
            return any(map(_holds_written, kind.kinds))
        case Record():
            return bool(_written_kinds(kind.state))
    return _is_written(kind)


def mix(states: Sequence[Any], share: np.ndarray) -> Any:
    """The average, weighted by `share`, of the fields declared as mixed; the states come from a common one."""
    first = states[0]
    kinds = kinds_of(first.__class__)
    mixed = {
        name: _mix(kind, [getattr(state, name) for state in states], share, states) for name, kind in kinds.items()
    }
    for name, kind in kinds.items():
        if isinstance(kind, Array) and kind.scaled_by is not None:
            mixed[name] = mixed[name] * mixed[name].dtype.type(mixed[kind.scaled_by])
    return first.replace(**mixed).without_workspaces()


def _mix(kind: Any, values: Sequence[Any], share: np.ndarray, states: Sequence[Any]) -> Any:
    if isinstance(kind, Maybe):
        return None if any(value is None for value in values) else _mix(kind.kind, values, share, states)
    if isinstance(kind, Tuple):
        parts = zip(kind.kinds, zip(*values, strict=True), strict=True)
        return kind.build(*(_mix(inner, part, share, states) for inner, part in parts))
    if isinstance(kind, Many):
        return [_mix(kind.kind, part, share, states) for part in zip(*values, strict=True)]
    if isinstance(kind, Record):
        return mix(values, share)
    if not getattr(kind, "mixed", False):
        return values[0]
    if isinstance(kind, Array) and kind.scaled_by is not None:
        values = [value / getattr(state, kind.scaled_by) for value, state in zip(values, states, strict=True)]
    return _average(values, share)


def _average(values: Sequence[Any], share: np.ndarray) -> Any:
    """The average of arrays or numbers, in float64; integers are rounded."""
    first = values[0]
    total = sum(s * np.asarray(value, dtype=np.float64) for s, value in zip(share, values, strict=True))
    if isinstance(first, np.ndarray):
        return (np.rint(total) if first.dtype.kind == "i" else total).astype(first.dtype)
    return round(float(total)) if isinstance(first, int) else float(total)
