"""`model_report`: an HTML report about a model."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._plain import plain, visible
from polyplane._prediction import encode
from polyplane.explain.columns import ModelColumns, Row
from polyplane.explain.confusion import ConfusionMatrix
from polyplane.explain.drawings import COLOURS, draw_effect, draw_reliability
from polyplane.explain.live import left_out, live_section
from polyplane.explain.markup import Markup, assemble
from polyplane.explain.model import ModelExplanation
from polyplane.explain.robustness import Certificate
from polyplane.explain.row import RowExplanation, explained_row
from polyplane.explain.text import cut, number
from polyplane.files import replace_file
from polyplane.inputs.frames import as_table, loaded
from polyplane.model import Model
from polyplane.planes import margins_of

#: Fraction of the rows whose predicted class may change by rounding the rules.
ROUNDED = 0.005
#: Largest number of classes of a confusion matrix, of errors that are listed, and of planes as images.
MAX_CLASSES, MAX_ERRORS, MAX_PICTURES = 30, 20, 40
#: Number of columns of a row, of rules, importances and effects before folding, and largest number of effects.
SHOWN_COLUMNS, SHOWN_RULES, SHOWN_EFFECTS, MAX_EFFECTS = 12, 24, 6, 60
#: Smallest and largest number of rows whose certified radii are computed, largest number of columns, and number of
#: weights of planes, times classes, of all these rows together.
CERTIFIED_ROWS, CERTIFIED_COLUMNS, CERTIFIED_WEIGHTS = (10, 100), 2000, 10_000_000
#: Number of bins of equal width of a reliability curve.
BINS = 10


def model_report(
    estimator: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    n_rows: int = 40,
    feature_names: Any = None,
    image_shape: tuple[int, int] | None = None,
) -> Path:
    """Write an HTML report about a model as a single file, which works without a network or a server.

    The report shows the accuracy of the model on the rows, the reliability of its probabilities, its planes as rules if
    it is piecewise linear, the importance of its columns and the effects of their values, and its errors. For selected
    rows, it explains the predicted class and shows the smallest change that leads to another class. The model itself is
    part of the page: the values of a row can be changed, and the prediction, its explanation and the smallest change
    are updated immediately.

    Parameters
    ----------
    estimator : classifier, Pipeline or Model
        Any fitted estimator that `Model.of` accepts.
    X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
        Test rows, which were not used in training.
    y : array-like of shape (n_rows,)
        Labels of the rows.
    path : path
        The file to write. An existing file is replaced when the new one is complete.
    title : str, default=None
        Title of the page. If None, it consists of the names of the classes, and the name of `y` if it is a series.
    n_rows : int, default=40
        Number of rows to explain: the errors with the largest margin or probability, the correct predictions with the
        smallest, and rows typical of the planes.
    feature_names : sequence of str, default=None
        Names of the features. If None, those seen during `fit`.
    image_shape : tuple of int, default=None
        Height and width of images, if the features are pixels: the selected rows are shown as images.

    Returns
    -------
    path : Path
        Path of the written file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.explain import model_report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = MultiHyperplaneClassifier(random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model_report(model, X[1::2], y[1::2], pathlib.Path(folder) / "iris.html", n_rows=5)
    ...     "Accuracy: 96.0 % on 75 rows" in page.read_text(encoding="utf-8")
    True
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows} must be 1 or more.")
    columns = ModelColumns.of(Model.of(estimator), X, feature_names)
    model = columns.model
    if image_shape is not None and model.inputs.is_table:
        raise TypeError("image_shape cannot be set: it applies to pixels, not to the columns of a table.")
    if image_shape is not None and int(np.prod(image_shape)) != model.n_columns:
        raise ValueError(f"image_shape={image_shape} does not match the {model.n_columns} features.")
    predictions = Predictions.of(columns, y)
    told = ModelExplanation(columns, ROUNDED if model.is_piecewise_linear else 0.0)
    chosen = predictions.choose(told.typical_rows(), n_rows)
    explained = _explained_rows(columns, X, chosen, predictions)
    live = left_out("the features are pixels") if image_shape else live_section(columns, told, explained)
    script, inputs, note = live
    name = getattr(y, "name", None)
    headline = title or _default_title(predictions.labels, name if isinstance(name, str) else "")
    page = Markup()
    _performance(page, predictions, headline, _about(told, model))
    _robustness(page, columns)
    if predictions.probabilities is not None:
        _reliability(page, predictions)
    if image_shape is not None:
        page.add("h2", "Planes")
        what = "Weights of the pixels" if told.rounded is not None else "Mean weights of the pixels for each class"
        order = "; most used planes first" if told.rounded is not None else ""
        page.add("p", f"{what}: blue is positive, red is negative{order}.", "quiet")
        page.block("planes", "gallery")
    else:
        _rules(page, told)
        _importance(page, told)
        _effects(page, told, predictions)
    _errors(page, predictions, chosen)
    page.picker(_about_reference(model))
    page.live(note, bool(script))
    rows = [_row(predictions, i, why, image_shape) for i, why in zip(chosen, explained, strict=True)]
    data = {"rows": rows, "words": _words(explained[0].is_told_in_odds), "image_shape": image_shape, "live": inputs}
    data["planes"] = _pictures(told) if image_shape else None
    with replace_file(path) as file:
        file.write(assemble(page, headline, json.dumps(plain(data)), script).encode())
    return Path(path)


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
        Confidence in each prediction: its probability, or without probabilities its margin, the score of the predicted
        class minus the largest score of another class.
    probabilities : ndarray of shape (n_rows, n_classes) or None
        Probabilities of the classes; None if the model has none.
    """

    labels: list[Any]
    truth: np.ndarray
    predicted: np.ndarray
    sureness: np.ndarray
    probabilities: np.ndarray | None

    @classmethod
    def of(cls, columns: ModelColumns, y: Any) -> Predictions:
        """Predict the rows of some columns."""
        model, n_rows, labels = columns.model, columns.Z.shape[0], np.asarray(y)
        if labels.shape != (n_rows,):
            raise ValueError(f"y has shape {labels.shape}, but X has {n_rows} rows.")
        if n_rows == 0:
            raise ValueError("X must contain at least one row.")
        truth = encode(labels, model.classes)
        scores = model.class_scores(columns.Z)
        probabilities = model.probabilities(scores) if model.has_probabilities else None
        sureness = margins_of(scores) if probabilities is None else probabilities.max(axis=1)
        return cls(model.classes.tolist(), truth, scores.argmax(axis=1), sureness, probabilities)

    @property
    def measure(self) -> str:
        """Name of the measure of confidence."""
        return "margin" if self.probabilities is None else "probability"

    @property
    def errors(self) -> np.ndarray:
        """The misclassified rows, the most confident predictions first."""
        wrong = np.flatnonzero(self.truth != self.predicted)
        return wrong[np.argsort(-self.sureness[wrong], kind="stable")]

    @property
    def rare(self) -> list[int]:
        """The classes, those with the fewest rows first."""
        return np.argsort(np.bincount(self.truth, minlength=len(self.labels)), kind="stable").tolist()

    def choose(self, typical: Sequence[int], n_rows: int) -> list[int]:
        """Select the rows to explain: up to half of them errors, a quarter uncertain, the rest typical."""
        errors = self.errors[: max(1, n_rows // 2)]
        right = np.flatnonzero(self.truth == self.predicted)
        unsure = right[np.argsort(self.sureness[right], kind="stable")][: n_rows // 4]
        return list(dict.fromkeys([*errors.tolist(), *unsure.tolist(), *typical]))[:n_rows]


def _explained_rows(
    columns: ModelColumns, X: Any, chosen: Sequence[int], predictions: Predictions
) -> list[RowExplanation]:
    allowed = dict.fromkeys(("lower", "upper", "frozen", "increasing", "decreasing", "max_columns"))
    table = None
    if columns.inputs.is_table:  # its cells are read once, not once for each row
        table = loaded(as_table(X, columns.inputs.gaps).take(np.array(chosen)))
    explained = []
    for k, i in enumerate(chosen):
        if table is not None:
            row = columns.read(table.take(np.array([k])))
        else:
            z = columns.Z[[i]]
            z = z.toarray()[0] if sparse.issparse(z) else z[0]
            row = Row(z, z, {})
        truth = predictions.labels[predictions.truth[i]]
        explained.append(explained_row(columns, row, columns.reference, None, truth, allowed))
    return explained


def _default_title(labels: list[Any], name: str) -> str:
    """Return a title with the classes, and with the name of `y` if it is a series."""
    what = f"Predicting {name}: " if name else "Predicting "
    return what + (f"one of {len(labels)} classes" if len(labels) > 4 else " or ".join(map(str, labels)))


def _about(told: ModelExplanation, model: Model) -> str:
    members = f"committee of {told.n_members} members, " if told.n_members > 1 else ""
    classes = ", ".join(map(str, told.classes)) if len(told.classes) <= 10 else str(len(told.classes))
    text = f"{told.learner}: {members}{model.planes.n_planes} planes over {len(told.columns)} columns; "
    text += f"classes: {classes}."
    if model.has_winners:
        text += " Each plane belongs to a class; the class of the plane with the highest score is predicted."
    elif model.planes.pooling == "max":
        text += (
            " In each member, the score of a class is the highest score of its planes; the class with the highest mean "
            "score is predicted."
        )
    if told.score_name == "log-odds":
        text += (
            " Contributions are in log-odds, the logarithm of the ratio of two probabilities: +0.7 doubles this ratio, "
            "-0.7 halves it."
        )
    return text


def _about_reference(model: Model) -> str:
    if model.inputs.is_table:
        return (
            "Each row is compared with the reference row: the median of each column of numbers or dates, and "
            "the most frequent level of each other column, in the training rows."
        )
    return "Each row is compared with the reference row, the mean of each column over the rows of this page."


def _performance(page: Markup, predictions: Predictions, title: str, about: str) -> None:
    matrix = ConfusionMatrix.of(np.array(predictions.labels), predictions.truth, predictions.predicted)
    page.add("h1", title)
    page.add(
        "p",
        f"Accuracy: {100 * matrix.accuracy:.1f} % on {matrix.n_rows:,} rows. Always predicting the most frequent "
        f"class, {matrix.majority}, gives {100 - matrix.baseline_percent:.1f} %.",
        "lead",
    )
    page.add("p", about)
    labels, by_class = [str(label) for label in predictions.labels], matrix.by_class
    percents = [[f"{100 * s:.1f}" if s == s else "-" for s in by_class[name]] for name in ("recall", "precision", "f1")]
    rows = [[label, f"{n:,}", *own] for label, n, *own in zip(labels, by_class["rows"], *percents, strict=True)]
    page.add("h2", "Performance")
    with page.group("pair"):
        page.table("By class", ["class", "rows", "recall, %", "precision, %", "F1, %"], rows)
        if len(labels) <= MAX_CLASSES:
            named = zip((cut(label, 24) for label in labels), matrix.counts, strict=True)
            cells = [[label, *(str(n or "") for n in row)] for label, row in named]
            colours = np.where(matrix.counts > 0, "miss", "")
            np.fill_diagonal(colours, "hit")
            caption = "Confusion matrix: true class by row, predicted class by column"
            page.table(caption, ["", *labels], cells, [["name short", *row] for row in colours.tolist()])


def _robustness(page: Markup, columns: ModelColumns) -> None:
    """Add how far numbers can change before a prediction can change, for some of the rows."""
    model, Z = columns.model, columns.Z
    if sparse.issparse(Z) or model.n_columns > CERTIFIED_COLUMNS:
        return
    n_rows = int(np.clip(CERTIFIED_WEIGHTS // (model.planes.coef.size * model.n_classes), *CERTIFIED_ROWS))
    rows = Z[np.unique(np.linspace(0, len(Z) - 1, n_rows).astype(int))]
    spread = "interquartile range" if model.inputs.is_table else "standard deviation"
    radius = Certificate(model, np.inf, scale=None if model.inputs.is_table else Z.std(axis=0)).radius(rows)
    median = float(np.median(radius))
    if 0 < median < np.inf:
        page.add(
            "p",
            f"Certified robustness: for half of {len(rows)} rows, the predicted class is the same after any change of "
            f"all numbers by up to {median:.2g} times the {spread} of their columns.",
        )


def reliability(probability: np.ndarray, happened: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return how often an event happened, by bins of its probability.

    Returns the number of rows in each bin, the mean predicted probability and the observed frequency of the event in
    each bin that is not empty, and the mean difference of the two over the rows: the expected calibration error.
    """
    from sklearn.calibration import calibration_curve

    observed, predicted = calibration_curve(happened, probability, n_bins=BINS, pos_label=True)
    # The same bins as those of scikit-learn, which does not return their sizes.
    counts = np.bincount(np.searchsorted(np.linspace(0.0, 1.0, BINS + 1)[1:-1], probability), minlength=BINS)
    return counts, predicted, observed, float(np.abs(predicted - observed) @ counts[counts > 0] / counts.sum())


