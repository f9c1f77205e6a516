"""What may stand in the state of a learner: the types of its fields, and the shapes of its arrays.

A file is only data, but the kernels that go on with the training trust the shapes and the indices that they are given.
So each part of a state is described, and compared with its description when it is written and when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from polyplane.io._safetensors import DamagedError
from polyplane.io._values import Packer, Unpacker, pack_scalar, unpack_scalar

#: Sizes by name: those of the model, and those that the first array of a kind sets for the others.
Sizes = dict[str, int]


class Part(Protocol):
    """One part of a state."""

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""


def mismatch(name: str) -> DamagedError:
    """The state is not what the learner needs."""
    return DamagedError(f"holds a state of training in which {name} does not fit the rest")


class Number:
    """Any number."""

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return pack_scalar(value, name)

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        value = unpack_scalar(node, name)
        if not isinstance(value, int | float | np.number) or isinstance(value, bool):
            raise mismatch(name)
        return value


class Whole(Number):
    """A whole number from 0 to below `below`, a number or the name of a size."""

    def __init__(self, below: int | str = 2**62) -> None:
        self.below = below

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        value = super().unpack(node, name, unpacker, sizes)
        below = sizes[self.below] if isinstance(self.below, str) else self.below
        if not isinstance(value, int | np.integer) or not 0 <= value < below:
            raise mismatch(name)
        return value


class FloatType:
    """The dtype of the rows: float32 or float64."""

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return np.dtype(value).name

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        if node not in ("float32", "float64"):
            raise mismatch(name)
        return np.dtype(node)


class EmptyArray(FloatType):
    """An array without rows, which tells a dtype."""

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return super().pack(value.dtype, name, packer)

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        return np.empty(0, super().unpack(node, name, unpacker, sizes))


class Fingerprint:
    """A SHA-256, as bytes."""

    def pack(self, value: bytes, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return value.hex()

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        if not isinstance(node, str) or len(node) != 64 or not set(node) <= set("0123456789abcdef"):
            raise mismatch(name)
        return bytes.fromhex(node)


class Array:
    """An array: its kinds ("f", "i", "b"), and the names of its sizes; "n+1" is one more than "n"."""

    def __init__(self, kind: str, *shape: str) -> None:
        self.kind = kind
        self.shape = shape

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return packer.array(value, name)

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        array = unpacker.array(node, name)
        dtypes = {"f": (np.float32, np.float64), "i": (np.int64,), "b": (np.bool_,)}[self.kind]
        if array.dtype not in dtypes or array.ndim != len(self.shape):
            raise mismatch(name)
        for length, size in zip(array.shape, self.shape, strict=True):
            base, plus, _ = size.partition("+")
            if sizes.setdefault(base, length - bool(plus)) != length - bool(plus):
                raise mismatch(name)
        return array


class Maybe:
    """A part, or None."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return None if value is None else self.part.pack(value, name, packer)

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        return None if node is None else self.part.unpack(node, name, unpacker, sizes)


class Pair:
    """Two parts, as a tuple."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return [part.pack(v, f"{name}.{i}", packer) for i, (part, v) in enumerate(zip(self.parts, value, strict=True))]

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        if not isinstance(node, list) or len(node) != len(self.parts):
            raise mismatch(name)
        parts = enumerate(zip(self.parts, node, strict=True))
        return tuple(part.unpack(inner, f"{name}.{i}", unpacker, sizes) for i, (part, inner) in parts)


class Many:
    """A list of parts of one kind, not empty."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        return [self.part.pack(inner, f"{name}.{i}", packer) for i, inner in enumerate(value)]

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        if not isinstance(node, list) or not node:
            raise mismatch(name)
        return [self.part.unpack(inner, f"{name}.{i}", unpacker, sizes) for i, inner in enumerate(node)]


class Record:
    """An object with named parts.

    Parameters
    ----------
    build : callable
        Makes the object of its parts; a ValueError says that they do not fit together.
    parts : dict of str to Part
        What the object is made of.
    check : callable, default=all are right
        Says whether the parts fit together and the sizes of the model.
    fields : callable, default=those of a NamedTuple
        Takes the object apart.
    local : bool, default=False
        The sizes that are met in this object hold for it alone.
    """

    def __init__(
        self,
        build: Callable[..., Any],
        parts: dict[str, Part],
        check: Callable[[Any, Sizes], bool] = lambda value, sizes: True,
        fields: Callable[[Any], dict[str, Any]] = lambda value: dict(value._asdict()),
        local: bool = False,
    ) -> None:
        self.build, self.parts, self.check, self.fields, self.local = build, parts, check, fields, local

    def pack(self, value: Any, name: str, packer: Packer) -> Any:
        """What is to be JSON."""
        fields = self.fields(value)
        if fields.keys() != self.parts.keys():
            raise ValueError(f"{name} has the fields {sorted(fields)}; a model file holds {sorted(self.parts)}.")
        return {field: part.pack(fields[field], f"{name}.{field}", packer) for field, part in self.parts.items()}

    def unpack(self, node: Any, name: str, unpacker: Unpacker, sizes: Sizes) -> Any:
        """The value, checked."""
        if not isinstance(node, dict) or node.keys() != self.parts.keys():
            raise mismatch(name)
        sizes = dict(sizes) if self.local else sizes
        parts = self.parts.items()
        found = {field: part.unpack(node[field], f"{name}.{field}", unpacker, sizes) for field, part in parts}
        try:
            value = self.build(**found)
        except (ValueError, MemoryError) as error:
            raise mismatch(name) from error
        if not self.check(value, sizes):
            raise mismatch(name)
        return value
