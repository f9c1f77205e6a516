"""The live part of the page about a model, in a real browser: edited rows against the model in Python."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import MultiHyperplaneClassifier, TableClassifier
from polyplane.datasets import make_loans
from polyplane.inspection import explain_row, model_report
from tests.test_report_page import browser, opened  # noqa: F401

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


def test_200_edits_of_a_table_give_the_labels_and_scores_of_python(loans, opened):  # noqa: F811
    path, model, X = loans
    page = opened(path)
    columns, rng = model.model_.encoding.columns, np.random.default_rng(0)
    assert {column.kind for column in columns} == {"number", "category", "boolean", "date"}
    assert sum(column.has_gaps for column in columns) >= 3
    row, edits = start_row(page, X), random_edits(columns, rng, 200)
    states = outcome(page, edits)
    rows = edited_rows(row, columns, edits, states)
    assert [state["label"] for state in states] == model.predict(rows).tolist()
    scores = np.array([state["scores"] for state in states])
    # Python multiplies float32 numbers, so its scores are exact to some 1e-7 of the largest of a row.
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


def test_changed_features_of_planes_give_the_labels_and_scores_of_python(tmp_path, opened):  # noqa: F811
    data = load_breast_cancer(as_frame=True)
    X, y = data.data.iloc[:, :20], data.target_names[data.target]
    machine = make_pipeline(StandardScaler(), MultiHyperplaneClassifier(n_planes=3, random_state=0)).fit(X[::2], y[::2])
    page = opened(model_report(machine, X[1::2], y[1::2], tmp_path / "page.html", n_rows=6))
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
    assert [state["label"] for state in states] == machine.predict(rows).tolist()
    scores = np.array([state["scores"] for state in states])
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], machine.decision_function(rows), rtol=1e-6, atol=1e-6)
    assert len({state["label"] for state in states}) == 2
    for i in range(0, 200, 40):
        why = explain_row(machine, rows.iloc[[i]], X=X[1::2], search=False)
        np.testing.assert_allclose(states[i]["contributions"], why.shares, atol=1e-6)
