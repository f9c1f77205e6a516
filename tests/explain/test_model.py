"""Explanations of models: rules that are followed to the letter, importance and effects that are the model's."""

import builtins
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import (
    ConvexPolytopeClassifier,
    CuttingPlaneSVC,
    Model,
    MultiHyperplaneClassifier,
    PegasosSVC,
    PolyceptronClassifier,
    PolyhedralMixtureClassifier,
    SuccessiveLPClassifier,
    TableClassifier,
)
from polyplane.explain import explain_model, explain_row
from polyplane.explain.rules import round_to
from polyplane.explain.text import cut, distinct, number, quoted, whole_number
from tests.models import KINDS, fitted

# The features are explained in their own units, in which some of these models would rather not be trained.
pytestmark = pytest.mark.filterwarnings("ignore:Feature .* dominates training:UserWarning")

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X.iloc[:, [0, 1, 4, 7]], y.map({0: "malignant", 1: "benign"})
LEARNERS = {
    "svm": CuttingPlaneSVC(C=0.1),
    "pegasos": PegasosSVC(alpha=1e-2, max_iter=10, random_state=0),
    "mixture": PolyhedralMixtureClassifier(n_planes=2, inside="benign", random_state=0),
    "mixture around the first class": PolyhedralMixtureClassifier(n_planes=3, inside="malignant", random_state=0),
    "polyceptron": PolyceptronClassifier(n_planes=2, inside="benign", random_state=0),
    "successive_lp": SuccessiveLPClassifier(n_planes=2, inside="malignant", random_state=0),
    "polytope": ConvexPolytopeClassifier(n_planes=2, enclosed="benign", max_iter=20, random_state=0),
    "multi-hyperplane": MultiHyperplaneClassifier(2, loss="hinge", max_iter=5, random_state=0),
}


@pytest.fixture(scope="module", params=LEARNERS)
def ruled(request):
    return make_pipeline(StandardScaler(), LEARNERS[request.param]).fit(X, y)


def holds(rule, frame):
    """Evaluate a rule as it is written, on each row of a frame."""
    expression = rule.replace(" x ", " * ")
    for j, name in sorted(enumerate(frame.columns), key=lambda pair: -len(pair[1])):
        expression = expression.replace(quoted(name), f"_[{j}]")
    return eval(expression, {}, {"_": frame.to_numpy().T})


def follow(explanation, frame):
    """The labels that the rules give when they are followed to the letter."""
    if explanation.inside is None:
        scores = np.column_stack([holds(explanation.rule(rule.plane), frame) for rule in explanation.rules])
        return np.array([explanation.rules[p].label for p in scores.argmax(axis=1)])
    inside, outside = explanation.classes[explanation.inside], explanation.classes[1 - explanation.inside]
    rules = [explanation.rule(rule.plane) for rule in explanation.rules if rule.label == outside]
    each = np.column_stack([holds(rule, frame) for rule in rules])
    if len(rules) == 1:  # told for the other class
        return np.where(each[:, 0], outside, inside)
    return np.where(each.all(axis=1), inside, outside)


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_rules_followed_to_the_letter_give_the_classes_of_the_model(ruled, tolerance):
    explanation = explain_model(ruled, X, tolerance=tolerance)
    given_by_rules = follow(explanation, X)
    changed = np.mean(given_by_rules != ruled.predict(X))
    assert changed <= tolerance
    assert changed == pytest.approx(explanation.rounded.changed, abs=1.5 / len(X))
    assert explanation.rounded.digits >= 2
    assert sum(rule.share for rule in explanation.rules) == pytest.approx(1.0)


def test_a_tolerance_makes_rules_shorter():
    ruled = make_pipeline(StandardScaler(), CuttingPlaneSVC(C=0.1)).fit(*load_breast_cancer(return_X_y=True))
    rows = load_breast_cancer().data
    exact, short = (explain_model(ruled, rows, tolerance=tolerance) for tolerance in (0.0, 0.05))
    assert short.rounded.dropped > exact.rounded.dropped
    assert short.rounded.digits <= exact.rounded.digits
    assert short.rounded.changed <= 0.05
    assert f"{short.rounded.dropped} small terms are omitted" in str(short)


