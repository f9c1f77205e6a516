"""`explain_row`: explanation of a prediction, and the smallest change that leads to another class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from polyplane._plain import plain
from polyplane.base import class_index
from polyplane.explain.columns import ModelColumns, Row
from polyplane.explain.geometry import counterfactual, table_counterfactual
from polyplane.explain.text import Explanation, data_frame, number, quoted, signed, signed_number
from polyplane.model import Model

#: Contributions below this fraction of the largest are summed up in one line.
SMALL = 0.03
#: Number of words of a text that are listed.
MAX_WORDS = 5


@dataclass(frozen=True, eq=False)
class Flip:
    """Counterfactual: the smallest change of a row that leads to another class.

    Parameters
    ----------
    label : object
        Label of this class.
    changes : dict of str to pair of values
        Values before and after the change, by column name, the largest change first.
    distance : float
        Size of the change. For rows of numbers, its length, with each column divided by its scale. For rows of a table,
        the sum of the changes: that of a number or a date in units of the column's spread (the interquartile range of
        the training rows, or their standard deviation if that is 0), that of a category or a boolean counts 1.
    proven : bool
        Whether no smaller change leads to the target class, or to any other class if no target is given. False if the
        change is found by local search.
    values : ndarray or list
        The changed row: a value of each column.
    """

    label: Any
    changes: dict[str, tuple[Any, Any]]
    distance: float
    proven: bool
    values: Any


@dataclass(frozen=True, eq=False)
class RowExplanation(Explanation):
    r"""Explanation of the predicted class of a row.

    The score of the predicted class :math:`c` exceeds that of its rival :math:`d` by

    .. math:: s_c(x) - s_d(x) = \text{base} + \sum_j \phi_j

    where :math:`\phi_j` is the contribution of column :math:`j` relative to the reference row, and 0 if the column has
    its reference value; see `Model.contributions`. If class scores are maxima of planes, contributions are those of the
    planes with the largest scores at the row, and the base is the difference of these planes at the reference row.
    Otherwise the base is the difference of the scores at the reference row. If the model has probabilities, scores are
    in log-odds: the difference of two is the logarithm of the ratio of the probabilities.

    Parameters
    ----------
    label, rival : object
        The predicted label, and the one with the second-best score or the target class.
    true_label : object or None
        The true label of the row, if known.
    classes : list
        Class labels.
    plane, rival_plane : int or None
        Planes of the two classes with the largest scores, numbered from 1 within each class; None if classes are not
        decided by single planes.
    probabilities : ndarray of shape (n_classes,) or None
        Probabilities of the classes, if the model has them.
    difference, base : float
        Score difference of the two classes at the row, and at the reference.
    contributions : ndarray of shape (n_columns,)
        Contribution of each column; the contributions and the base sum to the difference.
    values, reference : ndarray or list
        The row and the reference row: numbers, strings, or None for missing values.
    columns : tuple of str
        Names of the columns.
    notes : dict of int to str
        Notes about columns: "imputed", or "rare or unknown level".
    flip : Flip or None
        The smallest change that leads to another class; None if none was found within the bounds.
    searched : bool
        Whether a change was searched for.
    n_members : int
        Number of members of a committee; 1 for a single model.
    """

    _printed: ClassVar[int] = 10
    label: Any
    rival: Any
    true_label: Any
    classes: list[Any]
    plane: int | None
    rival_plane: int | None
    probabilities: np.ndarray | None
    difference: float
    base: float
    contributions: np.ndarray
    values: Any
    reference: Any
    columns: tuple[str, ...]
    notes: dict[int, str]
    flip: Flip | None
    searched: bool
    n_members: int
    _described: ModelColumns

    @property
    def probability(self) -> float | None:
        """Probability of the predicted class, if the model has probabilities."""
        return None if self.probabilities is None else float(self.probabilities[self.classes.index(self.label)])

    @property
    def score_name(self) -> str:
        """What contributions add up to: "log-odds", or "score" if the model has no probabilities."""
        return "score" if self.probabilities is None else "log-odds"

    @property
    def is_told_in_odds(self) -> bool:
        """Whether the text tells probabilities, not scores of planes."""
        return self.probabilities is not None and self.plane is None

    def by_contribution(self) -> list[int]:
        """Return the columns with a non-zero contribution, the largest first."""
        order = np.argsort(-np.abs(self.contributions), kind="stable")
        return order[self.contributions[order] != 0].tolist()

    def told(self, top: int | None = None) -> tuple[list[int], list[int]]:
        """Return the columns to list, at most `top`, and the other contributing columns, including small ones."""
        order = self.by_contribution()
        if top is None:
            return order, []
        sizes = np.abs(self.contributions)
        large = [j for j in order[:top] if sizes[j] >= SMALL * sizes.max()]
        return (large, order[len(large) :]) if len(order) > len(large) + 1 else (order, [])

    def shown(self, j: int) -> tuple[str, str]:
        """Return the value of a column and its reference value as text."""
        value, reference = self._described.shown(j, self.values[j], self.reference[j])
        return value, reference

    def shown_changes(self, top: int | None = None) -> list[tuple[str, str, str]]:
        """Return the names of the `top` changed columns and their values before and after, as text."""
        changes = [] if self.flip is None else list(self.flip.changes.items())[:top]
        shown = [self._described.shown(self.columns.index(name), *pair) for name, pair in changes]
        return [(name, before, after) for (name, _), (before, after) in zip(changes, shown, strict=True)]

    def reason(self, j: int) -> str:
        """Return the value of a column and its reference value in a phrase."""
        value, reference = self.shown(j)
        note = f"{self.notes[j]}, " if j in self.notes else ""
        is_value = "is missing" if self.values[j] is None else f"= {value}"
        return f"{quoted(self.columns[j])} {is_value} ({note}reference {reference})"

    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` largest contributions; if None, with all."""
        large, small = self.told(top)
        form = signed if self.is_told_in_odds else signed_number
        parts = [(form(self.contributions[j]), self.reason(j)) for j in large]
        if small:
            parts.append((form(float(self.contributions[small].sum())), f"{len(small)} other columns"))
        parts.append((form(self.base), "at the reference row"))
        width = max(len(size) for size, _ in parts)
        lines = [f"  {size:>{width}}  {reason}" for size, reason in parts]
        return "\n".join([*self.headline(), *lines, *self._flip_lines(top)])

    def headline(self) -> list[str]:
        """Return the prediction in one or two sentences."""
        truth = "" if self.true_label is None else f" The true class is {self.true_label!r}."
        if self.is_told_in_odds:
            return [
                f"The predicted class is {self.label!r}, with probability {self.probability:.3f}.{truth}",
                f"It is {self.odds()} times as probable as class {self.rival!r} (log-odds {self.difference:.2f}):",
            ]
        planes = ["" if plane is None else f" (plane {plane})" for plane in (self.plane, self.rival_plane)]
        return [
            f"The predicted class is {self.label!r}{planes[0]}.{truth} Its score exceeds that of class "
            f"{self.rival!r}{planes[1]} by {number(self.difference)}:"
        ]

    def odds(self) -> str:
        """Return the ratio of the probabilities of the two classes as text."""
        odds = float(np.exp(min(self.difference, 50.0)))
        return number(odds, 2 if odds >= 2 else 3)

    def smallest(self) -> str:
        """Return what the change is proven to be."""
        return "The smallest change" if self.flip is None or self.flip.proven else "A small change"

    def _flip_lines(self, top: int | None) -> list[str]:
        if not self.searched:
            return []
        if self.flip is None:
            found = "leads to another class." if self.plane else "that leads to another class was found."
            return [f"No change within the bounds {found}"]
        if not self.flip.changes:
            return [f"The predicted class is already {self.flip.label!r}."]
        is_table = self._described.model.inputs.is_table
        far = f"distance {number(self.flip.distance, 3 if is_table else 4)}"
        far += ", in interquartile ranges of the columns" if is_table else ""
        changes = self.shown_changes(top)
        lines = [f"{self.smallest()} that leads to class {self.flip.label!r} ({far}):"]
        lines += [f"  {quoted(name)}: {before} -> {after}" for name, before, after in changes]
        left = len(self.flip.changes) - len(changes)
        return [*lines, f"  and smaller changes of {left} other columns"] if left else lines

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON types."""
        names = ("label", "true_label", "rival", "plane", "rival_plane", "difference", "base", "columns", "values")
        told = {name: getattr(self, name) for name in (*names, "reference", "contributions")}
        told |= {"members": self.n_members, "notes": {self.columns[j]: note for j, note in self.notes.items()}}
        told |= {"probabilities": None, "flip": None}
        if self.probabilities is not None:
            told["probabilities"] = dict(zip(map(str, self.classes), self.probabilities.tolist(), strict=True))
        if self.flip is not None:
            changes = {name: {"from": before, "to": after} for name, (before, after) in self.flip.changes.items()}
            told["flip"] = {**vars(self.flip), "changes": changes}
        return plain(told)  # type: ignore[no-any-return]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each column, the largest contribution first."""
        changes = {} if self.flip is None else self.flip.changes
        frame = data_frame(
            {
                "column": self.columns,
                "value": self.values,
                "reference": self.reference,
                "contribution": self.contributions,
                "changed": [changes[name][1] if name in changes else None for name in self.columns],
            }
        )
        return frame.sort_values("contribution", key=abs, ascending=False, ignore_index=True, kind="stable")


