"""Content of the report about a model, section by section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane._validation import encode
from polyplane.explain._markup import Markup
from polyplane.explain._report_live import Live
from polyplane.explain._report_reliability import add_reliability
from polyplane.explain.confusion import ConfusionMatrix

#: Largest number of classes of a confusion matrix, and of errors that are listed.
MOST_CLASSES, MOST_ERRORS = 30, 20


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a model for labelled rows.

    Parameters
    ----------
    labels : list
        Labels of the classes.
    truth, predicted : ndarray of shape (n_rows,)
        True and predicted class indices.
    sureness : ndarray of shape (n_rows,)
        Confidence in each prediction: its margin, the score of the predicted class minus the largest score of another
        class, or its probability.
    measure : str
        Name of this measure: "margin" or "probability".
    probabilities : ndarray of shape (n_rows, n_classes) or None
        Probabilities of the classes; None if the model has none.
    """

    labels: list[Any]
    truth: np.ndarray
    predicted: np.ndarray
    sureness: np.ndarray
    measure: str = "margin"
    probabilities: np.ndarray | None = None

    @property
    def errors(self) -> np.ndarray:
        """The misclassified rows, the most confident predictions first."""
        wrong = np.flatnonzero(self.truth != self.predicted)
        return wrong[np.argsort(-self.sureness[wrong], kind="stable")]

    def choose(self, typical: Sequence[int], n_rows: int) -> list[int]:
        """Select the rows to explain: up to half of them errors, a quarter uncertain, the rest typical."""
        errors = self.errors[: max(1, n_rows // 2)]
        right = np.flatnonzero(self.truth == self.predicted)
        unsure = right[np.argsort(self.sureness[right], kind="stable")][: n_rows // 4]
        return list(dict.fromkeys([*errors.tolist(), *unsure.tolist(), *typical]))[:n_rows]


def encoded_labels(y: Any, n_rows: int, classes: np.ndarray) -> np.ndarray:
    """Return the true class indices of rows."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise ValueError(f"y has shape {labels.shape}, but X has {n_rows} rows.")
    if n_rows == 0:
        raise ValueError("X must contain at least one row.")
    return encode(labels, classes)


@dataclass(frozen=True, eq=False)
class PageContent:
    """Content of a report.

    Parameters
    ----------
    predictions : Predictions
        Predictions for the rows.
    about : str
        Short description of the model.
    section : function of Markup
        Adds the section about the model.
    chosen : list of int
        The rows that are explained.
    data : dict
        Data of these rows for the script of the page.
    reference : str
        Description of the reference row, in a sentence.
    live : Live
        The model for the section "Try it".
    """

    predictions: Predictions
    about: str
    section: Callable[[Markup], None]
    chosen: list[int]
    data: dict[str, Any]
    reference: str
    live: Live


def report_body(content: PageContent, title: str) -> Markup:
    """Return the page without the parts that its script adds."""
    page, predictions = Markup(), content.predictions
    matrix = ConfusionMatrix.of(np.array(predictions.labels), predictions.truth, predictions.predicted)
    page.add("h1", title)
    page.add("p", f"Accuracy: {100 * matrix.accuracy:.1f} % on {matrix.n_rows:,} rows. {_baseline(matrix)}", "lead")
    page.add("p", content.about)
    _quality(page, matrix)
    if predictions.probabilities is not None:
        add_reliability(page, predictions.labels, predictions.truth, predictions.probabilities)
    content.section(page)
    _errors(page, predictions, content.chosen)
    page.picker(content.reference)
    content.live.add(page)
    return page


def default_title(labels: list[Any], y: Any = None) -> str:
    """Return a title with the classes, and with the name of `y` if it is a series."""
    name = getattr(y, "name", None)
    what = f"{name}: " if isinstance(name, str) and name else ""
    if len(labels) > 4:
        return f"Predicting {what}one of {len(labels)} classes"
    return f"Predicting {what}" + " or ".join(map(str, labels))


def _baseline(matrix: ConfusionMatrix) -> str:
    most = int(matrix.support.argmax())
    share = 100 * matrix.support[most] / max(1, matrix.n_rows)
    return f"Always predicting the most frequent class, {matrix.classes.tolist()[most]}, gives {share:.1f} %."


def _quality(page: Markup, matrix: ConfusionMatrix) -> None:
    labels = [str(label) for label in matrix.classes.tolist()]
    predicted = matrix.counts.sum(axis=0)
    rows = [
        [label, f"{n_rows:,}", _percent(recall, n_rows), _percent(precision, n_predicted), _percent(f1, n_rows)]
        for label, n_rows, recall, n_predicted, precision, f1 in zip(
            labels, matrix.support, matrix.recall, predicted, matrix.precision, matrix.f1, strict=True
        )
    ]
    page.add("h2", "Performance")
    with page.group("pair"):
        page.table("By class", ["class", "rows", "recall, %", "precision, %", "F1, %"], rows)
        if len(labels) <= MOST_CLASSES:
            counts = [[label, *(str(n or "") for n in row)] for label, row in zip(labels, matrix.counts, strict=True)]
            colours = np.where(matrix.counts > 0, "miss", "")
            np.fill_diagonal(colours, "hit")
            title = "Confusion matrix: true class by row, predicted class by column"
            page.table(title, ["", *labels], counts, [["", *row] for row in colours.tolist()])


def _percent(share: float, count: int) -> str:
    return f"{100 * share:.1f}" if count else "-"


def _errors(page: Markup, predictions: Predictions, chosen: Sequence[int]) -> None:
    page.add("h2", "Errors")
    errors = predictions.errors.tolist()
    if not errors:
        page.add("p", "There are no errors on these rows.")
        return
    n_rows = len(predictions.truth)
    page.add("p", f"{len(errors):,} of {n_rows:,} rows are misclassified, listed by decreasing {predictions.measure}.")
    labels = predictions.labels
    rows = [
        [
            f"row\N{NO-BREAK SPACE}{i}",
            str(labels[predictions.truth[i]]),
            str(labels[predictions.predicted[i]]),
            f"{predictions.sureness[i]:.3g}",
        ]
        for i in errors[:MOST_ERRORS]
    ]
    position = {row: place for place, row in enumerate(chosen)}
    links = [position.get(i) for i in errors[:MOST_ERRORS]]
    page.table("", ["row", "true class", "predicted class", predictions.measure], rows, links=links)