def _reliability(page: Markup, predictions: Predictions) -> None:
    """Add a reliability curve; the event is the rarer of two classes, or that the predicted class is correct."""
    assert predictions.probabilities is not None
    if len(predictions.labels) == 2:
        c = predictions.rare[0]
        event, happened = f"class {predictions.labels[c]}", predictions.truth == c
        values = predictions.probabilities[:, c]
    else:
        event, happened = "the predicted class", predictions.truth == predictions.predicted
        values = predictions.probabilities.max(axis=1)
    counts, predicted, observed, error = reliability(values, happened)
    page.add("h2", "Probabilities")
    with page.group("reliability"):
        page.figure(draw_reliability(counts, predicted, observed), "Reliability curve")
        with page.group(""):
            page.add("p", f"Expected calibration error: {100 * error:.1f} %", "lead")
            page.add(
                "p",
                f"Horizontal axis: predicted probability of {event}, in {BINS} bins. Vertical axis: fraction of these "
                "rows for which it is the true class. On the diagonal, the two are equal: of rows with a predicted "
                "probability of 0.8, 80 % are of this class. The expected calibration error is the mean difference of "
                "the two. Vertical lines are 95 % confidence intervals. Bars show the number of rows in each bin.",
                "quiet",
            )


def _pictures(told: ModelExplanation) -> list[dict[str, Any]]:
    """Return weights to be drawn: of the planes that decide the most rows, or of the classes."""
    if told.rounded is not None:
        coef = told.planes.coef
        named = [(f"{rule.label}: {rule.percent} %", coef[rule.plane]) for rule in told.busiest()]
    else:
        named = list(zip(map(str, told.classes), told.class_weights(), strict=True))
    return [{"name": visible(name), "weights": weights} for name, weights in named[:MAX_PICTURES]]


