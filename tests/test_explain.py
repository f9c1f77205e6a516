"""Explanations: what they say is what the model does."""

import builtins
import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from polyplane import (
    ConvexPolytopeClassifier,
    CuttingPlaneSVC,
    MultiHyperplaneClassifier,
    PegasosSVC,
    PolyceptronClassifier,
    PolyhedralMixtureClassifier,
    SuccessiveLPClassifier,
)
from polyplane.explain import explain_model, explain_row, unwrap
from polyplane.explain.rounding import round_to
from polyplane.explain.rules import number, quoted

# The features are explained in their own units, in which some of these machines would rather not be trained.
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
    "multi-hyperplane": MultiHyperplaneClassifier(n_planes=2, max_iter=5, random_state=0),
}


@pytest.fixture(scope="module", params=LEARNERS)
def machine(request):
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
def test_rules_followed_to_the_letter_give_the_classes_of_the_model(machine, tolerance):
    explanation = explain_model(machine, X, tolerance=tolerance)
    given_by_rules = follow(explanation, X)
    changed = np.mean(given_by_rules != machine.predict(X))
    assert changed <= tolerance
    assert changed == pytest.approx(explanation.rounded.changed, abs=1.5 / len(X))
    assert explanation.rounded.digits >= 2
    assert sum(rule.share for rule in explanation.rules) == pytest.approx(1.0)


def test_a_tolerance_makes_rules_shorter():
    machine = make_pipeline(StandardScaler(), CuttingPlaneSVC(C=0.1)).fit(*load_breast_cancer(return_X_y=True))
    rows = load_breast_cancer().data
    exact, short = (explain_model(machine, rows, tolerance=tolerance) for tolerance in (0.0, 0.05))
    assert short.rounded.dropped > exact.rounded.dropped
    assert short.rounded.digits <= exact.rounded.digits
    assert short.rounded.changed <= 0.05
    assert f"{short.rounded.dropped} small terms are omitted" in str(short)


def test_typical_rows_are_won_by_their_plane(machine):
    explanation = explain_model(machine, X, n_typical=2)
    winners = explanation.planes.winners(X.to_numpy())
    for rule in explanation.rules:
        assert len(rule.typical) == min(2, np.count_nonzero(winners == rule.plane))
        assert (winners[list(rule.typical)] == rule.plane).all()
    dense = explain_model(machine, X.to_numpy(), feature_names=X.columns)
    sparse_rows = explain_model(machine, sparse.csr_array(X.to_numpy()), feature_names=X.columns)
    for one, other in zip(dense.rules, sparse_rows.rules, strict=True):
        assert set(one.typical) == set(other.typical)


def test_text_dict_and_frame_tell_the_same(machine):
    explanation = explain_model(machine, X)
    told = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    frame = explanation.to_frame()
    assert [rule["rule"] for rule in told["rules"]] == frame["rule"].tolist()
    assert told["rows"] == len(X)
    for rule in explanation.rules:
        text = explanation.rule(rule.plane)
        assert text in explanation.to_text() or text in ("otherwise", "all of these hold")
    assert "smaller terms" in explanation.to_text(top=1)


def test_without_rows_the_text_says_so(machine):
    explanation = explain_model(machine)
    assert explanation.n_rows is None
    assert "pass rows to check" in str(explanation)
    assert {rule.share for rule in explanation.rules} == {None}
    assert explain_model(machine, digits=6).rounded.digits == 6


def test_shares_sum_to_the_difference_of_the_scores(machine):
    model = unwrap(machine)
    for row in (0, 19, 200):
        explanation = explain_row(machine, X.iloc[row], X=X)
        scores = model.planes.class_scores(X.iloc[[row]].to_numpy())[0]
        assert explanation.label == machine.predict(X.iloc[[row]])[0]
        assert explanation.base + explanation.shares.sum() == pytest.approx(explanation.difference)
        assert explanation.difference == pytest.approx(abs(scores[0] - scores[1]))
        np.testing.assert_allclose(explanation.reference, X.mean())


def test_the_flip_convinces_the_pipeline_itself(machine):
    for row in (0, 19, 200):
        flip = explain_row(machine, X.iloc[row], frozen=["mean radius"]).flip
        changed = pd.DataFrame([flip.values], columns=X.columns)
        assert machine.predict(changed)[0] == flip.label != machine.predict(X.iloc[[row]])[0]
        assert flip.values[0] == X.iloc[row, 0]
        deviation = machine[0].scale_
        assert flip.distance == pytest.approx(np.linalg.norm(flip.change / deviation))


