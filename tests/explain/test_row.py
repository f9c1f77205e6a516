"""Explanations of predictions: contributions that add up, changes that convince the model, words of the data."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from polyplane import (
    CuttingPlaneSVC,
    Model,
    MultiHyperplaneClassifier,
    PolyhedralMixtureClassifier,
    TableClassifier,
)
from polyplane.explain import explain_model, explain_row
from tests.models import KINDS, fitted

# The features are explained in their own units, in which some of these models would rather not be trained.
pytestmark = pytest.mark.filterwarnings("ignore:Feature .* dominates training:UserWarning")

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X.iloc[:, [0, 1, 4, 7]], y.map({0: "malignant", 1: "benign"})


def take(rows, i):
    return rows.iloc[[i]] if hasattr(rows, "iloc") else rows[[i]]


def log_odds(model, frame, c, d):
    probability = model.predict_proba(frame)
    return np.log(probability[:, c] / probability[:, d])


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    @pytest.mark.parametrize("position", [0.0, 0.34, 0.99])
    def test_contributions_sum_to_the_difference_of_the_scores(self, kind, position):
        estimator, rows = fitted(kind)
        x, model = take(rows, int(position * len(rows))), Model.of(estimator)
        why = explain_row(estimator, x, search=False)
        scores = model.class_scores(model.encode(x))[0] / model.unit
        c, d = (model.classes.tolist().index(label) for label in (why.label, why.rival))
        assert why.label == estimator.predict(x)[0]
        assert scores[d] == np.delete(scores, c).max()
        assert why.difference == pytest.approx(scores[c] - scores[d], abs=1e-9)
        assert why.base + why.contributions.sum() == pytest.approx(why.difference, abs=1e-9)
        assert (why.probabilities is None) == (not model.has_probabilities)
        if model.inputs.is_table:
            reference = model.class_scores(model.inputs.reference[None])[0] / model.unit
            assert why.base == pytest.approx(reference[c] - reference[d], abs=1e-5)
        assert (why.plane is not None) == (model.has_winners and model.planes.pooling == "max")
        if why.plane is not None:
            winner = int(model.plane_scores(model.encode(x))[0].argmax())
            assert why.plane == winner - model.planes.indptr[c] + 1

    def test_a_row_at_the_reference_has_no_contributions(self, kind):
        estimator, rows = fitted(kind)
        x = take(rows, 1)
        assert not explain_row(estimator, x, reference=x, search=False).contributions.any()

    def test_the_change_convinces_the_estimator_itself(self, kind):
        estimator, rows = fitted(kind)
        x = take(rows, len(rows) // 3)
        why = explain_row(estimator, x)
        if not why.searched:
            assert kind == "clipping scaler"
            return
        if why.flip is None:
            pytest.fail("no change was found")
        after = np.asarray([why.flip.values])
        if hasattr(rows, "iloc"):
            after = x.astype(object).assign(**{name: pair[1] for name, pair in why.flip.changes.items()})
            after = after.infer_objects().astype(
                {n: x[n].dtype for n in x if n in why.flip.changes and x[n].dtype.kind == "M"}
            )
        assert estimator.predict(after)[0] == why.flip.label != why.label

    def test_text_dict_and_frame_tell_the_same(self, kind):
        estimator, rows = fitted(kind)
        why = explain_row(estimator, take(rows, 5))
        told = json.loads(json.dumps(why.to_dict(), allow_nan=False))
        assert told["label"] == why.label
        assert told["members"] == Model.of(estimator).planes.n_members
        assert sum(told["contributions"]) + told["base"] == pytest.approx(told["difference"])
        frame = why.to_frame()
        assert frame["contribution"].abs().is_monotonic_decreasing
        assert set(frame["column"]) == set(why.columns)
        leading = why.by_contribution()[0]
        assert why.reason(leading) in str(why)
        assert f"predicted class is {why.label!r}" in str(why)
        assert len(why.by_contribution()) < 3 or re.search(r"\d+ other columns\n", why.to_text(top=1))


@pytest.fixture(scope="module", params=["linear", "polyhedron", "committee"])
def model(request):
    learner = {
        "linear": CuttingPlaneSVC(C=0.1),
        "polyhedron": PolyhedralMixtureClassifier(n_planes=2, inside="benign", random_state=0),
        "committee": MultiHyperplaneClassifier(2, n_estimators=3, max_iter=10, random_state=0),
    }[request.param]
    return make_pipeline(StandardScaler(), learner).fit(X, y)


class TestPlanes:
    def test_the_reference_is_the_mean_and_distances_are_in_units_of_the_scaler(self, model):
        why = explain_row(model, X.iloc[19], X=X, frozen=["mean radius"])
        np.testing.assert_allclose(why.reference, X.mean())
        np.testing.assert_allclose(explain_row(model, X.iloc[19], search=False).reference, X.mean())
        change = why.flip.values - X.iloc[19].to_numpy()
        assert change[0] == 0
        assert why.flip.distance == pytest.approx(np.linalg.norm(change / model[0].scale_))
        assert why.flip.proven == (why.n_members == 1)
        assert ("The smallest change that leads" in str(why)) == why.flip.proven

    def test_bounds_targets_and_what_cannot_be(self, model):
        benign = X.iloc[19]
        assert explain_row(model, benign, target="malignant").flip.label == "malignant"
        assert explain_row(model, benign, target="benign").flip.distance == 0
        still = explain_row(model, benign, frozen=list(X.columns))
        assert still.flip is None
        assert "No change within the bounds" in str(still)
        low = {"mean texture": float(benign["mean texture"])}
        flip = explain_row(model, benign, lower=low, upper=low).flip
        assert flip.values[1] == benign["mean texture"]
        with pytest.raises(ValueError, match="'smoothness' is not a column of the model"):
            explain_row(model, benign, frozen=["smoothness"])
        with pytest.raises(ValueError, match="'unknown' is not one of the labels"):
            explain_row(model, benign, target="unknown")
        with pytest.raises(ValueError, match="one row, not 2"):
            explain_row(model, X.iloc[:2])
        with pytest.raises(TypeError, match="increasing cannot be set: it applies to tables"):
            explain_row(model, benign, increasing=["mean radius"])

    def test_the_true_label_is_aimed_at_where_another_is_predicted(self, model):
        predicted = model.predict(X)
        wrong, right = int(np.flatnonzero(predicted != y)[0]), int(np.flatnonzero(predicted == y)[0])
        why = explain_row(model, X.iloc[[wrong]], true_label=y.iloc[wrong])
        assert (why.flip.label, why.rival, why.true_label) == (y.iloc[wrong],) * 3
        assert f"The true class is {y.iloc[wrong]!r}." in str(why)
        assert explain_row(model, X.iloc[[right]], true_label=y.iloc[right]).flip.label != y.iloc[right]
        alone = explain_row(model, X.iloc[[right]], search=False)
        assert alone.flip is None
        assert "change" not in str(alone)

    def test_a_target_is_the_rival(self):
        rows, labels = load_iris(return_X_y=True)
        model = CuttingPlaneSVC().fit(rows, labels)
        why = explain_row(model, rows[0], target=2)
        scores = model.decision_function(rows[:1])[0]
        assert (why.rival, why.flip.label) == (2, 2)
        assert why.difference == pytest.approx(scores[0] - scores[2])

    def test_float32_rows_stay_float32(self):
        rows = X.to_numpy(dtype=np.float32)
        model = make_pipeline(MinMaxScaler(), MultiHyperplaneClassifier(n_planes=3, max_iter=5, random_state=0))
        model.fit(rows, y)
        for x in rows[::50]:
            flip = explain_row(model, x).flip
            assert flip.values.dtype == np.float32
            assert model.predict(flip.values[None])[0] == flip.label != model.predict(x[None])[0]

    def test_missing_values_are_imputed_as_the_pipeline_does(self):
        holed = X.copy()
        holed.iloc[5, 2] = np.nan
        for model in (
            make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), CuttingPlaneSVC()),
            make_pipeline(StandardScaler(), SimpleImputer(strategy="median"), CuttingPlaneSVC()),
        ):
            model.fit(holed, y)
            why = explain_row(model, holed.iloc[5])
            assert why.values[2] == pytest.approx(holed.iloc[:, 2].median())
            assert why.notes == {2: "imputed"}
            assert explain_row(model, holed.iloc[[5], ::-1]).notes == {2: "imputed"}
            assert explain_row(model, dict(reversed(list(holed.iloc[5].items())))).notes == {2: "imputed"}
            assert "(imputed, reference" in str(why)
            assert explain_model(model, holed).rounded.changed == 0

    def test_a_row_in_any_form(self):
        model = make_pipeline(StandardScaler(), CuttingPlaneSVC()).fit(X, y)
        row = X.iloc[7]
        forms = [row, row.to_dict(), X.iloc[[7]], X.iloc[[7]][X.columns[::-1]], row.tolist(), row.to_numpy()]
        forms.append(sparse.csr_array(row.to_numpy()[None]))
        assert len({explain_row(model, form).to_text() for form in forms}) == 1

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (OneVsOneClassifier(CuttingPlaneSVC()), "combines several models"),
            (OneVsRestClassifier(CuttingPlaneSVC()), "combines several models"),
            (LogisticRegression(max_iter=5000), "is not a classifier of Polyplane"),
            (make_pipeline(PolynomialFeatures(), StandardScaler(), CuttingPlaneSVC()), "'polynomialfeatures' of the"),
            (make_pipeline(SimpleImputer(add_indicator=True), CuttingPlaneSVC()), "without indicators"),
        ],
    )
    def test_what_is_not_a_model_is_refused(self, model, message):
        with pytest.raises(TypeError, match=message):
            explain_row(model.fit(X, y), X.iloc[0])

    def test_wrong_rows_are_refused(self):
        model = CuttingPlaneSVC().fit(X, y)
        with pytest.raises(ValueError, match="X has 3 features"):
            explain_row(model, X.to_numpy()[0, :3])
        with pytest.raises(ValueError, match="contains NaN"):
            explain_row(model, [1, np.nan, 1, 1])
        with pytest.raises(ValueError, match="'a'"):
            explain_row(model, ["a", "b", "c", "d"])


class TestTables:
    def test_a_contribution_is_what_the_column_alone_does_where_planes_do_not_compete(self, people, additive):
        row = people[0].iloc[[5]]
        why = explain_row(additive, row, search=False)
        c, d = (list(additive.classes_).index(label) for label in (why.label, why.rival))
        for j, name in enumerate(why.columns):
            back = row.astype(object)
            back[name] = [pd.Timestamp(why.reference[j]) if name == "since" else why.reference[j]]
            removed = log_odds(additive, row, c, d)[0] - log_odds(additive, back.infer_objects(), c, d)[0]
            assert why.contributions[j] == pytest.approx(removed, abs=1e-4)
        assert why.difference == pytest.approx(log_odds(additive, row, c, d)[0], abs=1e-4)
        assert why.probability == pytest.approx(additive.predict_proba(row).max(), abs=1e-5)

    def test_contributions_are_the_sum_along_the_straight_way(self, crossed):
        estimator, frame, _ = crossed
        row, model = frame.iloc[[2]], estimator.model_
        why = explain_row(estimator, row, search=False)
        c, d = (list(model.classes).index(label) for label in (why.label, why.rival))
        single = np.repeat(model.inputs.reference[None], 4, axis=0)
        for j, own in enumerate(model.inputs.places):
            single[j + 1, own] = model.encode(row)[0, own]
        scores = model.plane_scores(single)
        parts, steps = scores[1:] - scores[0], (np.arange(4000) + 0.5) / 4000
        shares = model.planes.shares(scores[0] + steps[:, None] * parts.sum(axis=0)).mean(axis=0)
        owners, n_members = model.planes.owners, model.planes.n_members
        sign = (owners == c).astype(float) - (owners == d)
        np.testing.assert_allclose(why.contributions, parts @ (shares * sign) / n_members / model.unit, atol=1e-5)

    def test_they_are_near_shapley_values(self, crossed):
        estimator, frame, _ = crossed
        found, wanted, model = [], [], estimator.model_
        for i, z in enumerate(model.encode(frame[:40])):
            why = explain_row(estimator, frame.iloc[[i]], search=False)
            c, d = (list(model.classes).index(label) for label in (why.label, why.rival))
            shapley = np.zeros(3)
            for order in itertools.permutations(range(3)):
                rows = [model.inputs.reference.copy()]
                for j in order:
                    rows.append(rows[-1].copy())
                    rows[-1][model.inputs.places[j]] = z[model.inputs.places[j]]
                scores = model.class_scores(np.array(rows)) / model.unit
                shapley[list(order)] += np.diff(scores[:, c] - scores[:, d]) / 6
            found.append(why.contributions)
            wanted.append(shapley)
        assert np.corrcoef(np.ravel(found), np.ravel(wanted))[0, 1] > 0.9

    def test_words_of_the_table(self, additive):
        row = {"age": 61, "height": 1.62, "job": None, "city": "Bonn", "member": False, "since": "2021-06-01"}
        text = explain_row(additive, {**row, "noise": 0}).to_text()
        for words in (
            "age = 61 (reference ",
            "height = 1.62 (reference 1.7)",
            "job is missing (reference clerk)",
            "city = Bonn (rare or unknown level, reference Oslo)",
            "member = false (reference true)",
            "since = 2021-06-01 (reference 2022-",
            "at the reference row",
            "with probability 0.",
            "The smallest change that leads to class ",
        ):
            assert words in text
        assert "nan" not in text.lower()

    def test_a_rare_level_is_said_to_be_rare(self):
        frame = pd.DataFrame({"job": ["a", "b"] * 60 + ["rare", "odd", "seldom", "few"], "size": np.arange(124.0)})
        model = TableClassifier(1, preparation="standard", random_state=0).fit(frame, [0, 1] * 60 + [1] * 4)
        text = explain_row(model, {"job": "odd", "size": 3.0}).to_text()
        assert "job = odd (rare or unknown level, reference a)" in text

    def test_rows_in_any_form_give_the_same(self, people, additive):
        polars = pytest.importorskip("polars", reason="Polars is a development dependency")
        frame = people[0]
        row = frame.iloc[7]
        forms = [
            row,
            row.to_dict(),
            {**row.to_dict(), "label": "no"},
            frame.iloc[[7]],
            frame.iloc[[7]][frame.columns[::-1]],
            row.tolist(),
            polars.from_pandas(frame.astype({"member": "boolean"}))[7],
        ]
        assert len({explain_row(additive, form, search=False).to_text() for form in forms}) == 1

    def test_small_contributions_are_told_together(self, additive):
        typical = explain_row(additive, dict.fromkeys(additive.feature_names_in_), search=False)
        at_reference = dict(zip(typical.columns, typical.reference, strict=True))
        why = explain_row(additive, {**at_reference, "age": 79, "noise": 0.2, "height": 1.71, "city": "Rome"})
        still = [why.columns.index(name) for name in ("job", "member", "since")]
        assert why.contributions[still].tolist() == [0.0] * 3
        large, small = why.told(2)
        assert why.columns[large[0]] == "age"
        assert len(large) + len(small) == np.count_nonzero(why.contributions) == 4
        rest = float(why.contributions[small].sum())
        assert f"{rest:+.2f}  {len(small)} other columns" in why.to_text(2)
        assert "other columns" not in why.to_text()

    def test_a_wrong_row_is_led_to_its_true_class(self, people, additive):
        frame, y = people
        wrong = int(np.flatnonzero(additive.predict(frame) != y)[0])
        why = explain_row(additive, frame.iloc[wrong], true_label=y[wrong], frozen=["age"])
        assert (why.rival, why.true_label, why.flip.label) == (y[wrong],) * 3
        assert f"(distance {why.flip.distance:.3g}, in interquartile ranges of the columns):" in str(why)
        assert "age" not in why.flip.changes
        changed = frame.iloc[wrong].to_dict() | {name: after for name, (_, after) in why.flip.changes.items()}
        assert explain_row(additive, changed, search=False).label == y[wrong]

    def test_bounds_directions_and_what_cannot_be(self, people, additive):
        row, everything = people[0].iloc[0], list(people[0].columns)
        why = explain_row(additive, row, frozen=everything)
        assert why.flip is None
        assert "No change within the bounds that leads to another class was found" in str(why)
        others = [name for name in everything if name != "age"]
        before, after = explain_row(additive, row, frozen=others).flip.changes["age"]
        away = {"decreasing" if after > before else "increasing": ["age"]}
        assert explain_row(additive, row, frozen=others, **away).flip is None
        with pytest.raises(ValueError, match=r"'aage', which is not a column.* Did you mean 'age'"):
            explain_row(additive, row, frozen=["aage"])
        with pytest.raises(TypeError, match="lower must be a dict of column name"):
            explain_row(additive, row, lower=3)
        with pytest.raises(ValueError, match="true_label='maybe' is not one of the labels"):
            explain_row(additive, row, true_label="maybe")
        with pytest.raises(ValueError, match="x must be one row, not 2"):
            explain_row(additive, people[0][:2])
        with pytest.raises(TypeError, match="feature_names cannot be set"):
            explain_row(additive, row, feature_names=list("abcdefg"))
        with pytest.raises(TypeError, match="X cannot be set"):
            explain_row(additive, row, X=people[0])
