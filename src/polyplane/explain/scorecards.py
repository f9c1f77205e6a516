"""Scorecards: additive models as points by column and bin, reasons for low scores, and the stability of populations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from polyplane._prediction import encode
from polyplane.base import class_index
from polyplane.explain.columns import ModelColumns
from polyplane.explain.text import data_frame, whole_number
from polyplane.inputs.encoding import BooleanColumn, CategoryColumn, Column, NumberColumn
from polyplane.model import Model

#: Added to the counts of a bin, so that weights of evidence are finite.
SMOOTHING = 0.5
#: Largest width of the ramp of a step, relative to the spread of the column.
STEEP = 0.01
#: Population stability indices below these are read as "stable" and "moderate shift"; above, as "shift".
SHIFTS = (0.1, 0.25)
#: Smallest share of a bin in population stability indices, and the number of bins of numbers and scores.
LEAST_SHARE, BINS = 1e-4, 10


@dataclass(frozen=True, eq=False)
class Scorecard:
    r"""A binary additive model as points.

    The log-odds of the event are a sum over the columns, and each column is constant within its bins. The score is
    :math:`\text{offset} - \text{factor} \cdot \text{log-odds}`, so that a higher score means a lower probability of the
    event, and it is the sum of the points of the bins of a row.

    Parameters
    ----------
    model : Model
        A model of a table with two classes, one plane each in each member, and steps as features of numbers.
    event : int
        Index of the class whose probability falls as the score grows.
    factor, offset : float
        The scaling of the log-odds.
    is_rounded : bool
        Whether points are integers.
    """

    model: Model
    event: int
    factor: float
    offset: float
    is_rounded: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.model.inputs.columns)  # type: ignore[union-attr]

    def points(self, X: Any) -> np.ndarray:
        """Compute the points of each column, shape (n_rows, n_columns).

        Parameters
        ----------
        X : data frame
            The rows.
        """
        return self._points(self.model.encode(X))

    def score_points(self, X: Any) -> np.ndarray:
        """Compute the score of each row, the sum of its points, shape (n_rows,)."""
        return np.asarray(self.points(X).sum(axis=1))

    def _points(self, Z: np.ndarray) -> np.ndarray:
        points = self._centre - self.factor * self._log_odds(Z)
        return np.round(points) if self.is_rounded else points

    def _log_odds(self, Z: np.ndarray) -> np.ndarray:
        """Return the part of each column in the log-odds of the event, shape (n_rows, n_columns)."""
        weight, _ = self._weights
        parts = self.model.transform(Z) * weight
        order = np.argsort(self.model.column_of_feature, kind="stable")
        present, starts = np.unique(self.model.column_of_feature[order], return_index=True)
        found = np.zeros((len(Z), len(self.columns)))
        found[:, present] = np.add.reduceat(parts[:, order], starts, axis=1)
        return found

    @cached_property
    def _weights(self) -> tuple[np.ndarray, float]:
        """The log-odds as a linear function of the features: weights and intercept."""
        planes, unit = self.model.planes, self.model.unit
        signs = planes.weights * np.where(planes.owners == self.event, 1.0, -1.0) / unit
        return signs @ planes.coef.astype(np.float64), float(signs @ planes.intercept.astype(np.float64))

    @cached_property
    def _centre(self) -> np.ndarray:
        """The points of the columns at log-odds of 0: at the reference row, all columns have the same points."""
        reference = self._log_odds(self.model.inputs.reference[None])[0]  # type: ignore[union-attr]
        base = self._weights[1] + reference.sum()
        return self.factor * reference + (self.offset - self.factor * base) / len(reference)

    def table(self, X: Any, y: Any) -> Any:
        """Return the points of all bins and levels, with figures of labelled rows, as a pandas DataFrame.

        Parameters
        ----------
        X : data frame
            Rows.
        y : array-like of shape (n_rows,)
            Their labels.

        Returns
        -------
        table : DataFrame
            A row for each bin or level: "column", "bin", "points", "share" of the rows, "event_rate", "woe" (weight of
            evidence, the logarithm of the ratio of the shares among the rows without and with the event) and "iv"
            (information value; that of a column is the sum over its bins).
        """
        Z = self.model.encode(X)
        is_event = encode(np.asarray(y), self.model.classes) == self.event
        found: dict[str, list[Any]] = {name: [] for name in ("column", "bin", "points", "share", "event_rate")}
        figures: list[np.ndarray] = []
        pairs = zip(self.model.inputs.columns, self.model.inputs.places, strict=True)  # type: ignore[union-attr]
        for j, (column, own) in enumerate(pairs):
            bins = Bins.of(self.model, column, own)
            rows = np.tile(self.model.inputs.reference, (len(bins.names), 1))  # type: ignore[union-attr]
            rows[:, own] = bins.values
            index = bins.index(Z[:, own])
            counts = np.stack([np.bincount(index[is_event == which], minlength=len(rows)) for which in (False, True)])
            total = counts.sum(axis=0)
            found["column"] += [column.name] * len(rows)
            found["bin"] += bins.names
            found["points"] += self._points(rows)[:, j].tolist()
            found["share"] += (total / len(Z)).tolist()
            found["event_rate"] += np.divide(counts[1], total, out=np.full(len(rows), np.nan), where=total > 0).tolist()
            shares = (counts + SMOOTHING) / (counts + SMOOTHING).sum(axis=1, keepdims=True)
            woe = np.log(shares[0] / shares[1])
            figures.append(np.stack([woe, (shares[0] - shares[1]) * woe]))
        woe, iv = np.concatenate(figures, axis=1)
        return data_frame({**found, "woe": woe, "iv": iv})


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of a column: their names, encoded values within them, and the edges of numbers."""

    names: list[str]
    values: np.ndarray
    edges: np.ndarray | None
    has_gaps: bool

    @classmethod
    def of(cls, model: Model, column: Column, own: slice) -> Bins:
        """Return the bins of numbers between the steps of a model, the levels of others, and missing values."""
        size, edges = own.stop - own.start, None
        special: tuple[float, ...] = ()
        if isinstance(column, NumberColumn):
            edges = _steps(model, column, own.start)
            middles = 0.5 * (edges[1:] + edges[:-1])
            ends = [[edges[0] - 1.0], middles, [edges[-1] + 1.0]] if len(edges) else [[column.neutral]]
            special = column.special
            numbers = np.concatenate([*ends, np.full(len(special), column.neutral)])
            names = _interval_names(edges, column.is_whole)
            names += [f"special: {column.text_of_code(code)}" for code in special]
        else:
            levels = [*column.levels, *(["other"] * column.has_other)] if isinstance(column, CategoryColumn) else None
            names = ["False", "True"] if levels is None else levels
            numbers = np.arange(len(names), dtype=np.float64)
        values = np.zeros((len(numbers), size))
        if isinstance(column, CategoryColumn):
            values[:, : column.encoded_levels.shape[1]] = column.encoded_levels
        else:
            values[:, 0] = numbers
            values[len(numbers) - len(special) :, 1 : 1 + len(special)] = np.eye(len(special))
        if column.has_gaps:
            missing = np.zeros((1, size))
            missing[0, 0] = 0.0 if isinstance(column, CategoryColumn) else column.neutral  # type: ignore[attr-defined]
            missing[0, -1] = 1.0
            names, values = [*names, "missing"], np.concatenate([values, missing])
        return cls(names, values, edges, column.has_gaps)

    def index(self, Z: np.ndarray) -> np.ndarray:
        """Return the bin of encoded values."""
        n_bins = len(self.names) - self.has_gaps
        if self.edges is not None:
            found = np.searchsorted(self.edges, Z[:, 0], side="right")
            n_special = Z.shape[1] - 1 - self.has_gaps
            for k in range(n_special):
                found[Z[:, 1 + k] > 0] = n_bins - n_special + k
        elif Z.shape[1] - self.has_gaps == 1:
            found = (Z[:, 0] > 0.5).astype(np.intp)
        else:  # an unknown level has no points of its own: it is counted with the last one
            bins = {row.tobytes(): i for i, row in reversed(list(enumerate(self.values[:n_bins])))}
            found = np.array([bins.get(row.tobytes(), n_bins - 1) for row in Z])
        return np.where(Z[:, -1] > 0, n_bins, found) if self.has_gaps else found


