"""Report about planes: their rules or images, and explanations of rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._plain import visible
from polyplane.committee import PlaneCommittee
from polyplane.explain._committee_explanation import MEMBERS, CommitteeExplanation
from polyplane.explain._markup import Markup
from polyplane.explain._model_explanation import ModelExplanation
from polyplane.explain._report_body import PageContent, Predictions, encoded_labels
from polyplane.explain._report_live import Live, live_planes
from polyplane.explain._report_rows import as_text, flip_title, named_row
from polyplane.explain._row_explanation import RowExplanation
from polyplane.explain.model import explain_model
from polyplane.explain.row import explain_row
from polyplane.explain.rules import number
from polyplane.explain.unscaled import UnscaledModel, unwrap

#: Fraction of the rows whose predicted class may change by rounding the rules.
ROUNDED = 0.005
#: Largest number of features and changes of a row, of planes as images, and of planes as rules before folding.
SHOWN_FEATURES, SHOWN_PICTURES, MOST_PLANES = 12, 40, 24
REFERENCE = "Each row is compared with the reference row, the mean of each feature over the rows of this page."


def plane_page(
    estimator: Any, X: Any, y: Any, n_rows: int, feature_names: Any, image_shape: tuple[int, int] | None
) -> PageContent:
    """Return the content of the report about a classifier of planes."""
    model = unwrap(estimator, feature_names)
    if image_shape is not None and int(np.prod(image_shape)) != model.planes.n_features:
        raise ValueError(f"image_shape={image_shape} does not match the {model.planes.n_features} features.")
    predictions = _predictions(model, X, y)
    labels = [as_text(label) for label in predictions.labels]
    tolerance = 0.0 if isinstance(model.planes, PlaneCommittee) else ROUNDED
    planes: Any = explain_model(estimator, X, feature_names=feature_names, tolerance=tolerance)
    chosen = predictions.choose(planes.typical_rows(), n_rows)
    explained: list[Any] = [explain_row(estimator, _one(X, i), X=X, feature_names=feature_names) for i in chosen]
    data = {
        "rows": [_row(predictions, i, why, image_shape) for i, why in zip(chosen, explained, strict=True)],
        "image_shape": image_shape,
        "planes": _pictures(planes) if image_shape else None,
        "words": {
            "one": "feature",
            "many": "features",
            "share": "contribution to the score difference",
            "head": "contribution",
        },
    }
    about = (
        f"{planes.learner}: {model.planes.n_classes} classes, {model.planes.n_planes} planes, "
        f"{model.planes.n_features} features. {_how(model)}"
    )
    live = live_planes(model, X, explained, labels) if image_shape is None else Live.left_out("the features are pixels")
    return PageContent(
        predictions, about, lambda page: _rules(page, planes, image_shape is not None), chosen, data, REFERENCE, live
    )


def _predictions(model: UnscaledModel, X: Any, y: Any) -> Predictions:
    rows = model.rows(X)
    truth = encoded_labels(y, rows.shape[0], model.classes)
    predicted, margins = model.planes.predict(rows), model.planes.margins(rows)
    return Predictions(model.classes.tolist(), truth, predicted, margins, probabilities=_probabilities(model, X))


def _probabilities(model: UnscaledModel, X: Any) -> np.ndarray | None:
    """Return the probabilities of the classes, if the estimator has them."""
    if not hasattr(model.estimator, "predict_proba"):
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return np.asarray(model.estimator.predict_proba(X))


def _how(model: UnscaledModel) -> str:
    if isinstance(model.planes, PlaneCommittee):
        return (
            f"The model is a committee of {model.planes.n_members} members. In each member, the score of a class is "
            "the highest score of its planes; the class with the highest mean score is predicted."
        )
    return "Each plane belongs to a class; the class of the plane with the highest score is predicted."


def _rules(page: Markup, planes: ModelExplanation | CommitteeExplanation, pictures: bool) -> None:
    page.add("h2", "Planes")
    if isinstance(planes, CommitteeExplanation):
        _committee(page, planes, pictures)
        return
    if pictures:
        page.add("p", "Weights of the pixels: blue is positive, red is negative; most used planes first.", "quiet")
        page.place("planes", "gallery")
        return
    if planes.inside is not None:
        for line in planes.to_text(top=8).splitlines():
            page.add("p", line)
        return
    page.add("p", "The score of each plane with its leading terms, in the units of the data.", "quiet")
    rows = [[str(rule.label), str(rule.number), rule.percent, planes.rule(rule.plane, 6)] for rule in planes.busiest()]
    heads = ["class", "plane", "rows decided, %", "score"]
    page.table("", heads, rows[:MOST_PLANES], rule_column=3)
    if len(rows) > MOST_PLANES:
        with page.folded(f"The other {len(rows) - MOST_PLANES} planes"):
            page.table("", heads, rows[MOST_PLANES:], rule_column=3)


def _committee(page: Markup, planes: CommitteeExplanation, pictures: bool) -> None:
    if pictures:
        page.add("p", "Mean weights of the pixels for each class: blue is positive, red is negative.", "quiet")
        page.place("planes", "gallery")
        return
    page.add("p", MEMBERS, "quiet")
    features = [[planes.feature_names[j], f"{planes.importance[j]:.3g}"] for j in planes.by_importance()]
    shares = np.zeros(len(planes.classes)) if planes.shares is None else planes.shares
    classes = [
        [str(label), str(count), f"{100 * share:.1f}"]
        for label, count, share in zip(planes.classes, planes.n_planes, shares, strict=True)
    ]
    title = "Importance: change of the lead over the second class per standard deviation of the feature"
    with page.group("pair"):
        page.table(title, ["feature", "importance"], features[:MOST_PLANES])
        page.table("Planes of the classes", ["class", "planes", "rows predicted, %"], classes)


def _one(X: Any, i: int) -> Any:
    """Return row `i` as a matrix of one row."""
    if hasattr(X, "iloc"):
        return X.iloc[[i]]
    return X[[i]] if sparse.issparse(X) or hasattr(X, "shape") else np.asarray(X)[[i]]


def _row(predictions: Predictions, i: int, why: RowExplanation, image_shape: Any) -> dict[str, Any]:
    """Return the data of a row for the script of the page."""
    order = why.by_share()
    shown, rest = order[:SHOWN_FEATURES], order[SHOWN_FEATURES:]
    return {
        **named_row(predictions, i),
        "lead": _lead(why),
        "base": why.base,
        "shares": [
            {
                "name": visible(why.feature_names[j]),
                "value": why.values[j],
                "reference": why.reference[j],
                "share": why.shares[j],
            }
            for j in shown
        ],
        "n_others": len(rest),
        "others": float(why.shares[rest].sum()),
        "image": why.values if image_shape else None,
        "flip": _flip(why),
        "no_flip": "A local search found no change that leads to another class."
        if why.machines
        else "No change leads to another class.",
    }


def _lead(why: RowExplanation) -> str:
    rival = f"class \N{LEFT DOUBLE QUOTATION MARK}{as_text(why.rival)}\N{RIGHT DOUBLE QUOTATION MARK}"
    size = number(why.difference)
    if why.machines:
        return f"The mean score of this class over {why.machines} members exceeds that of {rival} by {size}."
    return f"The score of this class (plane {why.plane}) exceeds that of {rival} (plane {why.rival_plane}) by {size}."


def _flip(why: RowExplanation) -> dict[str, Any] | None:
    if why.flip is None:
        return None
    order = why.by_change()
    changes = [
        {"name": visible(why.feature_names[j]), "from": why.values[j], "to": why.flip.values[j]}
        for j in order[:SHOWN_FEATURES]
    ]
    return {
        "title": flip_title(
            "The smallest change" + ("" if why.flip.proven else " found by local search"), why.flip.label
        ),
        "changes": changes,
        "n_others": max(0, len(order) - SHOWN_FEATURES),
    }


def _pictures(planes: ModelExplanation | CommitteeExplanation) -> list[dict[str, Any]]:
    """Return the planes that decide the most rows, to be drawn."""
    return [{"name": as_text(name), "weights": weights} for name, weights in planes.pictures()[:SHOWN_PICTURES]]
