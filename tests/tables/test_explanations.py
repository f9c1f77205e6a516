"""Explanations of `TableClassifier`: contributions that add up, effects that are the model's, words of the table."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from polyplane import TableClassifier
from polyplane.explain import TableExplanation, TableRowExplanation, explain_model, explain_row


@pytest.fixture(scope="module")
def people():
    """A table of all kinds of columns, with gaps, and labels that follow from it."""
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "height": rng.normal(1.7, 0.1, n).round(2),
            "job": rng.choice(["clerk", "smith", "nurse", "cook"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "city": rng.choice(["Oslo", "Rome"], n),
            "member": pd.Series(rng.choice([True, False], n, p=[0.7, 0.3]), dtype=object),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D"),
            "noise": rng.normal(size=n),
        }
    )
    score = 0.08 * (frame["age"] - 50) + 1.5 * (frame["job"] == "nurse") - 1.0 * (frame["member"] == True)  # noqa: E712
    score += 0.002 * (frame["since"] - pd.Timestamp("2022-01-01")).dt.days
    y = np.where(score + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    frame.loc[rng.random(n) < 0.1, ["job", "since"]] = None
    frame.loc[rng.random(n) < 0.1, "member"] = None
    return frame, y


@pytest.fixture(scope="module")
def additive(people):
    """Machines of one plane per class."""
    return TableClassifier(2, n_planes=1, preparation="bins", max_iter=20, random_state=0).fit(*people)


@pytest.fixture(scope="module")
def crossed():
    """Machines of several planes per class, of columns that act only together."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"size": rng.normal(size=500), "colour": rng.choice(["red", "blue"], 500)})
    frame["weight"] = rng.normal(size=500)
    y = np.where((frame["size"] > 0) == (frame["colour"] == "red"), "ripe", "raw")
    y[rng.random(500) < 0.05] = "raw"
    return TableClassifier(2, n_planes=3, preparation="standard", random_state=0).fit(frame, y), frame, y


def log_odds(model, frame, c, d):
    probability = model.predict_proba(frame)
    return np.log(probability[:, c] / probability[:, d])


class TestRow:
    @pytest.mark.parametrize("i", [0, 3, 77])
    def test_contributions_sum_to_the_log_odds(self, people, additive, i):
        why = explain_row(additive, people[0].iloc[[i]], search=False)
        c, d = (list(additive.classes_).index(label) for label in (why.label, why.rival))
        assert why.label == additive.predict(people[0].iloc[[i]])[0]
        assert why.base + why.contributions.sum() == pytest.approx(why.difference, abs=1e-9)
        assert why.difference == pytest.approx(log_odds(additive, people[0].iloc[[i]], c, d)[0], abs=1e-4)
        assert why.probability == pytest.approx(additive.predict_proba(people[0].iloc[[i]]).max(), abs=1e-5)

    def test_a_contribution_is_what_the_column_alone_does_where_planes_do_not_compete(self, people, additive):
        row = people[0].iloc[[5]]
        why = explain_row(additive, row, search=False)
        c, d = (list(additive.classes_).index(label) for label in (why.label, why.rival))
        for j, name in enumerate(why.column_names):
            back = row.astype(object)
            back[name] = [pd.Timestamp(why.reference[j]) if name == "since" else why.reference[j]]
            removed = log_odds(additive, row, c, d)[0] - log_odds(additive, back.infer_objects(), c, d)[0]
            assert why.contributions[j] == pytest.approx(removed, abs=1e-4)

    def test_contributions_are_the_sum_along_the_straight_way(self, crossed):
        model, frame, _ = crossed
        row = frame.iloc[[2]]
        why = explain_row(model, row, search=False)
        c, d = (list(model.classes_).index(label) for label in (why.label, why.rival))
        encoding, z = model.table_model_.encoding, model.table_model_.encode(row)[0]
        single = np.repeat(encoding.reference[None], 4, axis=0)
        for j, place in enumerate(encoding.places):
            single[j + 1, place] = z[place]
        total, steps = np.zeros(3), (np.arange(4000) + 0.5) / 4000
        for member in model.members_:
            scores = member.plane_scores(single).astype(float)
            parts = scores[1:] - scores[0]
            for owner, sign in ((c, 1.0), (d, -1.0)):
                own = member.planes.owners == owner
                path = scores[0, own] + steps[:, None] * parts[:, own].sum(axis=0)
                shares = np.exp(path) / np.exp(path).sum(axis=1, keepdims=True)
                total += sign * parts[:, own] @ shares.mean(axis=0)
        np.testing.assert_allclose(why.contributions, total / len(model.members_) / model.temperature_, atol=1e-4)
        assert why.base + why.contributions.sum() == pytest.approx(why.difference, abs=1e-6)
        at_reference = model.table_model_.class_scores(encoding.reference[None])[0] / model.temperature_
        assert why.base == pytest.approx(at_reference[c] - at_reference[d], abs=1e-5)

    def test_they_are_near_shapley_values(self, crossed):
        model, frame, _ = crossed
        found, wanted = [], []
        encoding = model.table_model_.encoding
        for z, i in zip(model.table_model_.encode(frame[:40]), range(40), strict=True):
            why = explain_row(model, frame.iloc[[i]], search=False)
            c, d = (list(model.classes_).index(label) for label in (why.label, why.rival))
            shapley = np.zeros(3)
            for order in itertools.permutations(range(3)):
                rows = [encoding.reference.copy()]
                for j in order:
                    rows.append(rows[-1].copy())
                    rows[-1][encoding.places[j]] = z[encoding.places[j]]
                scores = model.table_model_.class_scores(np.array(rows)) / model.temperature_
                shapley[list(order)] += np.diff(scores[:, c] - scores[:, d]) / 6
            found.append(why.contributions)
            wanted.append(shapley)
        assert np.corrcoef(np.ravel(found), np.ravel(wanted))[0, 1] > 0.9

    def test_words_of_the_table(self, people, additive):
        row = {
            "age": 61,
            "height": 1.62,
            "job": None,
            "city": "Bonn",
            "member": False,
            "since": "2021-06-01",
            "noise": 0,
        }
        text = explain_row(additive, row).to_text()
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
        texts = {explain_row(additive, form, search=False).to_text() for form in forms}
        assert len(texts) == 1

    def test_a_column_at_its_reference_contributes_nothing_and_small_ones_are_told_together(self, additive):
        typical = explain_row(additive, dict.fromkeys(additive.feature_names_in_), search=False)
        at_reference = dict(zip(typical.column_names, typical.reference, strict=True))
        why = explain_row(additive, {**at_reference, "age": 79, "noise": 0.2, "height": 1.71, "city": "Rome"})
        still = [why.column_names.index(name) for name in ("job", "member", "since")]
        assert why.contributions[still].tolist() == [0.0] * 3
        large, small = why.told(2)
        assert why.column_names[large[0]] == "age"
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
        assert f"The true class is '{y[wrong]}'." in str(why)
        assert "age" not in why.flip.changes
        changed = frame.iloc[wrong].to_dict() | {name: after for name, (_, after) in why.flip.changes.items()}
        assert explain_row(additive, changed, search=False).label == y[wrong]

    def test_bounds_directions_and_what_cannot_be(self, people, additive):
        row = people[0].iloc[0]
        everything = list(people[0].columns)
        why = explain_row(additive, row, frozen=everything)
        assert why.flip is None
        assert "no change within the bounds" in str(why)
        others = [name for name in everything if name != "age"]
        free = explain_row(additive, row, frozen=others).flip
        before, after = free.changes["age"]
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

    def test_data_are_plain(self, people, additive):
        why = explain_row(additive, people[0].iloc[1])
        told = json.loads(json.dumps(why.to_dict()))
        assert told["base"] + sum(told["contributions"]) == pytest.approx(told["difference"])
        assert sum(told["probabilities"].values()) == pytest.approx(1.0)
        assert set(told["flip"]["changes"]) == set(why.flip.changes)
        frame = why.to_frame()
        assert frame["contribution"].abs().is_monotonic_decreasing
        assert isinstance(why, TableRowExplanation)


