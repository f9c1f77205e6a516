"""Export to JavaScript: an ES module, or a script for a web page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from polyplane._version import __version__
from polyplane.exports.literals import js_value, label_value, number, runtime, wrapped
from polyplane.exports.view import ColumnView, View
from polyplane.features import OPS
from polyplane.inputs.formats import MULTIPLES, PLAIN, NumberFormat, date_pattern


def to_javascript(model: Any, dtype: str | None = None, *, name: str | None = None) -> str:
    """Export a fitted model as JavaScript: an ES module without dependencies.

    The module exports ``predict(row)``, which takes an object with the column names as keys and returns ``{label,
    scores, probabilities}``; the labels as ``classes``; and a description of the columns as ``columns``. It can be
    embedded in a page: no string in it can end a script.

    Parameters
    ----------
    model : estimator, Pipeline or Model
        A fitted estimator of Polyplane, a pipeline of scalers, as `polyplane.save` takes it, that ends in one, or a
        model.
    dtype : {"float32", "float64"} or None, default=None
        Data type of the weights. None: float32 for tables, otherwise that of the planes. Sums are computed in float64.
    name : str or None, default=None
        If given, the code is a script that defines an object of this name, instead of a module. The object holds what
        the module exports, and the steps of a prediction: ``addColumn`` adds the value of a column to the scores of the
        planes, which start as ``intercept``, and ``classScores`` computes the scores of the classes from them.

    Returns
    -------
    text : str
        The module, or the script.

    See Also
    --------
    polyplane.export : Write the module to a file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports import to_javascript
    >>> X, y = load_iris(return_X_y=True)
    >>> text = to_javascript(PegasosSVC(random_state=0).fit(X, y))
    >>> text.splitlines()[-1]
    'export {classes, columns, predict};'
    """
    view = View.of(model, dtype)
    if name is not None and not re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", name):
        raise ValueError(f"name={name!r} must be a JavaScript identifier: letters, digits and underscores.")
    spans = view.spans(view.weights)
    constants = {
        "classes": js_value([label_value(label) for label in view.model.classes.tolist()]),
        "columns": _lines(js_value(_column(column)) for column in view.columns),
        "plain": js_value(_format(PLAIN)),
        "multiples": js_value(MULTIPLES),
        "missingTexts": js_value(view.missing_texts),
        "largest": js_value(view.largest),
        "isSoft": js_value(view.is_soft),
        "members": js_value(view.members),
        "memberWeights": js_value(view.member_weights),
        "temperature": js_value(view.model.temperature),
        "intercept": _array(view.intercept, "float64"),
        "weights": _array(view.weights.ravel() if spans is None else spans.values, view.dtype),
        "spans": js_value(None if spans is None else {"offsets": spans.offsets, "starts": spans.starts}),
        "features": "null"
        if view.model.features.is_identity
        else _lines([js_value(feature) for feature in _features(view)]),
    }
    head = f"// A {view.model.learner} as JavaScript, written by polyplane {__version__}.\n\n"
    text = "".join(f"const {constant} = {value};\n" for constant, value in constants.items())
    if name is None:
        return f"{head}{text}\n{runtime('model.js')}\nexport {{classes, columns, predict}};\n"
    steps = "{classes, columns, predict, intercept, members, temperature, addColumn, classScores}"
    # A module is always strict.
    return f'{head}const {name} = (() => {{\n"use strict";\n{text}\n{runtime("model.js")}\nreturn {steps};\n}})();\n'


def _lines(values: Iterable[str]) -> str:
    return "[\n" + "".join(f"  {value},\n" for value in values) + "]"


def _column(column: ColumnView) -> dict[str, Any]:
    entries: dict[str, Any] = {"name": column.name, "position": column.position, "kind": column.kind}
    if isinstance(column.format, NumberFormat) and column.format != PLAIN:
        entries["format"] = _format(column.format)
    if isinstance(column.format, str) and column.format:
        entries["format"] = date_pattern(column.format).replace("(?P<", "(?<")
    if column.kind in ("category", "text"):
        entries |= {"levels": column.levels, "own": column.n_own, "first": column.first, "other": column.other}
    if column.special:
        entries |= {"special": column.special, "first": column.first}
    if column.may_be_missing:
        entries["missing"] = column.missing
    if column.numbers:
        entries["values"] = [
            ({} if neutral is None else {"neutral": neutral})
            | {"part": part, "features": [own.start, own.stop]}
            | ({"byLevel": by_level} if by_level else {})
            for part, neutral, own, by_level in column.numbers
        ]
    return entries


def _format(format: NumberFormat) -> dict[str, str]:
    return {"pattern": format.pattern, "separators": format.separators, "decimal": format.decimal}


def _array(values: Any, dtype: str) -> str:
    kind = {"float32": "Float32Array", "float64": "Float64Array"}[dtype]
    content = wrapped((number(value, dtype) for value in values), "  ")
    return f"new {kind}([\n{content}\n])"


def _features(view: View) -> list[list[Any]]:
    """Return the function, centre, factor and, if there are any, limits of each feature."""
    features = view.features
    parts = [part.tolist() for part in (features.op, features.centre, features.factor, features.low, features.high)]
    lists = ([OPS[op], *numbers] for op, *numbers in zip(*parts, strict=True))
    return [values if np.isfinite(values[3:]).any() else values[:3] for values in lists]