def explain_row(
    estimator: Any,
    x: Any,
    *,
    X: Any = None,
    reference: Any = None,
    target: Any = None,
    true_label: Any = None,
    lower: Any = None,
    upper: Any = None,
    frozen: Any = None,
    scale: Any = None,
    feature_names: Any = None,
    increasing: Any = None,
    decreasing: Any = None,
    max_columns: int | None = None,
    search: bool = True,
) -> RowExplanation:
    """Explain the prediction for a row, and find the smallest change that leads to another class.

    The contributions of the columns are exact. The change is exact as well, except for a committee of several members,
    where it is found by local search and not proven to be the smallest. In a row of a table, changes of one or two
    columns are proven to be the smallest.

    Parameters
    ----------
    estimator : classifier, Pipeline or Model
        Any estimator that `Model.of` accepts. The explanation is in the units of the data.
    x : array-like of shape (n_columns,), dict of column name to value, or one row of a matrix or data frame
        The row. Missing values are imputed if the pipeline has an imputer.
    X : array-like or sparse matrix of shape (n_rows, n_features), default=None
        Rows that determine the default of `reference` and `scale`, for example the training rows.
    reference : array-like of shape (n_features,), default=None
        The reference row, to which contributions are relative. If None, the mean of `X`. Without `X`, the row that the
        scalers of the pipeline map to 0 (for StandardScaler, the mean of the training rows); without scalers, 0. For a
        `TableClassifier`, the row of medians and most frequent levels.
    target : label, default=None
        The target class of the change. If None, the nearest one.
    true_label : label, default=None
        The true label of the row. If it is not predicted and `target` is None, it is the target class.
    lower, upper : float, array-like of shape (n_features,), or dict of feature name to float, default=None
        Bounds of the changed row.
    frozen : sequence of feature names or numbers, or a mask, default=None
        Features that must not change.
    scale : array-like of shape (n_features,), default=None
        Units of the features in distances. If None, those of the scalers of the pipeline; without scalers, the standard
        deviations in `X`; without `X`, 1 for all.
    feature_names : sequence of str, default=None
        Names of the features. If None, those seen during `fit`.
    increasing, decreasing : sequence of column names, default=None
        For tables: columns that can only increase, or only decrease.
    max_columns : int, default=None
        For tables: maximum number of columns that may change.
    search : bool, default=True
        Whether to search for a change. Without the search, an explanation takes a few milliseconds.

    Returns
    -------
    explanation : RowExplanation
        The explanation. Print it, or use its methods `to_text`, `to_dict` and `to_frame`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import explain_row
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X, y = X[["mean radius", "mean texture"]], y.map({0: "malignant", 1: "benign"})
    >>> model = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(X, y)
    >>> print(explain_row(model, X.iloc[0], frozen=["mean texture"]))
    The predicted class is 'malignant' (plane 1). Its score exceeds that of class 'benign' (plane 1) by 0.8464:
       +2.513  mean radius = 17.99 (reference 14.13)
       -1.164  mean texture = 10.38 (reference 19.29)
      -0.5022  at the reference row
    The smallest change that leads to class 'benign' (distance 0.3695):
      mean radius: 17.99 -> 16.69

    A row of a table, as a dict:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"age": rng.integers(18, 80, 400), "member": rng.choice(["yes", "no"], 400)})
    >>> price = np.where((frame["age"] >= 60) | (frame["member"] == "yes"), "reduced", "full")
    >>> table = TableClassifier(random_state=0).fit(frame, price)
    >>> why = explain_row(table, {"age": 30, "member": "yes"}, frozen=["age"])
    >>> why.label, why.reason(1), why.flip.changes
    ('reduced', 'member = yes (reference no)', {'member': ('yes', 'no')})
    """
    model = Model.of(estimator)
    if model.inputs.is_table and X is not None:
        raise TypeError("X cannot be set: a table model knows its reference row and the spreads of its columns.")
    columns = ModelColumns.of(model, X, feature_names, scale)
    of_tables = {"increasing": increasing, "decreasing": decreasing, "max_columns": max_columns}
    if not model.inputs.is_table and any(value is not None for value in of_tables.values()):
        given = next(name for name, value in of_tables.items() if value is not None)
        raise TypeError(f"{given} cannot be set: it applies to tables only.")
    allowed = {"lower": lower, "upper": upper, "frozen": frozen, **of_tables}
    typical = columns.reference if reference is None else columns.read(reference)
    row = columns.read(x)
    return explained_row(columns, row, typical, target, true_label, allowed if search else None)