class TestModel:
    def test_importance_is_the_spread_of_contributions(self, people, additive):
        told = explain_model(additive, people[0][:100])
        rows = [explain_row(additive, people[0].iloc[[i]], search=False) for i in range(100)]
        signed = np.array([why.contributions * (1 if why.label == "yes" else -1) for why in rows])
        np.testing.assert_allclose(told.importance, signed.std(axis=0), atol=1e-4)

    @pytest.mark.parametrize("preparation", ["robust+norm", "squares", "robust"])
    def test_each_preparation_is_a_sum_over_columns(self, people, preparation):
        model = TableClassifier(1, n_planes=2, preparation=preparation, max_iter=5, random_state=0).fit(*people)
        told = explain_model(model, people[0][:50])
        rows = [explain_row(model, people[0].iloc[[i]], search=False) for i in range(50)]
        signed = np.array([why.contributions * (1 if why.label == "yes" else -1) for why in rows])
        np.testing.assert_allclose(told.importance, signed.std(axis=0), atol=1e-4)
        wanted = log_odds(model, people[0][:50], 1, 0)
        found = [why.difference * (1 if why.label == "yes" else -1) for why in rows]
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        assert all(abs(why.base + why.contributions.sum() - why.difference) < 1e-5 for why in rows)

    @pytest.mark.parametrize("with_rows", [True, False])
    def test_what_matters_is_found(self, people, additive, with_rows):
        told = explain_model(additive, people[0] if with_rows else None)
        order = [told.columns[j] for j in told.by_importance()]
        assert set(order[:4]) == {"age", "since", "job", "member"}
        assert isinstance(told, TableExplanation)

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

    def test_rules_of_one_machine_give_its_predictions(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({name: rng.choice(list("abc"), 400) for name in ("one", "two", "three")})
        y = (frame["one"] == frame["two"]).to_numpy()
        model = TableClassifier(1, n_planes=3, preparation="standard", random_state=0).fit(frame, y)
        told = explain_model(model, frame)
        assert len(told.planes) == 6
        assert sum(plane.share for plane in told.planes) == pytest.approx(1.0)
        scores = np.array([plane.base for plane in told.planes]) + sum(
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
        with pytest.raises(TypeError, match="tolerance cannot be set"):
            explain_model(model, frame, tolerance=0.1)


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