def test_typical_rows_are_won_by_their_plane(ruled):
    explanation = explain_model(ruled, X, n_typical=2)
    winners = explanation.planes.winners(X.to_numpy())
    for rule in explanation.rules:
        assert len(rule.typical) == min(2, np.count_nonzero(winners == rule.plane))
        assert (winners[list(rule.typical)] == rule.plane).all()
    dense = explain_model(ruled, X.to_numpy(), feature_names=X.columns)
    sparse_rows = explain_model(ruled, sparse.csr_array(X.to_numpy()), feature_names=X.columns)
    for one, other in zip(dense.rules, sparse_rows.rules, strict=True):
        assert set(one.typical) == set(other.typical)


def test_text_dict_and_frame_tell_the_same(ruled):
    explanation = explain_model(ruled, X)
    told = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    frame = explanation.to_frame()
    assert [rule["rule"] for rule in told["rules"]] == frame["rule"].tolist()
    assert told["rows"] == len(X)
    for rule in explanation.rules:
        text = explanation.rule(rule.plane)
        assert text in explanation.to_text() or text in ("otherwise", "all of these hold")
    assert "smaller terms" in explanation.to_text(top=1)


def test_without_rows_the_text_says_so(ruled):
    explanation = explain_model(ruled)
    assert explanation.n_rows is None
    assert "pass rows to check" in str(explanation)
    assert {rule.share for rule in explanation.rules} == {None}
    assert explain_model(ruled, digits=6).rounded.digits == 6


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_importance_is_the_spread_of_contributions(self, kind):
        estimator, rows = fitted(kind)
        model, some = Model.of(estimator), rows[:60]
        told = explain_model(estimator, some)
        reference = {} if model.inputs.is_table else {"X": some}
        signed = []
        for i in range(60):
            x = some.iloc[[i]] if model.inputs.is_table else some[[i]]
            why = explain_row(estimator, x, search=False, **reference)
            parts = model.contributions(model.encode(x), told._reference)[0]
            c, d = (model.classes.tolist().index(label) for label in (why.label, why.rival))
            np.testing.assert_allclose(why.contributions, (parts[:, c] - parts[:, d]) / model.unit, atol=1e-9)
            n = model.n_classes
            signed.append((parts - parts.mean(axis=1, keepdims=True)) * n / (n - 1) / model.unit)
        np.testing.assert_allclose(told.by_class, np.std(signed, axis=0), atol=1e-7)
        np.testing.assert_allclose(told.importance, np.sqrt(np.mean(told.by_class**2, axis=1)))

    @pytest.mark.parametrize("with_rows", [True, False])
    def test_text_dict_and_frame(self, kind, with_rows):
        estimator, rows = fitted(kind)
        model = Model.of(estimator)
        told = explain_model(estimator, rows[:80] if with_rows else None)
        assert told.n_rows == (80 if with_rows else None)
        data = json.loads(json.dumps(told.to_dict(), allow_nan=False))
        assert data["members"] == model.planes.n_members
        assert data["columns"] == list(told.columns)
        assert (told.rounded is not None) == model.is_piecewise_linear
        frame, text = told.to_frame(), str(told)
        if told.rounded is None:
            assert frame["importance"].is_monotonic_decreasing
            assert "Importance is the standard deviation of a column's contribution" in text
            assert frame["column"][0] in text
        else:
            assert frame["rule"].tolist() == [plane["rule"] for plane in data["rules"]]
        if with_rows:
            predicted = model.predict(rows[:80])
            np.testing.assert_allclose(told.shares, [np.mean(predicted == label) for label in model.classes])
            for label, typical in zip(told.classes, told.typical, strict=True):
                assert (predicted[list(typical)] == label).all()
        else:
            assert told.shares is None
            assert "pass rows" in text

    def test_effects_are_those_of_the_model_at_the_reference(self, kind):
        estimator, _ = fitted(kind)
        model, told = Model.of(estimator), explain_model(estimator)
        reference = told._reference
        for j in told.by_importance()[:3]:
            for effect in told.of_column(told.columns[j]):
                if not effect.is_curve:
                    continue
                own = told._described.encoded(j).start + (0 if effect.part in (None, "days") else 1)
                if effect.part not in (None, "days", "year"):
                    continue
                rows = np.repeat(reference[None], len(effect.values), axis=0)
                rows[:, own] = effect.values
                scores = model.class_scores(np.vstack([reference, rows])) / model.unit
                n = model.n_classes
                leads = (scores - scores.mean(axis=1, keepdims=True)) * n / (n - 1)
                np.testing.assert_allclose(effect.effect, leads[1:] - leads[0], atol=1e-8)

    def test_bounds_hold(self, kind):
        estimator, rows = fitted(kind)
        model = Model.of(estimator)
        Z = model.encode(rows)
        low, high = model.bounds(Z.min(axis=0), Z.max(axis=0))
        scores = model.class_scores(Z)
        assert (scores >= low - 1e-9).all()
        assert (scores <= high + 1e-9).all()
        exact = model.class_scores(Z[:1])[0]
        for end in model.bounds(Z[0], Z[0]):
            np.testing.assert_allclose(end, exact, atol=1e-9)


