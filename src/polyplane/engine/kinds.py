"""The kinds of fields of a state. `polyplane.engine.state` describes how a state declares its fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from polyplane.scaling import AffineScaling


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


class Number:
    """Any number; if `mixed`, it is averaged over partitions."""

    def __init__(self, mixed: bool = False) -> None:
        self.mixed = mixed


class Whole:
    """An integer from 0 to `below` - 1, where `below` is a number or the name of a size."""

    def __init__(self, below: int | str = 2**62, mixed: bool = False) -> None:
        self.below, self.mixed = below, mixed


class Flag:
    """True or False."""


class FloatType:
    """float32 or float64, as a dtype."""


class Digest:
    """A SHA-256 digest, as bytes."""


class Prototype:
    """An array without rows, with the library, device and dtype of the training rows."""


class Maybe:
    """A kind, or None."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


class Tuple:
    """A fixed number of kinds, as a tuple or as the NamedTuple that `build` returns."""

    def __init__(self, kinds: tuple[Any, ...], build: Callable[..., Any] = lambda *parts: parts) -> None:
        self.kinds, self.build = kinds, build


class Many:
    """A non-empty list of one kind."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


class Record:
    """A nested state."""

    def __init__(self, state: Any) -> None:
        self.state = state


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
