"""`Method`: a training algorithm with its hyperparameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeVar

from polyplane.engine.data import Data, OwnScaling
from polyplane.engine.state import State
from polyplane.planes import PlaneSet

S = TypeVar("S", bound=State)
M = TypeVar("M", bound="Method[Any]")


@dataclass(frozen=True)
class Traits:
    """What others must know of a method.

    Parameters
    ----------
    state : type
        The type of its states.
    adjustable : frozenset of str
        Fields of the method that may change when training continues.
    fades : bool
        Whether old rows of a stream can be given less weight, by `half_life`.
    mixable : bool
        Whether partitions can be trained separately from a common state, and the fields declared as mixed be averaged.
        Each partition has its own random numbers, from the field `seed` of the state.
    steps_before_mixing : int
        Steps on one partition before the first average, for initial states that are symmetric in the planes, whose
        averages would otherwise combine unrelated planes.
    takes_device_arrays : bool
        Whether training consists of matrix products, so that it runs on arrays of other libraries and on a GPU.
    own_scaling : {"none", "common", "standard"}
        The scaling that the method applies itself; for other differences in scale, users get a warning.
    """

    state: type[State]
    adjustable: frozenset[str] = frozenset()
    fades: bool = False
    mixable: bool = False
    steps_before_mixing: int = 0
    takes_device_arrays: bool = False
    own_scaling: OwnScaling = "none"


@dataclass(frozen=True)
class Method(ABC, Generic[S]):
    """A training algorithm with its hyperparameters.

    Subclasses implement `start`, `step` and `planes`, and declare their `traits`; the other methods have defaults. A
    method does not depend on scikit-learn, files, signals or clusters, and chooses nothing.
    """

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What others must know of the method; in most methods a class attribute."""

    @abstractmethod
    def start(self, data: Data, seed: Any) -> S:
        """Return the state before the first step; a ValueError if the method cannot learn from these rows."""

    @abstractmethod
    def step(self, state: S, data: Data) -> S:
        """Return the state after one more epoch, EM step or cut.

        A step may write into the arrays of the old state; see `polyplane.engine.state`. Workspaces are empty in the
        first step on new rows.
        """

    @abstractmethod
    def planes(self, state: S) -> PlaneSet:
        """Return the model of a state."""

    def predict(self, state: S, X: Any) -> Any:
        """Predict the classes of rows, as integers."""
        return self.planes(state).predict(X)

    def metrics(self, state: S) -> Mapping[str, float]:
        """Return the numbers of a state for the history."""
        return {}

    def done(self, state: S) -> bool | float:
        """Return whether training has converged.

        If only a plateau can tell, return the value whose decrease is compared with `tol`; infinity as long as no
        decrease can be expected.
        """
        return False

    def widen(self, state: S, n_features: int) -> S:
        """Return the state with additional features of weight 0."""
        raise ValueError(
            f"X has {n_features} features, more than before, and this learner cannot add features; pass batches with "
            "the same columns."
        )


def settings_of(method: Method[Any]) -> dict[str, Any]:
    """Return the hyperparameters by name, including those of a method within the method."""
    settings: dict[str, Any] = {}
    for part in fields(method):
        value = getattr(method, part.name)
        settings |= settings_of(value) if isinstance(value, Method) else {part.name: value}
    return settings


def with_settings(method: M, values: Mapping[str, Any]) -> M:
    """Return the method with other values of some hyperparameters, including those of a method within the method."""
    own = {part.name: getattr(method, part.name) for part in fields(method)}
    inner = {name: with_settings(value, values) for name, value in own.items() if isinstance(value, Method)}
    return replace(method, **{name: value for name, value in values.items() if name in own}, **inner)


def refuse_changes(method: Method[Any], before: Method[Any]) -> None:
    """Raise a ValueError if training that started with the method `before` cannot continue with `method`."""
    if type(method) is not type(before):
        raise ValueError(
            "With the current parameters, the training method differs from that of the fitted model; fit again with "
            "warm_start=False."
        )
    for part in fields(method):
        was, now = getattr(before, part.name), getattr(method, part.name)
        if isinstance(now, Method):
            refuse_changes(now, was)
        elif part.name not in method.traits.adjustable and was != now:
            raise ValueError(
                f"Training started with {part.name}={was!r} and cannot continue with {part.name}={now!r}: restore the "
                "value, or fit again with warm_start=False."
            )
