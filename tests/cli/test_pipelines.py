"""Model files of pipelines, scalers before a learner, on the command line."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
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


def test_pipelines_are_described_and_explained(files):
    folder, _, _, _ = files
    about = json.loads(run("info", folder / "model", "--json").stdout)
    assert about["pipeline"] == "StandardScaler, PolyhedralMixtureClassifier"
    assert about["learner"] == "polyhedral-mixture"
    assert "worst symmetry" in run("explain", folder / "model", folder / "rows.csv", "--row", "3").stdout
    said = refused("train", folder / "rows.csv", "--resume", folder / "model", "--out", folder / "more")
    assert "is a pipeline, and pipelines cannot resume training" in said