def _rules(page: Markup, told: ModelExplanation) -> None:
    if not told.rules:
        return
    page.add("h2", "Planes")
    if told.rounded is None:
        with page.folded(f"The {len(told.rules)} planes"):
            for line in told.plane_lines(8):
                page.add("p", line)
    elif told.inside is not None:
        for line in told.to_text(top=8).splitlines():
            page.add("p", line)
    else:
        page.add("p", "The score of each plane with its leading terms, in the units of the data.", "quiet")
        rows = [[str(rule.label), str(rule.number), rule.percent, told.rule(rule.plane, 6)] for rule in told.busiest()]
        heads = ["class", "plane", "rows decided, %", "score"]
        page.table("", heads, rows[:SHOWN_RULES], rule_column=3)
        if len(rows) > SHOWN_RULES:
            with page.folded(f"The other {len(rows) - SHOWN_RULES} planes"):
                page.table("", heads, rows[SHOWN_RULES:], rule_column=3)


def _importance(page: Markup, told: ModelExplanation) -> None:
    page.add("h2", "Importance of the columns")
    page.add("p", told.meaning(), "quiet")
    for sentence in told.monotone():
        page.add("p", sentence)
    order = told.by_importance()[:MAX_EFFECTS]
    sizes = told.importance[order].tolist()
    rows = [(told.columns[j], f"{size:.2f}") for j, size in zip(order, sizes, strict=True)]
    page.table("", ["column", "importance"], rows, bars=sizes)
    if len(told.columns) > MAX_EFFECTS:
        page.add("p", f"The other {len(told.columns) - MAX_EFFECTS} columns are less important.", "quiet")
    if told.dropped:
        names = "; ".join(f"{name}: {reason}" for name, reason in told.dropped.items())
        page.add("p", f"Columns not used: {names}.", "quiet")


