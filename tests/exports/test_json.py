"""Models as JSON: all that another program needs to predict, for every kind of model."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from polyplane import Model, MultiHyperplaneClassifier, PlaneSet, TableClassifier
from polyplane.exports import to_json
from tests.models import KINDS, QUICK, fitted, shop


def encode(column, value):
    """The numbers of a value, in plain Python, as the documentation says it."""
    is_gap = value is None or value != value
    match column["kind"]:
        case "number":
            special = column.get("special", [])
            numbers = [column["neutral"] if is_gap or value in special else value]
            numbers += [float(value == code) for code in special]
        case "boolean":
            numbers = [column["neutral"] if is_gap else float(value)]
        case "category":
            levels = column["levels"]
            own = levels[: len(levels) - column.get("n_shared", 0)]
            numbers = [float(not is_gap and value == level) for level in own]
            numbers += [float(not is_gap and value not in own)] if column["has_other"] else []
            numbers += [
                by_level[levels.index(value)] if value in levels else 0.0 for by_level in column.get("evidence", [])
            ]
        case "date":
            days = column["neutral"] if is_gap else (value - pd.Timestamp(0)) / pd.Timedelta(days=1)
            date = pd.Timestamp(0) + pd.Timedelta(days=days)
            parts = {"year": date.year, "month": date.month, "day of week": date.isoweekday(), "hour": date.hour}
            numbers = [days, *(parts[part] for part in column["parts"])]
    return numbers + ([float(is_gap)] if column["has_gaps"] else [])


def features(content, row):
    """The values of the features by their names."""
    if "columns" in content:
        encoded = [number for column in content["columns"] for number in encode(column, row[column["name"]])]
        assert len(encoded) == len(content["encoded"])
        default = range(len(encoded))
    else:
        encoded, default = [row[name] for name in content["features"]], range(len(content["features"]))
    scaling = content.get("scaling", {})
    values = []
    for i, j in enumerate(scaling.get("source", default)):
        x = encoded[j]
        if x is None or x != x:
            values.append(scaling["neutral"][i])
            continue
        u = (x - scaling["centre"][i]) * scaling["factor"][i] if scaling else x
        op = scaling["op"][i] if "op" in scaling else "value"
        u = u / math.sqrt(1 + (u / 3) ** 2) if op.startswith("smooth") else u
        u = u**2 if op.endswith("square") else u
        low, high = (scaling[end][i] if end in scaling else None for end in ("low", "high"))
        u = u if low is None else max(u, low)
        values.append(u if high is None else min(u, high))
    return dict(zip(content["features"], values, strict=True))


def class_scores(content, row):
    """What the file says of a row."""
    values, n_members = features(content, row), content.get("members", 1)
    weights = content.get("member_weights", [1 / n_members] * n_members)
    scores = []
    for entry in content["classes"]:
        members = [entry["planes"]] if n_members == 1 else entry["planes"]
        assert len(members) == n_members
        parts = []
        for planes in members:
            own = [p["intercept"] + sum(w * values[name] for name, w in p["weights"].items()) for p in planes]
            soft = content.get("pooling", "max") == "logsumexp"
            parts.append(max(own) + math.log(sum(math.exp(s - max(own)) for s in own)) if soft else max(own))
        scores.append(sum(weight * part for weight, part in zip(weights, parts, strict=True)))
    return scores


def assert_enough(model, X, tolerance):
    content = json.loads(to_json(model))
    fitted_model = Model.of(model)
    expected = fitted_model.class_scores(fitted_model.encode(X))
    rows = X if hasattr(X, "columns") else pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    found = np.array([class_scores(content, row) for row in rows.astype(object).to_dict("records")])
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    labels = [entry["label"] for entry in content["classes"]]
    assert labels == fitted_model.classes.tolist()
    assert [labels[c] for c in found.argmax(axis=1)] == model.predict(X).tolist()
    if "temperature" in content:
        shares = np.exp((found - found.max(axis=1, keepdims=True)) / content["temperature"])
        shares /= shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(shares, fitted_model.predict_proba(X), atol=100 * tolerance)
    assert ("temperature" in content) == fitted_model.has_probabilities


@pytest.mark.parametrize("kind", KINDS)
def test_another_program_predicts_the_same(kind):
    model, X = fitted(kind)
    assert_enough(model, X[:40], 2e-6 if kind.startswith("table") else 1e-11)


def test_tables_with_columns_of_all_kinds():
    frame, y = shop(300)
    frame["colour"] = frame["colour"].where(np.arange(300) % 50 > 0, "rare")
    model = TableClassifier(**QUICK | {"preparation": None}, min_rows=10).fit(frame, y)
    assert_enough(model, frame[:60], 2e-6)


def test_members_with_weights():
    rng = np.random.default_rng(0)
    members = [PlaneSet(rng.normal(size=(4, 2)), rng.normal(size=4), [0, 1, 4]) for _ in range(2)]
    own = MultiHyperplaneClassifier(1, max_iter=1).fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"]).model_
    model = Model(own.inputs, own.features, PlaneSet.of_members(members, [3, 1]), own.classes)
    assert_enough(model, rng.normal(size=(50, 2)), 1e-12)


def test_a_reader_finds_columns_levels_and_reasons():
    frame, y = shop(100)
    text = to_json(TableClassifier(**QUICK, gaps=("?",)).fit(frame.assign(number=range(100), shop="north"), y))
    described = json.loads(text)
    assert described["learner"] == "TableClassifier"
    assert described["parameters"]["n_planes"] == 2
    assert described["dropped"]["shop"] == "it is constant: all values are 'north'"
    assert described["features"][:3] == ["price", "colour = blue", "colour = green"]
    assert described["gaps"] == ["?"]
    assert '\n  {"kind": "category", "name": "colour",' in text


def test_names_that_mean_two_features():
    frame = pd.DataFrame({"a": ["b", "c"] * 50, "a = b": np.arange(100.0) % 7, "\u202e": np.arange(100.0) % 5})
    text = to_json(TableClassifier(**QUICK).fit(frame, frame["a"]))
    assert json.loads(text)["features"] == ["a = b#0", "a = c", "a = b#2", "\u202e"]
    assert "\u202e" not in text
