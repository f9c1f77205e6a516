"""`polyplane train`: what it writes, what it says, and what it refuses."""

import json
import time

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import polyplane
from polyplane.cli.training import estimators
from polyplane.engine.data import FeatureMoments
from polyplane.loading import read_model
from polyplane.readers import read
from tests.cli.commands import QUICK, refused, run

ESTIMATORS = estimators()


@pytest.mark.parametrize("learner", ESTIMATORS)
def test_every_learner_trains_and_is_written(data, tmp_path, learner):
    out = tmp_path / "m.safetensors"
    settings = ["--scale", "standard", "--learner", learner, "--out", out, "--test", data / "cancer.t", "--json"]
    report = json.loads(run("train", data / "cancer.svm", *settings).stdout)
    assert report["learner"] == learner
    assert report["rows"] == 400
    assert report["classes"] == [0, 1]
    assert report["test_error_percent"] < 8
    again = json.loads(run("evaluate", out, data / "cancer.t", "--json").stdout)
    assert again["error_percent"] == pytest.approx(report["test_error_percent"])
    assert type(polyplane.load(out)).__name__ == ESTIMATORS[learner]


def test_an_unknown_learner_is_refused(data, tmp_path):
    arguments = ["train", data / "cancer.svm", "--out", tmp_path / "m", "--learner"]
    said = refused(*arguments, "pegasus")
    assert said == "polyplane train: --learner pegasus: unknown learner. Did you mean 'pegasos'?"
    assert f"unknown learner. Available learners: table, {', '.join(ESTIMATORS)}." in refused(*arguments, "zzz")


