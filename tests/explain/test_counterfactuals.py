"""Counterfactuals of table models: changes that can happen, the fewest and the least of them."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from polyplane import TableClassifier
from polyplane.explain.geometry import changes as tried
from polyplane.explain.geometry import column_search, table_counterfactual
from polyplane.tables.preparation import RECIPES


def fitted(frame, y, **params):
    params = {"n_estimators": 2, "n_planes": 3, "max_iter": 15, "random_state": 0} | params
    return TableClassifier(**params).fit(frame, y)


def small_table(n_rows=400):
    """Columns with few values each, so that all pairs of changes can be tried."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "rooms": rng.integers(1, 8, n_rows),
            "floor": rng.integers(-1, 6, n_rows),
            "heating": rng.choice(["gas", "oil", "wood"], n_rows),
            "lift": rng.choice([True, False], n_rows),
        }
    )
    score = 0.5 * frame["rooms"] - (frame["floor"] - 2).abs() + 2 * (frame["heating"] == "gas") + 2 * frame["lift"]
    return frame, np.where(score > 4, "dear", np.where(score > 1, "fair", "cheap"))


def all_changes(frame, row, n_columns):
    """The row with `n_columns` columns changed in all ways, and the distances."""
    values = {name: sorted(frame[name].unique()) for name in frame}
    changed, distances = [], []
    for names in combinations(frame, n_columns):
        for after in product(*(values[name] for name in names)):
            if all(value != row[name] for name, value in zip(names, after, strict=True)):
                changed.append({**row, **dict(zip(names, after, strict=True))})
                distances.append(sum(map(change_of, [frame] * n_columns, names, [row] * n_columns, after)))
    return pd.DataFrame(changed).astype(frame.dtypes.to_dict()), np.array(distances)


def change_of(frame, name, row, after):
    """A change in units of the column's interquartile range, or 1."""
    if name in ("heating", "lift"):
        return 1.0
    first, third = frame[name].quantile([0.25, 0.75])
    return abs(after - row[name]) / (third - first)


def check_against_all(model, frame, position, target=None):
    """No change of fewer columns, and no smaller change of as many, does what the counterfactual does."""
    row = frame.iloc[position].to_dict()
    before = model.predict(frame.iloc[[position]])[0]
    found = table_counterfactual(model.model_, model.model_.encode(frame.iloc[[position]])[0], target)
    for n_columns in (1, 2):
        changed, distances = all_changes(frame, row, n_columns)
        after = model.predict(changed)
        reached = after != before if target is None else after == model.classes_[target]
        if reached.any():
            assert len(found.changes) == n_columns
            assert found.distance == pytest.approx(distances[reached].min())
            assert found.proven
            return n_columns
    assert found is None or len(found.changes) > 2
    return 3


@pytest.mark.parametrize("tabulated", [True, False])
@pytest.mark.parametrize("preparation", list(RECIPES))
def test_fewest_columns_and_least_change_of_all(preparation, tabulated, monkeypatch):
    """Also where numbers are searched in ranges, as those with many values are."""
    if not tabulated:
        monkeypatch.setattr(tried, "MAX_POINTS", 1)
        monkeypatch.setattr(tried, "MAX_INTEGERS_PER_PART", 1)
        monkeypatch.setattr(column_search, "PARTS_OF_ONE", (2, 2))
    frame, y = small_table()
    model = fitted(frame, y, preparation=preparation)
    far = np.argsort(model.predict_proba(frame)[:, 1], kind="stable")[[0, 40, 120]]
    sizes = [check_against_all(model, frame, position) for position in range(3)]
    sizes += [check_against_all(model, frame, position, target=1) for position in far]
    assert {1, 2} <= set(sizes)


def test_preparations_may_differ_in_a_committee():
    frame, y = small_table()
    models = [fitted(frame, y, preparation=name, n_estimators=1) for name in ("squares", "robust+norm", "bins")]
    mixed = fitted(frame, y)
    mixed._keep_model(tuple(model.members_[0] for model in models), mixed.temperature_)
    far = np.argsort(mixed.predict_proba(frame)[:, 1], kind="stable")[[0, 60]]
    assert [check_against_all(mixed, frame, position, target=1) for position in far]


