"""`Method`: a training algorithm with its hyperparameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, ClassVar, Generic, Self, TypeVar

from polyplane.engine.data import Data
from polyplane.engine.feature_ranges import OwnScaling
from polyplane.engine.state import State
from polyplane.planes import PlaneSet

S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Method(ABC, Generic[S]):
    """A training algorithm with its hyperparameters.

    Subclasses implement `start`, `step` and `planes`; the other methods have defaults. A method does not depend on
    scikit-learn, files, signals or clusters. A `step` returns a new state and may write into the arrays of the old one;
    see `polyplane.engine.state`.
    """

    #: The type of the states.
    state: ClassVar[type[State]]
    #: Whether old rows of a stream can be given less weight, by `half_life`.
    fades: ClassVar[bool] = False
    #: Fields that may change when training continues.
    adjustable: ClassVar[frozenset[str]] = frozenset()
    #: Whether partitions can be trained separately from a common state, and the fields declared as mixed be averaged.
    #: Each partition has its own random numbers, from the field `seed` of the state.
    mixable: ClassVar[bool] = False
    #: Steps on one partition before the first average, for initial states that are symmetric in the planes, whose
    #: averages would otherwise combine unrelated planes.
    steps_before_mixing: ClassVar[int] = 0

    @classmethod
    def of(cls, estimator: Any, **others: Any) -> Self:
        """Create the method from `others` and those parameters of an estimator that have the names of its fields."""
        names = {part.name: str(part.type) for part in fields(cls)}
        values = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)} | others
        return cls(**{name: _as_declared(value, names.get(name, "")) for name, value in values.items()})

    def settings(self) -> dict[str, Any]:
        """Return the hyperparameters by name."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def with_settings(self, values: Mapping[str, Any]) -> Self:
        """Return the method with other values of some hyperparameters."""
        return replace(self, **values)

    @abstractmethod
    def start(self, data: Data, seed: Any) -> S:
        """Return the state before the first step."""

    @abstractmethod
    def step(self, state: S, data: Data) -> S:
        """Return the state after one more epoch, EM step or cut."""

    @abstractmethod
    def planes(self, state: S) -> PlaneSet:
        """Return the model of a state."""

    def settled(self, data: Data, seed: int) -> Self:
        """Return the method with the choices that `start` makes on these rows, for many starts on the same rows."""
        return self

    def check(self, data: Data) -> None:
        """Raise a ValueError with the reason if the method cannot learn from these rows."""

    def prepare(self, state: S, data: Data) -> S:
        """Return the state with its workspace for these rows."""
        return state

    def conclude(self, state: S, data: Data) -> S:
        """Return the final state of a `fit`."""
        return state

    def figures(self, state: S) -> Mapping[str, float]:
        """Return the figures of a state for the history."""
        return {}

    def monitored(self, state: S) -> float | None:
        """Return the figure whose decrease is compared with `tol`; None if no decrease can be expected yet."""
        return None

    def converged(self, state: S) -> bool:
        """Whether training has converged by the method's own criterion."""
        return False

    def widen(self, state: S, n_features: int) -> S:
        """Return the state with additional features of weight 0."""
        raise ValueError(
            f"X has {n_features} features, more than before, and this learner cannot add features; pass batches with "
            "the same columns."
        )

    def predict(self, state: S, X: Any) -> Any:
        """Predict the classes of rows, as integers."""
        return self.planes(state).predict(X)

    @property
    def takes_device_arrays(self) -> bool:
        """Whether training consists of matrix products, so that it runs on arrays of other libraries and on a GPU."""
        return False

    @property
    def own_scaling(self) -> OwnScaling:
        """The scaling that the method applies itself; for other differences in scale, users get a warning."""
        return "none"

    def refuse_changes_from(self, before: Method[Any]) -> None:
        """Raise a ValueError if training that started with the method `before` cannot continue with this one."""
        if type(self) is not type(before):
            raise ValueError(
                "With the current parameters, the training method differs from that of the fitted model; fit again "
                "with warm_start=False."
            )
        for part in fields(self):
            was, now = getattr(before, part.name), getattr(self, part.name)
            if part.name not in self.adjustable and was != now:
                raise ValueError(
                    f"Training started with {part.name}={was!r} and cannot continue with {part.name}={now!r}: restore "
                    "the value, or fit again with warm_start=False."
                )


def _as_declared(value: Any, declared: str) -> Any:
    """Convert an integer to a float if a float is declared: products of large integers would overflow in kernels."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return float(value) if is_whole and declared in ("float", "float | None") else value
