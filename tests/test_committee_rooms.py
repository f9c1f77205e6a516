"""Committees in every room: files, exports, explanations, displays, the command line."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyplane
from polyplane import MultiHyperplaneClassifier, theory
from polyplane.explain import (
    HistoryDisplay,
    MarginDisplay,
    PlaneUsageDisplay,
    PlaneWeightsDisplay,
    RegionsDisplay,
    explain_model,
    explain_row,
    geometry,
    model_report,
    unwrap,
)
from polyplane.exports import to_json
from polyplane.files import ModelFileError

from .test_cli_export import predict as predict_from
from .test_cli_train import refused, run
from .test_model_damage import assembled, parts, replaced

X, y = load_iris(return_X_y=True, as_frame=True)
X, y = X.set_axis(["sepal length", "sepal width", "petal length", "petal width"], axis=1), y.map(dict(enumerate("abc")))
HOW = {"n_planes": 2, "max_iter": 10, "random_state": 0}


@pytest.fixture(scope="module")
def committee():
    return MultiHyperplaneClassifier(n_estimators=3, **HOW).fit(X, y)


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(StandardScaler(), MultiHyperplaneClassifier(n_estimators=3, **HOW)).fit(X, y)


@pytest.fixture(scope="module")
def single():
    return make_pipeline(StandardScaler(), MultiHyperplaneClassifier(1, n_estimators=3, random_state=0)).fit(X, y)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("committee")
    pd.concat([X, y.rename("kind")], axis=1).to_csv(folder / "iris.csv", index=False)
    settings = [f"--set={name}={value}" for name, value in HOW.items() if name != "random_state"]
    arguments = [
        "--learner",
        "multi-hyperplane",
        "--label",
        "kind",
        "--scale",
        "standard",
        "--set=n_estimators=5",
        *settings,
        "--json",
    ]
    done = run(
        "train", folder / "iris.csv", *arguments, "--out", folder / "m", "--cv", "2", "--test", folder / "iris.csv"
    )
    (folder / "report.json").write_text(done.stdout)
    return folder


class TestFiles:
    @pytest.mark.parametrize(
        ("keys", "value"),
        [
            (["planes", "members"], 2),
            (["planes", "members"], 0),
            (["planes", "members"], -3),
            (["planes", "members"], 9),
            (["planes", "members"], 10**30),
            (["planes", "members"], 3.0),
            (["planes", "members"], True),
            (["planes", "members"], "3"),
            (["training"], {"changed": {}, "state": {}}),
            (["learner"], "PegasosSVC"),
        ],
    )
    def test_what_cannot_be_is_damage(self, committee, tmp_path, keys, value):
        path = tmp_path / "model"
        polyplane.save(committee, path)
        assert polyplane.load(path).planes_ == committee.planes_
        header, description, data = parts(path.read_bytes())
        path.write_bytes(assembled(header, replaced(description, keys, value), data))
        with pytest.raises(ModelFileError):
            polyplane.load(path)

    def test_other_learners_have_no_members(self, tmp_path):
        path = tmp_path / "model"
        polyplane.save(polyplane.PegasosSVC(random_state=0).fit(X, y), path)
        header, description, data = parts(path.read_bytes())
        description["planes"]["members"] = 1
        path.write_bytes(assembled(header, description, data))
        with pytest.raises(ModelFileError, match=r"an invalid value for planes\.members"):
            polyplane.load(path)

    def test_members_may_be_replaced(self, committee, tmp_path):
        """By fewer planes, or by one of the members."""
        path = tmp_path / "model"
        fewer = [geometry.simplify(member, X.to_numpy()) for member in committee.planes_.members]
        for planes in (polyplane.PlaneCommittee(fewer), fewer[0]):
            polyplane.save(committee, path)
            changed = polyplane.load(path)
            changed.planes_ = planes
            polyplane.save(changed, path)
            assert polyplane.load(path).planes_ == planes

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_json_is_enough_to_predict_with(self, dtype):
        rows = X.to_numpy().astype(dtype)
        model = MultiHyperplaneClassifier(n_estimators=3, **HOW).fit(rows, y)
        content = json.loads(to_json(model))
        assert content["machines"] == 3
        assert predict_from(content, rows.astype(float)) == model.predict(rows).tolist()


class TestExplanations:
    def test_scalers_are_folded_into_all_members(self, pipeline):
        model = unwrap(pipeline)
        expected = pipeline[-1].planes_.class_scores(pipeline[0].transform(X))
        np.testing.assert_allclose(model.planes.class_scores(X.to_numpy()), expected, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("i", [0, 60, 77, 133])
    def test_reasons_add_up_to_the_lead(self, pipeline, i):
        why = explain_row(pipeline, X.iloc[i], X=X)
        scores = np.sort(pipeline.decision_function(X.iloc[[i]])[0])
        assert why.difference == pytest.approx(scores[-1] - scores[-2])
        assert why.base + why.shares.sum() == pytest.approx(why.difference)
        assert why.label == pipeline.predict(X.iloc[[i]])[0]
        assert (why.plane, why.rival_plane, why.machines) == (None, None, 3)
        assert f"Its mean score over 3 members exceeds that of class {why.rival!r} by" in str(why)

    @pytest.mark.parametrize("target", [None, "a", "c"])
    def test_the_change_convinces_the_pipeline(self, pipeline, target):
        low = X.min()
        why = explain_row(pipeline, X.iloc[60], target=target, frozen=["sepal width"], lower=low.to_dict())
        [after] = pipeline.predict(pd.DataFrame([why.flip.values], columns=X.columns))
        assert after == why.flip.label
        assert after != why.label
        assert target in (None, after)
        assert why.flip.values[1] == X.iloc[60, 1]
        assert (why.flip.values >= low).all()
        assert not why.flip.proven
        assert "The smallest change found by local search that leads to class" in str(why)
        content = why.to_dict()
        assert content["machines"] == 3
        assert content["flip"]["proven"] is False

    def test_a_committee_of_one_is_its_member(self, single):
        assert unwrap(single).planes.n_planes == 3
        why = explain_row(single, X.iloc[60])
        assert why.flip.proven
        assert why.plane == 1
        assert "of the plane with the highest score" in str(explain_model(single, X))

    def test_importance(self, pipeline):
        """A feature's importance is the mean size of its weight in the lead, in standard deviations of the feature."""
        found = explain_model(pipeline, X)
        planes, rows = unwrap(pipeline).planes, X.to_numpy()
        expected = np.zeros(4)
        for row in rows:
            c, d = np.argsort(-planes.class_scores(row[None])[0])[:2]
            local = planes.at(row)
            expected += np.abs(local.coef[c] - local.coef[d]) * rows.std(axis=0) / len(rows)
        np.testing.assert_allclose(found.importance, expected)
        assert found.feature_names[found.by_importance()[0]].startswith("petal")
        np.testing.assert_allclose(found.shares, [np.mean(pipeline.predict(X) == label) for label in "abc"])
        text = str(found)
        assert "the highest mean score over 3 members" in text
        assert "`planes_.members[i]`" in text
        assert "Class 'a': 6 planes, predicted for 33.3 % of the rows, such as rows" in text
        assert json.loads(json.dumps(found.to_dict()))["machines"] == 3
        assert found.to_frame()["importance"].is_monotonic_decreasing
        assert "2 other features are less important" in found.to_text(2)

    def test_without_rows(self, pipeline):
        found = explain_model(pipeline)
        assert (found.n_rows, found.shares) == (None, None)
        assert "standard deviation of their weights over the planes" in str(found)
        with pytest.raises(ValueError, match="tolerance and digits apply to rules"):
            explain_model(pipeline, X, tolerance=0.1)

    def test_sparse_rows(self):
        rows = sparse.csr_array(X.to_numpy())
        model = MultiHyperplaneClassifier(n_estimators=2, **HOW).fit(rows, y)
        dense = explain_model(model, X.to_numpy())
        np.testing.assert_allclose(explain_model(model, rows).importance, dense.importance)

    @pytest.mark.parametrize("image_shape", [None, (2, 2)])
    def test_page(self, pipeline, tmp_path, image_shape):
        text = model_report(pipeline, X, y, tmp_path / "page.html", n_rows=4, image_shape=image_shape).read_text()
        assert "a committee of 3 members" in text
        assert "the class with the highest mean score is predicted" in text
        assert "The mean score of this class over 3 members exceeds that of class" in text
        assert "found by local search that leads to class" in text
        assert ("planes_.members[i]" in text) == (image_shape is None)

    def test_displays(self, committee, single):
        pytest.importorskip("matplotlib").use("agg")
        shown = HistoryDisplay.from_estimator(committee)
        assert ["loss" in ax.get_title(loc="left") for ax in shown.axes_] == [True]  # the number of planes is constant
        margins = MarginDisplay.from_estimator(committee, X, y).margins
        assert np.mean(margins > 0) == pytest.approx(committee.score(X, y))
        for draw in (PlaneUsageDisplay, PlaneWeightsDisplay, RegionsDisplay):
            with pytest.raises(
                TypeError, match=r"this committee has 3 members: pass one of them, `planes_\.members\[i\]`"
            ):
                draw.from_estimator(committee, X)
            draw.from_estimator(single, X)