def _interval_names(edges: np.ndarray, is_whole: bool) -> list[str]:
    """Return the names of the intervals between edges; of integers, those of the integers within."""
    if not len(edges):
        return ["all"]
    if is_whole:
        low, high = np.ceil(edges).astype(int), np.floor(edges).astype(int)
        inner = [f"{a} to {b}" if a < b else f"{a}" for a, b in zip(low, high[1:], strict=False)]
        return [f"{high[0]} or less", *inner, f"{low[-1]} or more"]
    texts = [whole_number(edge, False, 4) for edge in edges.tolist()]
    return [
        f"below {texts[0]}",
        *(f"{a} to {b}" for a, b in pairwise(texts)),
        f"{texts[-1]} or more",
    ]


def _steps(model: Model, column: NumberColumn, source: int) -> np.ndarray:
    """Return the positions of the steps of a number; a TypeError if it is not constant between them."""
    features = model.features.take(np.flatnonzero(model.features.source == source))
    weight = model.planes.coef[:, model.features.source == source]
    used = features.take(np.flatnonzero(np.ptp(weight, axis=0) > 0))
    is_step = (used.op == 0) & np.isfinite(used.low) & np.isfinite(used.high)
    width = np.divide(used.high - used.low, np.abs(used.factor), out=np.full(len(is_step), np.inf), where=is_step)
    if not (width <= STEEP * column.range.spread).all():
        raise TypeError(
            f"The points of column {column.name!r} are not constant within bins: train "
            "TableClassifier(n_estimators=1, n_planes=1, preparation='steps')."
        )
    return np.unique(used.centre + 0.5 * (used.low + used.high) / used.factor)


