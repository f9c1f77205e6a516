"""Conversion of values to JSON and arrays, and back: bitwise identical, of the same type, validated by their kinds.

The kinds are those that training states declare, and those defined here. JSON values are written unchanged, all others
as objects that name their type: ``{"array": name}``, ``{"float": "inf"}``. A file contains only data, but kernels that
continue training rely on shapes and indices: all values are validated against their kinds. Memory that a value needs
beyond its bytes in the file is charged to the `Unpacker` before it is allocated.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from polyplane.engine.data import AffineScaling
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

#: Sizes by name: known sizes, and those that the first array with a name determines for the others.
Sizes = dict[str, int]
FLOATS = ("float32", "float64")
#: One divided by the square root of the smallest float64, with a reserve for rounding.
LARGEST_FACTOR = 1e162
DTYPES: dict[str, tuple[str, ...]] = {
    "f": FLOATS,
    "i": ("int8", "int16", "int32", "int64"),
    "b": ("bool",),
}
#: The name of a size that may be any.
ANY = "*"
#: Memory that the values of a file may need beyond the file itself: so many times its size, and so many bytes besides.
ROOM_TIMES, ROOM_BESIDES = 12, 24 << 20
#: Bytes of a float in a list, and of a random number generator.
FLOAT_BYTES, GENERATOR_BYTES = 32, 4096
#: Maximum length of the reason in an error message.
LONGEST_REASON = 400
#: Collections of strings that parameters may be, besides tuples.
COLLECTIONS: dict[str, Any] = {"list": list, "set": set, "frozenset": frozenset}


class Value:
    """The kind of a parameter: None, a bool, number, string, array or RandomState, or a tuple or dict of these."""


class Text:
    """A string; one of `among`, if given."""

    def __init__(self, *among: str) -> None:
        self.among = among


class Texts(NamedTuple):
    """A tuple of strings, as many as a size."""

    size: str


class Size(NamedTuple):
    """An integer that is the size of arrays."""

    name: str


class Filled(Array):
    """An array of which only one number is stored if all are equal."""


class Listed(NamedTuple):
    """A tuple of any number of values of one kind."""

    kind: Any


class Shared(Record):
    """A record that occurs once in the file, however often it is used; its sizes are its own."""


class Numbers:
    """A dict of numbers, by name."""


class Metrics:
    """A dict of lists of floats, such as a training history."""


class Packer:
    """Collects the arrays of packed values, by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._nodes: dict[int, tuple[np.ndarray, dict[str, Any]]] = {}
        self.records: dict[int, tuple[Any, Any]] = {}

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
    """Returns the arrays of a file, and records which ones were used and the memory that is left.

    Parameters
    ----------
    arrays : dict of str to ndarray
        The arrays of the file.
    size : int
        The size of the file in bytes.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], size: int) -> None:
        self.arrays = arrays
        self.room = ROOM_TIMES * size + ROOM_BESIDES
        self.used: set[str] = set()
        self._own: set[str] = set()
        self.records: dict[str, Any] = {}

    def charge(self, n_bytes: int, name: str) -> None:
        """Take memory for a value from what the size of the file allows."""
        self.room -= n_bytes
        if self.room < 0:
            raise DamagedError(f"needs more memory for {name} than a file of its size may")

    def array(self, node: Any, name: str, own: bool = False) -> np.ndarray:
        """Return the array of a node; `own`: no other node may use it, because training writes into it."""
        match node:
            case {"array": str(source), **rest} if (
                source in self.arrays
                and rest.keys() <= {"order", "dtype"}
                and rest.get("order", "F") == "F"
                and rest.get("dtype", "float64") in FLOATS
            ):
                if source in self._own or (own and source in self.used):
                    raise DamagedError(f"has an invalid value for {name}: its array is used twice")
                self.used.add(source)
                self._own |= {source} if own else set()
                array = self.arrays[source].T if "order" in rest else self.arrays[source]
                return self.converted(array, rest.get("dtype", array.dtype), name)
        raise DamagedError(f"has no array for {name}")

    def converted(self, array: np.ndarray, dtype: Any, name: str) -> np.ndarray:
        """Return an array with another dtype."""
        if array.dtype == dtype:
            return array
        self.charge(array.size * np.dtype(dtype).itemsize, name)
        return array.astype(dtype)

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


@contextmanager
def possible() -> Iterator[None]:
    """Turn validation errors into `DamagedError`."""
    try:
        yield
    except DamagedError:
        raise
    except (ValueError, OverflowError) as error:  # OverflowError: of an integer that is too large
        reason = " ".join(str(error).split())[:LONGEST_REASON]  # it may contain an array, in many lines
        raise DamagedError(f"contains an invalid model: {reason}".rstrip(".")) from error


def part_of(description: Any, name: str) -> dict[str, Any]:
    """Return an object of a description."""
    part = description.get(name) if isinstance(description, dict) else None
    if not isinstance(part, dict):
        raise mismatch(name)
    return part


def mismatch(name: str) -> DamagedError:
    """Return the error of an invalid value."""
    return DamagedError(f"has an invalid value for {name}")


def _all_numbers(values: list[Any]) -> bool:
    """Whether a list has finite numbers only."""
    return bool(values) and all(type(value) in (int, float) and math.isfinite(value) for value in values)


def all_text(values: Any) -> bool:
    """Whether a value is a list of strings."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def declared(record: Any) -> dict[str, Any]:
    """Return the kinds of the fields of a type: those of its entry in `FIELDS`, or of its annotations."""
    return FIELDS.get(record) or kinds_of(record)


