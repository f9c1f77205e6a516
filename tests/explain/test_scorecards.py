"""Scorecards: points add up to the score, reasons are the largest contributions, and shifts of populations show."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

import polyplane
from polyplane import TableClassifier
from polyplane.datasets import make_loans
from polyplane.explain import population_stability, reason_codes, scorecard
from polyplane.explain.scorecards import gini_and_ks
from tests.cli.commands import refused, run


@pytest.fixture(scope="module")
def loans():
    frame, y = make_loans(1200, random_state=0)
    frame = frame.drop(columns="employed since")
    frame.loc[::9, "income"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def model(loans):
    return TableClassifier(1, n_planes=1, preparation="steps", random_state=0).fit(*loans)


@pytest.mark.parametrize("is_rounded", [True, False])
def test_points_add_up_to_the_score_and_follow_from_the_table(model, loans, is_rounded):
    frame, y = loans
    card = scorecard(model, event="default", points=500, odds=1 / 10, pdo=20, is_rounded=is_rounded)
    points, score = card.points(frame), card.score_points(frame)
    assert score.tolist() == points.sum(axis=1).tolist()
    log_odds = np.log(np.divide(*model.predict_proba(frame).T))
    expected = 500 - 20 / np.log(2) * (log_odds + np.log(10))
    assert score == pytest.approx(expected, abs=len(card.columns) / 2 if is_rounded else 1e-5)
    if is_rounded:
        assert (points == np.round(points)).all()
    table = card.table(frame, y)
    for j, name in enumerate(card.columns):
        own = table[table["column"] == name]
        assert own["share"].sum() == pytest.approx(1)
        assert set(points[:, j].round(6)) <= set(own["points"].round(6))
        counted = pd.Series(points[:, j]).round(6).value_counts(normalize=True)
        by_points = own.groupby(own["points"].round(6))["share"].sum()
        assert by_points[by_points > 0].to_dict() == pytest.approx(counted.to_dict())


def test_bins_have_the_figures_of_their_rows(model, loans):
    frame, y = loans
    table = scorecard(model, event="default").table(frame, y)
    missing = table[(table["column"] == "income") & (table["bin"] == "missing")].iloc[0]
    assert missing["share"] == pytest.approx(frame["income"].isna().mean())
    assert missing["event_rate"] == pytest.approx((y[frame["income"].isna()] == "default").mean())
    home = table[table["column"] == "home"].set_index("bin")
    for level in frame["home"].unique():
        assert home.loc[level, "event_rate"] == pytest.approx((y[frame["home"] == level] == "default").mean())
    assert (np.sign(table["woe"]) * np.sign(table["iv"]) * np.sign(table["woe"]) >= 0).all()
    riskier = table["event_rate"] > 1.5 * (y == "default").mean()
    assert (table.loc[riskier, "woe"] < 0).all()


def test_steps_take_monotone_columns(loans):
    frame, y = loans
    params = {"n_planes": 1, "preparation": "steps", "monotonic_cst": {"debt": -1, "income": 1}, "random_state": 0}
    card = scorecard(TableClassifier(1, **params).fit(frame, y), event="default")
    table = card.table(frame, y)
    for name, sign in {"debt": -1, "income": 1}.items():
        points = table[(table["column"] == name) & (table["bin"] != "missing")]["points"].to_numpy()
        assert len(points) > 1
        assert (sign * np.diff(points) >= -1e-9).all()


def test_the_model_of_a_scorecard_is_constant_within_bins(model, loans):
    frame, _ = loans
    before = model.predict_proba(frame)
    moved = frame.assign(debt=frame["debt"] + 1e-6 * frame["debt"].std())
    assert model.predict_proba(moved) == pytest.approx(before)
    assert model.score(*loans) > 0.6


@pytest.mark.parametrize("n_planes", [1, 3])
def test_reasons_are_the_largest_contributions(loans, n_planes):
    frame, y = loans
    model = TableClassifier(2, n_planes=n_planes, preparation="bins", max_iter=10, random_state=0).fit(frame, y)
    frame = frame[:1000]
    reasons = reason_codes(model, frame, event="default")
    own = model.model_
    parts = own.contributions(own.encode(frame), own.inputs.reference) / model.temperature_
    gains = parts[:, :, 0] - parts[:, :, 1]
    names = np.array([column.name for column in own.inputs.columns])
    by_row = dict(list(reasons.groupby("row")))
    for i, gain in enumerate(gains):
        order = [j for j in np.argsort(-gain, kind="stable")[:4] if gain[j] > 0]
        found = by_row.get(i, reasons[:0])
        assert found["column"].tolist() == names[order].tolist()
        assert found["contribution"].to_numpy() == pytest.approx(gain[order])
        assert found["rank"].tolist() == list(range(1, len(order) + 1))


def test_the_stability_index_is_that_of_the_formula(model, loans):
    frame, _ = loans
    same = population_stability(model, frame, frame)
    assert same["psi"].to_numpy() == pytest.approx(0)
    shifted = frame.assign(home=frame["home"].iloc[0], debt=frame["debt"] * 3)
    found = population_stability(model, frame, shifted).set_index("name")
    assert found.loc[["home", "debt"], "reading"].tolist() == ["shift", "shift"]
    assert found.loc["age", "reading"] == "stable"
    share = frame["purpose"].value_counts(normalize=True)
    half = frame[frame["purpose"] != share.index[0]]
    other = half["purpose"].value_counts(normalize=True).reindex(share.index).fillna(0).clip(lower=1e-4)
    expected = ((other - share) * np.log(other / share)).sum()
    assert population_stability(model, frame, half).set_index("name").loc["purpose", "psi"] == pytest.approx(expected)


def test_gini_and_ks_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    event = rng.random(300) < 0.3
    score = rng.normal(size=300) - event
    below, above, _ = roc_curve(event, -score)
    assert gini_and_ks(score, event) == pytest.approx((2 * roc_auc_score(event, -score) - 1, (above - below).max()))


def test_what_is_no_scorecard_is_said(loans):
    frame, y = loans
    linear = TableClassifier(1, n_planes=1, preparation="standard", random_state=0).fit(frame, y)
    with pytest.raises(TypeError, match="not constant within bins"):
        scorecard(linear)
    planes = TableClassifier(1, n_planes=2, preparation="steps", max_iter=2, random_state=0).fit(frame, y)
    with pytest.raises(TypeError, match="one plane of each class"):
        scorecard(planes)
    with pytest.raises(ValueError, match="n_reasons=0 must be at least 1"):
        reason_codes(linear, frame, n_reasons=0)
    with pytest.raises(ValueError, match=r"pdo=0 must be positive"):
        scorecard(TableClassifier(1, n_planes=1, preparation="steps", random_state=0).fit(frame, y), pdo=0)


def test_the_command_prints_points_and_stability(model, loans, tmp_path):
    frame, y = loans
    polyplane.save(model, tmp_path / "model", metadata={"label": "outcome"})
    frame.assign(outcome=y).to_csv(tmp_path / "rows.csv", index=False)
    frame.assign(debt=frame["debt"] * 3).to_csv(tmp_path / "new.csv", index=False)
    arguments = ["scorecard", tmp_path / "model", tmp_path / "rows.csv", "--event", "default"]
    found = json.loads(run(*arguments, "--compare", tmp_path / "new.csv", "--json").stdout)
    card = scorecard(model, event="default", is_rounded=True)
    assert [row["points"] for row in found["scorecard"]] == card.table(frame, y)["points"].tolist()
    assert found["gini"] == pytest.approx(gini_and_ks(card.score_points(frame), y == "default")[0])
    assert {row["name"]: row["reading"] for row in found["stability"]}["debt"] == "shift"
    assert "column\tbin\tpoints" in run(*arguments).stdout
    assert "unknown label 'ruin'" in refused(*arguments[:3], "--event", "ruin")