def _effects(page: Markup, told: ModelExplanation, predictions: Predictions) -> None:
    """Add drawings of effects: on the rarer of two classes, otherwise on the most frequent classes."""
    rare, two = predictions.rare, len(told.classes) == 2
    order = told.by_importance()[:MAX_EFFECTS]
    drawn = [effect for j in order for effect in told.of_column(told.columns[j])]
    page.add("h2", "Effects of the values")
    what = "each class is compared with the mean of the other classes"
    if two:
        grows = "probability" if told.score_name == "log-odds" else "score"
        what = f"positive values (above 0, or to the right) increase the {grows} of class {told.classes[rare[0]]}"
    counts = " Numbers in brackets are counts of training rows." if any(effect.counts for effect in drawn) else ""
    band = " Bands and lines contain the middle 80 % of the rows." if two and not told.is_additive else ""
    page.add(
        "p",
        f"Effects on the {told.score_name}: {what}. {told.about_effects(brackets=False)} The open circle is the "
        f"reference value.{counts}{band}",
        "quiet",
    )
    classes, sides = sorted(rare[::-1][: len(COLOURS)]), None
    if two:
        classes, sides = [rare[0]], (str(told.classes[rare[0]]), str(told.classes[rare[1]]))

    def draw(columns: Sequence[int]) -> None:
        if sides is None:
            page.legend([(str(told.classes[c]), COLOURS[index]) for index, c in enumerate(classes)])
        with page.group("effects"):
            for j in columns:
                for effect in told.of_column(told.columns[j]):
                    page.figure(draw_effect(effect, classes, sides), effect.name)

    draw(order[:SHOWN_EFFECTS])
    others = order[SHOWN_EFFECTS:]
    if others:
        with page.folded(f"The other {len(others)} columns" if len(others) > 1 else "The other column"):
            draw(others)


