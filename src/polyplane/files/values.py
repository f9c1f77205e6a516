"""Conversion of values to JSON and arrays, and back: bitwise identical, of the same type, validated by their kinds.

The kinds are those that training states declare, and `Value` for parameters and metadata. JSON values are written
unchanged, all others as objects that name their type: ``{"array": name}``, ``{"float": "inf"}``. A file contains only
data, but kernels that continue training rely on shapes and indices: all values are validated against their kinds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyplane.engine.state import (
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
    kinds_of,
)
from polyplane.files.container import NAMES, DamagedError
from polyplane.scaling import AffineScaling

#: Sizes by name: known sizes, and those that the first array with a name determines for the others.
Sizes = dict[str, int]
FLOATS = ("float32", "float64")
#: One divided by the square root of the smallest float64, with a reserve for rounding.
LARGEST_FACTOR = 1e162
DTYPES: dict[str, tuple[str, ...]] = {"f": FLOATS, "i": ("int8", "int16", "int32", "int64"), "b": ("bool",)}


class Value:
    """The kind of a parameter: None, a bool, number, string, array or RandomState, or a tuple or dict of these."""


class Packer:
    """Collects the arrays of packed values, by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._nodes: dict[int, tuple[np.ndarray, dict[str, Any]]] = {}

    def array(self, array: np.ndarray, name: str) -> dict[str, Any]:
        """Add an array; the same array is stored once. Its memory layout is kept, because it matters to BLAS."""
        if array.dtype.newbyteorder("<") not in NAMES:
            raise ValueError(f"{name} is an array of {array.dtype}, which model files do not support.")
        if id(array) not in self._nodes:
            by_column = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays[name] = array.T if by_column else array
            self._nodes[id(array)] = array, {"array": name, **({"order": "F"} if by_column else {})}
        return self._nodes[id(array)][1]