def wide_table(n_rows=500):
    """Numbers with decimals, many whole numbers, dates, gaps, a rare level and a boolean."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "weight": rng.gamma(2.0, 10.0, n_rows),
            "income": rng.integers(0, 200_000, n_rows),
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n_rows), unit="D"),
            "city": rng.choice(["Bonn", "Kiel", "Ulm"], n_rows),
            "smoker": rng.choice([True, False], n_rows),
        }
    )
    score = frame["weight"] / 10 + frame["income"] / 1e5 + (frame["city"] == "Ulm") - frame["smoker"]
    score += (frame["since"] - frame["since"].min()).dt.days / 1500
    frame.loc[::50, "city"] = "Hamm" + pd.Series(np.arange(n_rows)[::50].astype(str), index=range(0, n_rows, 50))
    frame.loc[3::9, "income"] = np.nan
    frame.loc[4::9, "city"] = None
    return frame, (score > 4.2).astype(int)


@pytest.fixture(scope="module")
def wide():
    frame, y = wide_table()
    return frame, fitted(frame, y, preparation="bins")


def encoded(model, frame, position):
    return model.model_.encode(frame.iloc[[position]])[0]


def predicted(model, z):
    return int(model.model_.class_scores(z[None])[0].argmax())


def with_changes(frame, position, changes):
    """The raw row after the changes."""
    row = frame.iloc[[position]].copy()
    for name, (_, after) in changes.items():
        row[name] = pd.Timestamp(after) if name == "since" else after
    return row


@pytest.mark.parametrize("frozen", [(), ("weight",), ("weight", "city"), ("weight", "city", "smoker", "income")])
def test_changes_can_happen(wide, frozen):
    frame, model = wide
    ranges = {"weight": frame["weight"], "income": frame["income"], "since": frame["since"]}
    n_found = 0
    for position in range(20):
        z = encoded(model, frame, position)
        found = table_counterfactual(model.model_, z, frozen=frozen)
        if found is None:
            continue
        n_found += 1
        assert predicted(model, found.z) == found.target == 1 - predicted(model, z)
        assert model.predict(with_changes(frame, position, found.changes))[0] == found.target
        np.testing.assert_allclose(model.model_.encode(with_changes(frame, position, found.changes))[0], found.z)
        for name, (before, after) in found.changes.items():
            assert name not in frozen
            assert before != after
            assert before is not None
            if name in ranges:
                value = pd.Timestamp(after) if name == "since" else after
                assert ranges[name].min() <= value <= ranges[name].max()
            assert name != "income" or isinstance(after, int)
            assert name != "city" or after in ("Bonn", "Kiel", "Ulm")
            assert name != "smoker" or isinstance(after, bool)
            assert name != "since" or len(after) == len("2015-01-01")
    assert n_found >= 15


def test_one_day_less_would_not_do(wide):
    """Dates of one column are searched to a proof, though months and days of the week jump."""
    frame, model = wide
    frozen = [name for name in frame if name != "since"]
    tried = 0
    for position in range(20):
        z = encoded(model, frame, position)
        found = table_counterfactual(model.model_, z, frozen=frozen)
        days = pd.date_range(frame["since"].min(), frame["since"].max())
        rows = frame.iloc[[position] * len(days)].assign(since=days)
        flips = days[model.predict(rows) != predicted(model, z)]
        assert (found is None) == (len(flips) == 0)
        if found is not None:
            tried += 1
            now = frame["since"].iloc[position]
            assert found.proven
            assert abs(pd.Timestamp(found.changes["since"][1]) - now) == abs(flips - now).min()
    assert tried >= 3


def test_the_least_change_of_numbers(wide):
    frame, model = wide
    for name, step in (("weight", 0.02), ("income", 1)):
        frozen = [other for other in frame if other != name]
        tried = 0
        for position in range(20):
            z = encoded(model, frame, position)
            found = table_counterfactual(model.model_, z, frozen=frozen)
            if found is None:
                continue
            tried += 1
            before, after = found.changes[name]
            steps = np.unique(np.linspace(1, abs(after - before) / step - 1, 100).astype(int))
            values = before + np.sign(after - before) * step * np.append(steps, steps[-1] - np.arange(20))
            rows = frame.iloc[[position] * len(values)].assign(**{name: values})
            assert (model.predict(rows) == predicted(model, z)).all()
            spread = np.subtract(*frame[name].quantile([0.75, 0.25]))
            assert found.distance == pytest.approx(abs(after - before) / spread)
            assert round(after, 2) == after
        assert tried >= 3


def test_missing_values_stay_missing(wide):
    frame, model = wide
    positions = [*range(3, 60, 9), *range(4, 60, 9)]
    found = [table_counterfactual(model.model_, encoded(model, frame, position)) for position in positions]
    for position, one in zip(positions, found, strict=True):
        assert one is not None
        assert not {name for name in one.changes if pd.isna(frame[name].iloc[position])}


def test_what_was_rare_may_become_a_level(wide):
    frame, model = wide
    frozen = [name for name in frame if name != "city"]
    fitted = model.model_
    found = [table_counterfactual(fitted, encoded(model, frame, i), frozen=frozen) for i in range(0, 500, 50)]
    changes = [one.changes["city"] for one in found if one is not None]
    assert changes
    assert {before for before, _ in changes} == {"other levels"}
    assert {after for _, after in changes} <= {"Bonn", "Kiel", "Ulm"}


def test_bounds_and_directions(wide):
    frame, model = wide
    frozen = ["city", "smoker", "since"]
    n_beyond = 0
    for position in range(25):
        z = encoded(model, frame, position)
        weight = frame["weight"].iloc[position]
        one_way = {"increasing": ["weight"], "decreasing": ["income"]}
        rising = table_counterfactual(model.model_, z, frozen=frozen, **one_way)
        for name, (before, after) in ({} if rising is None else rising.changes).items():
            assert (after > before) == (name == "weight")
        narrow = table_counterfactual(model.model_, z, frozen=frozen, bounds={"weight": (weight - 5, weight + 5)})
        for name, (_, after) in ({} if narrow is None else narrow.changes).items():
            assert name == "income" or abs(after - weight) <= 5
        far = table_counterfactual(model.model_, z, frozen=[*frozen, "income"], bounds={"weight": (200, 300.5)})
        if far is not None:
            n_beyond += 1
            assert 200 <= far.changes["weight"][1] <= 300.5
    assert n_beyond


def test_bounds_of_dates(wide):
    frame, model = wide
    frozen = [name for name in frame if name != "since"]
    z = next(z for z in model.model_.encode(frame) if table_counterfactual(model.model_, z, frozen=frozen))
    free = table_counterfactual(model.model_, z, frozen=frozen)
    after = free.changes["since"][1]
    same = table_counterfactual(model.model_, z, frozen=frozen, bounds={"since": (after, after)})
    assert same.changes == free.changes
    before = free.changes["since"][0]
    none = table_counterfactual(model.model_, z, frozen=frozen, bounds={"since": tuple(sorted([before, before]))})
    assert none is None


def test_bounds_without_a_whole_number_freeze_a_column(wide):
    frame, model = wide
    frozen = [name for name in frame if name != "income"]
    z = next(z for z in model.model_.encode(frame) if table_counterfactual(model.model_, z, frozen=frozen))
    assert table_counterfactual(model.model_, z, frozen=frozen, bounds={"income": (0.2, 0.8)}) is None


def test_three_columns_are_found_and_not_said_to_be_proven():
    """Three of four indicators must be on: rows with none of them need three changes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice([True, False], (600, 4)), columns=list("abcd"))
    frame["size"] = rng.normal(size=600)
    model = fitted(frame, frame[list("abcd")].sum(axis=1) >= 3, preparation="standard")
    none = pd.DataFrame([[False] * 4 + [0.0]], columns=frame.columns)
    z = model.model_.encode(none)[0]
    found = table_counterfactual(model.model_, z)
    assert found.target == 1
    assert len(found.changes) == 3
    assert found.distance == 3
    assert not found.proven
    assert table_counterfactual(model.model_, z, max_columns=2) is None
    assert table_counterfactual(model.model_, z, frozen=["a", "b"]) is None


