"""The commands info and export, and models as JSON."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import polyplane
from polyplane.cli import app
from polyplane.exports import to_c, to_javascript, to_json, to_sql
from tests.models import METADATA, make, model_with_everything, some_rows


@pytest.fixture(scope="module")
def model():
    return model_with_everything()


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    polyplane.save(model, path, metadata=METADATA)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def predict(content, X):
    """The labels by the words of the documentation of the form, and nothing else."""

    def score(planes, values):
        if isinstance(planes[0], list):  # one list for each member
            return sum(score(own, values) for own in planes) / content["members"]
        return max(
            plane["intercept"] + sum(w * values[name] for name, w in plane["weights"].items()) for plane in planes
        )

    labels = []
    for row in X:
        values = dict(zip(content["features"], row, strict=True))
        best = [score(entry["planes"], values) for entry in content["classes"]]
        labels.append(content["classes"][best.index(max(best))]["label"])
    return labels


class TestJson:
    @pytest.mark.parametrize("name", ["ConvexPolytopeClassifier", "CuttingPlaneSVC", "PolyceptronClassifier"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_is_enough_to_predict_with(self, name, dtype):
        model = make(name, {"n_planes": 2, "tol": None})
        X, y = some_rows(model, 0, dtype, labels="float64")
        content = json.loads(to_json(model.fit(X, y)))
        assert predict(content, X.astype(float)) == model.predict(X).tolist()

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_keeps_every_bit(self, dtype):
        model = make("ConvexPolytopeClassifier", {"n_planes": 2})
        model.fit(*some_rows(model, 0, dtype))
        model.planes_ = polyplane.PlaneSet(model.planes_.coef / dtype(3), model.planes_.intercept, model.planes_.indptr)
        content = json.loads(to_json(model))
        planes = [plane for entry in content["classes"] for plane in entry["planes"]]
        weights = np.array([list(plane["weights"].values()) for plane in planes], dtype=content["dtype"])
        assert weights.dtype == dtype
        np.testing.assert_array_equal(weights, model.planes_.coef)
        np.testing.assert_array_equal(
            np.array([plane["intercept"] for plane in planes], dtype), model.planes_.intercept
        )

    def test_names_and_zeros(self, model):
        assert json.loads(to_json(model))["features"] == ["width", "höhe", 'a "b"']
        twins = make("PegasosSVC", {}).fit([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [False, True])
        assert json.loads(to_json(twins))["features"] == ["x0", "x1", "x2"]
        twins.feature_names_in_ = np.array(["a", "b", "a"], dtype=object)
        content = json.loads(to_json(twins))
        assert content["features"] == ["a#0", "b", "a#2"]
        assert content["classes"][0] == {"label": False, "planes": [{"intercept": 0.0, "weights": {}}]}
        assert "a#2" not in content["classes"][1]["planes"][0]["weights"]

    def test_parameters_without_a_form_of_their_own(self, model):
        parameters = json.loads(to_json(model))["parameters"]
        assert parameters["class_weight"] == {"no": 2.0, "yes": 0.5}
        assert parameters["random_state"] == "RandomState"


class TestInfo:
    def test_says_what_a_file_holds(self, model, path):
        content = json.loads(run("info", path, "--json").stdout)
        assert content["learner"] == "convex-polytope"
        assert content["estimator"] == "ConvexPolytopeClassifier"
        assert content["classes"] == [{"label": "no", "planes": 2}, {"label": "yes", "planes": 2}]
        assert (content["planes"], content["features"], content["dtype"]) == (4, 3, "float64")
        assert content["feature_names"] == ["width", "höhe", 'a "b"']
        assert content["size"] == path.stat().st_size
        assert (content["format"], content["polyplane"]) == (3, polyplane.__version__)
        assert content["parameters"]["n_planes"] == 2
        assert content["parameters"]["random_state"] == "RandomState"
        assert content["metadata"] == {"note": "a", "n": 3, "rate": 0.5, "centre": "float64 array of 3"}
        assert content["can_go_on_training"] is True

    def test_plain_text_when_piped(self, path):
        lines = run("info", path).stdout.splitlines()
        assert "learner\tconvex-polytope" in lines
        assert "planes\t4" in lines
        assert lines[lines.index("label\tplanes") + 1 :][:2] == ["no\t2", "yes\t2"]
        assert "1\thöhe" in lines
        assert not any("\x1b" in line or "─" in line for line in lines)

    def test_damage_is_one_sentence_and_code_2(self, path, tmp_path):
        cut = tmp_path / "cut.safetensors"
        cut.write_bytes(path.read_bytes()[:-5])
        for damaged, message in ((cut, "is truncated."), (tmp_path / "none", "No such file or directory.")):
            result = run("info", damaged)
            assert result.exit_code == 2
            assert result.stdout == ""
            assert result.stderr.startswith("polyplane info: ")
            assert result.stderr.endswith(f"{message}\n")
            assert result.stderr.count("\n") == 1

    def test_debug_shows_the_traceback(self, tmp_path):
        (tmp_path / "empty").touch()
        result = run("info", tmp_path / "empty", "--debug")
        assert type(result.exception).__name__ == "ModelFileError"


class TestExport:
    def test_json_through_a_pipe_and_to_a_file(self, model, path, tmp_path):
        piped = run("export", path, "--to", "json").stdout
        assert json.loads(piped) == json.loads(to_json(model))
        report = json.loads(run("export", path, "-o", tmp_path / "m.json", "--json").stdout)
        assert report == {
            "model": str(path),
            "out": str(tmp_path / "m.json"),
            "to": "json",
            "size": (tmp_path / "m.json").stat().st_size,
        }
        assert (tmp_path / "m.json").read_text(encoding="utf-8") == piped

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_onnx_runs(self, model, path, tmp_path, dtype):
        onnxruntime = pytest.importorskip("onnxruntime")
        result = run("export", path, "-o", tmp_path / "m.onnx", "--dtype", dtype, "--opset", "15")
        assert result.exit_code == 0, result.output
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
        X = some_rows(model, 5, np.dtype(dtype).type)[0]
        label, scores = session.run(None, {"X": X})
        np.testing.assert_array_equal(label, model.classes_[model.planes_.predict(X)])
        expected = model.planes_.class_scores(X)
        np.testing.assert_allclose(scores, expected[:, 1] - expected[:, 0], rtol=1e-9)

    def test_onnx_through_a_pipe(self, path):
        onnx = pytest.importorskip("onnx")
        graph = onnx.load_from_string(run("export", path, "--to", "onnx").stdout_bytes)
        assert graph.graph.name == "ConvexPolytopeClassifier"

    @pytest.mark.parametrize("to", ["c", "js", "sql"])
    def test_programs_through_a_pipe_and_to_a_file(self, model, path, tmp_path, to):
        write = {"c": to_c, "js": to_javascript, "sql": to_sql}[to]
        assert run("export", path, "--to", to).stdout_bytes.decode() == write(model)
        result = run("export", path, "-o", tmp_path / f"model.{to}", "--dtype", "float32")
        assert result.exit_code == 0, result.output
        assert (tmp_path / f"model.{to}").read_text(encoding="utf-8") == write(model, "float32")

    def test_options_of_a_query_and_of_c(self, model, path):
        found = run("export", path, "--to", "sql", "--dialect", "sqlite", "--table", "a b", "--key", "i", "--key", "j")
        assert found.stdout_bytes.decode() == to_sql(model, dialect="sqlite", table="a b", key=["i", "j"])
        text = run("export", path, "--to", "c", "--dtype", "int8", "--name", "blue").stdout_bytes.decode()
        assert text == to_c(model, "int8", name="blue")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "use --to with one of onnx, json, c, js, sql"),
            (["-o", "m.txt"], "use --to with one of onnx, json, c, js, sql"),
            (
                ["--to", "json", "--dtype", "float32"],
                "dtype is an option of onnx, c, js, sql, not of json",
            ),
            (["--to", "sql", "--opset", "18"], "opset is an option of onnx, not of sql."),
            (["--to", "js", "--dtype", "int8"], "dtype='int8' must be one of float32, float64."),
            (["--to", "onnx", "--dtype", "int8"], "must be 'float32' or 'float64'"),
            (["--to", "c", "--name", "2 b"], "must be a C identifier"),
            (["--to", "onnx", "--opset", "3"], "opset=3 must be from 13 to 21"),
            (["--to", "json", "-o", "none/m.json"], "No such file or directory"),
        ],
    )
    def test_mistakes_are_one_sentence_and_code_2(self, path, arguments, message):
        result = run("export", path, *arguments)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stderr.count("\n") == 1

    def test_an_old_file_survives_a_failure(self, path, tmp_path, monkeypatch):
        old = tmp_path / "m.json"
        old.write_text("old")
        cut = tmp_path / "cut.safetensors"
        cut.write_bytes(path.read_bytes()[:100])
        assert run("export", cut, "-o", old).exit_code == 2
        assert old.read_text() == "old"
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cut.safetensors", "m.json"]
