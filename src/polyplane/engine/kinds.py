"""What a field of a state may be. See `polyplane.engine.state` for how a state declares its fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from polyplane.scaling import AffineScaling


class Array:
    """An array of a state.

    Parameters
    ----------
    dtype : {"f", "i", "b", "int32", "uint8"}
        float32 or float64, int64, booleans, or the very dtype.
    *shape : str
        The names of its sizes; equal names are equal sizes, and a field of the method of that name is that number.
        "n+1" is one more than "n".
    in_place : bool, default=True
        Whether steps write into the array. When False, a step puts another array in its place and never changes what
        the state holds in this one, so that it need not be saved before a step.
    by_feature : bool, default=False
        The first axis is the features, and a step on sparse rows writes only where these have entries: where they are
        few, only these are saved before a step.
    mixed : bool, default=False
        Whether partitions that train apart average it; otherwise they have it in common.
    scaled_by : str, default=None
        The field of the same state that the array is a multiple of; what is averaged is the array over that number.
    below : str, default=None
        The name of the size that indices are below; -1 stands for none.
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
    """Any number; partitions average it where it is `mixed`."""

    def __init__(self, mixed: bool = False) -> None:
        self.mixed = mixed


class Whole:
    """A whole number from 0 to below `below`, a number or the name of a size."""

    def __init__(self, below: int | str = 2**62, mixed: bool = False) -> None:
        self.below, self.mixed = below, mixed


class Flag:
    """True or False."""


class FloatType:
    """float32 or float64, as a dtype."""


class Digest:
    """A SHA-256, as bytes."""


class Prototype:
    """An array without rows, which tells the library, the device and the dtype of the training rows."""


class Maybe:
    """A kind, or None."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


class Tuple:
    """A fixed number of kinds, as a tuple or what `build` makes of them: a NamedTuple."""

    def __init__(self, kinds: tuple[Any, ...], build: Callable[..., Any] = lambda *parts: parts) -> None:
        self.kinds, self.build = kinds, build


class Many:
    """A list of one kind, not empty."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind


class Record:
    """A state within a state."""

    def __init__(self, state: Any) -> None:
        self.state = state


#: Seeds are below 2**31: scikit-learn draws them as 32-bit integers.
Seed = Annotated[int, Whole(2**31)]
#: A number that partitions average.
MixedNumber = Annotated[float, Number(mixed=True)]
#: A whole number that partitions average.
MixedWhole = Annotated[int, Whole(mixed=True)]
#: An array without rows that tells where the rows are.
RowsLike = Annotated[Any, Prototype()]
_BY_FEATURE = Array("f", "features", in_place=False)
#: A scaling with one factor for all features, and one with a factor for each.
CommonScaling = Annotated[AffineScaling, Tuple((_BY_FEATURE, Number()), AffineScaling)]
FeatureScaling = Annotated[AffineScaling, Tuple((_BY_FEATURE, _BY_FEATURE), AffineScaling)]
