"""One page about a model: what it is, how good, its planes as rules, where it errs, and why for chosen rows."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._files import replace_file
from polyplane.inspection._markup import Markup, assemble
from polyplane.inspection._model_explanation import ModelExplanation
from polyplane.inspection._result import plain
from polyplane.inspection._row_explanation import RowExplanation
from polyplane.inspection.model import explain_model
from polyplane.inspection.row import explain_row
from polyplane.inspection.units import OwnUnits, unwrap

#: Features and changes told of one row.
TOLD = 12


@dataclass(frozen=True, eq=False)
class Outcome:
    """A model on labelled rows.

    Parameters
    ----------
    model : OwnUnits
        The model, its planes in the units of the data.
    rows : matrix of shape (n_rows, n_features)
        The rows.
    truth, given : ndarray of shape (n_rows,)
        Their classes, and those that the model gives, as integers.
    margins : ndarray of shape (n_rows,)
        The lead of the given class.
    """

    model: OwnUnits
    rows: Any
    truth: np.ndarray
    given: np.ndarray
    margins: np.ndarray

    @property
    def accuracy(self) -> float:
        """Share of the rows that are right."""
        return float(np.mean(self.truth == self.given))

    @property
    def confusion(self) -> np.ndarray:
        """Rows of each class (first axis) that are given each class."""
        n = len(self.model.classes)
        counts = np.bincount(self.truth * n + self.given, minlength=n * n)
        return counts.reshape(n, n)

    @property
    def errors(self) -> np.ndarray:
        """The wrong rows, the surest first."""
        wrong = np.flatnonzero(self.truth != self.given)
        return wrong[np.argsort(-self.margins[wrong], kind="stable")]


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
    """Write a page about a model, which needs nothing but itself: no network, no server.

    It says what the model is and how good it is on the rows, tells its planes as rules, lists its errors, and for
    chosen rows shows why they are given their class and what would flip it.

    Parameters
    ----------
    estimator : classifier or Pipeline
        A fitted classifier of this library, or a pipeline of scalers that ends in one.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Rows that the model was not trained on.
    y : array-like of shape (n_rows,)
        Their labels.
    path : path
        Where to write the page; a file that is there is replaced when the new one is complete.
    title : str, default=None
        The headline; None: the name of the learner.
    n_rows : int, default=40
        How many rows to explain: the surest errors, the least sure of the rest, and rows typical of the planes.
    feature_names : sequence of str, default=None
        Names of the features; None: those seen in `fit`.
    image_shape : tuple of int, default=None
        Rows and columns, where features are pixels: chosen rows are shown as pictures.

    Returns
    -------
    path : Path
        Where the page is.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import MultiHyperplaneClassifier
    >>> from polyplane.inspection import model_report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> machine = MultiHyperplaneClassifier(random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = model_report(machine, X[1::2], y[1::2], pathlib.Path(folder) / "iris.html", n_rows=5)
    ...     "Right on 97.3 % of 75 rows" in page.read_text(encoding="utf-8")
    True
    """
    model = unwrap(estimator, feature_names)
    if image_shape is not None and int(np.prod(image_shape)) != model.planes.n_features:
        raise ValueError(f"image_shape={image_shape} does not hold {model.planes.n_features} features.")
    if n_rows < 1:
        raise ValueError(f"n_rows must be 1 or more, not {n_rows}.")
    outcome = _outcome(model, X, y)
    planes = explain_model(estimator, X, feature_names=feature_names, tolerance=0.005)
    chosen = _choose(outcome, planes, n_rows)
    explained = [
        _row(outcome, int(i), explain_row(estimator, _one(X, int(i)), X=X, feature_names=feature_names), image_shape)
        for i in chosen
    ]
    content = {"rows": explained, "image_shape": image_shape, "planes": _pictures(planes) if image_shape else None}
    headline = title or planes.learner
    body = _body(outcome, planes, headline, chosen, pictures=image_shape is not None)
    page = assemble(body, headline, json.dumps(content))
    with replace_file(path) as file:
        file.write(page.encode())
    return Path(path)


def _outcome(model: OwnUnits, X: Any, y: Any) -> Outcome:
    rows = model.rows(X)
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y has shape {labels.shape}; there are {rows.shape[0]} rows.")
    if rows.shape[0] == 0:
        raise ValueError("There are no rows to report on.")
    unknown = ~np.isin(labels, model.classes)
    if unknown.any():
        raise ValueError(f"y holds {labels[unknown][0]!r}, which is not a class of the model.")
    scores = model.planes.class_scores(rows)
    best = np.sort(scores, axis=1)
    truth = np.searchsorted(model.classes, labels)
    return Outcome(model, rows, truth, scores.argmax(axis=1), best[:, -1] - best[:, -2])


def _choose(outcome: Outcome, planes: ModelExplanation, n_rows: int) -> list[int]:
    """Up to half of them errors, a quarter unsure, the rest typical."""
    errors = outcome.errors[: max(1, n_rows // 2)]
    right = np.flatnonzero(outcome.truth == outcome.given)
    unsure = right[np.argsort(outcome.margins[right], kind="stable")][: n_rows // 4]
    busiest = sorted(planes.rules, key=lambda rule: -(rule.share or 0.0))
    typical = [i for place in range(3) for rule in busiest for i in rule.typical[place : place + 1]]
    return list(dict.fromkeys([*errors.tolist(), *unsure.tolist(), *typical]))[:n_rows]


def _one(X: Any, i: int) -> Any:
    """Row `i` as a matrix of one row."""
    if hasattr(X, "iloc"):
        return X.iloc[[i]]
    return X[[i]] if sparse.issparse(X) or hasattr(X, "shape") else np.asarray(X)[[i]]


def _row(outcome: Outcome, i: int, why: RowExplanation, image_shape: Any) -> dict[str, Any]:
    """What the page is told of a row."""
    truth = str(outcome.model.label(int(outcome.truth[i])))
    order = np.argsort(-np.abs(why.shares), kind="stable")
    order = order[why.shares[order] != 0]
    told, rest = order[:TOLD], order[TOLD:]
    shares = [
        {"name": why.feature_names[j], "value": why.values[j], "reference": why.reference[j], "share": why.shares[j]}
        for j in told
    ]
    label = str(why.label)
    told_class = f"given {label}" if label == truth else f"given {label}, is {truth}"
    row = {
        "number": i,
        "name": f"row {i}: {told_class}",
        "label": label,
        "truth": truth,
        "plane": why.plane,
        "rival": str(why.rival),
        "rival_plane": why.rival_plane,
        "difference": why.difference,
        "base": why.base,
        "shares": shares,
        "n_others": len(rest),
        "others": float(why.shares[rest].sum()),
        "image": why.values if image_shape else None,
        "flip": _flip(why),
    }
    return {str(key): value for key, value in plain(row).items()}


def _flip(why: RowExplanation) -> dict[str, Any] | None:
    if why.flip is None:
        return None
    ways = np.abs(why.flip.change) / why.scale
    order = np.argsort(-ways, kind="stable")
    order = order[ways[order] > 1e-6 * max(float(ways.max()), 1e-300)]
    changes = [{"name": why.feature_names[j], "from": why.values[j], "to": why.flip.values[j]} for j in order[:TOLD]]
    return {"label": str(why.flip.label), "changes": changes, "n_others": max(0, len(order) - TOLD)}


def _body(outcome: Outcome, planes: ModelExplanation, title: str, chosen: Sequence[int], pictures: bool) -> Markup:
    page = Markup()
    page.add("h1", title)
    n_rows = len(outcome.truth)
    page.add("p", f"Right on {100 * outcome.accuracy:.1f} % of {n_rows:,} rows.", "lead")
    model = outcome.model.planes
    page.add(
        "p",
        f"{planes.learner}: {model.n_classes} classes, {model.n_planes} planes, {model.n_features} features. "
        "Each class owns some planes; the class of the plane with the highest score wins.",
    )
    _quality(page, outcome)
    _rules(page, planes, pictures)
    _errors(page, outcome, chosen)
    page.picker()
    return page


def _quality(page: Markup, outcome: Outcome) -> None:
    confusion, labels = outcome.confusion, [str(label) for label in outcome.model.classes.tolist()]
    of_class, given = confusion.sum(axis=1), confusion.sum(axis=0)
    right = confusion.diagonal()
    page.add("h2", "How good it is")
    rows = [
        [label, f"{of_class[c]:,}", _percent(right[c], of_class[c]), _percent(right[c], given[c])]
        for c, label in enumerate(labels)
    ]
    with page.group("pair"):
        page.table("By class", ["class", "rows", "found, %", "of those given it, right, %"], rows)
        if len(labels) <= 30:
            kinds = [
                [""] + ["hit" if c == d else "miss" * bool(confusion[c, d]) for d in range(len(labels))]
                for c in range(len(labels))
            ]
            counts = [[labels[c], *(str(count) if count else "" for count in confusion[c])] for c in range(len(labels))]
            page.table("Class (down) against class given (across)", ["", *labels], counts, kinds)


def _rules(page: Markup, planes: ModelExplanation, pictures: bool, shown: int = 24) -> None:
    page.add("h2", "Its planes")
    if pictures:
        page.add("p", "Blue pixels speak for the class, red ones against it; the busiest planes first.", "quiet")
        page.place("planes", "gallery")
        return
    if planes.inside is not None:
        for line in planes.to_text(top=8).splitlines():
            page.add("p", line)
        return
    page.add("p", "The score of each plane, in the units of the data, with its leading terms.", "quiet")
    busiest = sorted(planes.rules, key=lambda rule: -(rule.share or 0.0))
    rows = [
        [str(rule.label), str(rule.number), f"{100 * (rule.share or 0.0):.1f}", planes.rule(rule.plane, 6)]
        for rule in busiest
    ]
    heads = ["class", "plane", "rows decided, %", "score"]
    page.table("", heads, rows[:shown], rule_column=3)
    if len(rows) > shown:
        with page.folded(f"The other {len(rows) - shown} planes"):
            page.table("", heads, rows[shown:], rule_column=3)


def _pictures(planes: ModelExplanation, shown: int = 40) -> list[dict[str, Any]]:
    """The busiest planes, to be drawn."""
    busiest = sorted(planes.rules, key=lambda rule: -(rule.share or 0.0))[:shown]
    return [
        {"name": f"{rule.label}: {100 * (rule.share or 0.0):.1f} %", "weights": plain(planes.planes.coef[rule.plane])}
        for rule in busiest
    ]


def _errors(page: Markup, outcome: Outcome, chosen: Sequence[int]) -> None:
    page.add("h2", "Where it errs")
    errors = outcome.errors
    if not len(errors):
        page.add("p", "On these rows it makes no error.")
        return
    page.add("p", f"{len(errors):,} of {len(outcome.truth):,} rows are wrong; the surest of them first.")
    label = outcome.model.label
    position = {row: place for place, row in enumerate(chosen)}
    rows = [
        [f"row {i}", str(label(int(outcome.truth[i]))), str(label(int(outcome.given[i]))), f"{outcome.margins[i]:.3g}"]
        for i in errors[:20].tolist()
    ]
    page.table("", ["row", "is", "given", "lead"], rows, links=[position.get(i) for i in errors[:20].tolist()])


def _percent(part: Any, whole: Any) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"