def pack(kind: Any, value: Any, name: str, packer: Packer) -> Any:
    """Return the JSON form of a value; the packer collects the arrays."""
    match kind:
        case Maybe():
            return None if value is None else pack(kind.kind, value, name, packer)
        case Tuple():
            parts = enumerate(zip(kind.kinds, value, strict=True))
            return [pack(inner, part, f"{name}.{i}", packer) for i, (inner, part) in parts]
        case Shared() if id(value) in packer.records:
            return packer.records[id(value)][1]
        case Shared():
            node = pack(Record(kind.state), value, name, packer)
            packer.records[id(value)] = value, node
            return node
        case Many() | Listed():
            return [pack(kind.kind, part, f"{name}.{i}", packer) for i, part in enumerate(value)]
        case Record():
            kinds = declared(kind.state).items()
            return {field: pack(inner, getattr(value, field), f"{name}.{field}", packer) for field, inner in kinds}
        case Filled() if value.size and value[0] == value[-1] and (value == value[0]).all():
            return {"all": _pack_value(value[0].item(), name, packer)}
        case Array() if value.dtype == np.int64:  # by the smallest dtype that can represent all of them
            return packer.array(next(part for part in map(value.astype, DTYPES["i"]) if (part == value).all()), name)
        case Array():
            return packer.array(value, name)
        case Texts():
            return list(value)
        case Metrics():
            return {
                key: packer.array(np.array(numbers, dtype=float), f"{name}.{key}") for key, numbers in value.items()
            }
        case Digest():
            return value.hex()
        case FloatType() | Prototype():
            return np.dtype(getattr(value, "dtype", value)).name
    return _pack_value(value, name, packer)


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
        case list() | set() | frozenset() if type(value).__name__ in COLLECTIONS and all_text([*value]):
            return {type(value).__name__: value if isinstance(value, list) else sorted(value)}
        case list() if _all_numbers(value):
            return {"list": value}
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
            if not isinstance(built, AffineScaling) or _is_invertible(built):
                return built
        case Many() if isinstance(node, list) and node:
            return [unpack(kind.kind, part, f"{name}.{i}", unpacker, sizes) for i, part in enumerate(node)]
        case Listed() if isinstance(node, list):
            return tuple(unpack(kind.kind, part, f"{name}.{i}", unpacker, sizes) for i, part in enumerate(node))
        case Shared():
            key = f"{kind.state.__name__} {json.dumps(node)}"
            if key not in unpacker.records:
                unpacker.records[key] = unpack(Record(kind.state), node, name, unpacker, {})
            return unpacker.records[key]
        case Record() if isinstance(node, dict) and node.keys() == declared(kind.state).keys():
            return _unpack_record(kind.state, node, name, unpacker, sizes)
        case Filled() if isinstance(node, dict) and node.keys() == {"all"}:
            value, (size,) = _unpack_value(node["all"], name, unpacker), kind.shape
            is_number = type(value) in (int, float) and abs(value) >= 0  # not NaN
            if size not in sizes or not is_number or (kind.dtype == "uint8" and value not in range(256)):
                raise mismatch(name)
            unpacker.charge(8 * sizes[size], name)
            return np.full(sizes[size], value, dtype=kind.dtype)
        case Array():
            array = unpacker.array(node, name, own=kind.in_place)
            return unpacker.converted(array, _checked_dtype(kind, array, name, sizes), name)
        case Text() if isinstance(node, str) and (not kind.among or node in kind.among):
            return node
        case Texts() if all_text(node) and sizes.setdefault(kind.size, len(node)) == len(node):
            return tuple(node)
        case Size() if type(node) is int and 0 < node < 2**48 and sizes.setdefault(kind.name, node) == node:
            return node
        case Numbers():
            found = _unpack_value(node, name, unpacker)
            if isinstance(found, dict) and all(type(k) is str and type(v) is float for k, v in found.items()):
                return found
        case Metrics() if isinstance(node, dict):
            arrays = {key: unpacker.array(part, f"{name}.{key}", own=True) for key, part in node.items()}
            if not all(array.dtype == np.float64 and array.ndim == 1 for array in arrays.values()):
                raise mismatch(name)
            unpacker.charge(FLOAT_BYTES * sum(array.size for array in arrays.values()), name)
            return {key: array.tolist() for key, array in arrays.items()}
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
    raise mismatch(name)