def explained_row(
    columns: ModelColumns,
    row: Row,
    typical: Row,
    target: Any = None,
    true_label: Any = None,
    allowed: dict[str, Any] | None = None,
) -> RowExplanation:
    """Explain a row relative to a reference row; without `allowed` changes, no change is searched for."""
    model = columns.model
    scores = model.class_scores(row.z[None].astype(np.float64))[0]
    c = int(scores.argmax())
    truth = None if true_label is None else class_index("true_label", true_label, model.classes)
    goal = class_index("target", target, model.classes) if target is not None else None if truth == c else truth
    rival = int(np.where(np.arange(len(scores)) == c, -np.inf, scores).argmax()) if goal in (None, c) else goal
    parts = model.contributions(row.z[None], typical.z)[0]
    contributions = (parts[:, c] - parts[:, rival]) / model.unit
    notes = dict(row.notes)
    inputs: Any = model.inputs
    if inputs.is_table and any(column.kind == "text" for column in inputs.columns):
        single = model.contributions(row.z[None], typical.z, of_encoded=True)[0]
        notes |= _words(inputs, (single[:, c] - single[:, rival]) / model.unit)
    difference = float(scores[c] - scores[rival]) / model.unit
    plane = rival_plane = None
    if model.has_winners and model.planes.pooling == "max":
        best, starts = model.plane_scores(row.z[None].astype(np.float64))[0], model.planes.indptr
        plane, rival_plane = (int(best[starts[i] : starts[i + 1]].argmax()) + 1 for i in (c, rival))
    labels = model.classes.tolist()
    if not (model.inputs.is_table or model.features.is_affine):
        allowed = None  # a clipped column: neither search applies
    return RowExplanation(
        label=labels[c],
        rival=labels[rival],
        true_label=None if truth is None else labels[truth],
        classes=labels,
        plane=plane,
        rival_plane=rival_plane,
        probabilities=model.probabilities(scores[None])[0] if model.has_probabilities else None,
        difference=difference,
        base=difference - float(contributions.sum()),
        contributions=contributions,
        values=row.values,
        reference=typical.values,
        columns=tuple(columns.names),
        notes=notes,
        flip=None if allowed is None else _flip(columns, row, goal, allowed),
        searched=allowed is not None,
        n_members=model.planes.n_members,
        _described=columns,
    )


