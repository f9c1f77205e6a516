"""A committee is a method: its state is the states of its members, and its step is a step of each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from polyplane._array_api import in_threads
from polyplane.engine.data import Data
from polyplane.engine.method import Method, Traits
from polyplane.engine.state import State
from polyplane.planes import PlaneSet


@dataclass(frozen=True, eq=False)
class CommitteeState(State):
    """The states of the members. A subclass declares their type."""

    members: list[Any]

    def with_members(self, change: Callable[..., Any], *others: Sequence[Any]) -> Self:
        """The state with `change(member, *other)` of each member."""
        return self.replace(members=[change(*parts) for parts in zip(self.members, *others, strict=True)])

    def for_rows(self, data: Data) -> Self:
        """The state for these rows, without the memory of other rows."""
        return super().without_workspaces().with_members(lambda member: member.for_rows(data))

    def without_workspaces(self) -> Self:
        """The state without its workspaces and those of its members."""
        return super().without_workspaces().with_members(lambda member: member.without_workspaces())

    def without_rows(self) -> Self:
        """The state without the memory of its rows."""
        return super().without_workspaces().with_members(lambda member: member.without_rows())

    def with_rows_of(self, data: Data) -> Self:
        """The state with the fingerprint of these rows, by which they are recognised."""
        return super().without_workspaces().with_members(lambda member: member.with_rows_of(data))

    def with_memory_of(self, other: Any) -> Self:
        """The state with another one's memory of the rows."""
        return self.with_members(lambda member, own: member.with_memory_of(own), other.members)

    def with_seed_of(self, other: Any, *numbers: int) -> Self:
        """The state with seeds that follow from another one's and some numbers."""
        return self.with_members(lambda member, own: member.with_seed_of(own, *numbers), other.members)


S = TypeVar("S", bound=CommitteeState)


@dataclass(frozen=True)
class Committee(Method[S]):
    """Members that are trained by the same method from different seeds; their class scores are averaged.

    The seed of a committee is a tuple of one seed for each member. Subclasses declare the type of the state.

    Parameters
    ----------
    member : Method
        The method of a member.
    n_estimators : int
        Number of members.
    n_jobs : int or None
        Number of threads; results do not depend on it.
    """

    member: Any
    n_estimators: int = 1
    n_jobs: int | None = None

    state_type: ClassVar[type[CommitteeState]]

    @property
    def traits(self) -> Traits:
        """Those of the member, whose own settings are compared by `refuse_changes`."""
        return replace(self.member.traits, state=self.state_type, adjustable=frozenset({"n_jobs"}))

    def start(self, data: Data, seed: Any) -> S:
        """The states of all members before the first step."""
        seeds = [int(check_random_state(own).randint(2**31)) for own in seed]
        states = in_threads(lambda own: self.member.start(data, own), seeds, self.n_jobs)
        return self.state_type(members=states)  # type: ignore[return-value]

    def step(self, state: S, data: Data) -> S:
        """One step of each member, in threads; those that have converged wait for the others."""

        def advance(own: Any) -> Any:
            is_done = own.workspace is not None and self.member.done(own) is True  # on these rows
            return own if is_done else self.member.step(own, data)

        return state.replace(members=in_threads(advance, state.members, self.n_jobs))

    def planes(self, state: S) -> PlaneSet:
        """The planes of all members."""
        return PlaneSet.of_members([self.member.planes(own) for own in state.members])

    def metrics(self, state: S) -> Mapping[str, float]:
        """The means of the metrics of the members, and the number of planes of all of them."""
        metrics = [self.member.metrics(own) for own in state.members]
        return {
            name: (np.sum if name == "planes" else np.mean)([each[name] for each in metrics]) for name in metrics[0]
        }

    def done(self, state: S) -> bool | float:
        """Whether all members have converged; otherwise the mean over those that have not."""
        values = [value for own in state.members if (value := self.member.done(own)) is not True]
        return float(np.mean(values)) if values else True
