"""`polyplane explain`, as a user of the shell meets it."""

import json
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from typer.testing import CliRunner

import polyplane
from polyplane import CuttingPlaneSVC, MultiHyperplaneClassifier, PolyhedralMixtureClassifier
from polyplane.cli import app
from polyplane.explain import explain_model, explain_row

# The features are explained in their own units, in which some of these machines would rather not be trained.
pytestmark = pytest.mark.filterwarnings("ignore:Feature .* dominates training:UserWarning")

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X.iloc[:, [0, 1, 4, 7]], y.map({0: "malignant", 1: "benign"})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a table, its model, and an svmlight file with its model."""
    folder = tmp_path_factory.mktemp("explain")
    X.assign(label=y).to_csv(folder / "rows.csv", index=False)
    machine = PolyhedralMixtureClassifier(n_planes=2, inside="benign", random_state=0).fit(X, y)
    polyplane.save(machine, folder / "model.safetensors")
    dump_svmlight_file(X.to_numpy(), y == "benign", str(folder / "rows.svm"), zero_based=False)
    machine = CuttingPlaneSVC(C=0.1).fit(X.to_numpy(), (y == "benign").astype(int))
    polyplane.save(machine, folder / "svm.safetensors")
    return folder


def ran(files, *arguments):
    """What a command printed; it must succeed."""
    result = run(files, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def run(files, *arguments):
    paths = [str(files / one) if str(one).endswith((".csv", ".svm", ".safetensors")) else one for one in arguments]
    return CliRunner().invoke(app, ["explain", *paths])


def test_rules_of_a_model(files):
    machine = polyplane.load(files / "model.safetensors")
    assert ran(files, "model.safetensors").strip() == explain_model(machine).to_text(8)
    text = ran(files, "model.safetensors", "rows.csv", "--tolerance", "0.02")
    assert text.strip() == explain_model(machine, X, tolerance=0.02).to_text(8)
    assert text.startswith("Class 'benign' if all of:")
    short = ran(files, "model.safetensors", "rows.csv", "--top", "1")
    assert "smaller terms" in short


def test_rules_as_json(files):
    told = json.loads(ran(files, "model.safetensors", "rows.csv", "--json"))
    assert told["inside"] == "benign"
    assert len(told["rules"]) == 3
    assert sum(rule["share"] for rule in told["rules"]) == pytest.approx(1)
    assert told["rows"] == len(X)


def test_why_a_row(files):
    machine = polyplane.load(files / "model.safetensors")
    text = ran(files, "model.safetensors", "rows.csv", "--row", "19", "--freeze", "mean radius")
    expected = explain_row(machine, X.iloc[19], X=X, frozen=["mean radius"])
    assert text.strip() == expected.to_text(8)
    told = json.loads(ran(files, "model.safetensors", "rows.csv", "--row", "19", "--target", "malignant", "--json"))
    assert told["row"] == 19
    assert told["label"] == "benign"
    assert told["flip"]["label"] == "malignant"
    flipped = X.iloc[[19]].assign(**{name: pair["to"] for name, pair in told["flip"]["changes"].items()})
    assert machine.predict(flipped)[0] == "malignant"


def test_rows_beyond_the_first_ones(files, monkeypatch):
    monkeypatch.setattr(sys.modules["polyplane.cli.explain"], "MOST_ROWS", 100)
    result = run(files, "model.safetensors", "rows.csv", "--row", "568", "--json")
    assert result.exit_code == 0
    assert "only the first 100 rows" in result.stderr
    assert json.loads(result.stdout)["values"] == pytest.approx(X.iloc[568].tolist())


def test_features_of_svmlight_files_have_their_numbers(files):
    text = ran(files, "svm.safetensors", "rows.svm", "--row", "0", "--target", "1")
    assert "feature 0 = 17.99" in text
    assert "The smallest change that leads to class 1" in text


def test_a_page(files):
    page = files / "page.html"
    facts = json.loads(ran(files, "model.safetensors", "rows.csv", "--html", str(page), "--json"))
    assert facts["rows"] == len(X)
    assert "mean radius" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.safetensors"], "No such file"),
        (["rows.csv"], "rows.csv"),
        (["model.safetensors", "nowhere.csv"], "No such file"),
        (["model.safetensors", "--row", "1"], "--row requires DATA"),
        (["model.safetensors", "--html", "page"], "--html requires DATA"),
        (["model.safetensors", "rows.csv", "--title", "Loans"], "--title requires --html"),
        (["model.safetensors", "rows.csv", "--row", "569"], "has 569 rows, numbered from 0 to 568"),
        (["model.safetensors", "rows.csv", "--target", "benign"], "--target requires --row"),
        (
            ["model.safetensors", "rows.csv", "--row", "1", "--target", "beige"],
            "unknown label 'beige'; expected one of",
        ),
        (["model.safetensors", "rows.csv", "--row", "1", "--freeze", "mean radios"], "Did you mean 'mean radius'?"),
        (["model.safetensors", "rows.csv", "--row", "1", "--html", "page"], "cannot be combined"),
    ],
)
def test_errors_are_one_sentence(files, arguments, sentence):
    result = run(files, *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_debug_shows_where(files):
    result = run(files, "model.safetensors", "--row", "1", "--debug")
    assert "requires DATA" in str(result.exception)


def test_several_classes_through_a_pipe(files, tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 2))
    labels = (rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0.5)
    polyplane.save(MultiHyperplaneClassifier(n_planes=1, max_iter=5, random_state=0).fit(rows, labels), tmp_path / "m")
    table = "a,b\n" + "\n".join(f"{a},{b}" for a, b in rows.tolist()) + "\n"
    done = CliRunner().invoke(app, ["explain", str(tmp_path / "m"), "-", "--format", "csv"], input=table)
    assert done.exit_code == 0
    assert done.stdout.startswith("The predicted class is that of the plane with the highest score.")
    assert "Plane 1 of class 2" in done.stdout
    assert "for all 60 rows, the prediction is that of the exact model" in done.stdout
