"""`explain_model`: a model as rules, or as importance and effects of its columns."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._plain import plain
from polyplane.explain.columns import CellValue, ModelColumns
from polyplane.explain.effects import ColumnEffect, Effects
from polyplane.explain.rules import PlaneRule, Rules
from polyplane.explain.text import Explanation, data_frame, listed, quoted, signed
from polyplane.model import Model
from polyplane.planes import PlaneSet

#: Largest number of classes for which effects are printed; with more, only the importance of columns.
MAX_CLASSES = 6
#: Largest number of columns whose effects `to_dict` contains.
MAX_COLUMNS = 100


class ModelExplanation(Effects, Explanation):
    r"""A model as rules in the units of the data, and the importance and effects of its columns.

    Effects refer to the score of a class minus the mean score of the other classes; for two classes, minus the score of
    the other class. If the model has probabilities, scores are in log-odds: the difference of the scores of two classes
    is the logarithm of the ratio of their probabilities.

    Attributes
    ----------
    learner : str
        Class name of the estimator.
    classes : list
        Class labels.
    columns : tuple of str
        Names of the columns that the model uses.
    dropped : dict of str to str
        Columns of a table that are not used, with the reason.
    n_members : int
        Number of members of a committee; 1 for a single model.
    n_rows : int or None
        Number of rows that the model is evaluated on; None without rows.
    shares : ndarray of shape (n_classes,) or None
        Fraction of the rows for which each class is predicted.
    typical : list of tuple of int
        Indices of the rows nearest to the mean of the rows of each predicted class.
    rules : tuple of PlaneRule
        The planes of a piecewise linear model, or of a single member with several planes per class, ordered by class.
    importance : ndarray of shape (n_columns,)
        Standard deviation over rows of the contribution of each column to the score of a class, as the root mean square
        over the classes. Without rows, it is estimated from the distribution of the columns: from the counts of levels,
        and from the centre and the spread of numbers, assuming a normal distribution.
    by_class : ndarray of shape (n_columns, n_classes)
        The same for each class.
    effects : tuple of ColumnEffect
        Effects of the values of each column. If each class has one plane in each member, the sum of the effects and the
        base is exactly the score. Otherwise the effects depend on the other columns: they are means over the rows, or
        without rows, effects at the reference row.
    base : ndarray of shape (n_classes,)
        Scores of the classes at the reference row, minus the mean of the other classes.
    reference : dict of str to float or str
        The reference row: medians and most frequent levels of a table, means of the columns of a matrix.
    """

    _printed = 8

    def __init__(
        self, described: ModelColumns, tolerance: float = 0.0, digits: int | None = None, n_typical: int = 3
    ) -> None:
        super().__init__(described)
        model, Z, planes = described.model, described.Z, self._model.planes
        self._of_column: dict[str, list[ColumnEffect]] = {}
        self.learner, self.classes = model.learner, model.classes.tolist()
        self.dropped = dict(described.inputs.dropped) if model.inputs.is_table else {}
        self.n_members, self.n_rows = planes.n_members, None if Z is None else int(Z.shape[0])
        has_planes, winners, predicted = model.is_piecewise_linear or self._has_planes, None, None
        if Z is not None and Z.shape[0]:
            predicted = self._model.class_scores(Z).argmax(axis=1)
            if model.is_piecewise_linear:
                winners = planes.winners(Z)
            elif has_planes:
                own = planes.owners == predicted[:, None]
                winners = np.where(own, self._model.plane_scores(Z), -np.inf).argmax(axis=1)
        deviations = described.influence
        self.shares, self.typical = _usage(predicted, planes.n_classes, Z, deviations, n_typical)
        by_plane, typical_of_plane = _usage(winners, planes.n_planes, Z, deviations, n_typical)
        self.rules = tuple(
            PlaneRule(
                label=self.classes[c],
                number=p - int(planes.indptr[c]) + 1,
                plane=p,
                share=None if by_plane is None else float(by_plane[p]),
                typical=typical_of_plane[p],
                base=float(self._at_reference[p] - self._at_reference.mean()),
            )
            for p, c in enumerate(planes.owners.tolist() if has_planes else [])
        )
        #: The rounded planes of the rules, and the effect of rounding; None without rules.
        self.rounded = Rules.of(described, tolerance, digits) if model.is_piecewise_linear else None

    @property
    def score_name(self) -> str:
        """What effects change: "log-odds", or "score" if the model has no probabilities."""
        return "log-odds" if self._model.has_probabilities else "score"

    @property
    def reference(self) -> dict[str, CellValue]:
        """The reference row."""
        return dict(zip(self.columns, self._described.reference.values, strict=True))

    @cached_property
    def effects(self) -> tuple[ColumnEffect, ...]:
        """Effects of the values of all columns."""
        return tuple(effect for name in self.columns for effect in self.of_column(name))

    def of_column(self, column: str) -> list[ColumnEffect]:
        """Return the effects of a column: one, or one for each part of a date."""
        if column not in self.columns:
            reason = f": it was dropped because {self.dropped[column]}" if column in self.dropped else ""
            raise ValueError(f"{column!r} is not a column that the model uses{reason}.")
        if column not in self._of_column:
            self._of_column[column] = self._effects_of(self.columns.index(column))
        return self._of_column[column]

    def by_importance(self) -> list[int]:
        """Return the columns, the most important first."""
        return np.argsort(-self.importance, kind="stable").tolist()

    def shown_classes(self) -> list[int]:
        """Return the classes whose effects are shown: for two classes, only the second."""
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))

    def busiest(self) -> list[PlaneRule]:
        """Return the planes, those that decide the most rows first."""
        return sorted(self.rules, key=lambda rule: -(rule.share or 0.0))

    def typical_rows(self) -> list[int]:
        """Return typical rows, alternating between the planes or classes."""
        groups = [rule.typical for rule in self.busiest()] if self.rounded is not None else self.typical
        return [i for rank in range(3) for rows in groups for i in rows[rank : rank + 1]]

    def class_weights(self) -> np.ndarray:
        """Return the mean weights of the columns of each class over the rows where it is predicted."""
        model, Z = self._model, self._Z
        scores = model.plane_scores(Z)
        shares = model.planes.shares(scores) * model.planes.weights
        predicted = model.planes.pooled(scores).argmax(axis=1)
        weights = np.zeros((model.n_classes, model.planes.n_features))
        for c in np.unique(predicted):
            own = model.planes.owners == c
            weights[c] = shares[predicted == c][:, own].mean(axis=0) @ model.planes.coef[own]
        return weights

    # Rules.

    @property
    def inside(self) -> int | None:
        """The class that is predicted if all inequalities hold; None if rules are scores, or without rules."""
        return None if self.rounded is None else self.rounded.inside

    @property
    def planes(self) -> PlaneSet:
        """The exact planes over the features that they are linear in; for a piecewise linear model, its columns."""
        return self._model.planes

    def rule(self, plane: int, top: int | None = None) -> str:
        """Return the rule of a plane as text, with its `top` leading terms; if None, with all."""
        if self.rounded is None:
            raise ValueError("This model has no rules: its planes are not linear in the columns of the rows.")
        return self.rounded.rule(plane, top)

    # Text, dict and frame.

    def to_text(self, top: int | None = None) -> str:
        """Return the explanation as text, with the `top` leading terms or most important columns; if None, with all."""
        if self.rounded is not None:
            return "\n".join([*self._rule_lines(self.rounded, top), "", *self.monotone(), self.rounded.note()])
        members = f"{self.n_members} members" if self.n_members > 1 else "one member"
        scores = "Scores are in log-odds. " if self.score_name == "log-odds" else ""
        lines = [
            f"{self.learner}: {members}, {len(self.columns)} columns, {len(self.classes)} classes. "
            f"{scores}{self.about_effects()}",
            self.meaning(),
            *self.monotone(),
        ]
        if len(self.classes) > MAX_CLASSES:
            order = self.by_importance()[:top]
            named = [f"  {self.importance[j]:6.3f}  {quoted(self.columns[j])}" for j in order]
            lines += ["", "Importance of the columns:", *named, *self._rest(len(order))]
        else:
            for c in self.shown_classes():
                lines += ["", *self._class_lines(c, top)]
        return "\n".join([*lines, *(["", *self.plane_lines(top)] if self.rules else [])])

    def meaning(self) -> str:
        """Return a definition of the importance, in a sentence."""
        if self.n_rows is None:
            return (
                "Importance is the standard deviation of a column's contribution, estimated from the counts of levels "
                "and the spread of numbers in training; pass rows to compute it on them."
            )
        return f"Importance is the standard deviation of a column's contribution over {self._Z.shape[0]:,} rows."

    def monotone(self) -> list[str]:
        """Return a sentence for each class and direction in which it is proven to change with columns.

        Directions of linear models, which are those of their weights, are not listed.
        """
        model, sentences = self._model, []
        if model.is_additive and model.features.is_affine:
            return []
        for c, label in enumerate(self.classes):
            for sign, word in ((1, "non-decreasing"), (-1, "non-increasing")):
                names = [quoted(self.columns[j]) for j in np.flatnonzero(model.directions[:, c] == sign)]
                if names:
                    sentences.append(f"The probability of class {label} is {word} in {', '.join(names)}.")
        return sentences

    def about_effects(self, brackets: bool = True) -> str:
        """Return a definition of the effects, in a sentence; `brackets` adds the meaning of numbers in brackets."""
        if self.is_additive:
            return "Effects are relative to the reference value; the score is exactly their sum."
        if self.n_rows is None:
            return "Effects are relative to the reference value, with all other columns at their reference values."
        means = f"Effects are relative to the reference value, averaged over {self._Z.shape[0]:,} rows"
        return means + ("; in brackets, the range of the middle 80 % of the rows if it is wide." if brackets else ".")

    def _rule_lines(self, rules: Rules, top: int | None) -> list[str]:
        if rules.inside is None:
            lines = ["The predicted class is that of the plane with the highest score."]
            for plane in self.rules:
                share = "" if plane.share is None else f", {_share_of_rows(plane)}"
                lines.append(f"Plane {plane.number} of class {plane.label!r}{share}:")
                lines.append(f"  {rules.rule(plane.plane, top)}")
            return lines
        around = [plane for plane in self.rules if plane.plane != rules.own_plane]
        [home] = [plane for plane in self.rules if plane.plane == rules.own_plane]
        other = self.classes[1 - rules.inside]
        if len(around) == 1:
            lines = [f"Class {other!r} if {rules.rule(around[0].plane, top)}, otherwise class {home.label!r}."]
        else:
            lines = [f"Class {home.label!r} if all of:"]
            for plane in around:
                share = "" if plane.share is None else f"   (else {other!r}: {_share_of_rows(plane)})"
                lines.append(f"  {plane.number}. {rules.rule(plane.plane, top)}{share}")
            lines.append(f"otherwise class {other!r}.")
        known = [plane for plane in (around if len(around) == 1 else []) + [home] if plane.share is not None]
        return lines + [f"Class {plane.label!r} is predicted for {_share_of_rows(plane)}." for plane in known]

    def _class_lines(self, c: int, top: int | None) -> list[str]:
        rival = f"class {self.classes[1 - c]!r}" if len(self.classes) == 2 else "the mean of the other classes"
        order = np.argsort(-self.by_class[:, c], kind="stable")[:top].tolist()
        lines = [f"Class {self.classes[c]!r} against {rival}; importance, column, effects:"]
        for j in order:
            effects = self.of_column(self.columns[j])
            told = "; ".join(effect.to_text(effect.effect[:, c], c) for effect in effects)
            missing = "" if effects[0].missing is None else f", {signed(effects[0].missing[c])} missing"
            lines.append(f"  {self.by_class[j, c]:6.3f}  {quoted(self.columns[j])}: {told}{missing}")
        lines += self._rest(len(order))
        return [*lines, f"  {self.base[c]:+6.3f}  at the reference row, where all effects are 0"]

    def plane_lines(self, top: int | None = None) -> list[str]:
        """Return the planes by the effects of columns on their scores, with the `top` largest; if None, with all."""
        lines = [
            "Planes, relative to the mean of all planes and the reference row. The score of a class is the "
            + ("largest one" if self._model.has_winners else "logarithm of the sum of exp(score)")
            + " over its planes:"
        ]
        weights = [effect.weights() for effect in self.effects]
        for plane in self.rules:
            share = "" if plane.share is None else f", which decides {plane.percent} % of the rows"
            base = f"{signed(plane.base)} at the reference row"
            lines.append(f"Plane {plane.number} of class {plane.label!r}{share}: {base}")
            parts = [np.zeros(0) if e.by_plane is None else e.by_plane[:, plane.plane] for e in self.effects]
            sizes = [float(weight @ np.abs(part)) for weight, part in zip(weights, parts, strict=True)]
            order = np.argsort(-np.array(sizes), kind="stable")[:top].tolist()
            lines += [f"  {self.effects[i].name}: {self.effects[i].to_text(parts[i])}" for i in order]
            left = len(parts) - len(order)
            lines += [f"  and smaller contributions of {left} other terms"] if left else []
        return lines

    def _rest(self, n_shown: int) -> list[str]:
        left = len(self.columns) - n_shown
        return [f"          {left} other {'column is' if left == 1 else 'columns are'} less important"] if left else []

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of JSON types; effects are those of the 100 most important columns."""
        same = ("part", "reference", "values", "effect", "missing", "by_plane")
        effects = [
            {"column": effect.column, "type": effect.column_type, "rows": effect.counts}
            | {name: getattr(effect, name) for name in same}
            for j in sorted(self.by_importance()[:MAX_COLUMNS])
            for effect in self.of_column(self.columns[j])
        ]
        by_class = [
            {"class": label, "share": None if self.shares is None else self.shares[c], "typical_rows": self.typical[c]}
            for c, label in enumerate(self.classes)
        ]
        names = ("learner", "classes", "columns", "importance", "reference", "base", "is_additive", "dropped")
        told = {name: getattr(self, name) for name in names}
        told |= {"members": self.n_members, "rows": self.n_rows, "importance_by_class": self.by_class}
        told |= {"effects": effects, "by_class": by_class, "rules": [self._rule_dict(rule) for rule in self.rules]}
        told["inside"] = None if self.inside is None else self.classes[self.inside]
        if self.rounded is not None:
            told |= {"digits": self.rounded.digits, "terms_left_out": self.rounded.dropped}
            told["predictions_changed"] = self.rounded.changed
        return plain(told)  # type: ignore[no-any-return]

    def _rule_dict(self, plane: PlaneRule) -> dict[str, Any]:
        told = {"class": plane.label, "number": plane.number, "plane": plane.plane, "base": plane.base}
        told |= {"share": plane.share, "typical_rows": plane.typical}
        if self.rounded is not None:
            coef = self.rounded.planes.coef[plane.plane]
            told["rule"] = self.rounded.rule(plane.plane)
            told["weights"] = {self.columns[j]: coef[j] for j in np.flatnonzero(coef)}
            told["offset"] = self.rounded.planes.intercept[plane.plane]
        return told

    def to_frame(self, column: str | None = None) -> Any:
        """Return a pandas DataFrame with a row for each rule or column, or for each value of a column."""
        if column is not None:
            effects = self.of_column(column)
            rows = [(e.part, v, e.effect[i]) for e in effects for i, v in enumerate(e.values)]
            rows += [(None, None, effects[0].missing)] if effects[0].missing is not None else []
            parts = {"part": [part for part, _, _ in rows]} if len(effects) > 1 else {}
            by_class = {str(self.classes[c]): [effect[c] for _, _, effect in rows] for c in self.shown_classes()}
            return data_frame({**parts, "value": [value for _, value, _ in rows], **by_class})
        if self.rounded is None:
            order = self.by_importance()
            return data_frame({"column": [self.columns[j] for j in order], "importance": self.importance[order]})
        return data_frame(
            {
                "class": [plane.label for plane in self.rules],
                "plane": [plane.number for plane in self.rules],
                "share": [np.nan if plane.share is None else plane.share for plane in self.rules],
                "rule": [self.rounded.rule(plane.plane) for plane in self.rules],
                "typical_rows": [list(plane.typical) for plane in self.rules],
            }
        )


