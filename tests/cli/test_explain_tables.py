"""`polyplane explain` on models of tables: in the columns of the table."""

import json

import numpy as np
import pytest
from pyarrow import csv

import polyplane
from polyplane.explain import explain_row
from polyplane.readers import read_table
from tests.cli.commands import QUICK_TABLE, people, refused, run


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    csv.write_csv(people(400, 0), folder / "train.csv")
    csv.write_csv(people(200, 1), folder / "test.csv")
    run("train", folder / "train.csv", "--id", "person", "--out", folder / "model", *QUICK_TABLE)
    return folder


def told(*arguments):
    return json.loads(run("explain", *arguments, "--json").stdout)


def test_a_row_is_explained_as_in_python_with_its_true_class(files):
    model, test = polyplane.load(files / "model"), read_table(files / "test.csv")
    wrong = np.flatnonzero(model.predict(test) != np.array(test["income"]))[:2].tolist()
    for row in (0, *wrong):
        truth = test["income"][row].as_py()
        expected = explain_row(model, test.slice(row, 1), true_label=truth, frozen=["age"])
        found = told(files / "model", files / "test.csv", "--row", row, "--freeze", "age")
        assert found["row"] == row
        assert found["true_label"] == truth
        assert {name: found[name] for name in json.loads(json.dumps(expected.to_dict()))} == json.loads(
            json.dumps(expected.to_dict())
        )
        text = run("explain", files / "model", files / "test.csv", "--row", row, "--freeze", "age").stdout
        assert text.strip() == expected.to_text(8).strip()


def test_rows_without_labels_are_explained(files, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("owner,work,age,since\ntrue,State,,2012-01-11\n")
    assert told(files / "model", path, "--row", 0)["true_label"] is None


def test_the_model_is_explained_by_its_columns(files):
    for data in ([], [files / "test.csv"]):
        text = run("explain", files / "model", *data).stdout
        assert "age" in text
        assert "work" in text
        assert "person" not in text


def test_a_page_is_written(files, tmp_path):
    page = tmp_path / "page.html"
    assert told(files / "model", files / "test.csv", "--html", page, "--title", "Loans <2026>")["rows"] == 200
    assert "<h1>Loans &lt;2026&gt;</h1>" in page.read_text()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--row", "0", "--freeze", "agee"], "--freeze: unknown feature 'agee'. Did you mean 'age'?"),
        (["--row", "0", "--target", "rich"], "--target: unknown label 'rich'; expected one of <=50K, >50K."),
        (["--row", "200"], "has 200 rows, numbered from 0 to 199."),
        (["--tolerance", "0.1"], "--tolerance applies to the rules of numeric models"),
    ],
)
def test_what_cannot_be_explained_is_refused(files, options, sentence):
    assert sentence in refused("explain", files / "model", files / "test.csv", *options)
