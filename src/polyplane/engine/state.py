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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from polyplane._array_api import is_foreign, to_numpy
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
from polyplane.engine.snapshot import Snapshot, copy_array


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