def test_a_float32_pipeline_is_convinced_too():
    rows = X.to_numpy(dtype=np.float32)
    machine = make_pipeline(MinMaxScaler(), MultiHyperplaneClassifier(n_planes=3, max_iter=5, random_state=0))
    machine.fit(rows, y)
    for x in rows[::50]:
        flip = explain_row(machine, x).flip
        assert flip.values.dtype == np.float32
        assert machine.predict(flip.values[None])[0] == flip.label != machine.predict(x[None])[0]


def test_bounds_targets_and_what_cannot_be(machine):
    benign = X.iloc[19]
    assert explain_row(machine, benign, target="malignant").flip.label == "malignant"
    assert explain_row(machine, benign, target="benign").flip.distance == 0
    still = explain_row(machine, benign, frozen=list(X.columns))
    assert still.flip is None
    assert "No change within the bounds" in str(still)
    low = {"mean texture": float(benign["mean texture"])}
    flip = explain_row(machine, benign, lower=low, upper=low).flip
    assert flip.change[1] == 0
    with pytest.raises(ValueError, match="'smoothness' is not a feature of the model"):
        explain_row(machine, benign, frozen=["smoothness"])
    with pytest.raises(ValueError, match="'unknown' is not one of the labels"):
        explain_row(machine, benign, target="unknown")
    with pytest.raises(ValueError, match="one row, not 2"):
        explain_row(machine, X.iloc[:2])


def test_a_row_in_text_dict_and_frame(machine):
    explanation = explain_row(machine, X.iloc[[3]], X=X)
    told = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert told["label"] == explanation.label
    assert sum(told["shares"]) + told["base"] == pytest.approx(told["difference"])
    frame = explanation.to_frame()
    assert frame["share"].abs().is_monotonic_decreasing
    assert frame["feature"].isin(X.columns).all()
    assert f"predicted class is {explanation.label!r}" in str(explanation)
    assert re.search(r"[123] other features\n", explanation.to_text(top=1))


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-1, 2)),
        MaxAbsScaler(),
        RobustScaler(),
        RobustScaler(with_centering=False),
        RobustScaler(with_scaling=False),
        "passthrough",
    ],
    ids=repr,
)
def test_unwrapped_planes_predict_from_rows_as_they_are(scaler):
    rows, labels = load_iris(return_X_y=True)
    machine = make_pipeline(SimpleImputer(), MaxAbsScaler(), scaler, CuttingPlaneSVC()).fit(rows, labels)
    model = unwrap(machine)
    np.testing.assert_array_equal(model.classes[model.planes.predict(rows)], machine.predict(rows))
    np.testing.assert_allclose(machine[:-1].transform(model.center[None]), 0, atol=1e-12)
    np.testing.assert_allclose(machine[:-1].transform((model.center + model.scale)[None]), 1)


def test_a_single_feature_is_unscaled_too():
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[50:, [2]], labels[50:]
    machine = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(rows, labels)
    model = unwrap(machine)
    assert model.scaled
    np.testing.assert_array_equal(model.classes[model.planes.predict(rows)], machine.predict(rows))


def test_missing_values_are_filled_in_as_the_pipeline_does():
    holed = X.copy()
    holed.iloc[5, 2] = np.nan
    for machine in (
        make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), CuttingPlaneSVC()),
        make_pipeline(StandardScaler(), SimpleImputer(strategy="median"), CuttingPlaneSVC()),
    ):
        machine.fit(holed, y)
        explanation = explain_row(machine, holed.iloc[5])
        assert explanation.values[2] == pytest.approx(holed.iloc[:, 2].median())
        assert explanation.imputed == (2,)
        assert "imputed" in str(explanation)
        assert explain_model(machine, holed).rounded.changed == 0


