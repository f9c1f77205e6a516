"""`Method`: the algorithm box of a paper, as a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar, Generic, Self, TypeVar

from polyplane.engine.data import Data
from polyplane.engine.feature_ranges import OwnScaling
from polyplane.engine.state import State
from polyplane.planes import PlaneSet

S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Method(ABC, Generic[S]):
    """Hyper-parameters, and how to train with them.

    A method writes `start`, `step` and `planes`; the others have defaults. It knows nothing of scikit-learn, files,
    signals or clusters. A `step` returns another state and may write into arrays of the one that it is given; see
    `polyplane.engine.state`.
    """

    #: The states of the method.
    state: ClassVar[type[State]]
    #: Whether rows of a stream can be made to fade: there is `half_life`.
    fades: ClassVar[bool] = False
    #: Fields that may change from one call to the next while training goes on.
    adjustable: ClassVar[frozenset[str]] = frozenset()
    #: Whether partitions can train apart from a common state and average what is declared as mixed. Each draws its own
    #: randomness from the field `seed` of the state.
    mixable: ClassVar[bool] = False
    #: Steps on one partition before the first average, for states that begin alike and could be mixed only by chance.
    steps_before_mixing: ClassVar[int] = 0

    @classmethod
    def of(cls, estimator: Any, **others: Any) -> Self:
        """The method with the parameters of an estimator that have the names of its fields, and with `others`."""
        names = {part.name: str(part.type) for part in fields(cls)}
        values = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)} | others
        return cls(**{name: _as_declared(value, names.get(name, "")) for name, value in values.items()})

    @abstractmethod
    def start(self, data: Data, seed: int) -> S:
        """The state before the first step."""

    @abstractmethod
    def step(self, state: S, data: Data) -> S:
        """The state after one more epoch, EM step or cut."""

    @abstractmethod
    def planes(self, state: S) -> PlaneSet:
        """The model in a state."""

    def settled(self, data: Data, seed: int) -> Self:
        """The method with what `start` would choose by these rows already chosen, for many starts on the same rows."""
        return self

    def check(self, data: Data) -> None:
        """Refuse rows that the method cannot learn from, with a ValueError that says why."""

    def prepare(self, state: S, data: Data) -> S:
        """The state with what it needs at hand for rows that it sees for the first time, or again."""
        return state

    def conclude(self, state: S, data: Data) -> S:
        """The state at the end of a `fit`."""
        return state

    def figures(self, state: S) -> Mapping[str, float]:
        """What to record of a state."""
        return {}

    def monitored(self, state: S) -> float | None:
        """The figure whose fall `tol` asks for; None where none can be expected yet."""
        return None

    def converged(self, state: S) -> bool:
        """Whether training is done by the method's own criterion."""
        return False

    def widen(self, state: S, n_features: int) -> S:
        """The state with room for more features, of weight 0."""
        raise ValueError(
            f"X has {n_features} features, more than before, and this learner cannot add any; give all batches the "
            "same columns."
        )

    def predict(self, state: S, X: Any) -> Any:
        """The classes of rows, as integers, in a state."""
        return self.planes(state).predict(X)

    @property
    def takes_device_arrays(self) -> bool:
        """Whether training is made of matrix products, which any array library can do, on a GPU too."""
        return False

    @property
    def own_scaling(self) -> OwnScaling:
        """How the method itself scales features: a user is warned of what it leaves as it is."""
        return "none"

    def refuse_changes_from(self, before: Method[Any]) -> None:
        """Raise a ValueError when training that began with the method `before` cannot go on with this one."""
        if type(self) is not type(before):
            raise ValueError(
                "The parameters now name another method than the one that this model was trained by; fit anew, with "
                "warm_start=False."
            )
        for part in fields(self):
            was, now = getattr(before, part.name), getattr(self, part.name)
            if part.name not in self.adjustable and was != now:
                raise ValueError(
                    f"Training began with {part.name}={was!r} and cannot go on with {part.name}={now!r}: set it back, "
                    "or fit anew with warm_start=False."
                )


def _as_declared(value: Any, declared: str) -> Any:
    """A whole number as a float, where one is declared: products of large ones would not fit into a kernel's."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return float(value) if is_whole and declared in ("float", "float | None") else value
