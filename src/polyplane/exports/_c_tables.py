"""Constant tables in C, and their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane.exports._text import c_string, label_value, real, wrapped

#: Bytes of a pointer on a 32-bit microcontroller.
POINTER = 4
#: Bytes of the number types.
SIZES = {"double": 8, "float": 4, "signed char": 1, "unsigned char": 1, "unsigned short": 2, "unsigned long": 4}


class Tables:
    """Constant tables as C code; counts the bytes of numbers (`n_bytes`) and of strings (`n_text`)."""

    def __init__(self) -> None:
        self.text = ""
        self.n_bytes = self.n_text = 0

    def add(self, name: str, kind: str, values: Any) -> None:
        """Add an array of numbers of the C type `kind`."""
        self.n_bytes += SIZES[kind] * len(values)
        literals = {"double": lambda v: real(v), "float": lambda v: f"{real(v, 'float32')}f"}
        literal = literals.get(kind, lambda v: str(int(v)))
        self.text += _array(f"static const {kind} ", name, [literal(value) for value in values])

    def add_texts(self, name: str, texts: Sequence[str]) -> None:
        """Add an array of strings."""
        self.text += _array("static const char *const ", name, [c_string(text) for text in texts])
        self._count(texts)

    def labels(self, classes: np.ndarray) -> str:
        """Return the public array of labels."""
        kind, literals = label_literals(classes)
        if kind.endswith("*const "):
            self._count(classes.tolist())
        else:
            self.n_bytes += 8 * len(literals)
        return "\n" + _array(kind, "labels", literals)

    def _count(self, texts: Sequence[Any]) -> None:
        self.n_text += sum(len(str(text).encode()) + 1 + POINTER for text in texts)


def index_type(largest: int) -> str:
    """Return the smallest unsigned type for integers up to `largest`."""
    return "unsigned char" if largest < 256 else "unsigned short" if largest < 65536 else "unsigned long"


def label_literals(classes: np.ndarray) -> tuple[str, list[str]]:
    """Return the C type of the labels, and their literals."""
    labels = [label_value(label) for label in classes.tolist()]
    if isinstance(labels[0], str):
        return "const char *const ", [c_string(str(label)) for label in labels]
    if isinstance(labels[0], float):
        return "const double ", [real(label) for label in labels]
    if max(labels) >= 2**63:
        raise ValueError(f"The label {max(labels)} does not fit into a signed 64-bit integer: rename it.")
    # C has no literal for the smallest 64-bit integer.
    return "const long long ", [f"{int(v)}LL" if v > -(2**63) else "(-9223372036854775807LL - 1)" for v in labels]


def _array(kind: str, name: str, literals: list[str]) -> str:
    return f"{kind}PREFIX_{name}[{len(literals)}] = {{\n{wrapped(literals, '    ')}\n}};\n"
