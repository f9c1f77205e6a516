"""`Program`: a fitted model as the plain steps from the cells of a row to labels; what all writers read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyplane._prediction import PlanePrediction
from polyplane.committee import PlaneCommittee
from polyplane.io._graph import link_function
from polyplane.io._names import feature_names
from polyplane.io._pipeline import ScaledLearner, Scalers

#: Scaled numbers are cut off here, and robustly scaled ones approach this limit; see `tables._preparation`.
LARGEST, CLIP = 1e12, 3.0
#: Numbers beyond this are refused; see `tables._conversion`.
LARGEST_CELL = 1e70
#: The least sum of exponentials, relative to the largest; see `tables._probabilities`.
LEAST = 1e-30


class Term(NamedTuple):
    r"""A feature: a function of :math:`u = (x - centre) \cdot factor`, where x is a number of the row.

    Parameters
    ----------
    kind : str
        "value": u; "limited": u, at least `least` and at most `most`; "scaled": u, at most 1e12 in size; "clipped":
        u / sqrt(1 + (u / 3)^2); "square": u^2, at most `most`; "clipped square": the square of "clipped"; "bin": u
        between 0 and 1. Those of learners are "value" or "limited", with a factor of 1.
    centre, factor : float
        How x becomes u.
    most, least : float
        The limits.
    """

    kind: str
    centre: float = 0.0
    factor: float = 1.0
    most: float = 0.0
    least: float = 0.0


class Value(NamedTuple):
    """A number that a column gives: itself, or a part of a date.

    Parameters
    ----------
    part : str
        "number", "true", "days", "year", "month", "day of week" or "hour".
    neutral : float or None
        What stands for a gap; None where there may be none.
    terms : range
        The features made from it, which have the weights of the same numbers.
    """

    part: str
    neutral: float | None
    terms: range


@dataclass(frozen=True)
class Input:
    """A column of the rows.

    Parameters
    ----------
    name : str
        The column.
    position : int
        Where it is among all columns.
    kind : str
        "number", "category", "boolean" or "date".
    values : tuple of Value
        The numbers that it gives; a category gives none.
    levels : tuple of str
        The texts that have weights; `first` are those of the first level, and so on.
    first, other, missing : int or None
        The rows of weights of the first level, of an unknown level, and of a gap; None: a gap, or an unknown level,
        adds nothing.
    decimal : str
        The decimal sign of numbers in texts.
    """

    name: str
    position: int
    kind: str
    values: tuple[Value, ...] = ()
    levels: tuple[str, ...] = ()
    first: int | None = None
    other: int | None = None
    missing: int | None = None
    decimal: str = "."

    @property
    def may_be_missing(self) -> bool:
        """Whether the column may have gaps: those of a table may, and features of learners may not."""
        return all(value.neutral is not None for value in self.values)


class Weights(NamedTuple):
    """What a feature adds to the scores of planes, each time its value: those of the planes from `start` on."""

    start: int
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Program:
    r"""A fitted model, from cells to labels.

    The score of a plane is its intercept and, of each feature, value times weight; those of a level, or of a gap, have
    the value 1. The score of a class is the mean over the machines of the largest score of its planes or, where
    `is_soft`, of the logarithm of the sum of their exponentials. The class with the largest score wins, the first of
    equals, and probabilities are the softmax of scores by temperature.

    Parameters
    ----------
    learner : str
        The estimator that was fitted.
    n_columns : int
        Columns of the table in fitting, those without use included.
    inputs : tuple of Input
        The columns.
    gaps : tuple of str
        Texts that stand for a gap.
    terms : tuple of Term
        The features that are functions of numbers: they have the first rows of weights.
    weights : tuple of Weights
        Of each feature, then of levels and gaps.
    intercept : ndarray of shape (n_planes,)
        The intercepts of the planes.
    machines : tuple of tuple of int
        Of each machine the edges of its classes among the planes: class c has planes ``edges[c]`` to ``edges[c + 1]``.
    is_soft : bool
        How planes become the score of a class.
    temperature : float or None
        None: there are no probabilities.
    classes : ndarray
        The labels.
    dtype : str
        "float32", "float64" or "int8": what weights are rounded to.
    """

    learner: str
    n_columns: int
    inputs: tuple[Input, ...]
    gaps: tuple[str, ...]
    terms: tuple[Term, ...]
    weights: tuple[Weights, ...]
    intercept: np.ndarray
    machines: tuple[tuple[int, ...], ...]
    is_soft: bool
    temperature: float | None
    classes: np.ndarray
    dtype: str
    of_table: bool = field(default=True)

    @property
    def n_planes(self) -> int:
        """Number of planes of all machines."""
        return len(self.intercept)

    @property
    def is_scaled(self) -> bool:
        """Whether the features of a learner are made from numbers: these are not the numbers themselves."""
        plain = Term("value")
        return not self.of_table and any(term != plain for term in self.terms)

    @property
    def is_uniform(self) -> bool:
        """Whether each feature counts for all planes."""
        return all(len(row.values) == self.n_planes for row in self.weights)

    def planes_of(self, c: int) -> list[range]:
        """The planes of a class, machine by machine."""
        return [range(edges[c], edges[c + 1]) for edges in self.machines]


def learner_program(model: PlanePrediction, planes: Any = None, names: Sequence[str] | None = None) -> Program:
    """The program of a learner: its features are the numbers of a row as they are.

    `planes` stand for those of the learner where scalers are folded into them, `names` for those seen in fitting.
    """
    check_is_fitted(model)
    model = model.to_numpy()
    planes = model.planes_ if planes is None else planes
    names = feature_names(model, planes.n_features) if names is None else names
    return _numeric_program(model, planes, ScaledLearner(model, Scalers.none(len(names)), list(names)))


def pipeline_program(scaled: ScaledLearner) -> Program:
    """The program of a learner behind scalers.

    Numbers are centred before they are weighted, not by the intercepts: weights of few digits would not bear large
    means. The factors of the scalers are part of the weights.
    """
    return _numeric_program(scaled.learner, scaled.learner.planes_, scaled)


def _numeric_program(model: PlanePrediction, planes: Any, scaled: ScaledLearner) -> Program:
    scalers = scaled.scalers
    coef = np.asarray(planes.coef, dtype=np.float64) * scalers.factor
    neutral = None if scalers.neutral is None else (scalers.neutral / scalers.factor + scalers.centre).tolist()
    values = (Value("number", None if neutral is None else neutral[j], range(j, j + 1)) for j in range(coef.shape[1]))
    columns = zip(scaled.feature_names, scalers.columns.tolist(), values, strict=True)
    return Program(
        learner=type(model).__name__,
        n_columns=scalers.n_columns,
        inputs=tuple(Input(name, position, "number", (value,)) for name, position, value in columns),
        gaps=(),
        terms=tuple(_scaled_terms(scalers)),
        weights=tuple(Weights(0, column) for column in coef.T),
        intercept=np.asarray(planes.intercept, dtype=np.float64),
        machines=_edges(planes),
        is_soft=False,
        # The logistic function of a difference of two scores is their softmax.
        temperature=None if link_function(model) is None else 1.0,
        classes=model.classes_,
        dtype=planes.coef.dtype.name,
        of_table=False,
    )


def _scaled_terms(scalers: Scalers) -> Iterator[Term]:
    limits = scalers.low / scalers.factor, scalers.high / scalers.factor
    for centre, low, high in zip(scalers.centre.tolist(), *(limit.tolist() for limit in limits), strict=True):
        yield Term("limited", centre, 1.0, high, low) if np.isfinite([low, high]).all() else Term("value", centre)


def _edges(planes: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(planes, PlaneCommittee):
        indptr, n_classes = planes.together.indptr.tolist(), planes.n_classes
        starts = range(0, len(indptr), n_classes)
        return tuple(tuple(indptr[start : stop + 1]) for start, stop in pairwise(starts))
    return (tuple(planes.indptr.tolist()),)
