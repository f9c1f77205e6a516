"""Models of several parts on the command line: scalers before a learner, and committees."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyplane
from polyplane import PolyhedralMixtureClassifier
from tests.cli.commands import refused, run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipelines")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), PolyhedralMixtureClassifier(n_planes=2, random_state=0)).fit(X, y)
    polyplane.save(model, folder / "model")
    X.assign(label=y).to_csv(folder / "rows.csv", index=False)
    return folder, model, X, y


def test_pipelines_predict_as_in_python(files):
    folder, model, X, y = files
    labels = run("predict", folder / "model", folder / "rows.csv").stdout.split()
    assert labels == [str(label) for label in model.predict(X)]
    lines = run("predict", folder / "model", folder / "rows.csv", "--proba", "--scores", "--winners", "--json").stdout
    first = json.loads(lines.splitlines()[0])
    assert first["proba"]["0"] == pytest.approx(model.predict_proba(X)[0, 0])
    scores = model[-1].planes_.class_scores(model[:-1].transform(X))
    assert [first["score"]["0"], first["score"]["1"]] == pytest.approx(scores[0])
    found = json.loads(run("evaluate", folder / "model", folder / "rows.csv", "--json").stdout)
    assert found["accuracy"] == pytest.approx(np.mean(model.predict(X) == y))


def test_models_without_an_estimator(files, tmp_path):
    """What `save` writes of a `Model`: it is described and predicts, but does not train."""
    folder, model, X, _ = files
    polyplane.save(polyplane.Model.of(model), tmp_path / "m")
    found = json.loads(run("info", tmp_path / "m", "--json").stdout)
    assert (found["learner"], found["estimator"], found["parameters"]) == ("polyhedral-mixture", "Model", {})
    assert "polyhedral-mixture" in run("info", tmp_path / "m").stdout
    assert run("predict", tmp_path / "m", folder / "rows.csv").stdout.split() == [str(y) for y in model.predict(X)]
    said = refused("train", folder / "rows.csv", "--resume", tmp_path / "m", "--out", tmp_path / "new")
    assert said.endswith("does not contain the state that resuming needs; train again on all rows.")
    frame, y = pd.DataFrame({"a": np.arange(40.0), "b": ["u", "v"] * 20}), ["x", "y"] * 20
    table = polyplane.TableClassifier(1, preparation="standard", n_planes=1, max_iter=2).fit(frame, y)
    polyplane.save(table.model_, tmp_path / "t")
    assert [column["kind"] for column in json.loads(run("info", tmp_path / "t", "--json").stdout)["columns"]] == [
        "number", "category"
    ]  # fmt: skip


def test_pipelines_are_described_and_explained(files):
    folder, _, _, _ = files
    about = json.loads(run("info", folder / "model", "--json").stdout)
    assert about["pipeline"] == "StandardScaler, PolyhedralMixtureClassifier"
    assert about["learner"] == "polyhedral-mixture"
    assert "worst symmetry" in run("explain", folder / "model", folder / "rows.csv", "--row", "3").stdout
    said = refused("train", folder / "rows.csv", "--resume", folder / "model", "--out", folder / "more")
    assert "is a pipeline, and pipelines cannot resume training" in said


IRIS, KIND = load_iris(return_X_y=True, as_frame=True)
IRIS.columns = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.fixture(scope="module")
def committee(tmp_path_factory):
    """A committee that was trained on the command line, and its report."""
    folder = tmp_path_factory.mktemp("committee")
    rows = folder / "iris.csv"
    pd.concat([IRIS, KIND.map(dict(enumerate("abc"))).rename("kind")], axis=1).to_csv(rows, index=False)
    settings = ["--set=n_planes=2", "--set=max_iter=10", "--set=n_estimators=5", "--scale=standard"]
    given = ["--learner=multi-hyperplane", "--label=kind", *settings, "--cv=2", f"--test={rows}", "--json"]
    (folder / "report.json").write_text(run("train", rows, *given, "--out", folder / "m").stdout)
    return folder


class TestCommittees:
    def test_train_and_evaluate(self, committee):
        report = json.loads((committee / "report.json").read_text())
        assert report["learner"] == "multi-hyperplane"
        assert report["planes"] == 30
        assert report["test_error_percent"] < 5
        assert len(report["cv_error_percent"]) == 2
        found = json.loads(run("evaluate", committee / "m", committee / "iris.csv", "--json").stdout)
        assert found["error_percent"] == pytest.approx(report["test_error_percent"])

    def test_predict(self, committee):
        model = polyplane.load(committee / "m")
        labels = model.predict(IRIS)
        assert run("predict", committee / "m", committee / "iris.csv").stdout.split() == labels.tolist()
        lines = run(
            "predict", committee / "m", committee / "iris.csv", "--scores", "--proba", "--json"
        ).stdout.splitlines()
        last = json.loads(lines[-1])
        assert last["label"] == labels[-1]
        np.testing.assert_allclose(list(last["score"].values()), model.decision_function(IRIS)[-1])
        np.testing.assert_allclose(list(last["proba"].values()), model.predict_proba(IRIS)[-1])
        assert "is a committee" in refused("predict", committee / "m", committee / "iris.csv", "--winners")

    def test_info(self, committee):
        found = json.loads(run("info", committee / "m", "--json").stdout)
        assert (found["members"], found["planes"], found["can_go_on_training"]) == (5, 30, True)
        assert found["classes"] == [{"label": label, "planes": 10} for label in "abc"]
        assert "members\t5" in run("info", committee / "m").stdout

    def test_explain_and_export(self, committee):
        assert "5 members" in run("explain", committee / "m", committee / "iris.csv").stdout
        row = run("explain", committee / "m", committee / "iris.csv", "--row", "60", "--freeze", "sepal width").stdout
        assert "A small change that leads to class" in row
        run("explain", committee / "m", committee / "iris.csv", "--html", committee / "page.html")
        assert "committee of 5 members" in (committee / "page.html").read_text()
        assert json.loads(run("export", committee / "m", "--to", "json").stdout)["members"] == 5