def scorecard(
    estimator: Any,
    *,
    event: Any = None,
    points: float = 600.0,
    odds: float = 1 / 19,
    pdo: float = 50.0,
    is_rounded: bool = False,
) -> Scorecard:
    """Return an additive model of two classes as a scorecard.

    Parameters
    ----------
    estimator : TableClassifier, Pipeline or Model
        A fitted model: ``TableClassifier(n_estimators=1, n_planes=1, preparation="steps")``.
    event : object, default=None
        The class whose probability falls as the score grows, such as a default. None: the second one.
    points, odds : float, default=600.0, 1/19
        The score at these odds of the event.
    pdo : float, default=50.0
        The number of points that halve the odds.
    is_rounded : bool, default=False
        Whether to round the points of each bin to integers; scores are the sums of these.

    Returns
    -------
    card : Scorecard
        The scorecard.

    Examples
    --------
    >>> from polyplane import TableClassifier
    >>> from polyplane.datasets import make_loans
    >>> from polyplane.explain import scorecard
    >>> frame, y = make_loans(1000, random_state=0)
    >>> frame = frame.drop(columns="employed since")
    >>> model = TableClassifier(1, n_planes=1, preparation="steps", random_state=0).fit(frame, y)
    >>> card = scorecard(model, event="default", is_rounded=True)
    >>> card.table(frame, y)[["column", "bin", "points"]].head(2).values.tolist()
    [['age', '28 or less', 36.0], ['age', '29 to 50', 83.0]]
    >>> card.score_points(frame[:3]).tolist() == card.points(frame[:3]).sum(axis=1).tolist()
    True
    """
    model = Model.of(estimator).unprojected()
    if not model.inputs.is_table or model.n_classes != 2 or not model.is_additive or not model.has_probabilities:
        raise TypeError(
            f"A scorecard requires a table, two classes and one plane of each class, which this {model.learner} does "
            "not have: train TableClassifier(n_estimators=1, n_planes=1, preparation='steps')."
        )
    if not (odds > 0 and pdo > 0):
        raise ValueError(f"odds={odds!r} and pdo={pdo!r} must be positive.")
    for column, own in zip(model.inputs.columns, model.inputs.places, strict=True):  # type: ignore[union-attr]
        if not isinstance(column, NumberColumn | BooleanColumn | CategoryColumn):
            raise TypeError(f"Column {column.name!r} is a {column.kind}: convert it to numbers, or drop it.")
        if isinstance(column, NumberColumn):
            _steps(model, column, own.start)
    index = 1 if event is None else class_index("event", event, model.classes)
    factor = pdo / np.log(2.0)
    return Scorecard(model, index, float(factor), float(points + factor * np.log(odds)), is_rounded)