def _errors(page: Markup, predictions: Predictions, chosen: Sequence[int]) -> None:
    page.add("h2", "Errors")
    errors = predictions.errors.tolist()
    if not errors:
        page.add("p", "There are no errors on these rows.")
        return
    n_rows, labels = len(predictions.truth), predictions.labels
    page.add("p", f"{len(errors):,} of {n_rows:,} rows are misclassified, listed by decreasing {predictions.measure}.")
    rows = [
        [
            f"row\N{NO-BREAK SPACE}{i}",
            str(labels[predictions.truth[i]]),
            str(labels[predictions.predicted[i]]),
            f"{predictions.sureness[i]:.3g}",
        ]
        for i in errors[:MAX_ERRORS]
    ]
    position = {row: index for index, row in enumerate(chosen)}
    links = [position.get(i) for i in errors[:MAX_ERRORS]]
    page.table("", ["row", "true class", "predicted class", predictions.measure], rows, links=links)


def _words(in_odds: bool) -> dict[str, Any]:
    """Return the words and the number format of the explained rows."""
    words = {"one": "column", "many": "columns", "head": "log-odds" if in_odds else "contribution"}
    words["share"] = "contribution to the " + ("log-odds" if in_odds else "score difference")
    return {**words, "decimals": 2} if in_odds else words


def _row(predictions: Predictions, i: int, why: RowExplanation, image_shape: Any) -> dict[str, Any]:
    """Return the data of an explained row for the script of the page."""
    large, small = why.told(SHOWN_COLUMNS)
    label, truth, rival = (visible(str(name)) for name in (why.label, why.true_label, why.rival))
    if why.is_told_in_odds:
        lead = (
            f"Its probability is {why.probability:.3f}, {why.odds()} times that of class {_quoted(rival)} (log-odds "
            f"{why.difference:.2f})."
        )
    else:
        planes = ["" if plane is None else f" (plane {plane})" for plane in (why.plane, why.rival_plane)]
        lead = (
            f"The score of this class{planes[0]} exceeds that of class {_quoted(rival)}{planes[1]} by "
            f"{number(why.difference)}."
        )
    flip = None
    if why.flip is not None:
        changes = [
            {"name": visible(name), "from": visible(before), "to": visible(after)}
            for name, before, after in why.shown_changes(SHOWN_COLUMNS)
        ]
        title = f"{why.smallest()} that leads to class {_quoted(visible(str(why.flip.label)))}"
        flip = {"title": title, "changes": changes, "n_others": len(why.flip.changes) - len(changes)}
    shares = [(j, *why.shown(j), why.contributions[j]) for j in large]
    return {
        "number": i,
        "name": f"row {i}: {label}" + ("" if label == truth else f" (true: {truth})"),
        "label": label,
        "truth": truth,
        "lead": lead,
        "base": why.base,
        "shares": [
            {"name": visible(why.columns[j]), "value": visible(value), "reference": visible(reference), "share": share}
            for j, value, reference, share in shares
        ],
        "n_others": len(small),
        "others": float(why.contributions[small].sum()) if small else 0.0,
        "image": why.values if image_shape else None,
        "flip": flip,
        "no_flip": "No change that leads to another class was found.",
    }


def _quoted(text: str) -> str:
    return f"\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}"
