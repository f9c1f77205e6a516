"""The command line with closed streams, with labels that command a terminal, and with files that are wrong."""

import json
import subprocess
import sys
from copy import copy

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

import polyplane
from polyplane.explain import model_report
from polyplane.exports import to_json
from tests.cli.commands import run

#: Characters that break lines and columns, command terminals, or turn the direction of writing.
LABELS = ["a\nb", "a\\nb", "c\td", "\x1b[2J", "\u202eabc", "\u2028", "\x9b2J", "z\ud800"]
UNSAFE = [c for label in LABELS for c in label if not c.isprintable()]


def write_rows(path, X, y=None):
    dump_svmlight_file(X, np.zeros(len(X)) if y is None else y, str(path), zero_based=False)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model with such labels and names of features, and the rows that it was trained on."""
    folder = tmp_path_factory.mktemp("hostile")
    X = np.eye(len(LABELS)).repeat(3, axis=0)
    model = polyplane.CuttingPlaneSVC(C=10.0).fit(X, np.array(LABELS, dtype=object).repeat(3))
    model.feature_names_in_ = np.array([f"name {label}" for label in LABELS], dtype=object)
    polyplane.save(model, folder / "model")
    write_rows(folder / "rows.svm", X)
    return folder, model, X


def printed(*arguments):
    text = run(*arguments).stdout
    assert not set(UNSAFE) - {"\n", "\t"} & set(text)
    return text


def test_predictions_are_one_line_each(hostile):
    folder, model, X = hostile
    lines = printed("predict", folder / "model", folder / "rows.svm", "--format", "svmlight").split("\n")
    assert len(lines) == X.shape[0] + 1
    assert len(set(lines[:-1])) == len(LABELS)  # a new line and a backslash with an n are not the same label
    lines = printed("predict", folder / "model", folder / "rows.svm", "--scores").split("\n")
    assert {line.count("\t") for line in lines[:-1]} == {len(LABELS)}
    lines = printed("predict", folder / "model", folder / "rows.svm", "--scores", "--json").split("\n")
    found = [json.loads(line) for line in lines[:-1]]
    assert [row["label"] for row in found] == model.classes_[model.planes_.predict(X)].tolist()
    assert set(found[0]["score"]) == set(LABELS)


def test_usual_labels_are_written_as_they_are(tmp_path):
    labels = ["C:\\new", "naïve", "日本", "\u200f\u05d0\u05d1"]
    polyplane.save(polyplane.CuttingPlaneSVC().fit(np.eye(4), labels), tmp_path / "model")
    write_rows(tmp_path / "rows.svm", np.eye(4))
    assert sorted(set(run("predict", tmp_path / "model", tmp_path / "rows.svm").stdout.split("\n"))) == [
        "",
        *sorted(labels),
    ]


def test_tables_and_explanations_hold_their_lines(hostile):
    folder, _, _ = hostile
    table = printed("info", folder / "model")
    assert "a\\nb\t1" in table
    assert json.loads(printed("info", folder / "model", "--json"))["classes"][0]["label"] == sorted(LABELS)[0]
    printed("explain", folder / "model", folder / "rows.svm")
    printed("explain", folder / "model", folder / "rows.svm", "--row", "0")
    assert json.loads(printed("export", folder / "model", "--to", "json"))["classes"][1]["label"] == sorted(LABELS)[1]
    message = run("evaluate", folder / "model", "none\x1b[2J\nfile", code=2).stderr
    assert message == "polyplane evaluate: none\\x1b[2J\\nfile: No such file or directory.\n"


def test_the_page_shows_what_is_there(hostile, tmp_path):
    _, model, X = hostile
    model, names = copy(model), model.feature_names_in_
    del model.feature_names_in_
    path = model_report(model, X, model.predict(X), tmp_path / "page.html", feature_names=names)
    page = path.read_text(encoding="utf-8")
    assert not set(UNSAFE) - {"\n", "\t"} & set(page)
    assert "\\u202eabc" in page
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    texts = json.dumps(data, ensure_ascii=False)
    assert not set(UNSAFE) & set(texts)


def test_to_json_names_what_is_there(hostile):
    _, model, _ = hostile
    text = to_json(model)
    assert not set(UNSAFE) - {"\n"} & set(text)
    assert [of["label"] for of in json.loads(text)["classes"]] == model.classes_.tolist()


# Closed streams.


def shell(command, cwd):
    return subprocess.run(["sh", "-c", command], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that can close streams")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("predict model - <&-", 2, "polyplane predict: Standard input is closed.\n"),
        ("predict model rows.svm >&-", 2, "polyplane predict: standard output: Bad file descriptor.\n"),
        ("info model >&-", 2, "polyplane info: standard output: Bad file descriptor.\n"),
        ("train rows.svm --learner cutting-plane --out new <&- >&-", 2, "polyplane train: standard output: Bad"),
        ("info none 2>&-", 2, ""),
    ],
)
def test_closed_streams_are_said(tmp_path, arguments, code, message):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    polyplane.save(polyplane.CuttingPlaneSVC().fit(X, X[:, 0] > 0), tmp_path / "model")
    write_rows(tmp_path / "rows.svm", X, X[:, 0] > 0)
    result = shell(f"{sys.executable} -m polyplane {arguments}", tmp_path)
    assert result.returncode == code
    assert result.stderr.startswith(message)
    if "new" in arguments:  # nothing that was printed went into the file
        assert polyplane.load(tmp_path / "new").planes_.n_features == 2