def test_a_row_of_the_target_is_its_own_counterfactual(wide):
    frame, model = wide
    z = encoded(model, frame, 0)
    found = table_counterfactual(model.model_, z, predicted(model, z))
    assert (found.changes, found.distance, found.proven) == ({}, 0.0, True)
    assert (found.z == z).all()


def test_the_more_frequent_of_two_levels_that_do(wide):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"level": rng.choice(["a", "b", "c"], 500, p=[0.5, 0.2, 0.3]), "x": rng.normal(size=500)})
    model = fitted(frame, frame["level"] == "a")
    z = model.model_.encode(frame[frame["level"] == "a"])[0]
    assert table_counterfactual(model.model_, z, frozen=["x"]).changes == {"level": ("a", "c")}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"frozen": ["weght"]}, "frozen names 'weght', which is not a column of the table. Did you mean 'weight'"),
        ({"frozen": "weight"}, r"frozen='weight' must be a list of columns"),
        ({"increasing": ["city"]}, "increasing names 'city', which is not a number or a date"),
        ({"increasing": ["weight"], "decreasing": ["weight"]}, "increasing and decreasing both name 'weight'"),
        ({"bounds": {"weight": (5, 1)}}, "The lower bound of 'weight', 5, is above its upper bound, 1"),
        ({"bounds": {"weight": ("light", None)}}, "bounds of 'weight' must be a number or None, not 'light'"),
        ({"bounds": {"since": ("soon", None)}}, "bounds of 'since' must be a date such as"),
        ({"bounds": {"weight": 3}}, "bounds of 'weight' must be a pair"),
        ({"target": 2}, "target=2 is not one of the classes 0 to 1"),
        ({"max_columns": 0}, "max_columns=0 must be 1 or more"),
    ],
)
def test_what_cannot_be_is_said(wide, params, message):
    frame, model = wide
    with pytest.raises(ValueError, match=message):
        table_counterfactual(model.model_, encoded(model, frame, 0), **params)


def test_rows_that_are_not_encoded_are_refused(wide):
    _, model = wide
    n_features = len(model.model_.inputs.features)
    with pytest.raises(ValueError, match=f"one encoded row of {n_features} features"):
        table_counterfactual(model.model_, np.zeros(3))
    with pytest.raises(ValueError, match="feature 'weight' is not"):
        table_counterfactual(model.model_, np.full(n_features, np.nan))
