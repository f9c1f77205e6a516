"""Export of models as readable JSON, for programs without Polyplane."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyplane._plain import plain, visible_json
from polyplane._prediction import PlanePrediction
from polyplane._version import __version__
from polyplane.exports._names import feature_names
from polyplane.exports._pipeline import ScaledLearner, Scalers, unwrap_pipeline
from polyplane.planes import PlaneSet

#: Version of the format that `to_json` describes.
FORM = 1


def to_json(model: Any) -> str:
    r"""Export a fitted estimator as readable JSON.

    The classes are listed in order, each with its planes; a plane has an intercept and the nonzero weights by feature
    name::

        {
         "form": 1,
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

    For a committee, "machines" is the number of members, and a class has a list of planes for each member. The score of
    a class is the mean over the members of the highest score of its planes; the class with the highest score is
    predicted::

         "machines": 2,
         "classes": [
          {"label": "no", "planes": [[{"intercept": 0.0, "weights": {}}], [{"intercept": 0.5, "weights": {}}]]},
          ...

    For a pipeline of scalers before a learner, "scaling" has numbers in the order of the features. The value of a
    feature is then (x - centre) * factor, where x is the value in the row; if "low" and "high" are given, at least low
    and at most high (null: no limit); if "neutral" is given, neutral where x is missing::

         "features": ["width", "height"],
         "scaling": {"centre": [1.25, 40.0], "factor": [2.0, 0.1]},

    For a `TableClassifier`, the JSON includes the encoding of the columns and the calibration of probabilities::

         "gaps": ["", "?"],
         "dropped": {"id": "it is an id: its integer is different in each of the 90 rows"},
         "features": ["age", "age is missing", "work = Private", "work = State"],
         "temperature": 1.25,
         "columns": [
          {"kind": "number", "name": "age", "has_gaps": true, "neutral": 39.0, "decimal": ".", ...},
          {"kind": "category", "name": "work", "has_gaps": false, "levels": ["Private", "State"], ...}
         ],
         "preparations": [{"name": "bins", "is_number": [true, false, false, false], "centre": [...], ...}],
         "machines": [
          {"preparation": 0, "classes": [
           {"label": "no", "planes": [{"intercept": 0.5, "weights": {"age, bin 0": 1.5, "work = State": -1.0}}]},
           ...

    The columns are encoded as the listed features: a number, or its "neutral" value if missing; an indicator for each
    level of a category; an indicator of missing values; a date as days since 1970 and as parts of the calendar. A
    preparation subtracts "centre" from each feature and multiplies it by "factor"; in the robust ones ("robust",
    "robust+norm" and "bins"), numbers are then mapped to :math:`z / \sqrt{1 + (z / 3)^2}`. More features follow in
    the order of the "features" of the preparation: the fraction of each bin between "knots" that lies below the
    unscaled number (from 0 to 1), squares, and the sum of all squares of numbers, "norm"; "more_centre" is subtracted
    from them, and they are multiplied by "more_factor". Each feature, and all features derived from it, are then
    multiplied by its "gain". The score of a class is the mean over the members of the logarithm of the sum of
    :math:`e^v` over the scores :math:`v` of its planes; probabilities are the softmax of the class scores divided by
    the temperature.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, or a pipeline of scalers, as `save` takes it, that ends in one.

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
    from polyplane.tables.classifier import TableClassifier

    model = unwrap_pipeline(model)
    if isinstance(model, ScaledLearner):
        return _learner_to_json(model.learner, model.feature_names, {"scaling": _scaling(model)})
    if not isinstance(model, PlanePrediction | TableClassifier):
        raise TypeError(f"to_json takes a fitted estimator of Polyplane, not a {type(model).__name__}.")
    check_is_fitted(model)
    if isinstance(model, TableClassifier):
        from polyplane.exports._table_json import table_to_json

        return table_to_json(model)
    return _learner_to_json(model.to_numpy(), feature_names(model, model.planes_.n_features), {})


def _scaling(model: ScaledLearner) -> dict[str, Any]:
    """Return the scaling of each feature, with limits and neutral values if there are any."""
    scalers: Scalers = model.scalers
    names = ["centre", "factor"] + ["low", "high"] * scalers.is_clipped + ["neutral"] * (scalers.neutral is not None)
    return {name: [_finite(value) for value in getattr(scalers, name).tolist()] for name in names}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _learner_to_json(model: PlanePrediction, names: list[str], more: dict[str, Any]) -> str:
    """Return a learner as JSON, with the entries `more` before its planes."""
    head = {
        "form": FORM,
        "polyplane": __version__,
        "learner": type(model).__name__,
        "parameters": plain(model.get_params(deep=False)),
        "dtype": model.planes_.coef.dtype.name,
        "features": names,
        **more,
    }
    planes = model.planes_
    if planes.n_members > 1:
        head["machines"] = planes.n_members
    lines = [f" {json.dumps(name)}: {dump(value)}," for name, value in head.items()]
    return "\n".join(["{", *lines, ' "classes": [', ",\n".join(_classes(model, names)), " ]", "}"])


def _classes(model: PlanePrediction, names: list[str]) -> list[str]:
    names = [dump(name) for name in names]
    planes = model.planes_
    texts = []
    for c, label in enumerate(model.classes_.tolist()):
        if planes.n_members > 1:
            text = ", ".join(f"[{planes_of_class(member, c, names)}]" for member in planes.members)
        else:
            text = planes_of_class(planes, c, names)
        texts.append(f'  {{"label": {dump(label)}, "planes": [{text}]}}')
    return texts


def planes_of_class(planes: PlaneSet, c: int, names: list[str]) -> str:
    """Return the planes of a class, one per line."""
    lines = ",\n".join(f"   {_plane(*plane, names)}" for plane in zip(*planes.of(c), strict=True))
    return f"\n{lines}\n  "


def _plane(coef: np.ndarray, intercept: Any, names: list[str]) -> str:
    # str returns the fewest digits that identify a number of its dtype.
    weights = ", ".join(f"{names[j]}: {coef[j]!s}" for j in np.flatnonzero(coef).tolist())
    return f'{{"intercept": {intercept!s}, "weights": {{{weights}}}}}'


def dump(value: Any) -> str:
    """Return a value as JSON in one line, without ASCII escapes."""
    return visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False))