@pytest.mark.parametrize("method", ["standard", "maxabs"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_scaled_models_speak_the_units_of_the_data(data, tmp_path, method, form):
    """The planes, on the rows as they are, give the scores of the learner on rows scaled by scikit-learn."""
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    X, y = load_breast_cancer(return_X_y=True, as_frame=form == "dense")
    X, y = X[:400], y[:400]
    path = data / "cancer.svm"
    if form == "dense":
        path = tmp_path / "cancer.csv"
        X.assign(label=y).to_csv(path, index=False)
    scaler = MaxAbsScaler() if method == "maxabs" else StandardScaler(with_mean=form == "dense")
    expected = polyplane.PegasosSVC(random_state=0).fit(scaler.fit_transform(X), y)
    out = tmp_path / "m.safetensors"
    run("train", path, "--learner", "pegasos", "--scale", method, "--out", out)
    found = polyplane.load(out)
    scores = expected.decision_function(scaler.transform(X))
    np.testing.assert_allclose(found.decision_function(X), scores, rtol=1e-6, atol=1e-6 * np.abs(scores).max())


def test_scaled_models_scale_the_rows_that_they_go_on_with(data, tmp_path):
    """In Python as on the command line: the estimator keeps the scaling of its training."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X[:400], y[:400]
    path = tmp_path / "cancer.csv"
    X.assign(label=y).to_csv(path, index=False)
    out, more = tmp_path / "m.safetensors", tmp_path / "more.safetensors"
    run("train", path, "--learner", "pegasos", "--scale", "standard", "--out", out, *QUICK)
    run("train", path, "--resume", out, "--out", more)
    model = polyplane.load(out)
    assert model.set_params(warm_start=True).fit(X, y).planes_ == polyplane.load(more).planes_
    run("train", path, "--resume", out, "--out", more, "--stream")
    assert polyplane.load(out).partial_fit(X, y).planes_ == polyplane.load(more).planes_
    with pytest.warns(UserWarning, match="Feature 'worst area' reaches"):
        anew = polyplane.load(out).fit(X, y)  # in the units of these rows
    with pytest.warns(UserWarning, match="Feature 'worst area' reaches"):
        assert anew.planes_ == polyplane.PegasosSVC(max_iter=5, random_state=0).fit(X, y).planes_


def test_moments_of_parts_are_those_of_the_whole():
    rng = np.random.default_rng(0)
    X = rng.normal(1e3, [1.0, 10.0, 0.0], size=(1000, 3))
    moments = FeatureMoments()
    for start in range(0, 1000, 300):
        moments.add(X[start : start + 300])
    scaling = moments.standard()
    np.testing.assert_allclose(scaling.centre, X.mean(axis=0))
    np.testing.assert_allclose(scaling.factor[:2], 1 / X.std(axis=0)[:2], rtol=1e-9)
    assert scaling.factor[2] == 1.0


def test_training_goes_on_where_it_ended(data, tmp_path):
    """Two trainings of five passes are one of ten, also of scaled rows: the scaling comes from the model."""
    out = tmp_path / "m.safetensors"
    common = ["--learner", "pegasos", "--out", out, "--set", "backoff=0"]  # back-off forgets which rows were ample
    run("train", data / "cancer.svm", *common, *QUICK, "--scale", "standard")
    first = polyplane.load(out)
    run("train", data / "cancer.svm", "--resume", out, "--out", out)
    resumed = polyplane.load(out)
    run("train", data / "cancer.svm", *common, "--set", "max_iter=10", "--scale", "standard")
    whole = polyplane.load(out)
    assert not np.allclose(first.coef_, whole.coef_)
    np.testing.assert_allclose(resumed.coef_, whole.coef_, rtol=1e-9)
    assert not resumed.warm_start


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_training_goes_on_as_in_python(data, tmp_path, stream):
    """Resumed twice: what was remembered of the rows, as by back-off, is in the file."""
    out, rows = tmp_path / "m.safetensors", read(data / "cancer.svm")
    run("train", data / "cancer.svm", "--learner", "pegasos", "--out", out, *QUICK, *stream)
    twin = polyplane.load(out).set_params(warm_start=True)
    for _ in range(2):
        twin = twin.fit_stream([(rows.X, rows.y)]) if stream else twin.fit(rows.X, rows.y)
        run("train", data / "cancer.svm", "--resume", out, "--out", out, *stream)
        assert polyplane.load(out).planes_ == twin.planes_


def test_settings_that_a_training_cannot_go_on_with(data, tmp_path):
    out = tmp_path / "m.safetensors"
    run("train", data / "cancer.svm", "--learner", "pegasos", "--out", out, *QUICK)
    common = ["train", data / "cancer.svm", "--resume", out, "--out", out, "--set", "max_iter=3"]
    run(*common)
    assert polyplane.load(out).n_iter_ == 3
    before = out.read_bytes()
    said = refused(*common, "--set", "fit_intercept=false")
    assert "--set fit_intercept: this parameter cannot change when training is resumed" in said
    assert out.read_bytes() == before


def test_streams_learn_what_memory_learns(data, tmp_path):
    out = tmp_path / "m.safetensors"
    options = ["--learner", "pegasos", "--scale", "standard", "--test", data / "cancer.t", "--json", "--out", out]
    whole = json.loads(run("train", data / "cancer.svm", *options, "--set", "max_iter=20").stdout)
    stream = ["--stream", "--passes", "20", "--batch-rows", "100"]
    parts = json.loads(run("train", data / "cancer.svm", *options, *stream).stdout)
    assert parts["rows"] == 20 * 400
    assert parts["steps"] == 80
    assert abs(parts["test_error_percent"] - whole["test_error_percent"]) < 2
    options = ["--learner", "multi-hyperplane", "--stream", "--json", "--out", out, "--batch-rows", 64]
    named = json.loads(run("train", data / "iris.csv", *options).stdout)
    assert named["classes"] == ["setosa", "versicolor", "virginica"]
    assert polyplane.load(out).feature_names_in_.tolist() == ["a", "b", "c", "d"]


def test_a_stream_from_standard_input(data, tmp_path):
    out = tmp_path / "m.safetensors"
    text = (data / "cancer.svm").read_bytes()
    options = ["--stream", "--learner", "pegasos", "--out", out]
    assert "--classes and --features" in refused("train", "-", *options, text=text)
    run("train", "-", *options, "--classes", "0,1", "--features", "30", text=text)
    assert polyplane.load(out).n_features_in_ == 30
    run("train", "-", "--stream", "--resume", out, "--out", out, text=text)


def test_cross_validation_and_tuning(data, tmp_path):
    out = tmp_path / "m.safetensors"
    options = ["--learner", "pegasos", "--scale", "standard", "--cv", "4", "--tune", "--json", "--out", out]
    report = json.loads(run("train", data / "cancer.svm", *options).stdout)
    assert len(report["cv_error_percent"]) == 4
    assert np.mean(report["cv_error_percent"]) < 6  # always the most frequent class: 43
    tuned = report["tuned"]
    assert tuned["n_tried"] >= 6
    assert polyplane.load(out).alpha == tuned["settings"]["alpha"]
    assert tuned["scaling"] == "standard"
    table = run("train", data / "cancer.svm", *options[:4], "--cv", "2", "--out", out).stdout
    assert "cv error %\t" in table
    said = refused("train", data / "cancer.svm", *options, "--set", "alpha=1")
    assert said == "polyplane train: --tune: --set and --scale fix all tunable parameters (alpha); omit one of them."


def test_tuning_finds_the_scaling_too(data, tmp_path):
    """Columns of cancer differ by five orders of magnitude: a linear machine needs them scaled."""
    out = tmp_path / "m.safetensors"
    options = ["--learner", "pegasos", "--set", "alpha=1e-3", "--set", "max_iter=30", "--out", out]
    report = json.loads(run("train", data / "cancer.svm", *options, "--tune", "--json").stdout)
    tuned = report["tuned"]
    assert tuned["n_tried"] == len(tuned["tried"]) == 3
    assert tuned["scaling"] == read_model(out).metadata["scaling"] != "none"
    assert tuned["settings"] == {}
    assert [row["scaling"] for row in tuned["tried"]][-1] == "none"
    assert tuned["error"] == tuned["tried"][0]["error"] < 6
    assert 0 < tuned["standard_error"] < 3
    assert polyplane.load(out).alpha == 1e-3


def test_settings_have_an_error_if_only_some_folds_were_used(data, tmp_path):
    options = ["--learner", "pegasos", "--tune", "--json", "--out", tmp_path / "m"]
    tried = json.loads(run("train", data / "cancer.svm", *options).stdout)["tuned"]["tried"]
    assert {row["rung"] for row in tried} == {1, 2}
    assert all(0 < row["error"] < 50 and 0 < row["standard_error"] < 50 for row in tried)


def test_what_was_tried_is_printed(data, tmp_path):
    options = ["--learner", "multi-hyperplane", "--set", "n_planes=2", "--set", "max_iter=5", "--out", tmp_path / "m"]
    shown = run("train", "--tune", data / "iris.csv", *options).stdout
    tried, trained = shown.split("\n\n")
    lines = [line.split("\t") for line in tried.splitlines()]
    assert set(lines[0]) == {"alpha", "noise", "eta0", "scale", "scaling", "rung", "error %", "+-"}
    assert len(lines) == 11
    rows = dict(line.split("\t") for line in trained.splitlines())
    assert rows["settings tried"] == "40"
    assert float(rows["tuned error %"].split(" +- ")[0]) == pytest.approx(
        float(lines[1][lines[0].index("error %")]), 1e-3
    )
    assert f"scale={lines[1][lines[0].index('scale')]}" in rows["tuned"].replace(".0", "")


def test_tuning_ends_in_time(data, tmp_path):
    options = ["--learner", "pegasos", "--out", tmp_path / "m", "--json"]
    result = run("train", data / "cancer.svm", *options, "--tune", "1e-6")
    assert (
        "note: --tune: the search stopped after 1e-06 seconds; the best settings found so far are used."
        in result.stderr
    )
    assert json.loads(result.stdout)["tuned"]["n_tried"] >= 2
    lonely = tmp_path / "lonely.csv"
    lonely.write_text("a,label\n" + "\n".join(f"{i},{i // 9}" for i in range(10)))
    said = refused("train", lonely, *options[:2], "--tune", "--out", tmp_path / "n")
    assert "--tune needs at least two rows of each class" in said


def test_a_time_limit_ends_training(data, tmp_path):
    out = tmp_path / "m.safetensors"
    began = time.monotonic()
    options = ["--learner", "pegasos", "--set", "max_iter=1000000", "--time-limit", "0.5", "--out", out, "--json"]
    report = json.loads(run("train", data / "cancer.svm", *options).stdout)
    assert report["steps"] < 1_000_000
    assert time.monotonic() - began < 20
    began = time.monotonic()
    stream = ["--stream", "--passes", "1000000", "--time-limit", "0.5", "--learner", "pegasos", "--out", out, "--json"]
    report = json.loads(run("train", data / "cancer.svm", *stream).stdout)
    assert not report["interrupted"]
    assert report["rows"] == 400 * report["steps"]
    assert time.monotonic() - began < 20


def test_the_file_tells_how_to_read_more(data, tmp_path):
    out = tmp_path / "m.safetensors"
    run("train", data / "iris.csv", "--learner", "multi-hyperplane", "--scale", "maxabs", "--out", out, *QUICK)
    metadata = read_model(out).metadata
    assert metadata["label"] == "class"
    assert metadata["scaling"] == "maxabs"
    run("train", data / "iris.csv", "--resume", out, "--out", out)
    assert read_model(out).metadata == metadata


def test_the_scaling_of_the_learner_is_told(data, tmp_path):
    """Features of the breast cancer data have different scales: the learner standardises them itself."""
    out = tmp_path / "m"
    for name, expected in (("cancer.svm", "by the learner"), ("iris.csv", "none")):
        report = json.loads(
            run("train", data / name, "--learner", "multi-hyperplane", "--out", out, "--json", *QUICK).stdout
        )
        assert expected in report["scaling"]
        assert read_model(out).metadata["scaling"] == report["scaling"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "alhpa=1"], "pegasos has no such parameter. Did you mean 'alpha'?"),
        (["--set", "zzz=1"], "pegasos has no such parameter. Its parameters are alpha, average,"),
        (["--set", "alpha"], "--set alpha: expected name=value."),
        (["--set", "alpha=-1"], "The 'alpha' parameter of PegasosSVC must be"),
        (["--set", "random_state=1"], "--set: `random_state` cannot be set here: use --seed."),
        (["--set", "verbose=1"], "`verbose` cannot be set here: progress is shown when the output is a terminal."),
        (["--out", "nowhere/m.safetensors"], "does not exist"),
        (["--time-limit", "-1"], "expected a positive number of seconds"),
        (["--time-limit", "nan"], "--time-limit nan: expected a positive number of seconds."),
        (["--features", "99999999999999999999"], "at most 2,147,483,647 features are supported."),
        (["--passes", "2"], "--passes requires --stream"),
        (["--stream", "--tune"], "--tune needs all rows in memory"),
        (["--tune", "-3"], "--tune -3: expected a positive number of seconds."),
        (["--tune=soon"], "--tune soon: expected a positive number of seconds."),
        (["--cv", "300"], "the smallest class has only"),
        (["--label", "z"], "has no column"),
        (["--features", "3"], "expected"),
        (["--test", "nothing.svm"], "nothing.svm: No such file or directory."),
        (["--resume", "nothing.safetensors"], "nothing.safetensors: No such file or directory."),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_written(data, tmp_path, options, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = data / ("iris.csv" if "--label" in options else "cancer.svm")
    assert message in refused("train", source, "--learner", "pegasos", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_test_file_does_not_cost_the_model(data, tmp_path):
    out, bad = tmp_path / "m.safetensors", tmp_path / "bad.svm"
    bad.write_text("1 1:1\n0 x\n")
    said = refused("train", data / "cancer.svm", "--learner", "pegasos", *QUICK, "--out", out, "--test", bad)
    assert "m.safetensors has been written, but evaluation on the test data failed: " in said
    assert said.endswith("bad.svm, line 2: expected index:value, found 'x'.")
    assert polyplane.load(out).n_iter_ == 5


@pytest.mark.parametrize("learner", ["polyhedral-mixture", "polyceptron", "successive-lp"])
def test_learners_of_two_classes_say_so(data, tmp_path, learner):
    said = refused("train", data / "iris.csv", "--learner", learner, "--out", tmp_path / "m")
    assert f"--learner {learner} supports two classes only, and the data have 3; multiclass learners are " in said
    assert "multi-hyperplane" in said
    assert said.count(learner) == 1


def test_streams_that_cannot_be(data, tmp_path):
    out = ["--out", tmp_path / "m"]
    for learner in ("cutting-plane", "successive-lp"):
        said = refused("train", data / "cancer.svm", "--stream", "--learner", learner, *out)
        assert f"{learner} needs all rows in memory" in said
    one = tmp_path / "one.svm"
    one.write_text("1 1:1\n1 1:2\n")
    assert "a single class" in refused("train", one, *out)
    assert "a single class" in refused("train", one, "--stream", *out)


@pytest.mark.parametrize("scale", ["none", "standard", "maxabs"])
@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_values_that_would_overflow_get_one_line(tmp_path, scale, stream):
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b,label\n" + "\n".join(f"{i % 7}e300,{i},{i % 2}" for i in range(20)))
    options = ["--learner", "pegasos", "--scale", scale, *stream, "--out", tmp_path / "m"]
    said = run("train", rows, *options, code=2).stderr.splitlines()
    assert len(said) == 1
    assert "X contains 6e+300, and the squares of such values overflow" in said[0]


def test_models_that_cannot_be_gone_on_with(data, tmp_path):
    out = tmp_path / "m.safetensors"
    run("train", data / "cancer.svm", "--learner", "pegasos", "--out", out, *QUICK)
    before = out.read_bytes()
    common = ["train", data / "cancer.svm", "--resume", out, "--out", out]
    assert "was trained with pegasos" in refused(*common, "--learner", "cutting-plane")
    for option in (["--scale", "standard"], ["--tune"], ["--classes", "0,1"]):
        assert f"{option[0]} cannot be combined with --resume" in refused(*common, *option)
    wide = tmp_path / "wide.svm"
    wide.write_text("1 31:1\n0 1:1\n")
    assert "line 1: feature index 31 is out of range: 30 features are expected" in refused(
        "train", wide, "--resume", out, "--out", out
    )
    other = tmp_path / "other.svm"
    other.write_text("7 3:1\n0 1:1\n")
    assert "7" in refused("train", other, "--resume", out, "--out", out)
    assert out.read_bytes() == before