def _share_of_rows(rule: PlaneRule) -> str:
    share = f"{rule.percent} % of the rows"
    return share + (f", such as {listed(rule.typical)}" if rule.typical else "")


def explain_model(
    estimator: Any,
    X: Any = None,
    *,
    tolerance: float = 0.0,
    digits: int | None = None,
    n_typical: int = 3,
    feature_names: Any = None,
) -> ModelExplanation:
    """Explain a model: its planes as rules, or the importance and effects of its columns.

    If one of two classes owns a single plane (linear SVMs, polyhedra), the rules are inequalities, each divided by the
    weight of its leading feature. For other models, the rules are the scores of the planes; the plane with the largest
    score determines the class. Other models (tables, committees, several planes per class trained by the log-loss,
    clipped columns) have no rules: they are explained by the importance of their columns and the effects of their
    values; a single member with several planes per class also by its planes. Importance and effects are attributes of
    all explanations. The parameters `tolerance` and `digits` apply to rules only.

    Parameters
    ----------
    estimator : classifier, Pipeline or Model
        Any estimator that `Model.of` accepts.
    X : array-like, data frame or sparse matrix of shape (n_rows, n_features), default=None
        Rows to evaluate the model on. If given, the numbers of rules are rounded to the fewest digits (at least two),
        and small terms are omitted, as long as the predictions do not change; the percentage of rows is given for each
        plane or class; and importance and effects are computed over these rows.
    tolerance : float, default=0.0
        Fraction of the rows for which the rounded rules may predict a different class than the model.
    digits : int, default=None
        Number of significant digits. If None, chosen as described for `X`.
    n_typical : int, default=3
        Number of typical rows to list for each plane or class.
    feature_names : sequence of str, default=None
        Names of the features. If None, those seen during `fit`.

    Returns
    -------
    explanation : ModelExplanation
        The explanation. Print it, or use its methods `to_text`, `to_dict` and `to_frame`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import CuttingPlaneSVC
    >>> from polyplane.explain import explain_model
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> X, y = X[["mean radius", "mean texture", "mean symmetry"]], y.map({0: "malignant", 1: "benign"})
    >>> model = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(X, y)
    >>> print(explain_model(model, X, tolerance=0.01))
    Class 'malignant' if mean radius + 51 x mean symmetry + 0.2 x mean texture > 28, otherwise class 'benign'.
    Class 'malignant' is predicted for 35.1 % of the rows, such as rows 156, 408 and 337.
    Class 'benign' is predicted for 64.9 % of the rows, such as rows 367, 188 and 285.
    <BLANKLINE>
    Numbers are rounded to 2 digits: for 99.1 % of the 569 rows, the prediction is that of the exact model.
    """
    if not 0 <= tolerance <= 1:
        raise ValueError(f"tolerance={tolerance!r} must be a fraction of the rows, from 0 to 1.")
    if digits is not None and not 1 <= digits <= 17:
        raise ValueError(f"digits={digits!r} must be from 1 to 17.")
    model = Model.of(estimator)
    if (tolerance or digits is not None) and not model.is_piecewise_linear:
        raise TypeError(
            "tolerance and digits cannot be set: they apply to rules, which this model does not have"
            f"{model.how_to_get_winners}."
        )
    return ModelExplanation(ModelColumns.of(model, X, feature_names), tolerance, digits, n_typical)


def _usage(
    winners: np.ndarray | None, n_winners: int, rows: Any, deviations: np.ndarray, n_typical: int
) -> tuple[np.ndarray | None, list[tuple[int, ...]]]:
    """Return the fraction of the rows that each plane or class wins, and the rows nearest to their mean."""
    if winners is None:
        return None, [()] * n_winners
    factor = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    typical = []
    for p in range(n_winners):
        won = np.flatnonzero(winners == p)
        own = rows[won]
        # |x - m|^2 minus |m|^2, so that sparse rows stay sparse.
        square = own.multiply(own) @ factor**2 if sparse.issparse(own) else np.square(own) @ factor**2
        centre = np.asarray(own.sum(axis=0), dtype=np.float64).ravel() / max(1, len(won)) * factor**2
        nearest = np.argsort(square - 2.0 * (own @ centre), kind="stable")[:n_typical]
        typical.append(tuple(won[nearest].tolist()))
    return np.bincount(winners, minlength=n_winners) / len(winners), typical
