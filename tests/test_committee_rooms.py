"""Committees in every room: files, exports, explanations, displays, the command line."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import polyplane
from polyplane import MultiHyperplaneClassifier, theory
from polyplane.explain import geometry
from polyplane.exports import to_json
from polyplane.files import ModelFileError
from tests.cli.commands import refused, run
from tests.cli.test_export import predict as predict_from
from tests.models import assembled, parts, replaced

X, y = load_iris(return_X_y=True, as_frame=True)
X, y = X.set_axis(["sepal length", "sepal width", "petal length", "petal width"], axis=1), y.map(dict(enumerate("abc")))
HOW = {"n_planes": 2, "max_iter": 10, "random_state": 0}


@pytest.fixture(scope="module")
def committee():
    return MultiHyperplaneClassifier(n_estimators=3, **HOW).fit(X, y)


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
            (["model", "planes", "member_weight"], 3),
            (["model", "planes", "member_weight"], {"array": "planes.intercept"}),
            (["estimator", "training"], {"changed": {}, "state": {}}),
            (["estimator", "training", "state", "members"], []),
            (["estimator", "class"], "PegasosSVC"),
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

    def test_members_may_be_replaced(self, committee, tmp_path):
        """By fewer planes, or by one of the members."""
        path = tmp_path / "model"
        fewer = [geometry.simplify(member, X.to_numpy()) for member in committee.planes_.members]
        for planes in (polyplane.PlaneSet.of_members(fewer), fewer[0]):
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
        assert content["members"] == 3
        assert predict_from(content, rows.astype(float)) == model.predict(rows).tolist()


TAKES_PLANES = [
    function
    for module in (geometry, theory)
    for function in (getattr(module, name) for name in module.__all__)
    if inspect.isfunction(function)
    and next(iter(inspect.signature(function).parameters)) == "planes"
    and function is not geometry.counterfactual
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
        assert (found["members"], found["planes"], found["can_go_on_training"]) == (5, 30, True)
        assert found["classes"] == [{"label": label, "planes": 10} for label in "abc"]
        assert "members\t5" in run("info", files / "m").stdout

    def test_explain_and_export(self, files):
        assert "5 members" in run("explain", files / "m", files / "iris.csv").stdout
        row = run("explain", files / "m", files / "iris.csv", "--row", "60", "--freeze", "sepal width").stdout
        assert "A small change that leads to class" in row
        run("explain", files / "m", files / "iris.csv", "--html", files / "page.html")
        assert "committee of 5 members" in (files / "page.html").read_text()
        assert json.loads(run("export", files / "m", "--to", "json").stdout)["members"] == 5