def _words(inputs: Any, parts: np.ndarray) -> dict[int, str]:
    """Return the words of each text column with the largest contributions, which are given by encoded number."""
    notes: dict[int, str] = {}
    for j, (column, own) in enumerate(zip(inputs.columns, inputs.places, strict=True)):
        if column.kind == "text":
            sizes = parts[own][: len(column.words)]
            order = [i for i in np.argsort(-np.abs(sizes), kind="stable")[:MAX_WORDS].tolist() if sizes[i]]
            listed = ", ".join(f"{column.words[i]!r} {signed(sizes[i])}" for i in order)
            notes |= {j: f"contains {listed}"} if listed else {}
    return notes


def _flip(columns: ModelColumns, row: Row, goal: int | None, allowed: dict[str, Any]) -> Flip | None:
    model, labels = columns.model, columns.model.classes.tolist()
    if not model.inputs.is_table:
        lower, upper = (_by_index(columns, allowed[name], end) for name, end in (("lower", -np.inf), ("upper", np.inf)))
        frozen = _indices(columns, allowed["frozen"])
        found = counterfactual(model, row.z, goal, lower=lower, upper=upper, frozen=frozen, scale=columns.scale)
        if found is None:
            return None
        sizes = np.abs(found.change) / columns.scale
        order = np.argsort(-sizes, kind="stable")
        noticed = order[sizes[order] > 1e-6 * sizes.max()].tolist()
        changes = {columns.names[j]: (float(row.z[j]), float(found.point[j])) for j in noticed}
        return Flip(labels[found.after], changes, found.distance, found.proven, found.point)
    for name in ("lower", "upper"):
        if allowed[name] is not None and not isinstance(allowed[name], Mapping):
            raise TypeError(f"For tables, {name} must be a dict of column name to bound, not {allowed[name]!r}.")
    low, high = allowed["lower"] or {}, allowed["upper"] or {}
    of_table = table_counterfactual(
        model,
        row.z,
        goal,
        bounds={name: (low.get(name), high.get(name)) for name in {**low, **high}},
        **{name: allowed[name] or () for name in ("frozen", "increasing", "decreasing")},
        max_columns=allowed["max_columns"],
    )
    if of_table is None:
        return None
    after = {name: pair[1] for name, pair in of_table.changes.items()}
    before = dict(zip(columns.names, row.values, strict=True))
    changes = {
        name: (before[name] if isinstance(value, str) else own, value)
        for name, (own, value) in of_table.changes.items()
    }
    return Flip(labels[of_table.target], changes, of_table.distance, of_table.proven, list((before | after).values()))


def _by_index(columns: ModelColumns, given: Any, otherwise: float) -> Any:
    """Return bounds by index, given bounds by name."""
    if not isinstance(given, Mapping):
        return given
    bounds = np.full(len(columns.names), otherwise)
    bounds[_indices(columns, list(given))] = list(given.values())
    return bounds


def _indices(columns: ModelColumns, given: Any) -> Any:
    """Return the indices of columns, given indices or names."""
    if given is None or not any(isinstance(item, str) for item in given):
        return given
    unknown = [name for name in given if name not in columns.names]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a column of the model.")
    return [columns.names.index(name) for name in given]
