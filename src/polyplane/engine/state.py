"""States of training. A state declares its fields once; copying, rolling back a step, copying to host memory, averaging
over partitions, and the file format with its validation are derived from the declaration.

A state is a frozen dataclass derived from `State`. The annotation of a field determines its kind: ``int`` is an
integer, ``float`` any number, ``bool`` a flag, ``np.dtype`` the dtype of the rows, ``bytes`` a SHA-256 digest, a
subclass of `State` a nested state; ``list``, ``tuple`` and ``... | None`` of kinds are allowed. Arrays declare their
dtype and the names of their sizes::

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
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from polyplane._array_api import is_foreign, is_sparse, namespace, put, to_numpy
from polyplane.engine.data import Data
from polyplane.engine.kinds import (
    Array,
    Digest,
    Flag,
    FloatType,
    Many,
    Maybe,
    Number,
    Prototype,
    Record,
    Tuple,
    Whole,
)


def workspace() -> Any:
    """Declare a field for temporary data about the rows of a run, which is never copied, saved or written to files."""
    return field(default=None, repr=False, metadata={"workspace": True})


_KINDS: dict[Any, dict[str, Any]] = {}


def kinds_of(state: Any) -> dict[str, Any]:
    """Return the kind of each field of a state class, without workspaces."""
    if state not in _KINDS:
        hints = typing.get_type_hints(state, include_extras=True)
        declared = [part for part in fields(state) if not part.metadata.get("workspace")]
        _KINDS[state] = {part.name: _kind(hints[part.name], f"{state.__name__}.{part.name}") for part in declared}
    return _KINDS[state]


@dataclass(frozen=True, eq=False)
class State:
    """The state of training, from which it can continue. Subclasses are frozen dataclasses; see the module."""

    #: Names of sizes that are specific to one state, not common to all states of its type in a list.
    own_sizes: ClassVar[tuple[str, ...]] = ()

    # A step replaces scalars (`dataclasses.replace`) and may write into arrays: `save` and `restore` undo that.

    def check(self, sizes: dict[str, int]) -> bool:
        """Whether the fields are consistent with each other and with the model; called for states from a file."""
        return True

    def copy(self) -> Self:
        """Copy the state; arrays that steps never write into are shared."""
        if not _written_kinds(type(self)):
            return self
        return self._mapped(lambda kind, value: _copy_of(value) if _is_written(kind) else value)

    def to_host(self) -> Self:
        """Return the state with NumPy arrays."""
        return self._mapped(lambda kind, value: to_numpy(value) if is_foreign(value) else value)

    def trimmed(self, n_features: int) -> Self:
        """Return the state without spare capacity: arrays end at the last feature. Nothing is copied."""

        def trim(kind: Any, value: Any) -> Any:
            if not isinstance(kind, Array) or "features" not in kind.shape:
                return value
            return value[tuple(slice(n_features if size == "features" else None) for size in kind.shape)]

        return self._mapped(trim)

    def save(self, data: Data) -> Snapshot:
        """Save the data that a step on these rows may overwrite."""
        written = {id(array): (kind, array) for kind, array in self._arrays(_written_kinds) if kind.in_place}
        return Snapshot(list(written.values()), data)

    def for_rows(self, data: Data) -> Self:
        """Return the state for these rows: the memory of other rows is discarded."""
        memory = getattr(self, "rows", None)
        if memory is not None and memory.is_of(data):
            return replace(self, **_empty_workspaces(self))
        return self.without_rows()

    def without_rows(self) -> Self:
        """Return the state without the memory of its rows."""
        forgotten: dict[str, Any] = {"rows": None} if hasattr(self, "rows") else {}
        return replace(self, **_empty_workspaces(self), **forgotten)

    def with_rows_of(self, data: Data) -> Self:
        """Return the state with the fingerprint of these rows in its memory."""
        memory = getattr(self, "rows", None)
        if memory is None:
            return replace(self, **_empty_workspaces(self))
        known: dict[str, Any] = {"rows": replace(memory, fingerprint=data.fingerprint)}
        return replace(self, **known)._mapped(lambda kind, value: value)  # the row memory may have workspaces too

    def _mapped(self, function: Callable[[Any, Any], Any]) -> Self:
        """Apply `function(kind, value)` to each field that is not a state; workspaces are omitted."""
        changed: dict[int, Any] = {}  # an array that occurs twice remains one array

        def once(kind: Any, value: Any) -> Any:
            if id(value) not in changed:
                changed[id(value)] = value, function(kind, value)
            return changed[id(value)][1]

        return _map_state(self, once)

    def _arrays(self, of: Callable[[Any], dict[str, Any]] = kinds_of) -> Iterator[tuple[Array, Any]]:
        """Yield the arrays in the fields that `of` returns, by default in all fields."""
        for name, kind in of(type(self)).items():
            yield from _arrays_in(kind, getattr(self, name), of)


@dataclass(frozen=True, eq=False)
class RowMemory(State):
    """The memory of a state about each row, valid only for the rows that it belongs to.

    A state has it in a field named `rows`; subclasses add their own fields.
    """

    fingerprint: bytes | None = field(default=None, kw_only=True)

    def is_of(self, data: Data) -> bool:
        """Whether the memory belongs to these rows."""
        lengths = {array.shape[kind.shape.index("rows")] for kind, array in self._arrays() if "rows" in kind.shape}
        return self.fingerprint is not None and lengths <= {len(data.y)} and self.fingerprint == data.fingerprint


class Snapshot:
    """A copy of the data that a step may overwrite."""

    def __init__(self, written: Sequence[tuple[Array, Any]], data: Data) -> None:
        touched = _touched_features(data) if any(kind.by_feature for kind, _ in written) else None
        self._saved: list[tuple[Any, Any, Any]] = []
        for kind, array in written:
            at = touched if kind.by_feature else None
            self._saved.append((array, at, _copy_of(array) if at is None else np.take(array, at, axis=0)))

    def restore(self) -> None:
        """Restore the data; Ctrl-C is delayed until this is done."""
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
    """Return the features that occur in sparse rows, possibly with duplicates, if they are few; otherwise None."""
    if not is_sparse(data.X) or data.X.nnz > data.X.shape[1]:
        return None
    if 8 * data.X.nnz < data.X.shape[1]:  # finding the distinct features would take longer than saving some twice
        indices: np.ndarray = data.X.indices
        return indices
    seen = np.zeros(data.X.shape[1], dtype=bool)
    seen[data.X.indices] = True
    return np.flatnonzero(seen)


def mix(states: Sequence[Any], share: np.ndarray) -> Any:
    """Average states with a common origin: the fields declared as mixed, weighted by `share`."""
    first = states[0]
    mixed = {
        name: _mix(kind, [getattr(state, name) for state in states], share, states)
        for name, kind in kinds_of(type(first)).items()
    }
    for name, kind in kinds_of(type(first)).items():
        if isinstance(kind, Array) and kind.scaled_by is not None:
            mixed[name] = mixed[name] * mixed[name].dtype.type(mixed[kind.scaled_by])
    return replace(first, **mixed, **_empty_workspaces(first))


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
    """Average arrays or numbers in float64; integers are rounded."""
    first = values[0]
    total = sum(s * np.asarray(value, dtype=np.float64) for s, value in zip(share, values, strict=True))
    if isinstance(first, np.ndarray):
        return (np.rint(total) if first.dtype.kind == "i" else total).astype(first.dtype)
    return round(float(total)) if isinstance(first, int) else float(total)


_PLAIN = {int: Whole(), float: Number(), bool: Flag(), bytes: Digest(), np.dtype: FloatType()}


def _kind(hint: Any, name: str) -> Any:
    """Return the kind of an annotation."""
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
        raise TypeError(f"{name}: unsupported annotation {hint}; annotate arrays as Annotated[np.ndarray, Array(...)].")
    return plain


def _map_state(state: Any, function: Callable[[Any, Any], Any]) -> Any:
    changed = {name: _map(kind, getattr(state, name), function) for name, kind in kinds_of(type(state)).items()}
    return replace(state, **changed, **_empty_workspaces(state))


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


def _empty_workspaces(state: Any) -> dict[str, None]:
    return {part.name: None for part in fields(state) if part.metadata.get("workspace")}


def _is_written(kind: Any) -> bool:
    return isinstance(kind, Array) and kind.in_place


_WRITTEN: dict[Any, dict[str, Any]] = {}


def _written_kinds(state: Any) -> dict[str, Any]:
    """Return the kinds of the fields of a state class with arrays into which steps write."""
    if state not in _WRITTEN:
        _WRITTEN[state] = {name: kind for name, kind in kinds_of(state).items() if _holds_written(kind)}
    return _WRITTEN[state]


def _holds_written(kind: Any) -> bool:
    match kind:
        case Maybe() | Many():
            return _holds_written(kind.kind)
        case Tuple():
            return any(map(_holds_written, kind.kinds))
        case Record():
            return bool(_written_kinds(kind.state))
    return _is_written(kind)


def _copy_of(array: Any) -> Any:
    """Copy an array with its memory layout: BLAS sums a transposed array in a different order."""
    return np.array(array, order="K") if isinstance(array, np.ndarray) else namespace(array).asarray(array, copy=True)
