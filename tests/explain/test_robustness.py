"""Certified robustness: no change within a certified radius leads to another class; the witness is at the radius."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from polyplane import Model, MultiHyperplaneClassifier, PlaneSet, TableClassifier
from polyplane.datasets import make_checkerboard, make_loans
from polyplane.explain import RobustnessDisplay, certified_radius, model_report, nearest_adversarial, robust_error
from polyplane.features import Features
from polyplane.inputs.encoding import MatrixInputs

matplotlib.use("agg")
NORMS = (1, 2, np.inf)


def model_of(planes, features=None):
    features = features or Features.identity(planes.n_features)
    return Model(MatrixInputs(features.n_inputs), features, planes, np.arange(planes.n_classes))


def random_model(rng, n_features=2, n_classes=3, n_members=1, pooling="max"):
    members = []
    for _ in range(n_members):
        sizes = rng.integers(1, 4, n_classes)
        coef, intercept = rng.normal(size=(sizes.sum(), n_features)), rng.normal(size=sizes.sum())
        members.append(PlaneSet(coef, intercept, np.cumsum([0, *sizes]), pooling=pooling))
    return model_of(PlaneSet.of_members(members, rng.uniform(0.5, 1.0, n_members)))


def directions(rng, n_features, norm, n=2000):
    """Changes of length 1, including corners of the ball."""
    free = rng.normal(size=(n, n_features))
    corners = np.sign(free) if norm == np.inf else np.eye(n_features)[rng.integers(n_features, size=n)] * np.sign(free)
    both = np.concatenate([free, corners])
    return both / np.linalg.norm(both, norm, axis=1, keepdims=True)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(3))
def test_radii_agree_with_a_dense_grid(norm, seed):
    rng = np.random.default_rng(seed)
    model, X = random_model(rng), rng.normal(size=(20, 2))
    bound, exact = certified_radius(model, X, norm=norm), certified_radius(model, X, norm=norm, exact=True)
    found = nearest_adversarial(model, X, norm=norm)
    assert (bound <= exact * (1 + 1e-9)).all()
    assert bound.max() > 0
    side = np.linspace(-1.0, 1.0, 201)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    lengths = np.linalg.norm(grid, norm, axis=1)
    for x, radius, point, distance, label in zip(X, exact, *found, model.predict(X), strict=True):
        if radius == np.inf:
            assert distance == np.inf
            assert (model.predict(x + 100 * grid) == label).all()
            continue
        assert distance == pytest.approx(radius, abs=1e-6)
        assert model.predict(point[None])[0] != label
        labels = model.predict(x + 1.5 * radius * grid)
        reach = 1.5 * radius * lengths
        assert (labels[reach < radius * (1 - 1e-9)] == label).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("n_members", "pooling"), [(1, "max"), (1, "logsumexp"), (3, "max"), (3, "logsumexp")])
def test_no_change_within_a_certified_radius_leads_to_another_class(norm, n_members, pooling):
    rng = np.random.default_rng(0)
    n_certain = 0
    for _ in range(5):
        model, X = random_model(rng, 4, 3, n_members, pooling), rng.normal(size=(8, 4))
        radius = certified_radius(model, X, norm=norm)
        n_certain += (radius > 0.05).sum()
        for x, r, label in zip(X, radius, model.predict(X), strict=True):
            changes = min(r, 1e6) * (1 - 1e-9) * directions(rng, 4, norm)
            assert (model.predict(x + changes) == label).all()
    assert n_certain > 10


@pytest.mark.parametrize("norm", NORMS)
def test_with_one_plane_per_class_the_bound_is_the_distance_also_for_committees(norm):
    rng = np.random.default_rng(1)
    members = [PlaneSet(rng.normal(size=(3, 5)), rng.normal(size=3), [0, 1, 2, 3], pooling="logsumexp") for _ in "abc"]
    mean = PlaneSet(*(np.mean([getattr(m, name) for m in members], axis=0) for name in ("coef", "intercept")), range(4))
    X = rng.normal(size=(10, 5))
    expected = certified_radius(model_of(mean), X, norm=norm, exact=True)
    assert certified_radius(model_of(mean), X, norm=norm) == pytest.approx(expected, rel=1e-9)
    assert certified_radius(model_of(PlaneSet.of_members(members)), X, norm=norm) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_attacks_by_projected_gradients_fail_within_the_radius_and_succeed_beyond(norm):
    X, y = make_checkerboard(1500, (3, 3), random_state=0)
    model = MultiHyperplaneClassifier(8, loss="hinge", max_iter=20, random_state=0).fit(X, y).model_
    X = X[:40]
    radius = certified_radius(model, X, norm=norm, exact=True)
    for x, r, label in zip(X, radius, model.class_scores(X).argmax(axis=1), strict=True):
        point = x.copy()
        for _ in range(30):
            tangent = model.planes.at(point)
            scores = tangent.class_scores(point[None])[0]
            gradient = tangent.coef[np.argmax(np.where(np.arange(len(scores)) == label, -np.inf, scores))]
            gradient = gradient - tangent.coef[label]
            point = point + 0.2 * r * (np.sign(gradient) if norm == np.inf else gradient / np.linalg.norm(gradient))
            change = point - x
            point = x + (1 - 1e-6) * r * change / max(np.linalg.norm(change, norm), r)
            assert model.class_scores(point[None]).argmax() == label
    found = nearest_adversarial(model, X, norm=norm)
    assert found.distances == pytest.approx(radius, abs=1e-6)
    assert (model.predict(found.points) != model.predict(X)).all()


def test_bounds_of_the_rows_and_features_that_are_clipped_are_used():
    # The score difference is the sum of two features: column 0 up to 0.8, and column 1, both from 0.2 to 0.8.
    features = Features.of([0, 1], centre=0.2, factor=1 / 0.6, low=0.0, high=1.0, n_inputs=2)
    planes = PlaneSet(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([0.0, -1.0]), [0, 1, 2])
    model = model_of(planes, features)
    # From (0.1, 0.4), column 0 can rise to 0.1 + r and column 1 to 0.4 + r: (r - 0.1) + (0.2 + r) = 0.6.
    assert certified_radius(model, [[0.1, 0.4]], norm="inf") == pytest.approx([0.25])
    assert certified_radius(model, [[0.0, 0.4]], norm="inf", upper=[0.05, 1.0]) == pytest.approx([0.4])
    assert certified_radius(model, [[0.0, 0.4]], norm="inf", upper=[0.05, 0.7])[0] == np.inf
    assert robust_error(model, [[0.1, 0.4], [0.9, 0.9]], [0, 1], [0.0, 0.2, 0.3], norm="inf").tolist() == [0, 0, 0.5]
    pipeline = make_pipeline(MinMaxScaler(clip=True), MultiHyperplaneClassifier(3, max_iter=5, random_state=0))
    X, y = make_checkerboard(300, (2, 2), random_state=0)
    pipeline.fit(X, y)
    rng, rows = np.random.default_rng(0), 1.3 * X[:30]
    for x, r, label in zip(rows, certified_radius(pipeline, rows, norm="inf"), pipeline.predict(rows), strict=True):
        assert (pipeline.predict(x + min(r, 9.0) * (1 - 1e-9) * directions(rng, 2, np.inf)) == label).all()


@pytest.mark.parametrize("pooling", ["max", "logsumexp"])
def test_the_bound_is_exact_for_bins_that_rise_one_after_another(pooling):
    """Of one plane per class, the largest change of a score is a sum over columns, of the largest on a fine grid."""
    rng = np.random.default_rng(0)
    knots = np.sort(rng.uniform(-1, 1, (2, 6)), axis=1)
    low, width = np.delete(knots, [2, 5], axis=1).ravel(), np.delete(np.diff(knots), 2, axis=1).ravel()
    source = np.repeat([0, 1], 4)
    features = Features.of(source, centre=low, factor=1 / width, low=0.0, high=1.0, n_inputs=2)
    assert [own.tolist() for own in features.sequences] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    planes = PlaneSet(rng.normal(size=(3, 8)), rng.normal(size=3), range(4), pooling=pooling)
    model, X, eps = model_of(planes, features), rng.uniform(-1, 1, (200, 2)), 0.25
    sides = np.linspace(-eps, eps, 4001)
    worst = []
    for x, label in zip(X, model.class_scores(X).argmax(axis=1), strict=True):
        ranges = features.transform(x + sides[:, None])
        apart = planes.coef - planes.coef[label]
        most = sum((ranges[:, source == j] @ apart[:, source == j].T).max(axis=0) for j in (0, 1))
        worst.append(np.delete(most + planes.intercept - planes.intercept[label], label).max())
    radius, worst = certified_radius(model, X, norm="inf"), np.array(worst)
    assert (worst[radius > eps * (1 + 1e-9)] < 0).all()
    assert (worst[radius < eps * (1 - 1e-9)] > -0.05).all()  # the grid misses the largest value by a little
    assert 0.2 < np.mean(radius > eps) < 0.8


def test_boxes_within_bounds_are_exact_for_planes():
    rng = np.random.default_rng(3)
    planes = PlaneSet(rng.normal(size=(2, 6)), np.array([0.0, 0.3]), [0, 1, 2])
    X = rng.uniform(size=(12, 6))
    limits = {"norm": np.inf, "lower": 0.0, "upper": 1.0}
    exact = certified_radius(model_of(planes), X, exact=True, **limits)
    assert certified_radius(model_of(planes), X, **limits) == pytest.approx(exact, rel=1e-6)
    assert (exact >= certified_radius(model_of(planes), X, norm=np.inf) * (1 - 1e-9)).all()
    found = nearest_adversarial(model_of(planes), X, **limits)
    inside = np.isfinite(found.distances)
    assert ((found.points >= 0) & (found.points <= 1))[inside].all()


@pytest.fixture(scope="module")
def loans():
    frame, y = make_loans(500, random_state=0)
    model = TableClassifier(2, preparation="bins", n_planes=2, max_iter=10, random_state=0).fit(frame, y)
    return model, frame, y


def test_numbers_of_a_table_change_in_their_units_and_gaps_remain(loans):
    model, frame, _ = loans
    rows = frame[:60]
    numbers = [name for name, kind in model.encoder_.kinds_.items() if kind == "number"]
    radius = certified_radius(model, rows, norm="inf")
    assert (radius > 0).all()
    spreads = {c.name: c.range.spread for c in model.encoder_.encoding_.columns if c.name in numbers}
    assert certified_radius(model, rows, norm="inf", scale=spreads) == pytest.approx(radius)
    rng, labels = np.random.default_rng(0), model.predict(rows)
    for _ in range(60):
        signs = rng.choice([-1.0, 0.0, 1.0], size=(len(rows), len(numbers)))
        size = np.minimum(radius, 1e3)[:, None] * (1 - 1e-9) * signs * [spreads[name] for name in numbers]
        changed = rows.copy()
        changed[numbers] = rows[numbers].astype(float) + size
        assert (model.predict(changed) == labels).all()
    one = certified_radius(model, rows, norm="inf", scale={numbers[0]: spreads[numbers[0]]})
    assert (one >= radius * (1 - 1e-9)).all()
    assert (one > radius).any()


def test_missing_values_do_not_change():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    y = (frame["a"] > 0).astype(int)
    frame.loc[::5, "a"] = np.nan
    model = TableClassifier(1, preparation="standard", n_planes=1, random_state=0).fit(frame, y)
    radius = certified_radius(model, frame, norm="inf", scale={"a": 1.0})
    assert np.isinf(radius[::5]).all()
    assert np.isfinite(np.delete(radius, slice(None, None, 5))).all()


def test_the_robust_error_is_that_of_the_radii(tmp_path):
    X, y = make_checkerboard(400, (3, 3), random_state=0)
    model = MultiHyperplaneClassifier(6, loss="hinge", max_iter=10, random_state=0).fit(X, y)
    radius = np.where(model.predict(X) == y, certified_radius(model, X, norm=1), 0.0)
    eps = [0.0, 0.05, 0.2]
    error = robust_error(model, X, y, eps, norm=1)
    assert error[0] == pytest.approx(1 - model.score(X, y))
    assert error[1:] == pytest.approx([(radius <= size).mean() for size in eps[1:]])
    assert robust_error(model, X, y, 0.05, norm=1) == error[1]
    assert (robust_error(model, X, y, eps, norm=1, exact=True) <= error).all()
    page = model_report(model, X, y, tmp_path / "page.html", n_rows=2).read_text(encoding="utf-8")
    rows = X[np.unique(np.linspace(0, len(X) - 1, 100).astype(int))]
    median = np.median(certified_radius(model, rows, norm="inf", scale=X.std(axis=0)))
    assert f"any change of all numbers by up to {median:.2g} times" in page
    display = RobustnessDisplay.from_estimator(model, X, y, norm="inf")
    assert display.error[0] == error[0]
    assert (np.diff(display.error) >= 0).all()
    assert "inf" in display.ax_.get_xlabel()


def test_what_cannot_be_certified_is_said(loans):
    table, frame, _ = loans
    X = np.zeros((1, 2))
    model = random_model(np.random.default_rng(0))
    with pytest.raises(ValueError, match="norm=3 must be 1, 2 or inf"):
        certified_radius(model, X, norm=3)
    with pytest.raises(ValueError, match=r"eps=-0.1 must be 0 or more"):
        robust_error(model, X, [0], -0.1)
    with pytest.raises(TypeError, match="norm='inf' is available"):
        certified_radius(table, frame, norm=2)
    with pytest.raises(TypeError, match="only the bound is available"):
        certified_radius(table, frame, norm="inf", exact=True)
    with pytest.raises(TypeError, match="table_counterfactual"):
        nearest_adversarial(table, frame)
    with pytest.raises(ValueError, match="scale names 'agee'"):
        certified_radius(table, frame, norm="inf", scale={"agee": 1.0})
    with pytest.raises(ValueError, match="y has 3 labels, but X has 1 rows"):
        robust_error(model, X, [0, 1, 2], 0.1)


def test_a_model_of_images_takes_less_than_a_millisecond_per_row():
    import time

    rng = np.random.default_rng(0)
    model = model_of(PlaneSet(rng.normal(size=(100, 784)), rng.normal(size=100), [0, 50, 100]))
    X = rng.normal(size=(500, 784))
    seconds = []
    for norm in NORMS:
        began = time.process_time()
        certified_radius(model, X, norm=norm)
        seconds.append(time.process_time() - began)
    assert max(seconds) < 0.001 * len(X)
    began = time.process_time()
    certified_radius(model, X[:2], exact=True)
    assert time.process_time() - began < 2.0
