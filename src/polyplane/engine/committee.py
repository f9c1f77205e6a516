"""A committee is a method: its state is the states of its members, and its step is a step of each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar

import numpy as np

from polyplane._threads import in_threads
from polyplane.engine.data import Data
from polyplane.engine.feature_ranges import OwnScaling
from polyplane.engine.method import Method
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

    adjustable = frozenset({"n_jobs"})

    @property
    def takes_device_arrays(self) -> bool:
        """Whether the members train on device arrays."""
        return bool(self.member.takes_device_arrays)

    @property
    def own_scaling(self) -> OwnScaling:
        """The scaling that the members apply."""
        scaling: OwnScaling = self.member.own_scaling
        return scaling

    @property
    def mixable(self) -> bool:  # type: ignore[override]
        """Whether partitions can be trained separately."""
        return bool(self.member.mixable)

    def settings(self) -> dict[str, Any]:
        """The hyperparameters by name, including those of the member."""
        return {**self.member.settings(), "n_estimators": self.n_estimators, "n_jobs": self.n_jobs}

    def with_settings(self, values: Mapping[str, Any]) -> Self:
        """The method with other values of some hyperparameters."""
        own = {part.name for part in fields(self)}
        member = self.member.with_settings({name: value for name, value in values.items() if name not in own})
        return replace(self, member=member, **{name: value for name, value in values.items() if name in own})

    def refuse_changes_from(self, before: Method[Any]) -> None:
        """Raise a ValueError if training that started with the method `before` cannot continue with this one."""
        same_member = replace(before, member=self.member) if isinstance(before, Committee) else before
        super().refuse_changes_from(same_member)
        if isinstance(before, Committee):
            self.member.refuse_changes_from(before.member)

    def start(self, data: Data, seed: Any) -> S:
        """The states of all members before the first step."""
        states = in_threads(lambda own: self.member.start(data, own), seed, self.n_jobs)
        return self.state(members=states)  # type: ignore[call-arg, return-value]

    def prepare(self, state: S, data: Data) -> S:
        """Add the workspaces of the members."""
        return state.with_members(lambda own: self.member.prepare(own, data))

    def step(self, state: S, data: Data) -> S:
        """One step of each member, in threads; those that have converged wait for the others."""

        def advance(own: Any) -> Any:
            return own if self.member.converged(own) else self.member.step(own, data)

        return state.replace(members=in_threads(advance, state.members, self.n_jobs))

    def conclude(self, state: S, data: Data) -> S:
        """The final states of the members."""
        return state.with_members(lambda own: self.member.conclude(own, data))

    def planes(self, state: S) -> PlaneSet:
        """The planes of all members."""
        return PlaneSet.of_members([self.member.planes(own) for own in state.members])

    def figures(self, state: S) -> Mapping[str, float]:
        """The means of the figures of the members, and the number of planes of all of them."""
        figures = [self.member.figures(own) for own in state.members]
        return {
            name: (np.sum if name == "planes" else np.mean)([each[name] for each in figures]) for name in figures[0]
        }

    def monitored(self, state: S) -> float | None:
        """The mean over the members."""
        values = [self.member.monitored(own) for own in state.members]
        return None if None in values else float(np.mean(values))

    def converged(self, state: S) -> bool:
        """Whether all members have converged."""
        return all(self.member.converged(own) for own in state.members)