def test_a_search_is_explained_by_its_best():
    search = GridSearchCV(make_pipeline(StandardScaler(), CuttingPlaneSVC()), {"cuttingplanesvc__C": [0.01, 1]}, cv=2)
    assert str(explain_model(search.fit(X, y), X)) == str(explain_model(search.best_estimator_, X))


def test_wrong_parameters_are_refused(additive, people):
    model = CuttingPlaneSVC().fit(X, y)
    with pytest.raises(ValueError, match="feature_names has 1 names"):
        explain_model(model, feature_names=["a"])
    with pytest.raises(ValueError, match="tolerance=-1"):
        explain_model(model, X, tolerance=-1)
    with pytest.raises(ValueError, match="digits=0"):
        explain_model(model, X, digits=0)
    with pytest.raises(TypeError, match="tolerance and digits cannot be set"):
        explain_model(additive, people[0], tolerance=0.1)
    with pytest.raises(ValueError, match="This model has no rules"):
        explain_model(additive).rule(0)


def test_names_with_any_characters():
    names = ["a + b", "<script>", "line\nbreak", "größe (m²)"]
    model = CuttingPlaneSVC(C=0.1).fit(X.to_numpy(), y)
    text = str(explain_model(model, feature_names=names))
    assert "'a + b'" in text
    assert r"'line\nbreak'" in text
    assert "größe (m²)" in text
    assert "'größe" not in text
    assert explain_row(model, X.to_numpy()[0], feature_names=names).to_dict()["columns"] == names


def test_labels_of_several_kinds_are_plain_in_json():
    rows, labels = load_iris(return_X_y=True)
    explanation = explain_model(CuttingPlaneSVC().fit(rows, labels), rows)
    assert explanation.to_dict()["classes"] == [0, 1, 2]
    assert "Plane 1 of class 2" in str(explanation)
    assert explanation.rounded.changed == 0


def test_frames_say_when_pandas_is_missing(monkeypatch):
    explanation = explain_model(CuttingPlaneSVC().fit(X, y))
    load = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="pip install pandas"):
        explanation.to_frame()


def test_different_numbers_and_long_names_look_different():
    assert distinct([17.99, 14.13], number, 4) == ["17.99", "14.13"]
    assert distinct([12345678.25, 12345678.5], number, 4) == ["1.23456782e+07", "1.23456785e+07"]
    assert [whole_number(float(10**16 + 2 * i), True) for i in range(2)] == ["10000000000000000", "10000000000000002"]
    assert cut("the unit in the north", 10) == "the u\N{HORIZONTAL ELLIPSIS}orth"
    assert cut("the unit", 8) == "the unit"
    frame = pd.DataFrame({"id": np.tile([10**16, 10**16 + 2, 10**16 + 4], 40), "x": np.arange(120) % 7})
    model = TableClassifier(1, preparation="standard", random_state=0, kinds={"id": "number"})
    model.fit(frame, np.arange(120) % 3)
    assert explain_row(model, frame.iloc[0]).shown(0) == ("10000000000000000", "10000000000000002")


@given(st.floats(-1e300, 1e300, allow_subnormal=False), st.integers(1, 15))
@settings(max_examples=200)
def test_numbers_are_rounded_as_python_rounds_them(value, digits):
    rounded = float(f"{value:.{digits - 1}e}")
    ours = float(round_to(np.array([value]), digits)[0])
    assert abs(ours - value) <= abs(rounded - value) * (1 + 1e-9) + abs(value) * 1e-15
    assert float(number(rounded, digits)) == pytest.approx(rounded, rel=1e-14)


