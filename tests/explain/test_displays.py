"""Displays: what they draw is what the model says."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from polyplane import (
    ConvexPolytopeClassifier,
    CuttingPlaneSVC,
    MultiHyperplaneClassifier,
    PolyhedralMixtureClassifier,
    TableClassifier,
)
from polyplane.datasets import make_checkerboard
from polyplane.explain import (
    EffectsDisplay,
    HistoryDisplay,
    ImportanceDisplay,
    MarginDisplay,
    PlaneUsageDisplay,
    PlaneWeightsDisplay,
    ReasonsDisplay,
    RegionsDisplay,
    explain_model,
)

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def model(iris):
    return ConvexPolytopeClassifier(n_planes=4, alpha=1e-3, random_state=0).fit(*iris)


def test_usage_counts_rows_and_errors(model, iris):
    X, y = iris
    display = PlaneUsageDisplay.from_estimator(model, X, y)
    assert display.usage.sum() == pytest.approx(1)
    assert display.errors.sum() == pytest.approx(1 - model.score(X, y))
    winners = model.planes_.winners(X)
    bars = [patch for patch in display.ax_.patches if patch.get_facecolor()[:3] != (0, 0, 0)]
    assert len(bars) == len(np.unique(winners))
    assert max(bar.get_height() for bar in bars) == pytest.approx(100 * np.bincount(winners).max() / len(y))
    assert "planes decide 95 %" in display.ax_.get_title(loc="left")


def test_usage_speaks_of_the_labels(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    display = PlaneUsageDisplay.from_estimator(CuttingPlaneSVC().fit(X, names), X)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == sorted(set(names))


def test_margin_bars_left_of_zero_are_the_errors(model, iris):
    X, y = iris
    ax = MarginDisplay.from_estimator(model, X, y).ax_
    width = ax.patches[0].get_width()
    left = sum(bar.get_height() for bar in ax.patches if bar.get_x() < -width / 2)
    assert left == (model.predict(X) != y).sum()
    assert sum(bar.get_height() for bar in ax.patches) == len(y)


def test_history_has_a_panel_for_each_figure(model):
    display = HistoryDisplay.from_estimator(model, against="step")
    changing = {name for name, values in model.history_.items() if len(np.unique(values)) > 1}
    assert len(display.axes_) == len(changing - {"time"}) >= 3
    line = display.axes_[0].get_lines()[0]
    assert line.get_xdata()[-1] == model.n_iter_
    with pytest.raises(ValueError, match="'gap' is not in the history"):
        HistoryDisplay.from_estimator(model, metrics=["gap"])
    with pytest.raises(ValueError, match="against='hour'"):
        HistoryDisplay.from_estimator(model, against="hour")


def test_weights_of_pixels_are_images():
    X, y = load_digits(return_X_y=True)
    model = CuttingPlaneSVC(C=1e-4).fit(X, y)
    display = PlaneWeightsDisplay.from_estimator(model, X, image_shape=(8, 8), max_planes=3)
    assert len(display.coef) == 3
    np.testing.assert_array_equal(display.axes_[0].get_images()[0].get_array(), display.coef[0].reshape(8, 8))
    with pytest.raises(ValueError, match="does not match the 64 features"):
        PlaneWeightsDisplay.from_estimator(model, image_shape=(8, 9))


def test_weights_of_named_features_are_bars(iris):
    X, y = iris
    model = make_pipeline(StandardScaler(), PolyhedralMixtureClassifier()).fit(X[y > 0], y[y > 0])
    names = ["a", "b", "c", "a name that is very, very, very long indeed"]
    display = PlaneWeightsDisplay.from_estimator(model, X, feature_names=names)
    assert len(display.coef) <= 2  # the zero plane has nothing to show
    labels = {label.get_text() for label in display.axes_[0].get_yticklabels()}
    assert {"a", "b", "c"} < labels
    assert all(len(label) <= 28 for label in labels)


def test_axes_may_be_given(model, iris):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert MarginDisplay.from_estimator(model, *iris, ax=ax).ax_ is ax
    assert PlaneUsageDisplay.from_estimator(model, iris[0], ax=ax).figure_ is ax.figure


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda m, X, y: MarginDisplay.from_estimator(LinearSVC().fit(X, y), X, y),
            "LinearSVC is not a classifier of Polyplane",
        ),
        (lambda m, X, y: MarginDisplay.from_estimator(m, X, y + 1), "y contains the label 3"),
        (lambda m, X, y: PlaneWeightsDisplay.from_estimator(m, planes=[99]), "indices from 0 to 11"),
        (lambda m, X, y: PlaneWeightsDisplay.from_estimator(m, feature_names=["a"]), "1 names, but the model has 4"),
    ],
)
def test_bad_input_is_one_sentence(model, iris, call, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        call(model, *iris)


def test_regions_are_the_predictions():
    X, y = make_checkerboard(2000, (2, 2), random_state=0)
    model = make_pipeline(StandardScaler(), MultiHyperplaneClassifier(2, loss="hinge", random_state=0)).fit(3 + X, y)
    display = RegionsDisplay.from_estimator(model, 3 + X, y, margin=1.0)
    left, right, bottom, top = display.box
    assert sum(cell.area for cell in display.cells_) == pytest.approx((right - left) * (top - bottom))
    for cell in display.cells_:
        assert model.predict(cell.vertices.mean(axis=0, keepdims=True)) == [model.classes_[cell.c]]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["0", "1"]


def test_regions_show_a_slice_of_more_features(iris):
    X, y = iris
    model = CuttingPlaneSVC().fit(X, y)
    display = RegionsDisplay.from_estimator(model, X, y, features=(2, 3), feature_names=["a", "b", "c", "d"])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("c", "d")
    point = X.mean(axis=0)
    point[[2, 3]] = display.cells_[0].vertices.mean(axis=0)
    assert model.predict(point[None]) == [model.classes_[display.cells_[0].c]]
    assert display.ax_.get_title(loc="left").endswith("\na slice: 2 other features fixed at the mean")


def test_a_slice_names_its_features_and_its_point(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = CuttingPlaneSVC().fit(frame, y)
    display = RegionsDisplay.from_estimator(model, frame, y, features=("d", "a"), at=[5.0, 3.0, 1.5, 0.25])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("d", "a")
    assert display.ax_.get_title(loc="left").endswith("\na slice at b = 3, c = 1.5")
    with pytest.raises(ValueError, match="features: 'e' is not one of the features a, b, c, d"):
        RegionsDisplay.from_estimator(model, frame, y, features=("a", "e"))


def test_a_history_leaves_out_what_is_flat():
    display = HistoryDisplay(history={"time": [0.1, 0.2], "loss": [2.0, 1.0], "planes": [4.0, 4.0]}).plot()
    assert [ax.get_title(loc="left") for ax in display.axes_] == ["loss: 2 to 1"]
    assert display.axes_[-1].get_xlabel().startswith("pass")


@pytest.fixture(scope="module")
def table():
    """A fitted classifier of a small table, with its rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 400), "job": rng.choice(["cook", "nurse", "smith"], 400)})
    frame["height"] = np.where(rng.random(400) < 0.1, np.nan, rng.normal(size=400))
    y = np.where(frame["age"] / 20 + (frame["job"] == "nurse") + rng.normal(size=400) > 3, "yes", "no")
    return TableClassifier(1, n_planes=1, preparation="bins", random_state=0).fit(frame, y), frame, y


