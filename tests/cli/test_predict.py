"""`polyplane predict` and `polyplane evaluate`: streams of rows through a model."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import brier_score_loss, classification_report, confusion_matrix, log_loss, roc_auc_score
from typer.testing import CliRunner

import polyplane
from polyplane import _array_api, planes
from polyplane.cli import app
from polyplane.explain import robust_error
from polyplane.readers import source
from tests.cli.commands import refused, run

NAMES = ["width", "height", "depth"]


def made(n_rows, seed):
    """Three classes, text labels, three features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)).round(3)
    return X, np.array(["left", "right", "up"])[np.argmax(X + 0.3 * rng.normal(size=X.shape), axis=1)]


def table(X, y=None, names=NAMES, label="side"):
    header = ",".join([*names, *([] if y is None else [label])])
    cells = [[*map(repr, row), *([] if y is None else [y[i]])] for i, row in enumerate(X.tolist())]
    return "\n".join([header, *(",".join(row) for row in cells)]) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model of a table and one of an svmlight file, with rows to test on."""
    folder = tmp_path_factory.mktemp("predict")
    for name, n_rows, seed in (("train", 600, 0), ("test", 300, 1)):
        X, y = made(n_rows, seed)
        (folder / f"{name}.csv").write_text(table(X, y))
        codes = np.unique(y, return_inverse=True)[1]
        dump_svmlight_file(sparse.csr_matrix(X), codes, str(folder / f"{name}.svm"), zero_based=True)
    for name in ("csv", "svm"):
        options = ["--label", "side", "--learner", "multi-hyperplane"] if name == "csv" else []
        run("train", folder / f"train.{name}", "--out", folder / f"{name}.model", "--set", "max_iter=10", *options)
    return folder


def test_labels_are_those_of_the_model(files):
    X, _ = made(300, 1)
    model = polyplane.load(files / "csv.model")
    with np.errstate(all="raise"):
        expected = model.planes_.predict(X)
    out = run("predict", files / "csv.model", files / "test.csv").stdout.split()
    assert out == model.classes_[expected].tolist()
    codes = run("predict", files / "svm.model", files / "test.svm").stdout.split()
    assert codes == polyplane.load(files / "svm.model").predict(X).astype(str).tolist()


def test_tables_need_no_label_and_no_order(files, tmp_path):
    X, _ = made(300, 1)
    expected = run("predict", files / "csv.model", files / "test.csv").stdout
    swapped = tmp_path / "swapped.csv"
    swapped.write_text(table(X[:, ::-1], names=NAMES[::-1]))
    assert run("predict", files / "csv.model", swapped).stdout == expected


def test_scores_probabilities_and_winners(files):
    X, _ = made(300, 1)
    model = polyplane.load(files / "svm.model")
    options = ["--scores", "--proba", "--winners"]
    lines = run("predict", files / "svm.model", files / "test.svm", *options).stdout.splitlines()
    names = [f"{kind}:{c}" for kind in ("score", "proba") for c in range(3)]
    assert lines[0].split("\t") == ["label", *names, "winner"]
    cells = np.array([line.split("\t") for line in lines[1:]], dtype=float)
    assert (cells[:, 0] == model.predict(X)).all()
    np.testing.assert_array_equal(cells[:, 1:4], model.planes_.class_scores(sparse.csr_matrix(X)))
    np.testing.assert_allclose(cells[:, 4:7], model.predict_proba(X))
    assert (cells[:, 7] == model.planes_.winners(X)).all()
    rows = run("predict", files / "svm.model", files / "test.svm", *options, "--json").stdout.splitlines()
    first = json.loads(rows[0])
    assert len(rows) == 300
    assert set(first) == {"label", "score", "proba", "winner"}
    assert first["score"]["2"] == cells[0, 3]


def test_files_are_written_whole(files, tmp_path):
    out = tmp_path / "labels.txt"
    report = run("predict", files / "csv.model", files / "test.csv", "-o", out).stdout
    assert "rows\t300" in report
    assert out.read_text() == run("predict", files / "csv.model", files / "test.csv").stdout
    bad = tmp_path / "bad.csv"
    bad.write_text((files / "test.csv").read_text() + "1,2,oh,left\n")
    assert "line 302, column 'depth': expected a number" in refused("predict", files / "csv.model", bad, "-o", out)
    assert len(out.read_text().split()) == 300
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "labels.txt"]


def test_many_blocks_and_pipes(files, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 10)
    expected = run("predict", files / "svm.model", files / "test.svm").stdout
    packed = gzip.compress((files / "test.svm").read_bytes())
    assert run("predict", files / "svm.model", "-", text=packed).stdout == expected
    assert len(expected.split()) == 300


@pytest.mark.parametrize("options", [[], ["--proba"]])
def test_threads_are_those_asked_for(files, monkeypatch, options):
    started, pool = [], _array_api._new_pool
    monkeypatch.setattr(_array_api, "_new_pool", lambda n: started.append(n) or pool(n))
    monkeypatch.setattr(planes, "BLOCK_SCORES", 1 << 7)
    arguments = ["predict", files / "svm.model", files / "test.svm", *options]
    expected = run(*arguments).stdout
    assert not started
    assert run(*arguments, "--threads", "3").stdout == expected
    assert set(started) == {2}  # and the one that calls


def test_evaluation_agrees_with_scikit_learn(files):
    X, y = made(300, 1)
    model = polyplane.load(files / "csv.model")
    expected = model.classes_[model.planes_.predict(X)]
    found = json.loads(run("evaluate", files / "csv.model", files / "test.csv", "--json").stdout)
    report = classification_report(y, expected, output_dict=True)
    assert found["accuracy"] == pytest.approx(report["accuracy"])
    assert found["confusion"] == confusion_matrix(y, expected).tolist()
    for row in found["classes"]:
        theirs = report[row["label"]]
        assert row["rows"] == theirs["support"]
        figures = [theirs["precision"], theirs["recall"], theirs["f1-score"]]
        assert [row["precision"], row["recall"], row["f1"]] == pytest.approx(figures)
    text = run("evaluate", files / "csv.model", files / "test.csv").stdout
    assert f"accuracy\t{report['accuracy']:.6g}" in text
    assert "true / predicted\tleft\tright\tup" in text


def test_the_robust_error_is_that_of_the_library(files):
    X, y = made(300, 1)
    expected = robust_error(polyplane.load(files / "csv.model"), X, y, 0.1, norm=2)
    arguments = ["evaluate", files / "csv.model", files / "test.csv", "--eps", "0.1", "--norm", "2", "--json"]
    found = json.loads(run(*arguments).stdout)
    assert found["robust_error"] == pytest.approx(expected)
    assert found["robust_error"] > 1 - found["accuracy"]


def test_indices_begin_where_they_began_in_training(files, tmp_path):
    """A test file that happens not to use feature 0 is not shifted."""
    path = tmp_path / "x.svm"
    path.write_text("0 2:5\n")
    assert run("predict", files / "svm.model", path).stdout == "2\n"
    assert run("predict", files / "svm.model", path, "--one-based").stdout == "1\n"


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing", None, "missing: No such file or directory."),
        ("folder", "/", "Is a directory"),
        ("x.svm", "", "x.svm is empty."),
        ("x.svm", "1 1:1\n0 3:1\n", "x.svm, line 2: feature index 3 is out of range: 3 features are expected."),
        ("x.svm", "1 1:1\n0 1:nan\n", "x.svm, line 2: the value 'nan' is missing or infinite"),
        ("x.svm", "1 1:1\nzero one:1\n", "x.svm, line 2: expected index:value, found 'one:1'."),
        ("x.bin", b"\x00\x01\x02", "x.bin is neither text nor Parquet."),
        (
            "x.npz",
            b"PK\x03\x04 and nothing more",
            "x.npz is a NumPy file or another archive, which is not read here",
        ),
        ("x.svm.gz", gzip.compress(b"1 1:1\n" * 99, mtime=0)[:30], "x.svm.gz is damaged"),
        ("x.csv", "a,b,label\n1,2,0\n", "x.csv has 2 feature columns where 3 are expected."),
    ],
)
def test_bad_data_is_refused(files, tmp_path, command, name, content, message):
    path = tmp_path / name
    if content == "/":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refused(command, files / "svm.model", path)
    if command == "predict":
        refused(command, files / "svm.model", path, "--out", tmp_path / "out.txt")
        assert not (tmp_path / "out.txt").exists()


def test_headers_that_do_not_fit(files, tmp_path):
    X, y = made(3, 0)
    path = tmp_path / "x.csv"
    path.write_text(table(X, y, names=["width", "height", "deep"]))
    assert "x.csv has no column 'depth', which the model requires." in refused("predict", files / "csv.model", path)


def test_columns_are_found_by_name_and_others_are_ignored(files, tmp_path):
    X, y = made(300, 1)
    path = tmp_path / "x.csv"
    rows = [f"{d},note {i},{h},{w},{y[i]}" for i, (w, h, d) in enumerate(X.tolist())]
    path.write_text("\n".join(["depth,remark,height,width,side", *rows]))
    for command in ("predict", "evaluate"):
        assert (
            run(command, files / "csv.model", path).stdout
            == run(command, files / "csv.model", files / "test.csv").stdout
        )


def test_labels_that_are_unknown(files, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(table(*made(3, 0)) + "1,2,3,down\n")
    said = refused("evaluate", files / "csv.model", path)
    assert said.endswith("x.csv, line 5: unknown label 'down'; the model's classes are left, right, up.")
    path = tmp_path / "x.svm"
    path.write_text("0 1:1\n9 1:1\n")
    assert "line 2: unknown label 9; the model's classes are 0, 1, 2." in refused("evaluate", files / "svm.model", path)
    path.write_text("0 1:1\nup 1:1\n")
    assert "line 2: the label 'up' is not a number" in refused("evaluate", files / "svm.model", path)
    path.write_text("0:1\n")
    assert "line 1: the row has no label" in refused("evaluate", files / "svm.model", path)
    assert run("predict", files / "svm.model", path).stdout in ("0\n", "1\n", "2\n")


def test_models_that_are_none(files, tmp_path):
    for content in (b"", b"hello", (files / "svm.model").read_bytes()[:-9]):
        path = tmp_path / "m"
        path.write_bytes(content)
        assert str(path) in refused("predict", path, files / "test.svm")
    assert "No such file" in refused("evaluate", tmp_path / "none", files / "test.svm")


def test_probabilities_that_are_not_there(files, tmp_path):
    run("train", files / "train.svm", "--learner", "pegasos", "--set", "max_iter=2", "--out", tmp_path / "m")
    said = refused("predict", tmp_path / "m", files / "test.svm", "--proba")
    assert "this model does not provide probabilities; use --scores" in said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_and_a_closed_pipe(files):
    command = [sys.executable, "-m", "polyplane", "predict", str(files / "svm.model"), str(files / "test.svm")]
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr == "polyplane predict: standard output: No space left on device.\n"
    ran = subprocess.run(
        f"{' '.join(command)} --scores | head -1", shell=True, capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("label\t")
    assert ran.stderr == ""


def test_help_teaches_at_once():
    for command in ("train", "predict", "evaluate"):
        shown = CliRunner().invoke(app, [command, "--help"]).output
        assert "Examples" in shown
        assert f"polyplane {command} " in shown
    code = (
        "import sys; from polyplane.cli import app; app(['--help'], standalone_mode=False); print(sorted(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'sklearn'" not in ran.stdout
    assert "'numba'" not in ran.stdout


def test_an_input_is_never_overwritten(files, tmp_path):
    """Neither by its name nor by a link, and before any work: the files below are no models and no data."""
    model, rows = tmp_path / "m", tmp_path / "rows.csv"
    for path in (model, rows):
        path.write_text(f"not {path.name}")
    os.link(model, tmp_path / "hard link")
    os.symlink(rows, tmp_path / "symbolic link")
    for arguments in (
        ["predict", model, rows, "--out", model],
        ["predict", model, rows, "--out", tmp_path / "symbolic link"],
        ["train", rows, "--out", rows],
        ["train", files / "train.csv", "--test", rows, "--out", rows],
        ["export", model, "--to", "json", "--out", tmp_path / "hard link"],
        ["explain", model, rows, "--html", model],
        ["compress", model, rows, "--max-bytes", 9999, "--out", rows],
    ):
        assert "this file is read by the same command; write to another one." in refused(*arguments)
    assert [path.read_text() for path in (model, rows)] == ["not m", "not rows.csv"]


@pytest.mark.skipif(os.name == "nt", reason="needs files as standard input")
def test_a_file_that_is_standard_input_is_not_overwritten(files, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_bytes((files / "test.csv").read_bytes())
    command = [sys.executable, "-m", "polyplane", "predict", "csv.model", "-", "--out", str(rows)]
    with rows.open("rb") as file:
        ran = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False, cwd=files)
    assert ran.returncode == 2
    assert ran.stderr.endswith("rows.csv: this file is read by the same command; write to another one.\n")
    assert rows.read_bytes() == (files / "test.csv").read_bytes()


def two_classes(folder, learner):
    """A model of two classes, made by the command line; its rows and labels."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2)).round(3)
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=200) > 0.3, "yes", "no")
    (folder / "two.csv").write_text(table(X, y, names=["a", "b"]))
    run("train", folder / "two.csv", "--learner", learner, "--label", "side", "--out", folder / "m")
    return polyplane.load(folder / "m"), pd.DataFrame(X, columns=["a", "b"]), y