TAKES_PLANES = [
    function
    for module in (geometry, theory)
    for function in (getattr(module, name) for name in module.__all__)
    if inspect.isfunction(function) and next(iter(inspect.signature(function).parameters)) == "planes"
]


@pytest.mark.parametrize("function", TAKES_PLANES, ids=lambda function: function.__name__)
def test_functions_of_one_set_say_so(committee, function):
    given = {"planes": committee.planes_, "X": X.to_numpy(), "x": X.to_numpy()[0], "y": np.zeros(150, int)}
    given |= {"box": (0, 1, 0, 1), "c": 0}
    known = inspect.signature(function).parameters
    with pytest.raises(TypeError, match=r"this committee has 3 members: pass one of them, `planes_\.members\[i\]`"):
        function(**{name: value for name, value in given.items() if name in known})
    assert len(TAKES_PLANES) >= 10


class TestCommandLine:
    def test_train_and_evaluate(self, files):
        report = json.loads((files / "report.json").read_text())
        assert report["learner"] == "multi-hyperplane"
        assert report["planes"] == 30
        assert report["test_error_percent"] < 5
        assert len(report["cv_error_percent"]) == 2
        found = json.loads(run("evaluate", files / "m", files / "iris.csv", "--json").stdout)
        assert found["error_percent"] == pytest.approx(report["test_error_percent"])

    def test_predict(self, files):
        model = polyplane.load(files / "m")
        labels = model.predict(X)
        assert run("predict", files / "m", files / "iris.csv").stdout.split() == labels.tolist()
        lines = run("predict", files / "m", files / "iris.csv", "--scores", "--proba", "--json").stdout.splitlines()
        last = json.loads(lines[-1])
        assert last["label"] == labels[-1]
        np.testing.assert_allclose(list(last["score"].values()), model.decision_function(X)[-1])
        np.testing.assert_allclose(list(last["proba"].values()), model.predict_proba(X)[-1])
        assert "is a committee" in refused("predict", files / "m", files / "iris.csv", "--winners")

    def test_info(self, files):
        found = json.loads(run("info", files / "m", "--json").stdout)
        assert (found["machines"], found["planes"], found["can_go_on_training"]) == (5, 30, True)
        assert found["classes"] == [{"label": label, "planes": 10} for label in "abc"]
        assert "members\t5" in run("info", files / "m").stdout

    def test_explain_and_export(self, files):
        assert "over 5 members" in run("explain", files / "m", files / "iris.csv").stdout
        row = run("explain", files / "m", files / "iris.csv", "--row", "60", "--freeze", "sepal width").stdout
        assert "found by local search" in row
        run("explain", files / "m", files / "iris.csv", "--html", files / "page.html")
        assert "committee of 5 members" in (files / "page.html").read_text()
        assert json.loads(run("export", files / "m", "--to", "json").stdout)["machines"] == 5
