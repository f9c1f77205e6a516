"""Monotone columns: no pair of rows violates them, for any number of classes, in training, in exports and in tables."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import polyplane
from polyplane import Model, MultiHyperplaneClassifier, TableClassifier
from polyplane.explain import explain_model
from polyplane.learners.log_loss import put_in_order
from polyplane.learners.monotone import class_ranks
from tests.programs import run_c, run_node

RNG = np.random.default_rng
#: Probabilities are rounded.
ROUNDING = 1e-6


def noisy_rows(n_classes, seed=0, n_rows=600):
    """Rows whose class falls with feature 0 and grows with feature 1, with some noise."""
    rng = RNG(seed)
    X = rng.normal(size=(n_rows, 4))
    score = 2 * np.sin(2 * X[:, 0]) - X[:, 0] + X[:, 1] ** 2 + X[:, 2] + rng.normal(size=n_rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def changes(predict_proba, X, column, n_pairs, rng, spread=3.0):
    """The probabilities of rows, and after the column has grown."""
    low = X[rng.integers(len(X), size=n_pairs)].copy()
    low[:, column] += rng.normal(size=n_pairs) * spread
    high = low.copy()
    high[:, column] += rng.exponential(size=n_pairs) * spread
    return predict_proba(low), predict_proba(high)


def ratio_grows(before, after):
    """Whether the probability of each class never falls relative to that of any lower one."""
    with np.errstate(divide="ignore"):
        change = np.log(after) - np.log(before)
    usable = np.isfinite(change).all(axis=1)
    return (np.diff(change[usable], axis=1) >= -1e-4).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_is_the_nearest_point(seed):
    rng = RNG(seed)
    W = rng.normal(size=(3, 2, 3))
    ranks = np.array([[0, 0, 0], [0, 1, 2] if seed % 2 else [1, 0, 0]])
    expected = W[:, :, 1].ravel()
    pairs = [
        (a, b)
        for a, b in itertools.product(range(6), range(6))
        if ranks[1][a // 2] < ranks[1][b // 2]
    ]  # fmt: skip
    limits = [{"type": "ineq", "fun": lambda w, a=a, b=b: w[b] - w[a]} for a, b in pairs]
    nearest = minimize(lambda w: ((w - expected) ** 2).sum(), np.zeros(6), constraints=limits, tol=1e-12).x
    projected = W.copy()
    put_in_order(ranks, projected)
    assert projected[:, :, 1].ravel() == pytest.approx(nearest, abs=1e-5)
    assert all(projected[:, :, 1].ravel()[a] <= projected[:, :, 1].ravel()[b] for a, b in pairs)
    assert (projected[:, :, [0, 2]] == W[:, :, [0, 2]]).all()


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("n_estimators", [1, 2])
@pytest.mark.parametrize("backoff", [31, 0])
def test_no_pair_of_rows_violates_the_order_of_the_classes(n_classes, n_estimators, backoff):
    X, y = noisy_rows(n_classes)
    free = MultiHyperplaneClassifier(4, max_iter=15, random_state=0).fit(X, y)
    params = {"n_estimators": n_estimators, "backoff": backoff, "max_iter": 15, "random_state": 0}
    model = MultiHyperplaneClassifier(4, monotonic_cst={"x1": "ordered", 0: {0: 1}}, **params).fit(X, y)
    rng = RNG(1)
    n_pairs = 20_000
    before, after = changes(free.predict_proba, X, 1, n_pairs, rng)
    assert not ratio_grows(before, after)
    for softened in (model.model_, model):
        before, after = changes(softened.predict_proba, X, 1, n_pairs, rng)
        assert ratio_grows(before, after)
        before, after = changes(softened.predict_proba, X, 0, n_pairs, rng)
        assert (after[:, 0] >= before[:, 0] - ROUNDING).all()
    assert model.score(X, y) > 1 / n_classes + 0.05


def test_exports_are_monotone(tmp_path):
    X, y = noisy_rows(3)
    model = MultiHyperplaneClassifier(4, max_iter=10, monotonic_cst={"x1": "ordered"}, random_state=0).fit(X, y)
    for run in (run_c, run_node):
        before, after = changes(lambda rows, run=run: run(model, rows, tmp_path).probabilities, X, 1, 3000, RNG(0))
        assert ratio_grows(before, after)


def test_one_plane_per_class_is_constrained_too_and_streams_are():
    X, y = noisy_rows(2)
    for n_planes in (1, 3):
        model = MultiHyperplaneClassifier(n_planes, monotonic_cst=[0, -1, 0, 0], max_iter=10, random_state=0)
        for part in (slice(0, 300), slice(300, 600)):
            model.partial_fit(X[part], y[part], classes=[0, 1])
        for fitted in (model, MultiHyperplaneClassifier(**model.get_params()).fit(X, y)):
            assert fitted.model_.directions[1].tolist() == [1, -1]
            before, after = changes(fitted.predict_proba, X, 1, 5000, RNG(0))
            assert (after[:, 1] <= before[:, 1] + ROUNDING).all()
    free = MultiHyperplaneClassifier(3, max_iter=10, random_state=0).fit(X, y)
    assert free.model_.directions[1].tolist() == [0, 0]


def table(n_rows=500, n_classes=2):
    X, y = noisy_rows(n_classes, n_rows=n_rows)
    frame = pd.DataFrame(X, columns=["age", "income", "debt", "rest"])
    frame["member"] = np.where(RNG(2).random(n_rows) < 0.5, "yes", "no")
    frame.loc[::7, "income"] = np.nan
    return frame, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("preparation", [None, "bins"])
def test_columns_of_tables_are_monotone_and_gaps_are_a_level_of_their_own(preparation):
    frame, y = table(n_classes=3)
    constraints = {"income": "ordered", "age": {"a": 1}}
    model = TableClassifier(2, preparation=preparation, max_iter=10, monotonic_cst=constraints, random_state=0)
    model.fit(frame, y)
    assert not any("norm" in name or "squares" in name for name in (*model.choice_, *model.preparation_))
    rng = RNG(0)
    known = frame[frame["income"].notna()].to_numpy(dtype=object)
    for predict_proba in (model.predict_proba, model.model_.predict_proba):
        for column in (0, 1):
            low = known[rng.integers(len(known), size=4000)].copy()
            high = low.copy()
            high[:, column] += rng.exponential(size=len(low))
            pairs = [pd.DataFrame(part, columns=frame.columns).infer_objects() for part in (low, high)]
            before, after = map(predict_proba, pairs)
            assert ratio_grows(before, after) if column else (after[:, 0] >= before[:, 0] - ROUNDING).all()
    names = [column.name for column in model.model_.inputs.columns]
    assert model.model_.directions[names.index("income")].tolist() == [-1, 0, 1]
    assert model.model_.directions[names.index("rest")].tolist() == [0, 0, 0]
    text = str(explain_model(model))
    assert "The probability of class c is non-decreasing in income." in text
    assert "The probability of class a is non-decreasing in age." in text
    assert np.abs(np.diff(model.predict_proba(frame.assign(income=[np.nan] * len(frame))))).max() > 0


SIZES = ["tiny", "small", "medium", "large", "huge"]


def sized_table(n_rows=900, n_classes=3):
    """A table with sizes, whose classes do not follow their order, and are missing in some rows."""
    rng = RNG(3)
    code, other = rng.integers(0, 5, n_rows), rng.normal(size=n_rows)
    score = np.array([0.0, 2.0, 1.0, 3.0, 2.5])[code] + other + rng.normal(size=n_rows)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    size = np.where(rng.random(n_rows) < 0.1, None, np.array(SIZES, dtype=object)[code])
    return pd.DataFrame({"size": size, "other": other}), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("preparation", [None, "bins"])
@pytest.mark.parametrize("is_declared", [True, False])
def test_ordered_categories_are_monotone(preparation, is_declared, tmp_path):
    frame, y = sized_table()
    kinds = {"size": SIZES}
    if is_declared:
        frame["size"] = frame["size"].astype(pd.CategoricalDtype(SIZES, ordered=True))
        kinds = None
    params = {"kinds": kinds, "preparation": preparation, "n_planes": 3, "max_iter": 15, "random_state": 0}
    free = TableClassifier(2, **params).fit(frame, y)
    model = TableClassifier(2, monotonic_cst={"size": "ordered"}, **params).fit(frame, y)
    polyplane.save(model, tmp_path / "model.safetensors")
    loaded = polyplane.load(tmp_path / "model.safetensors")
    loaded.partial_fit(frame, y)
    rows = pd.DataFrame({"size": np.tile(SIZES, 300), "other": np.repeat(RNG(0).normal(size=300) * 3, 5)})

    def is_monotone(predict_proba):
        shares = np.log(predict_proba(rows)).reshape(300, 5, 3)
        return all(ratio_grows(np.exp(shares[:, j]), np.exp(shares[:, j + 1])) for j in range(4))

    assert not is_monotone(free.predict_proba)
    for predict_proba in (
        model.predict_proba,
        loaded.predict_proba,
        lambda rows: run_c(model, rows, tmp_path).probabilities,
        lambda rows: run_node(model, rows, tmp_path).probabilities,
    ):
        assert is_monotone(predict_proba)
    for fitted in (model, loaded):
        assert fitted.model_.directions[0].tolist() == [-1, 0, 1]
    assert free.model_.directions[0].tolist() == [0, 0, 0]
    assert "The probability of class c is non-decreasing in size." in str(explain_model(model))
    assert model.score(frame, y) > 0.5
    gaps = model.predict_proba(rows.assign(size=None))
    assert np.abs(gaps - model.predict_proba(rows.assign(size="tiny"))).max() > 0.01


def test_the_model_keeps_its_constraints_in_files_and_when_training_goes_on(tmp_path):
    frame, y = table()
    model = TableClassifier(1, preparation="standard", n_planes=2, max_iter=5, monotonic_cst={"age": -1})
    model.set_params(random_state=0).fit(frame, y)
    polyplane.save(model, tmp_path / "model.safetensors")
    loaded = polyplane.load(tmp_path / "model.safetensors")
    assert loaded.get_params()["monotonic_cst"] == {"age": -1}
    for _ in range(3):
        loaded.partial_fit(frame, y)
    column = [c.name for c in loaded.model_.inputs.columns].index("age")
    assert loaded.model_.directions[column].tolist() == [1, -1]
    assert Model.of(loaded).directions.any(axis=1).sum() >= 1


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"agee": 1}, "names 'agee', which is not a column"),
        ([1, 0], r"has shape \(2,\), but there are 3 columns"),
        ({"x": 2}, "must be 1, -1, 0, 'ordered' or a dict of classes, not 2"),
        ({"x": 1}, r"there are 3 classes: name the class, \{'c': 1\}"),
        ({"x": {"d": 1}}, "maps 'd' to 1"),
        ({"x": "ordered", 0: {"c": 1}}, "two constraints of one column: its name, 'x', and its index, 0"),
        ({"x": {"a": 1, "b": 1}}, "contradictory: the probabilities of two classes cannot both grow"),
    ],
)
def test_what_cannot_be_constrained_is_said(constraints, message):
    with pytest.raises(ValueError, match=message):
        class_ranks(constraints, ["x", "y", "z"], np.array(["a", "b", "c"]))


def test_constraints_that_do_not_apply_are_refused():
    frame, y = table(100)
    with pytest.raises(ValueError, match="'member', which is a category: only numbers, booleans and ordered cat"):
        TableClassifier(monotonic_cst={"member": 1}).fit(frame, y)
    with pytest.raises(ValueError, match="preparation='squares' has squares"):
        TableClassifier(monotonic_cst={"age": 1}, preparation="squares").fit(frame, y)
    with pytest.raises(ValueError, match="means nothing for loss='hinge'"):
        MultiHyperplaneClassifier(2, loss="hinge", monotonic_cst=[1, 0, 0, 0]).fit(*noisy_rows(2))