def test_evaluation_with_probabilities(tmp_path):
    model, X, y = two_classes(tmp_path, "multi-hyperplane")
    proba, truth = model.predict_proba(X), y == "yes"
    arguments = ["evaluate", tmp_path / "m", tmp_path / "two.csv"]
    found = json.loads(run(*arguments, "--json").stdout)
    assert found["auc"] == pytest.approx(roc_auc_score(truth, proba[:, 1]))
    assert found["log_loss"] == pytest.approx(log_loss(truth, proba))
    assert found["brier"] == pytest.approx(brier_score_loss(truth, proba[:, 1]))
    assert (found["positive"], found["threshold"]) == ("yes", None)
    for positive, column in (("yes", 1), ("no", 0)):
        options = ["--positive", positive, "--threshold", "0.7"]
        found = json.loads(run(*arguments, *options, "--json").stdout)
        expected = np.where(proba[:, column] >= 0.7, positive, "yes" if positive == "no" else "no")
        assert found["confusion"] == confusion_matrix(y, expected).tolist()
        assert found["accuracy"] == pytest.approx(np.mean(expected == y))
    text = run(*arguments, *options).stdout
    for line in (f"auc\t{found['auc']:.6g}", f"log loss\t{found['log_loss']:.6g}", f"brier\t{found['brier']:.6g}"):
        assert line in text.splitlines()
    assert "positive\tno\nthreshold\t0.7\n" in text
    assert f"no\t{found['confusion'][0][0]}\t{found['confusion'][0][1]}\n" in text


