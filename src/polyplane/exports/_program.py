"""`Program`: a fitted model as the steps from the values of a row to a label, which all exports write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyplane._prediction import PlanePrediction
from polyplane.exports._graph import link_function
from polyplane.exports._names import feature_names
from polyplane.exports._pipeline import ScaledLearner, Scalers

#: Limit of scaled numbers, and limit that robustly scaled numbers approach; see `tables._preparation`.
LARGEST, CLIP = 1e12, 3.0
#: Larger numbers are an error; see `tables._conversion`.
LARGEST_CELL = 1e70
#: Lower bound of a sum of exponentials, relative to the largest; see `tables._probabilities`.
LEAST = 1e-30


class Term(NamedTuple):
    r"""A feature: a function of :math:`u = (x - centre) \cdot factor`, where x is a number from the row.

    Parameters
    ----------
    kind : str
        "value": u; "limited": u, clipped to [`least`, `most`]; "scaled": u, clipped to [-1e12, 1e12]; "clipped":
        u / sqrt(1 + (u / 3)^2); "square": u^2, at most `most`; "clipped square": the square of "clipped"; "bin": u,
        clipped to [0, 1]. The features of learners are "value" or "limited", with a factor of 1.
    centre, factor : float
        The scaling from x to u.
    most, least : float
        The upper and the lower limit.
    """

    kind: str
    centre: float = 0.0
    factor: float = 1.0
    most: float = 0.0
    least: float = 0.0


class Value(NamedTuple):
    """A number derived from a column: its value, or a part of a date.

    Parameters
    ----------
    part : str
        "number", "true", "days", "year", "month", "day of week" or "hour".
    neutral : float or None
        The replacement of a missing value. None: values must not be missing.
    terms : range
        The indices of the features computed from it, in the terms and in the weights of the program.
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
        The name of the column.
    position : int
        Its index among all columns.
    kind : str
        "number", "category", "boolean" or "date".
    values : tuple of Value
        The numbers derived from it; none for a category.
    levels : tuple of str
        The known levels of a category; level i has the weights with index ``first + i``.
    first, other, missing : int or None
        The indices of the weights of the first level, of unknown levels, and of missing values. None: no weights.
    decimal : str
        The decimal separator of numbers in strings.
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
        """Whether values may be missing: always in tables, and in features of learners only after an imputer."""
        return all(value.neutral is not None for value in self.values)


class Weights(NamedTuple):
    """The weights of a feature in the planes ``start`` to ``start + len(values) - 1``; in other planes, they are 0."""

    start: int
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Program:
    r"""A fitted model, from the values of a row to the label.

    The score of a plane is its intercept plus the sum over the features of value times weight; the feature of a level
    or a missing value has the value 1. The score of a class is the mean over the members of the largest score of its
    planes or, if `is_soft`, of the log-sum-exp of their scores. The class with the largest score is predicted (the
    first one, in case of ties). Probabilities are the softmax of the class scores divided by the temperature.

    Parameters
    ----------
    learner : str
        The class name of the estimator.
    n_columns : int
        Number of columns seen in `fit`, including those not in use.
    inputs : tuple of Input
        The columns in use.
    missing_texts : tuple of str
        Strings that denote a missing value.
    terms : tuple of Term
        The features that are functions of numbers.
    weights : tuple of Weights
        The weights of the terms, followed by those of levels and missing values.
    intercept : ndarray of shape (n_planes,)
        The intercepts of the planes.
    members : tuple of tuple of int
        For each member, the edges of its classes: class c owns the planes ``edges[c]:edges[c + 1]``.
    is_soft : bool
        Whether the score of a class is the log-sum-exp, not the maximum, of the scores of its planes.
    temperature : float or None
        The temperature of the probabilities. None: no probabilities.
    classes : ndarray of shape (n_classes,)
        The labels.
    dtype : str
        Data type of the exported weights: "float32", "float64" or "int8".
    of_table : bool
        Whether the model is a `TableClassifier`, not a learner.
    """

    learner: str
    n_columns: int
    inputs: tuple[Input, ...]
    missing_texts: tuple[str, ...]
    terms: tuple[Term, ...]
    weights: tuple[Weights, ...]
    intercept: np.ndarray
    members: tuple[tuple[int, ...], ...]
    is_soft: bool
    temperature: float | None
    classes: np.ndarray
    dtype: str
    of_table: bool = field(default=True)

    @property
    def n_planes(self) -> int:
        """Total number of planes of all members."""
        return len(self.intercept)

    @property
    def is_scaled(self) -> bool:
        """Whether there are scalers before a learner, so that its features are not the numbers of the row."""
        plain = Term("value")
        return not self.of_table and any(term != plain for term in self.terms)

    @property
    def is_uniform(self) -> bool:
        """Whether each feature has weights for all planes."""
        return all(len(row.values) == self.n_planes for row in self.weights)

    def planes_of(self, c: int) -> list[range]:
        """Return the planes of a class, for each member."""
        return [range(edges[c], edges[c + 1]) for edges in self.members]


def learner_program(model: PlanePrediction, planes: Any = None, names: Sequence[str] | None = None) -> Program:
    """Return the program of a learner, whose features are the numbers of a row.

    `planes` replaces the planes of the learner, if scalers are included in them, and `names` its feature names.
    """
    check_is_fitted(model)
    model = model.to_numpy()
    planes = model.planes_ if planes is None else planes
    names = feature_names(model, planes.n_features) if names is None else names
    return _numeric_program(model, planes, ScaledLearner(model, Scalers.none(len(names)), list(names)))


def pipeline_program(scaled: ScaledLearner) -> Program:
    """Return the program of a pipeline of scalers and a learner.

    The weights include the factors of the scalers. The intercepts do not include the centres, which are subtracted from
    the numbers: with large means, weights of low precision would not be accurate enough.
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
        missing_texts=(),
        terms=tuple(_scaled_terms(scalers)),
        weights=tuple(Weights(0, column) for column in coef.T),
        intercept=np.asarray(planes.intercept, dtype=np.float64),
        members=_edges(planes),
        is_soft=False,
        # The logistic function of the difference of two scores is their softmax.
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
    indptr = planes.indptr.tolist()
    return tuple(tuple(indptr[start : stop + 1]) for start, stop in pairwise(range(0, len(indptr), planes.n_classes)))
