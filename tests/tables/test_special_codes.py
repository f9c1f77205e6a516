"""Special codes of numbers: each has its own weight, outside of the order of the column."""

import json

import numpy as np
import pandas as pd
import pytest

import polyplane
from polyplane import TableClassifier, TableEncoder
from polyplane.explain import (
    certified_radius,
    explain_model,
    explain_row,
    population_stability,
    scorecard,
)
from polyplane.explain.geometry import table_counterfactual
from tests.models import fitted, of_special_codes


@pytest.fixture(scope="module")
def codes():
    """The label depends on the number and, the other way round, on its codes: -1 is good, -2 bad."""
    rng = np.random.default_rng(0)
    value = rng.exponential(100, 2000)
    kind = rng.choice(3, 2000, p=[0.6, 0.2, 0.2])
    score = np.where(kind == 0, (value - 70) / 30, np.where(kind == 1, 4.0, -4.0))
    y = np.where(rng.random(2000) < 1 / (1 + np.exp(-score)), "good", "bad")
    return pd.DataFrame({"value": np.where(kind == 0, value, -1.0 * kind), "noise": rng.normal(size=2000)}), y


def test_the_weight_of_a_code_is_free_of_the_order(codes):
    frame, y = codes
    how = {"n_estimators": 2, "n_planes": 1, "preparation": "standard", "random_state": 0}
    free = TableClassifier(**how, special_codes={"value": [-1, -2]}, monotonic_cst={"value": 1}).fit(frame, y)
    rows = pd.DataFrame({"value": [-1.0, -2.0, 5.0, 50.0, 500.0], "noise": 0.0})
    good = free.predict_proba(rows)[:, 1]
    assert good[0] > 0.9
    assert good[1] < 0.1
    assert (np.diff(good[2:]) > 0).all()
    bound = TableClassifier(**how, monotonic_cst={"value": 1}).fit(frame, y)
    assert np.ptp(bound.predict_proba(rows[:2])[:, 1]) < 0.1
    assert free.score(frame, y) > bound.score(frame, y) + 0.05


def test_the_encoding(codes):
    frame, _ = codes
    encoder = TableEncoder(special_codes={"value": np.array([-1, -2])}).fit(frame)
    assert list(encoder.get_feature_names_out()) == ["value", "value = -1", "value = -2", "noise"]
    usual = frame["value"][frame["value"] >= 0]
    column = encoder.encoding_.columns[0]
    assert (column.neutral, column.range.low) == (usual.median(), usual.min())
    Z = encoder.transform(pd.DataFrame({"value": [-1, -2, 3.5, -1.5], "noise": 0.0}))
    assert Z[:, 0].tolist() == [usual.median(), usual.median(), 3.5, -1.5]
    assert Z[:, 1:3].tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    for value in (encoder.to_dict(), json.loads(json.dumps(encoder.to_dict()))):
        assert TableEncoder.from_dict(value).encoding_ == encoder.encoding_
    one = np.concatenate([encoder.transform(frame.iloc[[i]]) for i in range(30)])
    np.testing.assert_array_equal(one, encoder.transform(frame[:30]))
    np.testing.assert_array_equal(encoder.transform(frame.to_numpy()), encoder.transform(frame))


def test_texts_with_codes():
    frame = pd.DataFrame({"price": [f"${i}" for i in range(1, 60)] + ["$-99"] * 5})
    encoder = TableEncoder(special_codes={"price": [-99]}).fit(frame)
    assert encoder.transform(frame)[:, 1].tolist() == [0.0] * 59 + [1.0] * 5


@pytest.mark.parametrize(
    ("special", "message"),
    [
        ({"cost": [-1]}, "special_codes contains 'cost', which is not a column of the table"),
        ({"value": -1}, r"special_codes\['value'\] is -1; it must be a list of finite numbers"),
        ({"value": ["-1"]}, r"special_codes\['value'\] is \['-1'\]; it must be a list of finite numbers"),
        ({"value": [np.nan]}, "it must be a list of finite numbers"),
        ({"value": [True]}, "it must be a list of finite numbers"),
        ({"kind": [1]}, "special_codes names 'kind', which is a category: only numbers have special codes"),
        ({"all": [7, 8]}, "Column 'all' has no numbers but its special codes"),
        ([-1], "special_codes"),
    ],
)
def test_bad_input_is_refused(special, message):
    frame = pd.DataFrame({"value": np.arange(40) / 3, "kind": list("abab") * 10, "all": [7.0, 8.0] * 20})
    with pytest.raises(ValueError, match=message):
        TableClassifier(special_codes=special).fit(frame, [0, 1] * 20)


def test_forged_codes_are_refused(codes):
    value = TableEncoder(special_codes={"value": [-1]}).fit(codes[0]).to_dict()
    for forged in ([1, 1], ["1"], 3, [float("inf")]):
        value["columns"][0]["special"] = forged
        with pytest.raises(ValueError, match="invalid 'special'"):
            TableEncoder.from_dict(value)


def test_files_keep_them(tmp_path):
    model, X = fitted("table, special codes")
    polyplane.save(model, tmp_path / "model.safetensors")
    same = polyplane.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    refitted = same.fit(X, model.predict(X))
    assert refitted.encoder_.encoding_.columns == model.encoder_.encoding_.columns


def test_explanations(codes):
    frame, y = codes
    model = TableClassifier(2, special_codes={"value": [-1, -2]}, random_state=0, max_iter=10).fit(frame, y)
    special = frame[frame["value"] == -1][:1]
    assert "value = -1" in str(explain_row(model, special))
    effect = next(e for e in explain_model(model, frame).effects if e.column == "value")
    assert min(effect.values) >= 0
    z = model.model_.encode(special)[0]
    found = table_counterfactual(model, z)
    assert found is None or "value" not in found.changes
    assert np.isinf(certified_radius(model, special, norm=np.inf, scale={"value": 1.0})).all()
    usual = frame[frame["value"] > 0][:1]
    assert np.isfinite(certified_radius(model, usual, norm=np.inf, scale={"value": 1.0})).all()
    shifted = frame.assign(value=np.where(frame["value"] == -1, -2.0, frame["value"]))
    stability = population_stability(model, frame, shifted).set_index("name")["reading"]
    assert stability["value"] == "shift"


def test_scorecards_have_rows_of_codes():
    model, X = of_special_codes(1, n_planes=1, preparation="steps", max_iter=None)
    y = model.predict(X)
    assert len(np.unique(y)) == 2
    card = scorecard(model)
    table = card.table(X, y)
    income = table[table["column"] == "income"].set_index("bin")
    assert [name for name in income.index if name.startswith(("special", "missing"))] == [
        "special: -999",
        "special: -998.5",
        "missing",
    ]
    assert income.loc["special: -999", "share"] == pytest.approx((X["income"] == -999).mean())
    assert income["share"].sum() == pytest.approx(1.0)
    points = card.points(X)[:, list(card.columns).index("income")]
    assert points[X["income"] == -999.0] == pytest.approx(income.loc["special: -999", "points"])
    assert points[X["income"] == -998.5] == pytest.approx(income.loc["special: -998.5", "points"])
    assert points[X["income"].isna()] == pytest.approx(income.loc["missing", "points"])