def test_evaluation_with_scores_only(tmp_path):
    model, X, y = two_classes(tmp_path, "pegasos")
    score = model.decision_function(X)
    arguments = ["evaluate", tmp_path / "m", tmp_path / "two.csv", "--json"]
    found = json.loads(run(*arguments, "--threshold", "-0.5").stdout)
    assert found["auc"] == pytest.approx(roc_auc_score(y == "yes", score))
    assert found["log_loss"] is found["brier"] is None
    assert found["confusion"] == confusion_matrix(y, np.where(score >= -0.5, "yes", "no")).tolist()


def test_evaluation_of_several_classes(files):
    X, y = made(300, 1)
    model = polyplane.load(files / "csv.model")
    proba = model.predict_proba(pd.DataFrame(X, columns=NAMES))
    found = json.loads(run("evaluate", files / "csv.model", files / "test.csv", "--json").stdout)
    assert found["auc"] == pytest.approx(roc_auc_score(y, proba, multi_class="ovr"))
    assert found["log_loss"] == pytest.approx(log_loss(y, proba))
    assert found["brier"] == pytest.approx(np.mean(np.sum((proba - (y[:, None] == model.classes_)) ** 2, axis=1)))
    assert "positive" not in found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--eps", "0.1", "--norm", "3"], "norm='3' must be 1, 2 or inf."),
        (["--positive", "up"], "--positive applies to models of two classes, and this one has 3."),
        (["--threshold", "0.5"], "--threshold applies to models of two classes, and this one has 3."),
    ],
)
def test_options_that_do_not_apply_are_refused(files, options, sentence):
    assert sentence in refused("evaluate", files / "csv.model", files / "test.csv", *options)


def test_thresholds_that_cannot_be(tmp_path):
    two_classes(tmp_path, "multi-hyperplane")
    arguments = ["evaluate", tmp_path / "m", tmp_path / "two.csv"]
    assert "--positive: unknown label 'maybe'; expected one of no, yes." in refused(*arguments, "--positive", "maybe")
    for value in ("1.5", "nan"):
        assert f"--threshold {value}: expected a probability from 0 to 1." in refused(*arguments, "--threshold", value)


def test_one_class_in_the_data_has_no_auc(tmp_path):
    two_classes(tmp_path, "multi-hyperplane")
    lines = (tmp_path / "two.csv").read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join([lines[0], *(line for line in lines if line.endswith("yes"))]))
    result = run("evaluate", tmp_path / "m", tmp_path / "one.csv", "--json")
    assert json.loads(result.stdout)["auc"] is None
    assert result.stderr == ""
