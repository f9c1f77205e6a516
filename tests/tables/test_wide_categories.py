"""Categories of more levels than get an indicator: their evidence for the classes, out of fold, everywhere."""

import json

import numpy as np
import pandas as pd
import pytest

import polyplane
from polyplane import TableClassifier, TableEncoder
from polyplane.explain import explain_model, explain_row, population_stability, reason_codes, scorecard
from polyplane.inputs.evidence import Labels, evidence, held_out_evidence

QUICK = {"n_estimators": 2, "preparation": "bins", "n_planes": 2, "max_iter": 5, "random_state": 0}


def shops(n_rows=3000, n_shops=300, n_classes=2, seed=0, strength=2.0):
    """A table whose label depends on the shop, of which there are hundreds, and on a number."""
    rng = np.random.default_rng(seed)
    effects = strength * rng.normal(size=(n_shops, n_classes))
    shop, price = rng.integers(0, n_shops, n_rows), rng.normal(size=n_rows)
    scores = effects[shop] + price[:, None] * np.linspace(-1, 1, n_classes) + rng.gumbel(size=(n_rows, n_classes))
    frame = pd.DataFrame({"shop": [f"shop {i}" for i in shop], "price": price})
    frame.loc[rng.random(n_rows) < 0.03, "shop"] = None
    return frame, np.array(["bad", "good", "ugly"])[scores.argmax(axis=1)]


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    frame, y = shops(n_classes=request.param)
    return TableClassifier(**QUICK).fit(frame, y), frame, y


def test_levels_beyond_the_largest_number_count():
    frame, y = shops(4000)
    train, test = slice(2500), slice(2500, None)
    model = TableClassifier(n_estimators=2, random_state=0).fit(frame[train], y[train])
    # Without evidence it is 0.70, with an indicator for each level 0.77; of the made classes 0.81 can be known.
    assert model.score(frame[test], y[test]) > 0.75
    assert "300 levels have an indicator" in str(model.encoder_.encoding_.notes["shop"])


def test_useless_levels_do_no_harm():
    frame, y = shops(3000, strength=0.0)
    train, test = slice(2000), slice(2000, None)
    errors = [
        1 - TableClassifier(n_estimators=2, random_state=0).fit(X[train], y[train]).score(X[test], y[test])
        for X in (frame, frame[["price"]])
    ]
    assert errors[0] < errors[1] + 0.03


def test_evidence_of_training_rows_does_not_contain_their_labels():
    rng = np.random.default_rng(0)
    index, y = rng.integers(0, 500, 3000), rng.integers(0, 2, 3000)
    index[::7] = -1
    known = Labels(y, np.ones(3000), ("no", "yes"))
    whole, held_out = evidence(index, 500, known), held_out_evidence(index, 500, known)
    assert whole.shape == (500, 1)
    assert (held_out[index < 0] == 0).all()
    known = index >= 0
    assert abs(np.corrcoef(held_out[known, 0], y[known])[0, 1]) < 0.06
    for row in np.flatnonzero(known)[:20]:  # another label of the row leaves its own evidence as it is, up to the prior
        other = Labels(np.where(np.arange(3000) == row, 1 - y, y), np.ones(3000), ("no", "yes"))
        assert held_out_evidence(index, 500, other)[row] == pytest.approx(held_out[row], abs=1e-3)


def test_weights_are_numbers_of_rows():
    rng = np.random.default_rng(1)
    index, y, times = rng.integers(0, 40, 900), rng.integers(0, 3, 900), rng.integers(1, 4, 900)
    classes = ("a", "b", "c")
    repeated = Labels(np.repeat(y, times), np.ones(times.sum()), classes)
    np.testing.assert_array_equal(
        evidence(index, 40, Labels(y, times.astype(float), classes)),
        evidence(np.repeat(index, times), 40, repeated),
    )