def test_importance_bars_are_those_of_the_explanation(table):
    model, frame, _ = table
    display = ImportanceDisplay.from_estimator(model, frame)
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, np.sort(explain_model(model, frame).importance))
    assert [text.get_text() for text in display.ax_.get_yticklabels()][-1] == "age"
    assert len(ImportanceDisplay.from_estimator(model).plot(max_columns=2).ax_.patches) == 2


def test_effects_are_curves_and_bars_for_the_class_asked_for(table):
    model, frame, _ = table
    told = explain_model(model, frame)
    drawn = {label: EffectsDisplay.from_estimator(told, columns=["age", "job"], label=label) for label in ("yes", "no")}
    [age], [job] = told.of_column("age"), told.of_column("job")
    for label, sign in (("yes", 1), ("no", -1)):
        curve = drawn[label].axes_[0].lines[0]
        np.testing.assert_allclose(curve.get_ydata(), sign * np.interp(curve.get_xdata(), age.values, age.effect[:, 1]))
        assert (curve.get_xdata().min(), curve.get_xdata().max()) == (18, 79)
        widths = sorted(bar.get_width() for bar in drawn[label].axes_[1].patches)
        np.testing.assert_allclose(widths, np.sort(sign * job.effect[:, 1]), atol=1e-9)
        assert f"more {label}" in " ".join(text.get_text() for text in drawn[label].axes_[0].texts)
    names = [text.get_text() for text in drawn["yes"].axes_[1].get_yticklabels()]
    assert any(name.startswith(f"nurse ({(frame['job'] == 'nurse').sum()})") for name in names)
    gaps = EffectsDisplay.from_estimator(told, columns=["height"])
    assert "missing" in [text.get_text() for text in gaps.axes_[0].texts]


