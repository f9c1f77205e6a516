"""Tables with free text, and numbers and dates as people write them, from `fit` to explanations, files and exports."""

import numpy as np
import pandas as pd
import pytest

import polyplane
import polyplane.serving
from polyplane import Model, TableClassifier, TableEncoder
from polyplane.explain import explain_model, explain_row
from polyplane.exports import to_c, to_javascript, to_sql
from polyplane.inputs.encoding import Feature
from tests.programs import run_node

N_ROWS = 400
WORDS = ["landing", "NO", "damage.", "pilot", "saw", "Möwe", "flock", "runway", "l33t"]


def reports(n_rows=N_ROWS, seed=0):
    """Remarks, of which one word decides, beside numbers and dates as they are written."""
    rng = np.random.default_rng(seed)
    words = [list(rng.choice(WORDS, 4)) for _ in range(n_rows)]
    days = pd.Series(pd.date_range("2019-01-01", periods=3 * n_rows)).sample(n_rows, random_state=seed)
    price = rng.gamma(2.0, 2000.0, n_rows) * rng.choice([-1, 1], n_rows)
    frame = pd.DataFrame(
        {
            "remarks": [f"{', '.join(own)} {i}" if i % 10 else None for i, own in enumerate(words)],
            "price": [f"(${-v:,.2f})" if v < 0 else f"${v:,.2f}" for v in price],
            "size": [f"{v / 1000:.2f}M".replace(".", ",") if v > 0 else f"{-v:.0f} k" for v in price],
            "sold": days.dt.strftime("%d/%m/%Y %I:%M %p").tolist(),
            "week": days.dt.strftime("%G-W%V").tolist(),
            "told": days.dt.strftime("%b %d, %Y").tolist(),
            "when": [f"{day.year}Q{day.quarter}" for day in days],
            "short": days.dt.strftime("%m/%d/%y").tolist(),
        }
    )
    y = np.where(["Möwe" in own for own in words], "struck", "missed")
    return frame, y


@pytest.fixture(scope="module")
def model():
    return TableClassifier(2, random_state=0).fit(*reports())


def test_words_are_features(model):
    encoder = model.encoder_
    assert encoder.kinds_["remarks"] == "text"
    own = [feature for feature in encoder.features_ if feature.column == "remarks"]
    assert [feature.level for feature in own[:-1]] == sorted(word.strip(".").lower() for word in WORDS)
    assert own[-1] == Feature("remarks", "missing")
    assert encoder.features_[0].name == "remarks contains 'damage'"
    assert encoder.encoding_.is_indicator[: len(own)].all()
    rows = encoder.transform(reports()[0].assign(remarks=["Landing; MÖWE unknown"] * 399 + [None]))[:, : len(own)]
    assert [own[j].level for j in np.flatnonzero(rows[0])] == ["landing", "möwe"]
    assert np.flatnonzero(rows[-1]).tolist() == [len(own) - 1]


def test_text_is_used(model):
    frame, y = reports(seed=1)
    known = frame["remarks"].notna()
    assert (model.predict(frame) == y)[known].mean() > 0.97
    without = TableClassifier(2, random_state=0, max_words=0).fit(*reports())
    assert without.encoder_.kinds_["remarks"] == "category"
    assert (without.predict(frame) == y).mean() < 0.7


def test_the_most_frequent_words_are_kept():
    frame, _ = reports()
    frame["remarks"] = [
        f"{text} always {'often' * (i % 3 == 0)} {'rare' * (i < 4)}" for i, text in enumerate(frame["remarks"])
    ]
    with pytest.warns(UserWarning, match=r"'remarks': 2 of its \d+ words are used"):
        encoder = TableEncoder(max_words=2).fit(frame[["remarks"]])
    words = encoder.encoding_.columns[0].words
    assert len(words) == 2
    assert "often" not in words  # of a third of the texts
    assert "always" not in TableEncoder().fit(frame[["remarks"]]).encoding_.columns[0].words  # it is in all of them
    assert "rare" not in TableEncoder().fit(frame[["remarks"]]).encoding_.columns[0].words
    with pytest.raises(ValueError, match=r"none of its \d+ words occurs in at least 500 rows"):
        TableEncoder(min_rows=500).fit(frame[["remarks"]])


def test_explanations_name_the_words(model):
    frame, y = reports(seed=1)
    row = int(np.flatnonzero((y == "struck") & frame["remarks"].notna())[0])
    why = explain_row(model, frame.iloc[[row]])
    assert why.label == "struck"
    assert why.columns[why.by_contribution()[0]] == "remarks"
    assert "contains 'möwe' +" in why.reason(0)
    assert why.flip is None or "remarks" not in why.flip.changes
    for told in (explain_model(model), explain_model(model, frame)):
        assert told.columns[told.by_importance()[0]] == "remarks"
        effect = told.of_column("remarks")[0]
        assert effect.values[np.abs(effect.effect[:, 0]).argmax()] == "möwe"


def test_files_and_serving(model, tmp_path):
    frame, _ = reports(seed=1)
    polyplane.save(model, tmp_path / "m")
    loaded = polyplane.load(tmp_path / "m")
    served = polyplane.serving.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(served.predict_proba(frame.to_dict("records")), model.predict_proba(frame))
    assert loaded.encoder_.report_.equals(model.encoder_.report_)


def test_javascript_reads_what_was_written(model, tmp_path):
    frame, _ = reports(seed=1)
    rows = frame.astype(object).where(frame.notna(), None)
    found, fitted = run_node(model, rows, tmp_path), Model.of(model)
    np.testing.assert_allclose(found.scores, fitted.class_scores(fitted.encode(frame)), atol=3e-6)
    for column, value in (
        ("price", "8,79"),
        ("price", "(5"),
        ("size", "1,2M3"),
        ("sold", "13/13/2020"),
        ("week", "2021-W54"),
    ):
        [wrong] = run_node(model, rows[:1].assign(**{column: value}), tmp_path)
        assert f'"{column}" holds {value}' in wrong["error"]
        with pytest.raises(ValueError, match=f"Column '{column}' contains"):
            model.predict(frame[:1].assign(**{column: value}))


def test_what_other_languages_do_not_read_is_refused(model):
    with pytest.raises(ValueError, match="Column 'remarks' is free text, which C does not read"):
        to_c(model)
    with pytest.raises(ValueError, match="Column 'remarks' is free text, which SQL does not read"):
        to_sql(model)
    frame, y = reports()
    for column, kind in (("price", "numbers"), ("sold", "dates")):
        alone = TableClassifier(1, preparation="standard", n_planes=1, max_iter=1).fit(frame[[column]], y)
        with pytest.raises(
            ValueError, match=f"Column '{column}' was trained on strings that SQL does not read as {kind}"
        ):
            to_sql(alone)
        assert 'a number ("$"); NAN if missing' in to_c(alone) or column != "price"
        assert "predict" in to_javascript(alone)
