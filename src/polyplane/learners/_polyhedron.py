"""Code shared by the methods and estimators of a single polyhedron."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat, takewhile
from numbers import Integral
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from sklearn.utils._param_validation import Interval

from polyplane._array_api import host_dtype
from polyplane.base import PlaneClassifier, class_index
from polyplane.engine.data import Data
from polyplane.engine.method import Method
from polyplane.engine.run import Run
from polyplane.engine.state import Array, RowsLike, State, Whole
from polyplane.learners._polyhedron_rows import ScaledRows, StartRows, blind_start, random_start, split_start
from polyplane.planes import PlaneSet
from polyplane.scaling import AffineScaling

#: Planes in training, on the host, one per row with its offset last. Steps replace the array.
Planes = Annotated[np.ndarray, Array("float64", "n_planes", "features+1", in_place=False)]


@dataclass(frozen=True, eq=False)
class PolyhedronState(State):
    """The fields common to the states of these methods."""

    planes: Planes
    inside: Annotated[int, Whole("classes")]
    rows_like: RowsLike

    def check(self, sizes: dict[str, int]) -> bool:
        """There are two classes, one of them inside."""
        return sizes["classes"] == 2


S = TypeVar("S", bound=PolyhedronState)

#: Fields of these methods that may change when training continues.
ADJUSTABLE = frozenset({"n_init", "trial_steps"})


@dataclass(frozen=True)
class PolyhedronMethod(Method[S]):
    """Learns the planes around one of two classes: a row is inside when all :math:`f_k(x) > 0`."""

    n_planes: int = 2
    inside: int | None = None  # None: each class is tried
    n_init: int = 1
    trial_steps: int = 20  # steps from each start before the best one is chosen
    labels: tuple[Any, ...] = (0, 1)  # the class labels, for messages

    def candidates(self, data: Data) -> tuple[int, ...]:
        """The classes that may be inside; the first one is preferred in case of ties."""
        if self.inside is not None:
            return (self.inside,)
        # If the first batch of a stream has one class only, the classes cannot be compared.
        return (1, 0) if np.all(self.class_counts(data) > 0) else (1,)

    def check(self, data: Data) -> None:
        """Raise an error if there are too few rows, except in a stream."""
        if data.stream:
            return
        counts = self.class_counts(data)
        if self.inside is not None and counts[self.inside] < 2:
            label = self.labels[self.inside]
            raise ValueError(f"The inside class {label!r} has a single row: a region needs two or more points.")
        if self.n_planes > counts.sum():
            raise ValueError(f"n_planes={self.n_planes} is more than the {counts.sum()} rows to learn from.")

    def class_counts(self, data: Data) -> np.ndarray:
        """The number of training rows of each class."""
        return data.class_counts

    def start_planes(self, rows: ScaledRows, data: Data, inside: int, seed: int) -> Iterator[np.ndarray]:
        """The planes that each of the `n_init` starts begins with."""
        start_rows = StartRows.of(rows, data, inside)
        for i in range(self.n_init):
            rng = np.random.default_rng([seed, i])
            if np.count_nonzero(data.class_counts) < 2:
                yield blind_start(self.n_planes, data.X.shape[1], rng)
            elif i == 0:
                yield split_start(start_rows, self.n_planes)
            else:
                yield random_start(start_rows, self.n_planes, rng)

    def best_start(self, starts: Callable[[int], Iterable[S]], data: Data, cost: Callable[[S], float]) -> S:
        """The start with the lowest cost after a trial, among all starts for each class that may be inside."""
        self.check(data)
        candidates = self.candidates(data)
        if self.n_init * len(candidates) == 1:
            return next(iter(starts(candidates[0])))
        best: S | None = None
        for start in chain.from_iterable(map(starts, candidates)):
            if best is not None:
                best = best.without_rows()  # a workspace may be as large as the rows: keep one at a time
            state = self._trial(start, data)
            best = state if best is None or cost(state) < cost(best) else best
        assert best is not None
        return best

    def _trial(self, start: S, data: Data) -> S:
        run = Run(self, start)
        # In a stream, a run does not check convergence; a trial does.
        run.go(takewhile(lambda _: not self.done(run.state), repeat(data, self.trial_steps)))
        state: S = run.state
        return state


def plane_set(planes: np.ndarray, scaling: AffineScaling, inside: int, rows_like: Any) -> PlaneSet:
    """The class outside owns the planes :math:`-f_k`, the class inside a zero plane, on the device of `rows_like`."""
    coef, intercept = scaling.to_input_space(planes[:, :-1], planes[:, -1])
    dtype = host_dtype(rows_like)
    with np.errstate(over="ignore"):  # PlaneSet raises an error for infinite values
        around = (-coef.astype(dtype), -intercept.astype(dtype))
    zero = (np.zeros_like(around[0][:1]), np.zeros_like(around[1][:1]))
    return PlaneSet.of_classes([zero, around] if inside == 0 else [around, zero]).to(rows_like)


class PolyhedronClassifier(PlaneClassifier):
    """An estimator of one polyhedron."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PlaneClassifier._parameter_constraints,
        "n_planes": [Interval(Integral, 1, None, closed="left")],
        "inside": "no_validation",
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    @property
    def inside_(self) -> Any:
        """The class inside."""
        return self.classes_[self._state.inside]


M = TypeVar("M", bound=PolyhedronMethod[Any])


def method_of(method: type[M], estimator: Any, classes: np.ndarray, **others: Any) -> M:
    """The method with the parameters of an estimator, for these labels."""
    inside = None if estimator.inside is None else class_index("inside", estimator.inside, classes)
    shared = {"inside": inside, "labels": tuple(classes.tolist())}
    return method.of(estimator, trial_steps=min(method.trial_steps, estimator.max_iter), **(shared | others))
