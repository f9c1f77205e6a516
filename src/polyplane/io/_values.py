"""Plain values as JSON and arrays, and back, to the last bit and of the same type.

JSON's own values stand for themselves. All others are objects that name what they are: ``{"float": "inf"}``,
``{"numpy": "float32", "value": 0.5}``, ``{"dict": [[key, value], ...]}``, ``{"array": name}``, ``{"generator": ...}``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from polyplane.io._safetensors import NAMES, DamagedError

#: Scalar types of NumPy that a file may name.
SCALARS = {
    np.dtype(kind).name: np.dtype(kind).type
    for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}
#: Words in the state of the Mersenne Twister.
TWISTER_WORDS = 624


class Packer:
    """Takes values apart: returns what is to be JSON, and keeps the arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._nodes: dict[int, tuple[np.ndarray, dict[str, Any]]] = {}

    def array(self, array: np.ndarray, name: str) -> dict[str, Any]:
        """Keep an array under a name; one that is met twice is kept once. Its order in memory matters to BLAS."""
        if id(array) in self._nodes:
            return self._nodes[id(array)][1]
        if array.dtype.newbyteorder("<") not in NAMES:
            raise ValueError(f"{name} is an array of {array.dtype}, which a model file cannot hold.")
        node: dict[str, Any] = {"array": name}
        stored = array
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            node["order"], stored = "F", array.T
        self.arrays[name] = stored
        self._nodes[id(array)] = (array, node)
        return node

    def narrow(self, array: np.ndarray, name: str) -> dict[str, Any]:
        """Keep integers in as few bytes as they need."""
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        for dtype in (np.int8, np.int16, np.int32):
            if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return {**self.array(array.astype(dtype), name), "dtype": array.dtype.name}
        return self.array(array, name)

    def value(self, value: Any, name: str) -> Any:
        """A parameter or an attribute."""
        if isinstance(value, np.ndarray):
            return self.array(value, name)
        if isinstance(value, dict):
            pairs = enumerate(value.items())
            return {"dict": [[self.value(k, name), self.value(v, f"{name}.{i}")] for i, (k, v) in pairs]}
        if isinstance(value, np.random.RandomState):
            return self._generator(value, name)
        return pack_scalar(value, name)

    def _generator(self, generator: np.random.RandomState, name: str) -> dict[str, Any]:
        state: Any = generator.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise ValueError(f"{name} is a RandomState over {state['bit_generator']}; only MT19937 can be saved.")
        words = self.array(state["state"]["key"], name)
        gauss = [int(state["has_gauss"]), pack_scalar(float(state["gauss"]), name)]
        return {"generator": "MT19937", "words": words, "position": int(state["state"]["pos"]), "gauss": gauss}


def pack_scalar(value: Any, name: str) -> Any:
    """A number, a text or None."""
    if isinstance(value, np.generic) and value.dtype.name in SCALARS:
        return {"numpy": value.dtype.name, "value": pack_scalar(value.item(), name)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int):
        return value
    raise ValueError(f"{name} is a {type(value).__name__}, which a model file cannot hold.")


class Unpacker:
    """Puts values together from JSON and arrays, and trusts neither."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.used: set[str] = set()
        self._made: dict[tuple[Any, ...], np.ndarray] = {}

    def array(self, node: Any, name: str) -> np.ndarray:
        """The array that a node speaks of; the same one for all nodes that are alike."""
        match node:
            case {"array": str(source), **rest} if source in self.arrays and rest.keys() <= {"order", "dtype"}:
                order, dtype = rest.get("order"), rest.get("dtype")
                if order in (None, "F") and (dtype is None or dtype in list(SCALARS)):
                    return self._made.setdefault((source, order, dtype), self._make(source, order, dtype))
        raise DamagedError(f"has no array for {name}")

    def _make(self, source: str, order: str | None, dtype: str | None) -> np.ndarray:
        self.used.add(source)
        array = self.arrays[source]
        if dtype is not None and array.dtype.kind == "i":
            array = array.astype(SCALARS[dtype])
        return array.T if order else array

    def value(self, node: Any, name: str) -> Any:
        """A parameter or an attribute."""
        match node:
            case {"array": _}:
                return self.array(node, name)
            case {"dict": [*pairs], **rest} if not rest:
                return self._dict(pairs, name)
            case {"generator": "MT19937", "words": words, "position": position, "gauss": [has_gauss, gauss]}:
                return self._generator(self.array(words, name), position, has_gauss, gauss, name)
        return unpack_scalar(node, name)

    def _dict(self, pairs: list[Any], name: str) -> dict[Any, Any]:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise DamagedError(f"holds no {name} that can be understood")
        return {unpack_scalar(key, name): self.value(value, name) for key, value in pairs}

    def _generator(self, words: np.ndarray, position: Any, has_gauss: Any, gauss: Any, name: str) -> Any:
        number = unpack_scalar(gauss, name)
        sound = (
            words.dtype == np.uint32
            and words.shape == (TWISTER_WORDS,)
            and type(position) is int
            and 0 <= position <= TWISTER_WORDS
            and type(has_gauss) is int
            and has_gauss in (0, 1)
            and isinstance(number, float)
        )
        if not sound:
            raise DamagedError(f"holds no {name} that can be understood")
        generator = np.random.RandomState()
        generator.set_state(("MT19937", words, position, has_gauss, number))
        return generator


def unpack_scalar(node: Any, name: str) -> Any:
    """A number, a text or None."""
    match node:
        case None | bool() | int() | str():
            return node
        case float() if math.isfinite(node):
            return node
        case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
            return float(text)
        case {"numpy": str(kind), "value": value, **rest} if kind in SCALARS and not rest:
            return _numpy_scalar(kind, unpack_scalar(value, name), name)
    raise DamagedError(f"holds no {name} that can be understood")


def _numpy_scalar(kind: str, value: Any, name: str) -> Any:
    scalar = SCALARS[kind]
    fits = (
        isinstance(value, bool)
        if kind == "bool"
        else isinstance(value, float)
        if kind.startswith("float")
        else type(value) is int and np.iinfo(scalar).min <= value <= np.iinfo(scalar).max
    )
    if not fits:
        raise DamagedError(f"holds no {name} that can be understood")
    with np.errstate(over="ignore"):
        return scalar(value)