def test_two_rules_for_diabetes(local_data):
    """PLUME on Pima: what a physician could read, at the model's own accuracy."""
    data = local_data("pima")
    names = ["pregnancies", "glucose", "blood pressure", "skin fold", "insulin", "bmi", "pedigree", "age"]
    model = make_pipeline(StandardScaler(), PolyhedralMixtureClassifier(n_planes=2, inside="pos", random_state=0))
    model.fit(data.data, data.target)
    explanation = explain_model(model, data.data, tolerance=0.05, feature_names=names)
    frame = pd.DataFrame(data.data, columns=names)
    given_by_rules = follow(explanation, frame)
    assert np.mean(given_by_rules == model.predict(data.data)) >= 0.95
    assert np.mean(given_by_rules == data.target) > model.score(data.data, data.target) - 0.02
    assert explanation.rounded.digits == 2
    lines = explanation.to_text().splitlines()
    assert lines[0] == "Class 'pos' if all of:"
    assert lines[1].startswith("  1. age")
    assert lines[2].startswith("  2. glucose")


def test_notebooks_show_text_whatever_is_in_it():
    X, y = load_iris(return_X_y=True)
    names = ["<script>", "b", "c", "d"]
    model = CuttingPlaneSVC().fit(X[y < 2], np.array(["<i>", "x"])[y[y < 2]])
    for explanation in (explain_model(model, feature_names=names), explain_row(model, X[:1], feature_names=names)):
        assert "&lt;" in explanation._repr_html_()
        assert "<i>" not in explanation._repr_html_()
        assert "<script>" not in explanation._repr_html_()


def test_a_committee_has_importance_and_effects_and_one_member_has_rules():
    rows = X.to_numpy()
    model = make_pipeline(
        StandardScaler(), MultiHyperplaneClassifier(2, n_estimators=3, max_iter=10, random_state=0)
    ).fit(rows, y)
    found = explain_model(model, rows)
    assert "3 members, 4 columns, 2 classes. Scores are in log-odds." in str(found)
    assert found.rules == ()
    assert "3 other columns are less important" in found.to_text(1)
    np.testing.assert_allclose(explain_model(model, sparse.csr_array(rows)).importance, found.importance)
    single = make_pipeline(StandardScaler(), MultiHyperplaneClassifier(1, n_estimators=3, random_state=0)).fit(rows, y)
    assert "otherwise class" in str(explain_model(single, rows))
    assert "times as probable as class" in str(explain_row(single, rows[60]))


def log_odds(model, frame, c, d):
    probability = model.predict_proba(frame)
    return np.log(probability[:, c] / probability[:, d])