def test_encoding(fitted):
    model, frame, _ = fitted
    column = next(c for c in model.encoder_.encoding_.columns if c.name == "shop")
    assert (len(column.levels), column.n_own, len(column.evidence)) == (300, 50, 1 if len(model.classes_) == 2 else 3)
    assert column.evidence_for == (("good",) if len(model.classes_) == 2 else ("bad", "good", "ugly"))
    Z = model.encoder_.transform(
        pd.DataFrame({"shop": [column.levels[0], column.levels[-1], "new", None]}).assign(price=0.0)
    )
    names = list(model.encoder_.get_feature_names_out())
    for k, label in enumerate(column.evidence_for):
        values = Z[:, names.index(f"shop: evidence for {label}")]
        assert values.tolist() == [column.evidence[k][0], column.evidence[k][-1], 0.0, 0.0]
    assert Z[:, names.index("shop = other")].tolist() == [0, 1, 1, 0]
    assert Z[:, names.index("shop is missing")].tolist() == [0, 0, 0, 1]
    encoder = TableEncoder.from_dict(json.loads(json.dumps(model.encoder_.to_dict())))
    assert encoder.encoding_ == model.encoder_.encoding_
    assert TableEncoder.from_dict(model.encoder_.to_dict()).encoding_ == model.encoder_.encoding_
    one_by_one = np.concatenate([model.predict_proba(frame.iloc[[i]]) for i in range(20)])
    np.testing.assert_allclose(one_by_one, model.predict_proba(frame[:20]), rtol=1e-12)


def test_files(fitted, tmp_path):
    model, frame, _ = fitted
    polyplane.save(model, tmp_path / "model.safetensors")
    same = polyplane.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(same.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize(
    "change",
    [
        {"evidence": [[0.0]]},
        {"evidence_for": []},
        {"n_shared": 1000},
        {"has_other": False},
        {"is_ordered": True},
        {"evidence": "no"},
    ],
)
def test_forged_encodings_are_refused(fitted, change):
    value = fitted[0].encoder_.to_dict()
    number = next(i for i, column in enumerate(value["columns"]) if column["name"] == "shop")
    value["columns"][number] |= change
    with pytest.raises(ValueError, match="Column 'shop' has an invalid"):
        TableEncoder.from_dict(value)


def test_explanations_are_in_words_of_the_column(fitted):
    model, frame, _ = fitted
    row = frame[frame["shop"] == next(c for c in model.encoder_.encoding_.columns).levels[-1]][:1]
    text = str(explain_row(model, row))
    assert f"shop = {row['shop'].iloc[0]}" in text
    assert "unknown" not in text
    assert "evidence" not in text
    scores = model.model_.class_scores(model.model_.encode(frame[:50]))
    reference = model.model_.inputs.reference
    parts = model.model_.contributions(model.model_.encode(frame[:50]), reference)
    np.testing.assert_allclose(parts.sum(axis=1), scores - model.model_.class_scores(reference[None]), atol=1e-4)
    explanation = explain_model(model, frame)
    effect = next(e for e in explanation.effects if e.column == "shop")
    assert len(effect.values) == 301
    assert np.ptp(effect.effect[50:300, 1]) > 0.5
    assert {*reason_codes(model, frame[:50])["column"]} <= {"shop", "price"}
    stability = population_stability(model, frame[:1500], frame[1500:]).set_index("name")
    assert stability.loc["shop", "reading"] != "shift"


def test_scorecard():
    frame, y = shops()
    model = TableClassifier(1, n_planes=1, preparation="steps", random_state=0).fit(frame, y)
    card = scorecard(model)
    table = card.table(frame, y)
    own = table[table["column"] == "shop"]
    assert own["share"].sum() == pytest.approx(1.0)
    points = pd.Series(card.points(frame)[:, list(card.columns).index("shop")], index=frame["shop"])
    listed = own.set_index("bin")["points"]
    for level in ("shop 1", "shop 200", "shop 299"):
        assert points[level].iloc[0] == pytest.approx(listed[level])


def test_streams_keep_the_evidence_of_the_first_rows():
    frame, y = shops(3000)
    batches = [(frame[i : i + 500], y[i : i + 500]) for i in range(0, 3000, 500)]
    model = TableClassifier(**QUICK).fit_stream(batches, first_rows=1500)
    alone = TableClassifier(**QUICK).fit(frame[:1500], y[:1500])
    assert model.encoder_.encoding_ == alone.encoder_.encoding_
    assert model.score(frame, y) > 0.7
    model.partial_fit(frame[:500], y[:500])
    assert model.encoder_.encoding_ == alone.encoder_.encoding_


def test_the_encoder_alone_does_not_use_labels():
    frame, y = shops()
    column = next(c for c in TableEncoder().fit(frame, y).encoding_.columns if c.name == "shop")
    assert (len(column.levels), column.evidence) == (50, ())