def _is_invertible(scaling: AffineScaling) -> bool:
    return bool(all(np.isfinite(part).all() for part in scaling) and np.all(scaling.factor > 0))


def _unpack_record(record: Any, nodes: dict[str, Any], name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
    own = getattr(record, "own_sizes", ())
    inner = {size: length for size, length in sizes.items() if size not in own}
    kinds = declared(record).items()
    found = record(**{field: unpack(kind, nodes[field], f"{name}.{field}", unpacker, inner) for field, kind in kinds})
    scalings = [part for field, _ in kinds if isinstance(part := getattr(found, field), AffineScaling)]
    is_measured = all(np.all(scaling.factor <= LARGEST_FACTOR) for scaling in scalings)  # it can result from rows
    if not is_measured or (hasattr(found, "check") and not found.check(inner)):
        raise mismatch(name)
    sizes.update({size: length for size, length in inner.items() if size not in own})
    return found


def _checked_dtype(kind: Array, array: np.ndarray, name: str, sizes: Sizes) -> Any:
    """Validate an array, and return the dtype that its kind asks for."""
    if array.dtype.name not in DTYPES.get(kind.dtype, (kind.dtype,)) or array.ndim != len(kind.shape):
        raise mismatch(name)
    for length, size in zip(array.shape, kind.shape, strict=True):
        base, plus, _ = size.partition("+")
        if base != ANY and sizes.setdefault(base, length - bool(plus)) != length - bool(plus):
            raise mismatch(name)
    if kind.below is not None and array.size and not (array.min() >= -1 and array.max() < sizes.get(kind.below, 0)):
        raise mismatch(name)
    return np.int64 if kind.dtype == "i" else array.dtype


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
        case {"list": list() as numbers} if len(node) == 1 and _all_numbers(numbers):
            return numbers
        case dict() if len(node) == 1 and COLLECTIONS.keys() & node.keys() and all_text(next(iter(node.values()))):
            ((collection, texts),) = node.items()
            return COLLECTIONS[collection](texts)
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
            unpacker.charge(GENERATOR_BYTES, name)
            return unpack(_GENERATOR, state, name, unpacker, {"words": 624})
    raise mismatch(name)


def _generator(*state: Any) -> np.random.RandomState:
    generator = np.random.RandomState()
    generator.set_state(("MT19937", *state))
    return generator


#: The state of the Mersenne Twister: its words, the position in them, and a cached normal number, if there is one.
_GENERATOR = Tuple((Array("uint32", "words"), Whole(625), Whole(2), Number()), _generator)
#: The fields of types that declare none themselves: those of a model, see `polyplane.files.model`.
FIELDS: dict[Any, dict[str, Any]] = {}
