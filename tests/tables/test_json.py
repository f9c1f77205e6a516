"""JSON of `TableClassifier`: all that another program needs to predict."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from polyplane import TableClassifier
from polyplane.exports import to_json
from polyplane.tables.preparation import RECIPES
from tests.models import QUICK, shop

pd = pytest.importorskip("pandas", reason="pandas is a development dependency")


def encode(column, value):
    """The features of a value, in plain Python, as the documentation says it."""
    is_gap = value is None or value != value
    match column["kind"]:
        case "number":
            features = [column["neutral"] if is_gap else value]
        case "boolean":
            features = [column["neutral"] if is_gap else float(value)]
        case "category":
            features = [float(not is_gap and value == level) for level in column["levels"]]
            features += [float(not is_gap and value not in column["levels"])] if column["has_other"] else []
        case "date":
            days = column["neutral"] if is_gap else (value - pd.Timestamp(0)) / pd.Timedelta(days=1)
            date = pd.Timestamp(0) + pd.Timedelta(days=days)
            parts = {"year": date.year, "month": date.month, "day of week": date.isoweekday(), "hour": date.hour}
            features = [days, *(parts[part] for part in column["parts"])]
    return features + ([float(is_gap)] if column["has_gaps"] else [])


def prepare(preparation, features):
    """The values that planes see, by their names."""
    z = [(x - c) * f for x, c, f in zip(features, preparation["centre"], preparation["factor"], strict=True)]
    numbers = [j for j, is_number in enumerate(preparation["is_number"]) if is_number]
    if preparation["name"] in ("robust", "robust+norm", "bins"):
        z = [v / math.sqrt(1 + (v / 3) ** 2) if j in numbers else v for j, v in enumerate(z)]
    more, gains = [], list(preparation["gain"])
    for j, knots in zip(numbers, preparation["knots"], strict=False):
        more += [min(max((features[j] - low) / (high - low), 0), 1) for low, high in pairwise(knots)]
        gains += [preparation["gain"][j]] * max(len(knots) - 1, 0)
    if preparation["name"] == "squares":
        more += [z[j] ** 2 for j in numbers]
        gains += [preparation["gain"][j] for j in numbers]
    if preparation["name"] == "robust+norm":
        more.append(sum(z[j] ** 2 for j in numbers))
        gains.append(1.0)
    z += [(v - c) * f for v, c, f in zip(more, preparation["more_centre"], preparation["more_factor"], strict=True)]
    return {name: v * gain for name, v, gain in zip(preparation["features"], z, gains, strict=True)}


def probabilities(model, row):
    """What the file says of a row."""
    features = [x for column in model["columns"] for x in encode(column, row[column["name"]])]
    assert len(features) == len(model["features"])
    scores = np.zeros(len(model["machines"][0]["classes"]))
    for machine in model["machines"]:
        values = prepare(model["preparations"][machine["preparation"]], features)
        for c, owner in enumerate(machine["classes"]):
            planes = [
                plane["intercept"] + sum(w * values[name] for name, w in plane["weights"].items())
                for plane in owner["planes"]
            ]
            scores[c] += math.log(sum(map(math.exp, planes))) / len(model["machines"])
    shares = np.exp(scores / model["temperature"])
    return shares / shares.sum()


@pytest.mark.parametrize("preparation", [*RECIPES, None])
def test_another_program_predicts_the_same(preparation):
    frame, y = shop(300)
    frame["colour"] = frame["colour"].where(np.arange(300) % 50 > 0, "rare")
    model = TableClassifier(**QUICK | {"preparation": preparation}, min_rows=10).fit(frame, y)
    described = json.loads(to_json(model))
    assert described["learner"] == "TableClassifier"
    assert described["parameters"]["n_planes"] == 2
    assert len(described["preparations"]) == len(set(model.preparation_))
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")[:60]
    found = [probabilities(described, row) for row in rows]
    np.testing.assert_allclose(found, model.predict_proba(frame[:60]), atol=1e-5)


def test_a_reader_finds_columns_levels_and_reasons():
    frame, y = shop(100)
    text = to_json(TableClassifier(**QUICK, gaps=("?",)).fit(frame.assign(number=range(100), shop="north"), y))
    described = json.loads(text)
    assert described["dropped"]["shop"] == "it is constant: all values are 'north'"
    assert described["features"][:3] == ["price", "colour = blue", "colour = green"]
    assert described["gaps"] == ["?"]
    assert '\n  {"kind": "category", "name": "colour",' in text


def test_names_that_mean_two_features():
    frame = pd.DataFrame({"a": ["b", "c"] * 50, "a = b": np.arange(100.0) % 7, "\u202e": np.arange(100.0) % 5})
    text = to_json(TableClassifier(**QUICK).fit(frame, frame["a"]))
    assert json.loads(text)["features"] == ["a = b#0", "a = c", "a = b#2", "\u202e"]
    assert "\u202e" not in text
