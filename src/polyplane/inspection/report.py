"""One page about a model: its accuracy, its planes as rules, its errors, and the reasons for chosen rows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyplane._files import replace_file
from polyplane._plain import plain, visible
from polyplane.committee import PlaneCommittee
from polyplane.inspection._committee_explanation import CommitteeExplanation
from polyplane.inspection._markup import assemble
from polyplane.inspection._model_explanation import ModelExplanation
from polyplane.inspection._report_body import Predictions, report_body
from polyplane.inspection._row_explanation import RowExplanation
from polyplane.inspection.model import explain_model
from polyplane.inspection.row import explain_row
from polyplane.inspection.unscaled import unwrap

#: The share of the rows whose class the rules, rounded for reading, may change.
ROUNDED = 0.005
#: Features and changes shown of one row, and planes shown as pictures.
SHOWN_FEATURES, SHOWN_PICTURES = 12, 40


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

    It describes the model and its accuracy on the rows, lists its planes as rules and its errors, and for chosen rows
    shows why their class is predicted and what would change that.

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
    ...     "Accuracy: 97.3 % on 75 rows" in page.read_text(encoding="utf-8")
    True
    """
    model = unwrap(estimator, feature_names)
    if image_shape is not None and int(np.prod(image_shape)) != model.planes.n_features:
        raise ValueError(f"image_shape={image_shape} does not hold {model.planes.n_features} features.")
    if n_rows < 1:
        raise ValueError(f"n_rows must be 1 or more, not {n_rows}.")
    predictions = Predictions.of(model, X, y)
    tolerance = 0.0 if isinstance(model.planes, PlaneCommittee) else ROUNDED
    planes = explain_model(estimator, X, feature_names=feature_names, tolerance=tolerance)
    chosen = _choose(predictions, planes, n_rows)
    explained = [explain_row(estimator, _one(X, i), X=X, feature_names=feature_names) for i in chosen]
    content = {
        "rows": [_row(predictions, i, why, image_shape) for i, why in zip(chosen, explained, strict=True)],
        "image_shape": image_shape,
        "planes": _pictures(planes) if image_shape else None,
    }
    headline = title or planes.learner
    body = report_body(predictions, planes, headline, chosen, pictures=image_shape is not None)
    with replace_file(path) as file:
        file.write(assemble(body, headline, json.dumps(plain(content))).encode())
    return Path(path)


def _choose(predictions: Predictions, planes: ModelExplanation | CommitteeExplanation, n_rows: int) -> list[int]:
    """Up to half of them errors, a quarter unsure, the rest typical."""
    errors = predictions.errors[: max(1, n_rows // 2)]
    right = np.flatnonzero(predictions.truth == predictions.predicted)
    unsure = right[np.argsort(predictions.margins[right], kind="stable")][: n_rows // 4]
    return list(dict.fromkeys([*errors.tolist(), *unsure.tolist(), *planes.typical_rows()]))[:n_rows]


def _one(X: Any, i: int) -> Any:
    """Row `i` as a matrix of one row."""
    if hasattr(X, "iloc"):
        return X.iloc[[i]]
    return X[[i]] if sparse.issparse(X) or hasattr(X, "shape") else np.asarray(X)[[i]]


def _row(predictions: Predictions, i: int, why: RowExplanation, image_shape: Any) -> dict[str, Any]:
    """What the script of the page shows of a row."""
    truth, label = _shown(predictions.model.label(int(predictions.truth[i]))), _shown(why.label)
    order = why.by_share()
    shown, rest = order[:SHOWN_FEATURES], order[SHOWN_FEATURES:]
    return {
        "number": i,
        "name": f"row {i}: predicted {label}" + ("" if label == truth else f", true class {truth}"),
        "label": label,
        "truth": truth,
        "plane": why.plane,
        "rival": _shown(why.rival),
        "rival_plane": why.rival_plane,
        "machines": why.machines,
        "difference": why.difference,
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
    }


def _shown(label: Any) -> str:
    return visible(str(label))


def _flip(why: RowExplanation) -> dict[str, Any] | None:
    if why.flip is None:
        return None
    order = why.by_change()
    changes = [
        {"name": visible(why.feature_names[j]), "from": why.values[j], "to": why.flip.values[j]}
        for j in order[:SHOWN_FEATURES]
    ]
    return {
        "label": _shown(why.flip.label),
        "proven": why.flip.proven,
        "changes": changes,
        "n_others": max(0, len(order) - SHOWN_FEATURES),
    }


def _pictures(planes: ModelExplanation | CommitteeExplanation) -> list[dict[str, Any]]:
    """The busiest planes, to be drawn."""
    return [{"name": _shown(name), "weights": weights} for name, weights in planes.pictures()[:SHOWN_PICTURES]]