def test_reasons_end_at_the_log_odds(table):
    model, frame, y = table
    display = ReasonsDisplay.from_estimator(model, frame.iloc[[3]], true_label=y[3])
    why = display.explanation
    last = display.ax_.patches[-1]
    assert last.get_width() == pytest.approx(why.difference)
    first, *middle = display.ax_.patches[:-1]
    assert first.get_width() == pytest.approx(why.base)
    assert sum(bar.get_width() for bar in middle) == pytest.approx(why.difference - why.base)
    assert f"probability {why.probability:.2f}" in display.ax_.get_title(loc="left")


def test_columns_of_every_model_can_be_drawn(model, iris):
    X, _ = iris
    shown = ImportanceDisplay.from_estimator(model, X)
    np.testing.assert_allclose(shown.importance, explain_model(model, X).importance)
    assert "contribution to the score" in shown.ax_.get_xlabel()
    drawn = EffectsDisplay.from_estimator(model, X, max_columns=2)
    assert len(drawn.effects) == 2
    assert drawn.axes_[0].get_ylabel() == "effect on the score"
    why = ReasonsDisplay.from_estimator(model, X[0]).explanation
    assert why.base + why.contributions.sum() == pytest.approx(why.difference)


@pytest.mark.parametrize("kind", ["committee", "table", "log-loss"])
def test_rows_that_no_single_plane_decides_have_no_displays_of_planes(kind, iris, table):
    estimator, X = MultiHyperplaneClassifier(2, n_estimators=3, max_iter=5, random_state=0).fit(*iris), iris[0]
    y = iris[1]
    if kind == "table":
        estimator, X, y = table
    elif kind == "log-loss":
        estimator = MultiHyperplaneClassifier(2, max_iter=5, random_state=0).fit(*iris)
    for display in (PlaneUsageDisplay, PlaneWeightsDisplay, RegionsDisplay):
        with pytest.raises(TypeError, match=r"requires a model in which one plane decides.*use ImportanceDisplay"):
            display.from_estimator(estimator, X)
    margins = MarginDisplay.from_estimator(estimator, X, y).margins
    assert np.mean(margins > 0) == pytest.approx(estimator.score(X, y))
    if kind == "log-loss":
        with pytest.raises(TypeError, match=r"or train with loss='hinge', or set planes_ = planes_\.replace"):
            RegionsDisplay.from_estimator(estimator, X)
        estimator.planes_ = estimator.planes_.replace(pooling="max")
        assert len(PlaneUsageDisplay.from_estimator(estimator, X).usage) == 6


def test_regions_need_planes_over_the_columns_themselves(iris):
    clipped = make_pipeline(MinMaxScaler(clip=True), CuttingPlaneSVC()).fit(*iris)
    with pytest.raises(TypeError, match="not polygons"):
        RegionsDisplay.from_estimator(clipped, iris[0])
    assert PlaneUsageDisplay.from_estimator(clipped, *iris).usage.sum() == pytest.approx(1)


def test_effects_of_dates_and_of_several_classes(people, additive, iris):
    display = EffectsDisplay.from_estimator(additive, people[0], columns=["since", "job"])
    parts = [effect.part for effect in display.effects[:-1]]
    assert parts[:2] == ["days", "year"]
    days, effect = display.axes_[0].lines[0].get_xdata(), display.effects[0]
    assert np.datetime64("2019-12-31") <= days.min() < days.max() < np.datetime64("2024-03-01")
    assert effect.missing is not None
    if "day of week" in parts:
        names = [label.get_text() for label in display.axes_[parts.index("day of week")].get_xticklabels()]
        assert names[0] == "Mon"
    frame = pd.DataFrame({"length": iris[0][:, 2], "place": np.where(iris[0][:, 3] > 1, "hill", "dale")})
    model = TableClassifier(1, n_planes=2, preparation="standard", random_state=0).fit(frame, iris[1])
    several = EffectsDisplay.from_estimator(model, frame, columns=["length", "place"])
    assert [len(ax.lines) for ax in several.axes_] >= [3, 3]
    assert [text.get_text() for text in several.figure_.legends[0].get_texts()] == ["0", "1", "2"]
    crowded = ReasonsDisplay.from_estimator(additive, people[0].iloc[3], max_columns=2)
    assert crowded.ax_.get_yticklabels()[-2].get_text().endswith("other columns")