class Unpacker:
    """Returns the arrays of a file, and records which ones were used."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.used: set[str] = set()
        self._own: set[str] = set()

    def array(self, node: Any, name: str, own: bool = False) -> np.ndarray:
        """Return the array of a node; `own`: no other node may use it, because training writes into it."""
        match node:
            case {"array": str(source), **rest} if source in self.arrays and rest in ({}, {"order": "F"}):
                if source in self._own or (own and source in self.used):
                    raise DamagedError(f"has an invalid value for {name}: its array is used twice")
                self.used.add(source)
                self._own |= {source} if own else set()
                return self.arrays[source].T if rest else self.arrays[source]
        raise DamagedError(f"has no array for {name}")

    def skip(self, node: Any) -> None:
        """Record the arrays of parts that are not read, such as the training state if the model is used to predict."""
        match node:
            case {"array": str(source)}:
                self.used.add(source)
                if source not in self.arrays:
                    raise DamagedError(f"has no array {source[:40]!r}")
            case dict():
                for part in node.values():
                    self.skip(part)
            case list():
                for part in node:
                    self.skip(part)


def pack(kind: Any, value: Any, name: str, packer: Packer) -> Any:
    """Return the JSON form of a value; the packer collects the arrays."""
    match kind:
        case Maybe():
            return None if value is None else pack(kind.kind, value, name, packer)
        case Tuple():
            parts = enumerate(zip(kind.kinds, value, strict=True))
            return [pack(inner, part, f"{name}.{i}", packer) for i, (inner, part) in parts]
        case Many():
            return [pack(kind.kind, part, f"{name}.{i}", packer) for i, part in enumerate(value)]
        case Record():
            kinds = kinds_of(kind.state).items()
            return {field: pack(inner, getattr(value, field), f"{name}.{field}", packer) for field, inner in kinds}
        case Array():
            return packer.array(_narrow(value) if value.dtype == np.int64 else value, name)
        case Digest():
            return value.hex()
        case FloatType() | Prototype():
            return np.dtype(getattr(value, "dtype", value)).name
    return _pack_value(value, name, packer)


def _narrow(array: np.ndarray) -> np.ndarray:
    """Convert integers to the smallest dtype that can represent them."""
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    fitting = (name for name in DTYPES["i"] if np.iinfo(name).min <= low and high <= np.iinfo(name).max)
    return array.astype(next(fitting), copy=False)


def _pack_value(value: Any, name: str, packer: Packer) -> Any:
    match value:
        case np.ndarray():
            return packer.array(value, name)
        case np.generic() if value.dtype.newbyteorder("<") in NAMES:
            return {"scalar": packer.array(np.asarray(value), name)}
        case float() if not math.isfinite(value):
            return {"float": str(float(value))}
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return {"tuple": [_pack_value(part, f"{name}.{i}", packer) for i, part in enumerate(value)]}
        case dict():
            items = enumerate(value.items())
            return {
                "dict": [
                    [_pack_value(k, f"{name}.{i}.key", packer), _pack_value(v, f"{name}.{i}", packer)]
                    for i, (k, v) in items
                ]
            }
        case np.random.RandomState():
            state: Any = value.get_state(legacy=False)
            if state["bit_generator"] != "MT19937":
                raise ValueError(f"{name} is a RandomState over {state['bit_generator']}; only MT19937 can be saved.")
            parts = state["state"]["key"], state["state"]["pos"], state["has_gauss"], state["gauss"]
            return {"generator": pack(_GENERATOR, parts, name, packer)}
    raise ValueError(f"{name} is a {type(value).__name__}, which model files do not support.")


def unpack(kind: Any, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
    """Validate a value against its kind and return it."""
    match kind:
        case Value():
            return _unpack_value(node, name, unpacker)
        case Maybe():
            return None if node is None else unpack(kind.kind, node, name, unpacker, sizes)
        case Tuple() if isinstance(node, list) and len(node) == len(kind.kinds):
            parts = enumerate(zip(kind.kinds, node, strict=True))
            built = kind.build(*(unpack(inner, part, f"{name}.{i}", unpacker, sizes) for i, (inner, part) in parts))
            if isinstance(built, AffineScaling) and not _is_sound(built):
                raise _mismatch(name)
            return built
        case Many() if isinstance(node, list) and node:
            return [unpack(kind.kind, part, f"{name}.{i}", unpacker, sizes) for i, part in enumerate(node)]
        case Record() if isinstance(node, dict) and node.keys() == kinds_of(kind.state).keys():
            return _unpack_state(kind.state, node, name, unpacker, sizes)
        case Array():
            return _unpack_array(kind, unpacker.array(node, name, own=kind.in_place), name, sizes)
        case Number() | Whole() if _fits(kind, value := _unpack_value(node, name, unpacker), sizes):
            return value
        case Flag() if isinstance(node, bool):
            return node
        case Digest() if isinstance(node, str) and re.fullmatch("[0-9a-f]{64}", node):
            return bytes.fromhex(node)
        case FloatType() if node in FLOATS:
            return np.dtype(node)
        case Prototype() if node in FLOATS:
            return np.empty(0, node)
    raise _mismatch(name)


def _is_sound(scaling: AffineScaling) -> bool:
    """Whether a scaling can be inverted."""
    return bool(np.isfinite(scaling.centre).all() and np.isfinite(scaling.factor).all() and np.all(scaling.factor > 0))


def _is_measured(value: Any) -> bool:
    """Whether a scaling can result from rows: in a state, its factors are one divided by a standard deviation."""
    return not isinstance(value, AffineScaling) or bool(np.all(value.factor <= LARGEST_FACTOR))


def _mismatch(name: str) -> DamagedError:
    return DamagedError(f"has an invalid value for {name}")


def _unpack_state(state: Any, nodes: dict[str, Any], name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
    inner = {size: length for size, length in sizes.items() if size not in state.own_sizes}
    kinds = kinds_of(state).items()
    found = state(**{field: unpack(kind, nodes[field], f"{name}.{field}", unpacker, inner) for field, kind in kinds})
    if not found.check(inner) or not all(_is_measured(getattr(found, field)) for field, _ in kinds):
        raise _mismatch(name)
    sizes.update({size: length for size, length in inner.items() if size not in state.own_sizes})
    return found


def _unpack_array(kind: Array, array: np.ndarray, name: str, sizes: Sizes) -> np.ndarray:
    if array.dtype.name not in DTYPES.get(kind.dtype, (kind.dtype,)) or array.ndim != len(kind.shape):
        raise _mismatch(name)
    for length, size in zip(array.shape, kind.shape, strict=True):
        base, plus, _ = size.partition("+")
        if sizes.setdefault(base, length - bool(plus)) != length - bool(plus):
            raise _mismatch(name)
    if kind.below is not None and array.size and not (array.min() >= -1 and array.max() < sizes.get(kind.below, 0)):
        raise _mismatch(name)
    return array.astype(np.int64, copy=False) if kind.dtype == "i" else array


def _fits(kind: Number | Whole, value: Any, sizes: Sizes) -> bool:
    """Whether a value is a number of this kind."""
    if isinstance(kind, Number):
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        return is_number and not (isinstance(value, int) and abs(value) >= 2**63)  # NumPy has no larger integers
    below = sizes.get(kind.below, 0) if isinstance(kind.below, str) else kind.below
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) < below


def _unpack_value(node: Any, name: str, unpacker: Unpacker) -> Any:
    match node:
        case None | bool() | int() | str():
            return node
        case float() if math.isfinite(node):
            return node
        case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
            return float(text)
        case {"array": _}:
            return unpacker.array(node, name)
        case {"scalar": inner, **rest} if not rest:
            return unpacker.array(inner, name)[()]
        case {"tuple": [*parts], **rest} if not rest:
            return tuple(_unpack_value(part, name, unpacker) for part in parts)
        case {"dict": [*items], **rest} if not rest and all(
            isinstance(item, list) and len(item) == 2 for item in items
        ):
            try:
                return {
                    _unpack_value(key, name, unpacker): _unpack_value(value, name, unpacker) for key, value in items
                }
            except TypeError:  # an unhashable key
                pass
        case {"generator": state, **rest} if not rest:
            return unpack(_GENERATOR, state, name, unpacker, {"words": 624})
    raise DamagedError(f"has an invalid value for {name}")


def _generator(*state: Any) -> np.random.RandomState:
    generator = np.random.RandomState()
    generator.set_state(("MT19937", *state))
    return generator


#: The state of the Mersenne Twister: its words, the position in them, and a cached normal number, if there is one.
_GENERATOR = Tuple((Array("uint32", "words"), Whole(625), Whole(2), Number()), _generator)