def test_a_search_is_explained_by_its_best():
    search = GridSearchCV(make_pipeline(StandardScaler(), CuttingPlaneSVC()), {"cuttingplanesvc__C": [0.01, 1]}, cv=2)
    assert str(explain_model(search.fit(X, y), X)) == str(explain_model(search.best_estimator_, X))


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (OneVsOneClassifier(CuttingPlaneSVC()), "combines several models"),
        (OneVsRestClassifier(CuttingPlaneSVC()), "combines several models"),
        (LogisticRegression(max_iter=5000), "it has no planes"),
        (
            make_pipeline(PolynomialFeatures(), StandardScaler(), CuttingPlaneSVC()),
            "'polynomialfeatures' of the pipeline",
        ),
        (make_pipeline(MinMaxScaler(clip=True), CuttingPlaneSVC()), "with clip=True, cannot be folded"),
        (make_pipeline(SimpleImputer(add_indicator=True), CuttingPlaneSVC()), "add_indicator=False"),
        (make_pipeline(SimpleImputer(missing_values=0.0), CuttingPlaneSVC()), "missing_values=nan"),
    ],
)
def test_what_is_not_one_set_of_planes_is_refused(machine, message):
    with pytest.raises(TypeError, match=message):
        unwrap(machine.fit(X, y))


def test_wrong_rows_are_refused():
    machine = CuttingPlaneSVC().fit(X, y)
    with pytest.raises(ValueError, match="columns of X must be those"):
        explain_model(machine, X.iloc[:, ::-1])
    with pytest.raises(ValueError, match="the model has 4 features"):
        explain_model(machine, X.to_numpy()[:, :3])
    with pytest.raises(ValueError, match="Row 0 has a missing value of 'mean texture'"):
        explain_row(machine, [1, np.nan, 1, 1])
    with pytest.raises(ValueError, match="must contain numbers"):
        explain_row(machine, ["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="feature_names has 1 names"):
        explain_model(machine, feature_names=["a"])
    with pytest.raises(ValueError, match="tolerance=-1"):
        explain_model(machine, X, tolerance=-1)
    with pytest.raises(ValueError, match="digits=0"):
        explain_model(machine, X, digits=0)


def test_names_with_any_characters():
    names = ["a + b", "<script>", "line\nbreak", "größe (m²)"]
    machine = CuttingPlaneSVC(C=0.1).fit(X.to_numpy(), y)
    text = str(explain_model(machine, feature_names=names))
    assert "'a + b'" in text
    assert r"'line\nbreak'" in text
    assert "größe (m²)" in text
    assert "'größe" not in text
    assert explain_row(machine, X.to_numpy()[0], feature_names=names).to_dict()["features"] == names


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
    machine = make_pipeline(StandardScaler(), PolyhedralMixtureClassifier(n_planes=2, inside="pos", random_state=0))
    machine.fit(data.data, data.target)
    explanation = explain_model(machine, data.data, tolerance=0.05, feature_names=names)
    frame = pd.DataFrame(data.data, columns=names)
    given_by_rules = follow(explanation, frame)
    assert np.mean(given_by_rules == machine.predict(data.data)) >= 0.95
    assert np.mean(given_by_rules == data.target) > machine.score(data.data, data.target) - 0.02
    assert explanation.rounded.digits == 2
    lines = explanation.to_text().splitlines()
    assert lines[0] == "Class 'pos' if all of:"
    assert lines[1].startswith("  1. age")
    assert lines[2].startswith("  2. glucose")


def test_notebooks_show_text_whatever_is_in_it():
    X, y = load_iris(return_X_y=True)
    names = ["<script>", "b", "c", "d"]
    machine = CuttingPlaneSVC().fit(X[y < 2], np.array(["<i>", "x"])[y[y < 2]])
    for explanation in (explain_model(machine, feature_names=names), explain_row(machine, X[:1], feature_names=names)):
        assert "&lt;" in explanation._repr_html_()
        assert "<i>" not in explanation._repr_html_()
        assert "<script>" not in explanation._repr_html_()


def test_the_true_label_is_aimed_at_where_another_is_predicted(machine):
    predicted = machine.predict(X)
    wrong, right = int(np.flatnonzero(predicted != y)[0]), int(np.flatnonzero(predicted == y)[0])
    assert explain_row(machine, X.iloc[[wrong]], true_label=y.iloc[wrong]).flip.label == y.iloc[wrong]
    assert explain_row(machine, X.iloc[[right]], true_label=y.iloc[right]).flip.label != y.iloc[right]
    alone = explain_row(machine, X.iloc[[right]], search=False)
    assert alone.flip is None
    assert "change" not in str(alone)
    with pytest.raises(TypeError, match="increasing cannot be set: it applies to a TableClassifier"):
        explain_row(machine, X.iloc[[0]], increasing=["mean radius"])
