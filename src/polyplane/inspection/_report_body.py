"""What the page about a model shows, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane._validation import encode
from polyplane.committee import PlaneCommittee
from polyplane.inspection._committee_explanation import MEMBERS, CommitteeExplanation
from polyplane.inspection._markup import Markup
from polyplane.inspection._model_explanation import ModelExplanation
from polyplane.inspection.confusion import ConfusionMatrix
from polyplane.inspection.unscaled import UnscaledModel

#: A confusion matrix of more classes is too large to be shown; more planes and errors than these are not shown at once.
MOST_CLASSES, MOST_PLANES, MOST_ERRORS = 30, 24, 20


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model predicts for labelled rows.

    Parameters
    ----------
    model : UnscaledModel
        The model, its planes in the units of the data.
    truth, predicted : ndarray of shape (n_rows,)
        The true and the predicted classes, as integers.
    margins : ndarray of shape (n_rows,)
        The score of the predicted class less the best score of another.
    """

    model: UnscaledModel
    truth: np.ndarray
    predicted: np.ndarray
    margins: np.ndarray

    @classmethod
    def of(cls, model: UnscaledModel, X: Any, y: Any) -> Predictions:
        """Predict rows as they come, and look up their labels."""
        rows, labels = model.rows(X), np.asarray(y)
        if labels.shape != (rows.shape[0],):
            raise ValueError(f"y has shape {labels.shape}; there are {rows.shape[0]} rows.")
        if rows.shape[0] == 0:
            raise ValueError("There are no rows to report on.")
        return cls(model, encode(labels, model.classes), model.planes.predict(rows), model.planes.margins(rows))

    @property
    def errors(self) -> np.ndarray:
        """The rows that are predicted wrongly, those of the largest margin first."""
        wrong = np.flatnonzero(self.truth != self.predicted)
        return wrong[np.argsort(-self.margins[wrong], kind="stable")]


def report_body(
    predictions: Predictions,
    planes: ModelExplanation | CommitteeExplanation,
    title: str,
    chosen: Sequence[int],
    pictures: bool,
) -> Markup:
    """The page, but for what its script shows of the `chosen` rows and, as pictures, of the planes."""
    page, model = Markup(), predictions.model
    matrix = ConfusionMatrix.of(model.classes, predictions.truth, predictions.predicted)
    page.add("h1", title)
    page.add("p", f"Accuracy: {100 * matrix.accuracy:.1f} % on {matrix.n_rows:,} rows.", "lead")
    page.add(
        "p",
        f"{planes.learner}: {model.planes.n_classes} classes, {model.planes.n_planes} planes, "
        f"{model.planes.n_features} features. {_how(model)}",
    )
    _quality(page, matrix)
    _rules(page, planes, pictures)
    _errors(page, predictions, chosen)
    page.picker()
    return page


def _how(model: UnscaledModel) -> str:
    if isinstance(model.planes, PlaneCommittee):
        return (
            f"Each class owns some planes of each of {model.planes.n_members} machines; the class with the highest "
            "mean score is predicted."
        )
    return "Each class owns some planes; the class of the plane with the highest score is predicted."


def _quality(page: Markup, matrix: ConfusionMatrix) -> None:
    labels = [str(label) for label in matrix.classes.tolist()]
    predicted = matrix.counts.sum(axis=0)
    rows = [
        [label, f"{n_rows:,}", _percent(recall, n_rows), _percent(precision, n_predicted)]
        for label, n_rows, recall, n_predicted, precision in zip(
            labels, matrix.support, matrix.recall, predicted, matrix.precision, strict=True
        )
    ]
    page.add("h2", "Performance")
    with page.group("pair"):
        page.table("By class", ["class", "rows", "recall, %", "precision, %"], rows)
        if len(labels) <= MOST_CLASSES:
            counts = [[label, *(str(n or "") for n in row)] for label, row in zip(labels, matrix.counts, strict=True)]
            colours = np.where(matrix.counts > 0, "miss", "")
            np.fill_diagonal(colours, "hit")
            title = "Confusion matrix: true class by row, predicted class by column"
            page.table(title, ["", *labels], counts, [["", *row] for row in colours.tolist()])


def _percent(share: float, count: int) -> str:
    return f"{100 * share:.1f}" if count else "-"


def _rules(page: Markup, planes: ModelExplanation | CommitteeExplanation, pictures: bool) -> None:
    page.add("h2", "Planes")
    if isinstance(planes, CommitteeExplanation):
        _committee(page, planes, pictures)
        return
    if pictures:
        page.add("p", "Blue pixels count for the class, red ones against it; the busiest planes first.", "quiet")
        page.place("planes", "gallery")
        return
    if planes.inside is not None:
        for line in planes.to_text(top=8).splitlines():
            page.add("p", line)
        return
    page.add("p", "The score of each plane, in the units of the data, with its leading terms.", "quiet")
    rows = [[str(rule.label), str(rule.number), rule.percent, planes.rule(rule.plane, 6)] for rule in planes.busiest()]
    heads = ["class", "plane", "rows decided, %", "score"]
    page.table("", heads, rows[:MOST_PLANES], rule_column=3)
    if len(rows) > MOST_PLANES:
        with page.folded(f"The other {len(rows) - MOST_PLANES} planes"):
            page.table("", heads, rows[MOST_PLANES:], rule_column=3)


def _committee(page: Markup, planes: CommitteeExplanation, pictures: bool) -> None:
    if pictures:
        page.add("p", "Blue pixels count for the class, red ones against it, in the mean of its planes.", "quiet")
        page.place("planes", "gallery")
        return
    page.add("p", MEMBERS, "quiet")
    features = [[planes.feature_names[j], f"{planes.importance[j]:.3g}"] for j in planes.by_importance()]
    shares = np.zeros(len(planes.classes)) if planes.shares is None else planes.shares
    classes = [
        [str(label), str(count), f"{100 * share:.1f}"]
        for label, count, share in zip(planes.classes, planes.n_planes, shares, strict=True)
    ]
    title = "Importance: how far a standard deviation of a feature moves the lead over the second class"
    with page.group("pair"):
        page.table(title, ["feature", "importance"], features[:MOST_PLANES])
        page.table("Planes of the classes", ["class", "planes", "rows predicted, %"], classes)


def _errors(page: Markup, predictions: Predictions, chosen: Sequence[int]) -> None:
    page.add("h2", "Errors")
    errors = predictions.errors.tolist()
    if not errors:
        page.add("p", "There are no errors on these rows.")
        return
    page.add(
        "p", f"{len(errors):,} of {len(predictions.truth):,} rows are predicted wrongly; the largest margins first."
    )
    label = predictions.model.label
    rows = [
        [
            f"row {i}",
            str(label(predictions.truth[i])),
            str(label(predictions.predicted[i])),
            f"{predictions.margins[i]:.3g}",
        ]
        for i in errors[:MOST_ERRORS]
    ]
    position = {row: place for place, row in enumerate(chosen)}
    links = [position.get(i) for i in errors[:MOST_ERRORS]]
    page.table("", ["row", "true class", "predicted class", "margin"], rows, links=links)
