"""The live part of the page about a model, in a real browser: edited rows against the model in Python."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import (
    CuttingPlaneSVC,
    MultiHyperplaneClassifier,
    TableClassifier,
)
from polyplane.datasets import make_loans
from polyplane.explain import explain_row, live, model_report
from polyplane.explain.report import reliability

#: Edits by the inputs of the page, one after the other; after each, what the page holds and shows.
EDITS = """(edits) => edits.map(([column, how, value]) => {
  const main = document.getElementById(`value-${column}`), box = main.closest(".field");
  const send = (control, kind) => control.dispatchEvent(new Event(kind, {bubbles: true}));
  const gap = box.querySelector("input[type=checkbox]");
  if (gap && gap.checked !== (how === "missing")) gap.click();
  if (how === "missing" && !gap) value = "missing";
  if (main.tagName === "SELECT") {
    main.selectedIndex = Array.from(main.options).findIndex((item) => item.text === value);
    send(main, "change");
  } else if (how === "slider") {
    const slider = box.querySelector("input[type=range]");
    slider.value = value;
    send(slider, "input");
  } else if (how !== "missing") {
    main.value = value;
    send(main, "input");
  }
  const now = document.getElementById("now");
  return {value: main.disabled ? null : main.value, verdict: now.querySelector(".verdict").textContent, ...now.dataset};
})"""


def outcome(page, edits):
    """What the page shows after each edit; JSON read."""
    keys = ("label", "scores", "probabilities", "contributions")
    return [{**state, **{key: json.loads(state[key]) for key in keys}} for state in page.evaluate(EDITS, edits)]


def start_row(page, X):
    """The row that edits start from, as a dict of its cells."""
    return X.iloc[int(re.search(r"row (\d+)", page.locator("#start option").first.inner_text())[1])].to_dict()


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    """A page about a committee with several planes for each class, over a table of all kinds with gaps."""
    frame, y = make_loans(900, random_state=0)
    rng = np.random.default_rng(1)
    frame["</script>\u2028'\"` é"] = rng.choice(["a", "<b>", "`${x}`", None], 900, p=[0.4, 0.3, 0.2, 0.1])
    frame["score"] = np.round(rng.normal(size=900), 3)
    model = TableClassifier(3, n_planes=3, random_state=0).fit(frame[:600], y[:600])
    path = tmp_path_factory.mktemp("page") / "loans.html"
    return model_report(model, frame[600:], y[600:], path, n_rows=6), model, frame[600:]


def random_edits(columns, rng, count):
    """Edits of the columns of a table, by all kinds of inputs."""
    edits = []
    for _ in range(count):
        j = int(rng.integers(len(columns)))
        column = columns[j]
        if column.has_gaps and rng.random() < 0.2:
            edits.append((j, "missing", None))
        elif column.kind == "number":
            value = rng.uniform(column.range.low, column.range.high)
            text = str(round(value) if column.is_whole else float(f"{value:.4g}"))
            edits.append((j, "slider" if rng.random() < 0.4 else "field", text))
        elif column.kind == "date":
            day = np.datetime64(0, "D") + int(rng.uniform(column.range.low, column.range.high))
            edits.append((j, "field", str(day)))
        else:
            levels = column.levels if column.kind == "category" else ("true", "false")
            edits.append((j, "choice", levels[rng.integers(len(levels))]))
    return edits


def edited_rows(row, columns, edits, states):
    """The rows after each edit, as a data frame."""
    rows = []
    for (j, how, value), state in zip(edits, states, strict=True):
        column = columns[j]
        if how == "missing":
            row = {**row, column.name: None}
        elif column.kind == "number":
            row = {**row, column.name: float(state["value"])}
        else:
            row = {**row, column.name: value == "true" if column.kind == "boolean" else value}
        rows.append(row)
    frame = pd.DataFrame(rows)
    for column in columns:
        if column.kind == "date":
            frame[column.name] = pd.to_datetime(frame[column.name])
    return frame


def test_200_edits_of_a_table_give_the_labels_and_scores_of_python(loans, opened):
    path, model, X = loans
    page = opened(path)
    columns, rng = model.model_.inputs.columns, np.random.default_rng(0)
    assert {column.kind for column in columns} == {"number", "category", "boolean", "date"}
    assert sum(column.has_gaps for column in columns) >= 3
    row, edits = start_row(page, X), random_edits(columns, rng, 200)
    states = outcome(page, edits)
    rows = edited_rows(row, columns, edits, states)
    assert [state["label"] for state in states] == model.predict(rows).tolist()
    scores = np.array([state["scores"] for state in states])
    by_python = model.model_.class_scores(model.model_.encode(rows))
    assert (np.abs(scores - by_python) <= 1e-6 * np.maximum(1.0, np.abs(by_python).max(axis=1, keepdims=True))).all()
    probabilities = np.array([state["probabilities"] for state in states])
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), atol=1e-6)
    assert len({state["label"] for state in states}) == 2
    assert len(np.unique(scores[:, 0])) > 150
    for i in range(0, 200, 20):
        why = explain_row(model, rows.iloc[[i]], search=False)
        np.testing.assert_allclose(states[i]["contributions"], why.contributions, atol=1e-5)
        assert states[i]["verdict"].startswith(f"Predicted class: “{why.label}”")


@pytest.mark.parametrize(
    "learner",
    [
        MultiHyperplaneClassifier(n_planes=3, random_state=0),
        MultiHyperplaneClassifier(2, n_estimators=3, random_state=0),
    ],
    ids=["planes", "committee"],
)
def test_200_edits_of_features_give_the_labels_and_scores_of_python(tmp_path, opened, learner):
    data = load_breast_cancer(as_frame=True)
    X, y = data.data.iloc[:, :20], data.target_names[data.target]
    model = make_pipeline(StandardScaler(), learner).fit(X[::2], y[::2])
    page = opened(model_report(model, X[1::2], y[1::2], tmp_path / "page.html", n_rows=6))
    row, rng = start_row(page, X[1::2]), np.random.default_rng(0)
    edits = [
        (j, "slider" if rng.random() < 0.4 else "field", f"{rng.uniform(X.iloc[:, j].min(), X.iloc[:, j].max()):.5g}")
        for j in rng.integers(20, size=200).tolist()
    ]
    states, rows = outcome(page, edits), []
    for (j, _, _), state in zip(edits, states, strict=True):
        row = {**row, X.columns[j]: float(state["value"])}
        rows.append(row)
    rows = pd.DataFrame(rows)
    assert [state["label"] for state in states] == model.predict(rows).tolist()
    scores = np.array([state["scores"] for state in states])
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], model.decision_function(rows), rtol=1e-6, atol=1e-6)
    assert len({state["label"] for state in states}) == 2
    for i in range(0, 200, 40):
        why = explain_row(model, rows.iloc[[i]], X=X[1::2], search=False)
        np.testing.assert_allclose(states[i]["contributions"], why.contributions, atol=1e-6)


def started(page, place):
    """Start from an explained row; its number."""
    page.locator("#start").select_option(index=place)
    return int(re.search(r"row (\d+)", page.locator("#start option").nth(place).inner_text())[1])


def nearest_flip(page):
    """What the page says: the column, its value before and after, and the class it leads to."""
    page.wait_for_timeout(200)
    return re.search(
        r"The smallest change found in one column: (.*) from (.*) to (.*) leads to class “(.*)”",
        page.locator(".flip").inner_text(),
    )


def as_number(column, text):
    return pd.Timestamp(text).timestamp() / 86400 if column.kind == "date" else float(text)


def flips_of(model, row, column, label):
    """The distance of the nearest change of one column, on a fine grid, for which another label is predicted."""
    if column.kind == "number":
        grid = np.linspace(column.range.low, column.range.high, 1500)
        values = np.unique(np.round(grid)) if column.is_whole else grid
        distances = np.abs(values - row[column.name]) / column.range.spread
    elif column.kind == "date":
        first, last = np.ceil(column.range.low), column.range.high
        values = pd.to_datetime(np.arange(first, last).astype("datetime64[D]"))
        distances = np.abs((values - row[column.name]).days.to_numpy()) / column.range.spread
    else:
        values = np.array(column.levels if column.kind == "category" else [True, False])
        distances = np.ones(len(values))
    rows = pd.DataFrame([row] * len(values))
    rows[column.name] = values
    found = distances[model.predict(rows) != label]
    return found.min(initial=np.inf)


def test_the_nearest_flip_is_told_and_can_be_applied(loans, opened):
    path, model, X = loans
    page, columns = opened(path), {column.name: column for column in model.model_.inputs.columns}
    n_flips = 0
    for place in range(6):
        row = X.iloc[started(page, place)].to_dict()
        label = model.predict(pd.DataFrame([row]))[0]
        told = nearest_flip(page)
        present = [column for column in columns.values() if not pd.isna(row[column.name])]
        least = min(flips_of(model, row, column, label) for column in present)
        if told is None:
            assert least == np.inf
            assert "No change of one column within its range" in page.locator(".flip").inner_text()
            continue
        n_flips += 1
        column = columns[told[1]]
        far = 1.0
        if column.kind in ("number", "date"):
            before, after = (as_number(column, text) for text in told.groups()[1:3])
            far = abs(after - before) / column.range.spread
        assert far <= 1.03 * least + 1e-9
        page.get_by_role("button", name="Apply this change").click()
        assert page.locator("#now .verdict").inner_text().startswith(f"Predicted class: “{told[4]}”")
        assert told[4] != label
        value = float(told[3]) if column.kind == "number" else told[3]
        assert model.predict(pd.DataFrame([{**row, column.name: value}]))[0] == told[4]
    assert n_flips >= 4


def test_where_nothing_flips_the_closest_change_is_told(tmp_path, opened):
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 30, axis=0) + np.random.default_rng(0).uniform(-1, 1, (60, 2))
    y = np.repeat(["low", "high"], 30)
    model = MultiHyperplaneClassifier(n_planes=1, random_state=0).fit(X, y)
    page = opened(model_report(model, X[:20], y[:20], tmp_path / "page.html", n_rows=3))
    page.wait_for_timeout(200)
    text = page.locator(".flip").inner_text()
    assert (
        "No change of one column within its range that leads to another class was found. The closest: feature" in text
    )
    before = json.loads(page.locator("#now").get_attribute("data-probabilities"))
    page.get_by_role("button", name="Apply this change").click()
    after = json.loads(page.locator("#now").get_attribute("data-probabilities"))
    assert max(after) < max(before)
    assert f"the probability of “low” is {max(after):.3f}" in text


def test_a_changed_row_can_be_reset_and_the_reference_be_a_start(loans, opened):
    page = opened(loans[0])
    before = page.locator("#now").inner_text()
    field = page.locator("#value-0")
    field.press("ArrowUp")
    assert page.locator(".field.changed").count() == 1
    assert "without your changes" in page.locator("#now").inner_text()
    page.locator("#reset").press("Enter")
    assert page.locator("#now").inner_text() == before
    assert page.locator(".field.changed").count() == 0
    for text in ("", "1e99"):  # nothing that the model takes: the field is as before when it is left
        field.fill(text)
        field.blur()
        assert page.locator("#now").inner_text() == before
        assert field.input_value() not in ("", "1e99")
    page.locator("#start").select_option(label="the reference row")
    assert set(json.loads(page.locator("#now").get_attribute("data-contributions"))) == {0}
    page.locator("#row").select_option(index=2)
    page.get_by_text("Try it: change the values of this row").press("Enter")
    assert page.locator("#start").evaluate("(select) => select.selectedIndex") == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_inputs_have_names(loans, opened, scheme):
    page = opened(loans[0], color_scheme=scheme, viewport={"width": 390, "height": 844})
    outcome(page, random_edits(loans[1].model_.inputs.columns, np.random.default_rng(3), 5))
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    outside = """Array.from(document.querySelectorAll("#now *, #inputs *, #reasons *")).filter((part) => {
      const box = part.getBoundingClientRect();
      return box.width > 0 && (box.left < 0 || box.right > 390);
    }).map((part) => part.outerHTML)"""
    assert page.evaluate(outside) == []
    nameless = """Array.from(document.querySelectorAll("input, select")).filter((control) =>
      !control.labels.length && !control.getAttribute("aria-label")).map((control) => control.outerHTML)"""
    assert page.evaluate(nameless) == []
    assert page.locator("#inputs input, #inputs select").count() > 8


def test_several_classes_and_an_unknown_level(tmp_path, opened):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X["place"] = np.random.default_rng(0).choice(["hill", "dale"], 150)
    model = TableClassifier(2, n_planes=2, random_state=0).fit(X[::2], y[::2])
    X.loc[1::2, "place"] = "moon"
    page = opened(model_report(model, X[1::2], y[1::2].rename("species"), tmp_path / "page.html", n_rows=3))
    assert page.locator("h1").inner_text() == "Predicting species: 0 or 1 or 2"
    number = started(page, 1)
    assert page.locator("#value-4").evaluate("(select) => select.selectedOptions[0].text") == "another level"
    scores = json.loads(page.locator("#now").get_attribute("data-scores"))
    np.testing.assert_allclose(scores, model.decision_function(X[1::2].iloc[[number]])[0], rtol=1e-6, atol=1e-6)


def page_text(tmp_path, model, X, y, **options):
    return model_report(model, X, y, tmp_path / "page.html", n_rows=2, **options).read_text(encoding="utf-8")


def test_a_large_model_is_left_out_with_a_sentence(tmp_path, monkeypatch, opened):
    X, y = load_digits(return_X_y=True)
    model = CuttingPlaneSVC(C=1e-3, tol=0.1).fit(X, y)
    text = page_text(tmp_path, model, X, y)
    assert "The 60 most important of 64 columns can be changed" in text
    size = int(re.search(r"This section has (\d+) kB", text)[1])
    monkeypatch.setattr(live, "MAX_BYTES", 5000)
    smaller = page_text(tmp_path, model, X, y)
    assert "Values cannot be changed on this page: the model needs 0.0 MB in JavaScript" in smaller
    assert "polyplaneModel" not in smaller
    assert len(text) - len(smaller) == pytest.approx(1000 * size, abs=2000)
    opened(tmp_path / "page.html")
    monkeypatch.setattr(live, "MAX_COLUMNS", 50)
    assert "the model has 64 columns, more than 50" in page_text(tmp_path, model, X, y)
    assert "the features are pixels" in page_text(tmp_path, model, X, y, image_shape=(8, 8))


def test_a_label_that_javascript_cannot_hold_leaves_the_model_out(tmp_path, opened):
    X, y = load_iris(return_X_y=True)
    labels = np.array([2**60, 5, 6])[y]
    opened(model_report(CuttingPlaneSVC().fit(X, labels), X, labels, tmp_path / "page.html", n_rows=2))
    assert "is beyond 2^53" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_reliability_is_that_of_each_bin(tmp_path):
    rng = np.random.default_rng(0)
    probability = np.append(rng.random(500), [0.0, 1.0])
    happened = rng.random(502) < probability**2
    counts, _, _, found = reliability(probability, happened)
    error = 0.0
    for i in range(10):
        inside = (probability >= i / 10) & ((probability < (i + 1) / 10) | (i == 9))
        assert counts[i] == inside.sum()
        error += inside.mean() * abs(probability[inside].mean() - happened[inside].mean())
    assert found == pytest.approx(error)
    assert reliability(np.array([0.75, 0.75, 0.75, 0.75]), np.array([1, 1, 1, 0]))[3] == 0.0


def test_the_calibration_error_of_a_model_is_on_its_page(loans):
    path, model, X = loans
    y = make_loans(900, random_state=0)[1][600:]
    *_, error = reliability(model.predict_proba(X)[:, 0], y == "default")
    text = path.read_text(encoding="utf-8")
    assert f"Expected calibration error: {100 * error:.1f} %" in text
    assert "predicted probability of class default, in 10 bins" in text


def test_sparse_rows_and_rows_without_names_have_inputs_too(tmp_path, opened):
    X, y = load_digits(return_X_y=True)
    X = X[:, 10:30] / np.where(np.arange(20) < 10, 1, 3)
    model = MultiHyperplaneClassifier(max_iter=5, random_state=0).fit(pd.DataFrame(X).add_prefix("x"), y)
    ranges = []
    for rows in (X, sparse.csr_array(X)):
        page = opened(model_report(model, rows, y, tmp_path / "page.html", n_rows=3))
        inputs = page.evaluate("data.live.inputs")
        ranges.append(sorted((i["column"], i["low"], i["high"], i["whole"]) for i in inputs))
    assert ranges[0] == ranges[1]
    np.testing.assert_allclose([found[2] for found in ranges[0]], X.max(axis=0))
    assert [found[3] for found in ranges[0]][:10] == [True] * 10
    assert page.locator("label[for=value-3]").inner_text() == "x3"