class TestTables:
    @pytest.mark.parametrize("with_rows", [True, False])
    def test_what_matters_is_found(self, people, additive, with_rows):
        told = explain_model(additive, people[0] if with_rows else None)
        order = [told.columns[j] for j in told.by_importance()]
        assert set(order[:4]) == {"age", "since", "job", "member"}

    def test_effects_are_those_of_the_model_at_the_reference(self, additive):
        told = explain_model(additive)
        base = pd.DataFrame([told.reference]).assign(since=lambda f: pd.to_datetime(f["since"]))
        for name in ("age", "job", "member"):
            [effect] = told.of_column(name)
            for value, size in list(zip(effect.values, effect.effect[:, 1], strict=True))[::7]:
                row = base.assign(**{name: [value == "true" if name == "member" else value]})
                change = log_odds(additive, row, 1, 0)[0] - log_odds(additive, base, 1, 0)[0]
                assert size == pytest.approx(change, abs=1e-4)
        gap = base.astype(object).assign(job=None)
        change = log_odds(additive, gap, 1, 0)[0] - log_odds(additive, base, 1, 0)[0]
        assert told.of_column("job")[0].missing[1] == pytest.approx(change, abs=1e-4)

    def test_effects_of_crossed_columns_are_means_over_rows_with_their_range(self, crossed):
        model, frame, _ = crossed
        told = explain_model(model, frame)
        [effect] = told.of_column("colour")
        other = next(i for i, level in enumerate(effect.values) if level != effect.reference)
        changes = log_odds(model, frame.assign(colour=effect.values[other]), 1, 0) - log_odds(
            model, frame.assign(colour=effect.reference), 1, 0
        )
        assert effect.effect[other, 1] == pytest.approx(changes.mean(), abs=1e-3)
        assert effect.low[other, 1] == pytest.approx(np.quantile(changes, 0.1), abs=1e-3)
        assert effect.low[other, 1] < -1 < 1 < effect.high[other, 1]
        assert f"({effect.low[other, 1]:+.2f} to {effect.high[other, 1]:+.2f})" in str(told)
        assert told.by_importance()[-1] == told.columns.index("weight")

    def test_planes_of_one_member_give_its_predictions(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({name: rng.choice(list("abc"), 400) for name in ("one", "two", "three")})
        y = (frame["one"] == frame["two"]).to_numpy()
        model = TableClassifier(1, n_planes=3, preparation="standard", random_state=0).fit(frame, y)
        told = explain_model(model, frame)
        assert len(told.rules) == 6
        assert sum(plane.share for plane in told.rules) == pytest.approx(1.0)
        scores = np.array([plane.base for plane in told.rules]) + sum(
            effect.by_plane[[effect.values.index(v) for v in frame[effect.column]]] for effect in told.effects
        )
        classes = np.exp(scores).reshape(len(frame), 2, 3).sum(axis=2).argmax(axis=1)
        np.testing.assert_array_equal(classes.astype(bool), model.predict(frame))
        np.testing.assert_allclose(sum(effect.by_plane for effect in told.effects[:1]).mean(axis=1), 0, atol=1e-5)
        assert "Plane 3 of class True, which decides" in str(told)

    def test_what_few_rows_have_is_not_told(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"job": rng.choice(["clerk", "nurse"], 4000), "size": rng.normal(size=4000)})
        y = (frame["size"] + (frame["job"] == "nurse") + rng.normal(size=4000) > 0.5).to_numpy()
        frame.loc[:5, "job"] = "armed"
        y = np.where(frame["job"] == "armed", True, y)
        told = explain_model(TableClassifier(1, preparation="standard", random_state=0).fit(frame, y), frame)
        assert "armed" in told.of_column("job")[0].values
        assert "armed" not in str(told)
        assert "nurse" in str(told)

    def test_three_classes_are_each_against_the_others(self):
        from sklearn.datasets import load_iris

        X, y = load_iris(return_X_y=True, as_frame=True)
        model = TableClassifier(1, n_planes=1, preparation="standard", random_state=0).fit(X, y)
        told = explain_model(model, X)
        assert str(told).count("against the mean of the other classes") == 3
        np.testing.assert_allclose(told.base.sum(), 0, atol=1e-6)
        scores = told.base + sum(
            np.stack([np.interp(X[e.column], e.values, e.effect[:, c]) for c in range(3)], axis=1) for e in told.effects
        )
        np.testing.assert_array_equal(scores.argmax(axis=1), model.predict(X))

    def test_dates_have_a_trend_and_parts(self, people, additive):
        told = explain_model(additive, people[0])
        effects = told.of_column("since")
        assert [effect.part for effect in effects][:2] == ["days", "year"]
        trend = effects[0].effect[:, 1] + np.interp(
            np.array(effects[0].values) / 365.25 + 1970, effects[1].values, effects[1].effect[:, 1]
        )
        assert trend[-1] - trend[0] > 1
        assert "at 2020-" in str(told)

    def test_data_are_plain(self, people, additive):
        told = explain_model(additive, people[0])
        data = json.loads(json.dumps(told.to_dict()))
        assert [effect["column"] for effect in data["effects"]][:3] == ["age", "height", "job"]
        assert told.to_frame()["importance"].is_monotonic_decreasing
        jobs = told.to_frame("job")
        assert jobs["value"].tolist()[-1] is None or pd.isna(jobs["value"].tolist()[-1])
        assert set(jobs.columns) == {"value", "yes"}

    def test_dropped_columns_and_wrong_parameters(self, people):
        frame = people[0][["age", "job"]].assign(same=1)
        model = TableClassifier(1, preparation="standard", random_state=0).fit(frame, people[1])
        told = explain_model(model)
        assert "same" in told.dropped
        with pytest.raises(ValueError, match="'same' is not a column that the model uses: it was dropped because"):
            told.of_column("same")


def test_adult_in_its_own_words(local_table):
    train = local_table("adult.train.csv.xz")
    X, y = train.drop(columns="income")[:6000], train["income"][:6000]
    model = TableClassifier(2, preparation="bins", max_iter=5, random_state=0).fit(X, y)
    told = explain_model(model, X)
    assert "Armed-Forces" not in told.to_text()
    leading = {told.columns[j] for j in told.by_importance()[:6]}
    assert {"capital_gain", "age", "marital_status", "education_num"} <= leading
    why = explain_row(model, train.iloc[7000], search=False)
    assert why.base + why.contributions.sum() == pytest.approx(why.difference, abs=1e-6)
