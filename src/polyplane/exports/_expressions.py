"""Graph operators, written as expressions."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.exports._graph import Sink, element_type, reduce


class Expressions:
    """Adds operators to a graph with unique names; inputs that are arrays become constants.

    Parameters
    ----------
    own : str
        The prefix of all names.
    sink : Sink
        The graph to add to.
    """

    def __init__(self, own: str, sink: Sink) -> None:
        self.own, self.sink, self._n = own, sink, 0

    def _next(self, what: str) -> str:
        self._n += 1
        return f"{self.own}_{self._n}_{what}"

    def __call__(self, op: str, *inputs: str | np.ndarray, **attributes: Any) -> str:
        """Add an operator; return the name of its output."""
        names = [each if isinstance(each, str) else self.sink.constant(self._next("constant"), each) for each in inputs]
        return self.sink.node(op, names, self._next(op.lower()), **attributes)

    def cast(self, value: str, dtype: Any) -> str:
        """Cast to another type."""
        return self("Cast", value, to=element_type(np.dtype(dtype)))

    def largest(self, values: str) -> str:
        """Compute the maximum of each row, shape (rows, 1)."""
        return reduce("ReduceMax", values, 1, 1, self._next("largest"), self.sink)

    def affine(self, values: str, centre: np.ndarray, factor: np.ndarray) -> str:
        """Compute (values - centre) * factor."""
        return self("Mul", self("Sub", values, centre), factor)