def reason_codes(estimator: Any, X: Any, *, event: Any = None, reference: Any = None, n_reasons: int = 4) -> Any:
    """Return the columns that increase the log-odds of an event most, relative to a reference row.

    Parameters
    ----------
    estimator : TableClassifier, Pipeline or Model
        A fitted model of any kind. Contributions are those of `Model.contributions`.
    X : data frame or array-like
        The rows.
    event : object, default=None
        The class to explain, such as a default or a refusal. None: the last one.
    reference : data frame or array-like of one row, default=None
        The reference. None: medians and most frequent levels of a table, the mean of the rows of a matrix.
    n_reasons : int, default=4
        Largest number of reasons of a row.

    Returns
    -------
    reasons : DataFrame
        The columns "row" (its position), "rank" (from 1), "column" and "contribution" (to the score of the class minus
        the mean of the others; in log-odds if the model has probabilities). Columns that do not increase it are not
        listed.

    Examples
    --------
    >>> from polyplane import TableClassifier
    >>> from polyplane.datasets import make_loans
    >>> from polyplane.explain import reason_codes
    >>> frame, y = make_loans(500, random_state=0)
    >>> model = TableClassifier(1, preparation="standard", n_planes=2, random_state=0).fit(frame, y)
    >>> reasons = reason_codes(model, frame[:20], event="default", n_reasons=2)
    >>> bool((reasons["contribution"] > 0).all()), int(reasons["rank"].max())
    (True, 2)
    """
    if n_reasons < 1:
        raise ValueError(f"n_reasons={n_reasons} must be at least 1.")
    model = Model.of(estimator)
    index = model.n_classes - 1 if event is None else class_index("event", event, model.classes)
    columns = ModelColumns.of(model, X)
    at = columns.reference.z if reference is None else np.asarray(model.encode(reference), dtype=np.float64).reshape(-1)
    parts = model.contributions(columns.Z, at) / model.unit
    gains = parts[:, :, index] - np.delete(parts, index, axis=2).mean(axis=2)
    order = np.argsort(-gains, axis=1, kind="stable")[:, :n_reasons]
    largest = np.take_along_axis(gains, order, axis=1)
    rows, ranks = np.nonzero(largest > 0)
    names = np.array(columns.names, dtype=object)[order[rows, ranks]]
    return data_frame({"row": rows, "rank": ranks + 1, "column": names, "contribution": largest[rows, ranks]})


