"""Export of models as readable JSON, for programs without Polyplane."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from polyplane._plain import plain, visible_json
from polyplane._version import __version__
from polyplane.exports.view import column_names, default_dtype, unique_names
from polyplane.features import OPS
from polyplane.model import Model
from polyplane.planes import PlaneSet

#: Version of the format that `to_json` describes.
FORM = 2


def to_json(model: Any) -> str:
    r"""Export a fitted model as readable JSON.

    The classes are listed in order, each with its planes; a plane has an intercept and the nonzero weights by feature
    name::

        {
         "form": 2,
         "polyplane": "0.1.0",
         "learner": "PegasosSVC",
         "parameters": {"alpha": 0.0001, ...},
         "dtype": "float64",
         "features": ["width", "height"],
         "classes": [
          {"label": "no", "planes": [{"intercept": 0.0, "weights": {}}]},
          {"label": "yes", "planes": [{"intercept": -1.5, "weights": {"width": 2.0, "height": -0.25}}]}
         ]
        }

    The score of a plane is its intercept plus the sum of weights times features; the predicted class is the one that
    owns the plane with the highest score (the first one, in case of ties). Features without names are named "x0", "x1",
    and so on; duplicate names get an index, as in "width#3". Numbers are written with enough digits to restore the same
    value of the given dtype.

    If the model has probabilities, they are the softmax of the class scores divided by "temperature".

    For a committee, "members" is their number, and a class has a list of planes for each member. The score of a class
    is the mean over the members (weighted with "member_weights", if these are given) of the highest score of its
    planes; the class with the highest score is predicted::

         "members": 2,
         "classes": [
          {"label": "no", "planes": [[{"intercept": 0.0, "weights": {}}], [{"intercept": 0.5, "weights": {}}]]},
          ...

    If "pooling" is "logsumexp", the highest score of the planes is replaced by the logarithm of the sum of :math:`e^v`
    over the scores :math:`v` of the planes.

    For a pipeline of scalers before a learner, "scaling" has numbers in the order of the features. The value of a
    feature is then (x - centre) * factor, where x is the value in the row; if "low" and "high" are given, at least low
    and at most high (null: no limit); if "neutral" is given, neutral where x is missing::

         "features": ["width", "height"],
         "scaling": {"centre": [1.25, 40.0], "factor": [2.0, 0.1]},

    For a `TableClassifier`, the JSON includes the encoding of the columns, and a feature is a function of the encoded
    number "source"::

         "gaps": ["", "?"],
         "dropped": {"id": "it is an id: its integer is different in each of the 90 rows"},
         "columns": [
          {"kind": "number", "name": "age", "has_gaps": true, "neutral": 39.0, "decimal": ".", ...},
          {"kind": "category", "name": "work", "has_gaps": false, "levels": ["Private", "State"], ...}
         ],
         "encoded": ["age", "age is missing", "work = Private", "work = State"],
         "features": ["age, bin#0", "age, bin#1", "age is missing", "work = Private", "work = State"],
         "scaling": {"source": [0, 0, 1, 2, 3], "op": ["value", ...], "centre": [...], "factor": [...], ...},
         "temperature": 1.25,
         "pooling": "logsumexp",

    The columns are encoded as the listed numbers: a number, or its "neutral" value if it is missing or one of its
    "special" codes, which have an indicator each; an indicator for each
    level of a category (the last "n_shared" levels share the one of other levels) and its "evidence" for each class, 0
    for unknown levels; an indicator of missing values; a date as days since 1970 and as parts of the calendar. With
    :math:`u` = (x - centre) * factor, a feature is :math:`u` ("value"), :math:`u^2` ("square"), :math:`s = u / \sqrt{1
    + (u / 3)^2}` ("smooth") or :math:`s^2` ("smooth square"), at least "low" and at most "high".

    Parameters
    ----------
    model : estimator, Pipeline or Model
        A fitted estimator of Polyplane, a pipeline of scalers, as `save` takes it, that ends in one, or a model.

    Returns
    -------
    text : str
        The JSON, with one line per plane.

    Examples
    --------
    >>> import json
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports import to_json
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = json.loads(to_json(PegasosSVC(random_state=0).fit(X, y)))
    >>> model["features"]
    ['sepal length (cm)', 'sepal width (cm)', 'petal length (cm)', 'petal width (cm)']
    >>> len(model["classes"])
    3
    """
    estimator = getattr(model, "best_estimator_", model)
    last = getattr(estimator, "steps", [(None, estimator)])[-1][1]
    fitted = Model.of(estimator).unprojected()
    planes, dtype = fitted.planes, default_dtype(fitted)
    head: dict[str, Any] = {
        "form": FORM,
        "polyplane": __version__,
        "learner": fitted.learner,
        "parameters": last.get_params(deep=False) if hasattr(last, "get_params") else {},
        "dtype": dtype,
        **_inputs(fitted),
    }
    if fitted.has_probabilities:
        head["temperature"] = fitted.temperature
    if planes.pooling != "max" and not fitted.is_additive:
        head["pooling"] = planes.pooling
    if planes.n_members > 1:
        head["members"] = planes.n_members
        if (planes.member_weight != planes.member_weight[0]).any():
            head["member_weights"] = planes.member_weight.tolist()
    names = [_dump(name) for name in head["features"]]
    lines = [f" {_dump(name)}: {_entry(name, value)}," for name, value in plain(head).items()]
    labels = fitted.classes.tolist()
    classes = ",\n".join(_class(planes.members, c, label, names, dtype) for c, label in enumerate(labels))
    return "\n".join(["{", *lines, ' "classes": [', classes, " ]", "}"])


def _inputs(model: Model) -> dict[str, Any]:
    """Return the columns of a table, the names of the features, and how they are computed."""
    inputs: Any = model.inputs
    features, entries = model.features, {}
    encoded, neutral = column_names(model), getattr(inputs, "neutral", None)
    if inputs.is_table:
        encoded = unique_names([feature.name for feature in inputs.features])
        columns = [column.to_dict() for column in inputs.columns]
        entries = {"gaps": inputs.gaps, "dropped": inputs.dropped, "columns": columns, "encoded": encoded}
    names, scaling = [encoded[j] for j in features.source], {}
    if features.op.any() or (np.diff(features.source) < 1).any():
        is_bin = (features.op == 0) & (features.low == 0.0) & (features.high == 1.0)
        words = np.where(is_bin, "bin", np.array(OPS)[features.op]).tolist()
        names = [name if word == "value" else f"{name}, {word}" for name, word in zip(names, words, strict=True)]
        scaling = {"source": features.source, "op": np.array(OPS)[features.op]}
    if scaling or neutral is not None or not features.is_identity:
        scaling |= {"centre": features.centre, "factor": features.factor}
    if np.isfinite([features.low, features.high]).any():
        scaling |= {"low": features.low, "high": features.high}
    if neutral is not None:
        scaling["neutral"] = features.transform(neutral[None])[0]
    return entries | {"features": unique_names(names)} | ({"scaling": scaling} if scaling else {})


def _entry(name: str, value: Any) -> str:
    """Return an entry of the head; columns have one line each."""
    lines = ",\n".join(f"  {_dump(each)}" for each in value) if name == "columns" else ""
    return f"[\n{lines}\n ]" if lines else _dump(value)


def _class(members: tuple[PlaneSet, ...], c: int, label: Any, names: list[str], dtype: str) -> str:
    """Return a class with its planes: a list, or one for each member of a committee."""
    texts = []
    for member in members:
        planes = (_plane(coef.astype(dtype), intercept, names) for coef, intercept in zip(*member.of(c), strict=True))
        texts.append("\n" + ",\n".join(f"   {plane}" for plane in planes) + "\n  ")
    text = texts[0] if len(texts) == 1 else ", ".join(f"[{text}]" for text in texts)
    return f'  {{"label": {_dump(label)}, "planes": [{text}]}}'


def _plane(coef: np.ndarray, intercept: Any, names: list[str]) -> str:
    # str returns the fewest digits that identify a number of its dtype.
    weights = ", ".join(f"{names[j]}: {coef[j]!s}" for j in np.flatnonzero(coef).tolist())
    return f'{{"intercept": {intercept!s}, "weights": {{{weights}}}}}'


def _dump(value: Any) -> str:
    """Return a value as JSON in one line, without ASCII escapes."""
    return visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False))