def population_stability(estimator: Any, expected: Any, actual: Any) -> Any:
    r"""Compare the distributions of the columns and of the score between two populations.

    The population stability index is :math:`\sum_b (a_b - e_b) \log(a_b / e_b)` over bins, with the shares of the
    expected and the actual rows: deciles of the expected rows for numbers and scores, levels, and missing values.

    Parameters
    ----------
    estimator : TableClassifier, Pipeline or Model
        A fitted model.
    expected, actual : data frame or array-like
        Rows such as those of training, and new ones.

    Returns
    -------
    stability : DataFrame
        A row for the score ("score", of each class but the first) and for each column, with "psi" and its usual
        "reading": "stable" below 0.1, "moderate shift" below 0.25, "shift" above.

    Examples
    --------
    >>> from polyplane import TableClassifier
    >>> from polyplane.datasets import make_loans
    >>> from polyplane.explain import population_stability
    >>> frame, y = make_loans(2000, random_state=0)
    >>> model = TableClassifier(1, preparation="standard", n_planes=2, random_state=0).fit(frame, y)
    >>> shifted = frame.assign(income=1.4 * frame["income"])
    >>> found = population_stability(model, frame, shifted).set_index("name")
    >>> found["reading"].to_dict()["income"], found["reading"].to_dict()["age"]
    ('shift', 'stable')
    """
    model = Model.of(estimator)
    columns = ModelColumns.of(model)
    Z = [np.asarray(model.encode(X), dtype=np.float64) for X in (expected, actual)]
    if not all(len(part) for part in Z):
        raise ValueError("expected and actual must have at least one row each.")
    names, found = [], []
    scores = [model.class_scores(part) for part in Z]
    for c in range(1, model.n_classes):
        names.append("score" if model.n_classes == 2 else f"score of {model.classes[c]}")
        found.append(_index(*(part[:, c] - np.delete(part, c, axis=1).mean(axis=1) for part in scores)))
    of_encoded = model.inputs.column_of_encoded
    for j, name in enumerate(columns.names):
        parts = [part[:, of_encoded == j] for part in Z]
        if parts[0].shape[1] == 1:
            found.append(_index(*(part[:, 0] for part in parts)))
        else:
            is_indicator = model.inputs.is_indicator[of_encoded == j]  # type: ignore[union-attr]
            found.append(_index(*(_codes(part, parts[0], is_indicator) for part in parts)))
        names.append(name)
    readings = np.array(["stable", "moderate shift", "shift"], dtype=object)[np.searchsorted(SHIFTS, found)]
    return data_frame({"name": names, "psi": found, "reading": readings})


def _codes(part: np.ndarray, expected: np.ndarray, is_indicator: np.ndarray) -> np.ndarray:
    """Return a code for each row of the encoded numbers of a column: of its indicator, or the decile of its number."""
    decile = np.zeros(len(part))
    if not is_indicator[0]:
        cuts = np.unique(np.quantile(expected[:, 0], np.arange(1, BINS) / BINS))
        decile += np.searchsorted(cuts, part[:, 0], side="left")
    flags = part[:, is_indicator]
    return np.where(flags.any(axis=1), -1.0 - flags.argmax(axis=1), decile) if is_indicator.any() else decile


def _index(expected: np.ndarray, actual: np.ndarray) -> float:
    """Return the population stability index of numbers, by deciles of the expected ones or their few values."""
    values = np.unique(expected)
    cuts = np.unique(np.quantile(expected, np.arange(1, BINS) / BINS)) if len(values) > BINS else values[:-1]
    bins = [np.searchsorted(cuts, part, side="left") for part in (expected, actual)]
    shares = [np.maximum(np.bincount(own, minlength=len(cuts) + 1) / len(own), LEAST_SHARE) for own in bins]
    return float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())


def gini_and_ks(score: Sequence[float] | np.ndarray, is_event: np.ndarray) -> tuple[float, float]:
    """Compute the Gini coefficient and the Kolmogorov-Smirnov statistic of scores that fall with an event."""
    from sklearn.metrics import roc_auc_score, roc_curve

    below, above, _ = roc_curve(is_event, -np.asarray(score))
    return 2.0 * float(roc_auc_score(is_event, -np.asarray(score))) - 1.0, float(np.abs(above - below).max())
