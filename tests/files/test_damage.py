"""Damaged and forged model files: one sentence that names the file, and nothing is run."""

import contextlib
import io
import json
import math
import os
import pickle
import tempfile
import tracemalloc
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

import polyplane
from polyplane import Model, PlaneSet, serving
from polyplane.compression import CompressedClassifier
from polyplane.engine.data import AffineScaling
from polyplane.features import Features, Projection
from polyplane.files import ModelFileError
from polyplane.files.container import DTYPES, parse_json, write_container
from polyplane.inputs.encoding import MatrixInputs
from polyplane.loading import read_model
from tests.models import (
    METADATA,
    assembled,
    fitted,
    make,
    model_with_everything,
    parts,
    places,
    reload,
    replaced,
    signed,
    some_rows,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.safetensors"


@pytest.fixture(scope="module")
def small():
    return model_with_everything()


@pytest.fixture(scope="module")
def saved(small, path):
    polyplane.save(small, path, metadata=METADATA)
    return path.read_bytes()


#: One learner for each kind of state that holds indices.
FORGED = {
    "ConvexPolytopeClassifier": {"n_planes": 2},
    "AdaptiveMultiHyperplaneClassifier": {"random_state": np.random.RandomState(0)},
    "CuttingPlaneSVC": {"warm_start": True, "tol": None, "max_iter": 12},
    "MultiHyperplaneClassifier": {"n_planes": 2, "n_estimators": 3},
}


@cache
def content_of(name):
    """A saved learner of `FORGED`, as bytes."""
    machine = make(name, FORGED[name])
    with tempfile.TemporaryDirectory() as folder:
        polyplane.save(machine.fit(*some_rows(machine, 0)), f"{folder}/model")
        return Path(f"{folder}/model").read_bytes()


class TestDamage:
    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(at=st.integers(0, 10**9))
    def test_cut_anywhere(self, path, saved, at):
        with pytest.raises(ModelFileError, match=r"model\.safetensors (is|has|was) "):
            reload(path, saved[: at % len(saved)])

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(at=st.integers(0, 10**9), flip=st.integers(1, 255))
    def test_altered_anywhere(self, path, saved, at, flip):
        content = bytearray(saved)
        content[at % len(saved)] ^= flip
        with pytest.raises(ModelFileError, match=r"model\.safetensors (is|has|was|holds|contains) "):
            reload(path, bytes(content))

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(content=st.binary(max_size=200))
    def test_any_bytes(self, path, content):
        with pytest.raises(ModelFileError):
            reload(path, content)
        with pytest.raises(ModelFileError):
            reload(path, len(content).to_bytes(8, "little") + b'{"a":' + content)

    def test_longer(self, path, saved):
        with pytest.raises(ModelFileError, match="has 3 extra bytes at its end"):
            reload(path, saved + b"abc")

    def test_a_newer_format_is_named(self, path, saved):
        header, description, data = parts(saved)
        newer = assembled(header, description | {"format": 4, "polyplane": "9.1"}, data)
        message = (
            r"written by Polyplane 9\.1 in format 4; this is Polyplane .*, which reads formats 2 and 3: upgrade it\.$"
        )
        with pytest.raises(ModelFileError, match=message):
            reload(path, newer)

    def test_the_format_of_version_0_1_is_named(self, path):
        """The header as that version wrote it."""
        description = {"format": 1, "polyplane": "0.1.0", "learner": "PegasosSVC", "parameters": {}, "metadata": {}}
        entry = {"dtype": "F64", "shape": [2, 1], "data_offsets": [0, 16]}
        message = r"was written by Polyplane 0\.1\.0 in format 1; this is .* formats 2 and 3: train the model again"
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled({"__metadata__": {}, "planes.coef": entry}, description, bytes(16)))

    def test_a_foreign_file_is_named(self, path, small):
        from safetensors.numpy import save_file

        save_file({"weight": np.zeros(3)}, path, metadata={"format": "pt"})
        with pytest.raises(ModelFileError, match=r"model\.safetensors is a safetensors file, but not a model"):
            polyplane.load(path)
        for content in (pickle.dumps(small), b"", b"+1 1:0.5\n", b"\x00" * 100, b"PK\x03\x04" * 30):
            with pytest.raises(ModelFileError, match="is not a model file of Polyplane"):
                reload(path, content)

    def test_a_file_that_cannot_be_opened(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            polyplane.load(tmp_path / "none")
        with pytest.raises(IsADirectoryError):
            polyplane.load(tmp_path)


class TestForgery:
    """The checksum agrees, and still nothing is believed."""

    @pytest.mark.parametrize(
        ("keys", "value", "message"),
        [
            (["estimator", "class"], "Pipeline", "has an invalid value for last"),
            (["estimator", "class"], "TableClassifier", "the parameter 'alpha', which TableClassifier does not have"),
            (["estimator", "class"], "os.system", "names an unknown learner, 'os.system'"),
            (["estimator", "parameters", "alpha"], -1.0, "contains an invalid model: The 'alpha' parameter"),
            (
                ["estimator", "parameters", "colour"],
                1,
                "the parameter 'colour', which ConvexPolytopeClassifier does not have",
            ),
            (
                ["estimator", "parameters", "random_state", "generator", 1],
                700,
                "invalid value for .*parameters.random_state.1",
            ),
            (
                ["estimator", "parameters", "class_weight", "dict", 0, 0],
                {"array": "planes.coef"},
                "invalid value for parameters.class_weight",
            ),
            (["model", "classes", "texts"], ["yes", "no"], "has invalid classes"),
            (["model", "classes", "texts"], ["no", "yes", "zoo"], "has invalid classes"),
            (["model", "classes", "width"], 1, "has invalid classes"),
            (["model", "classes", "width"], 10**9, "has invalid classes"),
            (["model", "classes"], {"array": "planes.intercept"}, "has invalid classes"),
            (["model", "inputs", "matrix", "given_names"], ["a", "b"], "invalid value for inputs.given_names"),
            (["model", "inputs", "matrix", "given_names"], ["a", "b", 3], "invalid value for inputs.given_names"),
            (["model", "inputs", "matrix", "n_columns"], 4, "invalid value for inputs.given_names"),
            (["model", "inputs", "matrix", "n_columns"], 2**27, "invalid value for inputs.given_names"),
            (["model", "inputs", "matrix"], {"n_columns": 2**27, "given_names": None, "neutral": None}, "for features"),
            (["model", "inputs"], {"os": 1}, "invalid value for inputs"),
            (["model", "temperature"], 0.0, "invalid value for temperature"),
            (["model", "temperature"], True, "invalid value for temperature"),
            (["model", "learner"], "a\nb", "invalid value for learner"),
            (["model", "planes", "pooling"], "mean", "invalid value for planes.pooling"),
            (["model", "planes", "coef"], {"array": "planes.intercept"}, "invalid value for .*planes.coef"),
            (["model", "planes", "indptr"], {"array": "planes.none"}, "has no array for planes.indptr"),
            (["estimator", "fitted", "n_iter_"], {"float": "inf"}, "invalid value for .*n_iter_"),
            (["estimator", "fitted", "__class__"], "x", "an attribute that its learner does not have"),
            (
                ["estimator", "fitted", "_scaling"],
                [{"array": "planes.intercept"}] * 2,
                "invalid value for .*_scaling.0",
            ),
            (["estimator", "fitted", "history_", "loss"], {"array": "planes.coef"}, "invalid value for history_"),
            (["metadata", "extra"], {"import": "os"}, "invalid value for metadata.extra"),
            (["estimator", "parameters", "n_planes"], 3, "invalid value for .*polytopes.0.coef"),
            (["estimator", "training", "changed"], {"colour": 1}, "a changed parameter that its learner does not have"),
            (["estimator", "training", "changed"], {"n_planes": 3}, "invalid value for .*polytopes.0.coef"),
            (["estimator", "training", "state", "polytopes"], [], "invalid value for .*state.polytopes"),
            (["estimator", "training", "state", "polytopes", 0, "outer"], 2, "invalid value for .*polytopes.0.outer"),
            (
                ["estimator", "training", "state", "polytopes", 0, "counts"],
                {"array": "planes.indptr"},
                "invalid value for .*0.counts",
            ),
            (
                ["estimator", "training", "state", "polytopes", 1, "coef"],
                {"array": "planes.coef"},
                "invalid value for .*1.coef",
            ),
            (
                ["estimator", "training", "state", "polytopes", 1, "coef"],
                {"array": "state.polytopes.0.coef"},
                "invalid value for .*1.coef: its array is used twice",
            ),
            (
                ["estimator", "fitted", "history_", "step"],
                {"array": "fitted.history_.loss"},
                "invalid value for history_.step: its array is used twice",
            ),
            (["estimator", "training", "state", "t"], 1.5, "invalid value for .*state.t"),
            (["estimator", "training", "state", "t"], True, "invalid value for .*state.t"),
            (["estimator", "training", "state", "seed"], -1, "invalid value for .*state.seed"),
            (["estimator", "training", "state", "extra"], 1, "invalid value for .*state"),
            (["estimator", "training", "state"], None, "invalid value for .*state"),
            (["estimator", "training"], None, "contains an unused array: 'state"),
        ],
    )
    def test_of_one_value(self, path, saved, keys, value, message):
        header, description, data = parts(saved)
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, replaced(description, keys, value), data))

    @pytest.mark.parametrize("name", FORGED)
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(pick=st.integers(0, 10**6), value=st.sampled_from([None, -1, 7, 1e308, "x", [], {}, {"array": "x"}, True]))
    def test_of_any_value_is_refused_or_harmless(self, path, name, pick, value):
        header, description, data = parts(content_of(name))
        keys = list(places(description))
        forged = replaced(description, keys[pick % len(keys)], value)
        assume(forged != description)
        with contextlib.suppress(ModelFileError):
            model = reload(path, assembled(header, forged, data))
            assert model.planes_.predict(np.zeros((2, 3))).shape == (2,)

    @pytest.mark.parametrize(
        ("name", "array", "value", "message"),
        [
            ("AdaptiveMultiHyperplaneClassifier", "state.owner", 9, "invalid value for .*state"),
            ("AdaptiveMultiHyperplaneClassifier", "state.counts", 100, "invalid value for .*state"),
            ("CuttingPlaneSVC", "state.rows.cuts.0.bundle.support", 99, r"invalid value for .*bundle.support"),
            ("CuttingPlaneSVC", "planes.indptr", 1, "an invalid model: indptr must increase"),
            ("ConvexPolytopeClassifier", "fitted.assignments_", 100, "invalid value for .*assignments_"),
        ],
    )
    def test_of_an_index(self, path, name, array, value, message):
        """Kernels do not check bounds: a wrong index would read foreign memory."""
        header, description, data = parts(content_of(name))
        start, stop = header[array]["data_offsets"]
        size = (stop - start) // header[array]["shape"][0]
        forged = data[:start] + value.to_bytes(size, "little") + data[start + size :]
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, description, forged))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"dtype": "F16"}, "damaged entry for the array"),
            ({"shape": [2**60, 4]}, "damaged entry for the array"),
            ({"shape": [4]}, "damaged entry for the array"),
            ({"data_offsets": [8, 8]}, "damaged entry for the array"),
            ({"code": "x"}, "damaged entry for the array"),
        ],
    )
    def test_of_the_places_of_arrays(self, path, saved, change, message):
        header, description, data = parts(saved)
        header["planes.coef"] |= change
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, description, data))

    def test_of_numbers(self, path, saved):
        header, description, data = parts(saved)
        start = header["planes.coef"]["data_offsets"][0]
        for bad in (np.nan, np.inf):
            forged = data[:start] + np.float64(bad).tobytes() + data[start + 8 :]
            with pytest.raises(ModelFileError, match="an invalid model: coef and intercept must be finite"):
                reload(path, assembled(header, description, forged))

    @pytest.mark.parametrize(
        ("centre", "factor"), [(np.nan, 1.0), (np.inf, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, np.nan)]
    )
    def test_of_a_scaling(self, path, centre, factor):
        X = np.random.default_rng(0).normal(size=(60, 3))
        model = polyplane.PegasosSVC(max_iter=2)._fit(X, X[:, 0] > 0, None, None, AffineScaling.identity(3))
        model._scaling = AffineScaling(np.full(3, centre), np.full(3, factor))
        with pytest.raises(ValueError, match="cannot be saved: the file has an invalid value for _scaling"):
            polyplane.save(model, path)

    @pytest.mark.parametrize("name", ["SuccessiveLPClassifier", "PolyhedralMixtureClassifier"])
    def test_of_a_scaling_that_no_rows_have(self, path, name):
        """The variance of finite rows is no less than the smallest float64: its root is 2e-162."""
        machine = make(name, {"n_planes": 2})
        polyplane.save(machine.fit(*some_rows(machine, 0)), path)
        header, description, data = parts(path.read_bytes())
        start, stop = header["state.scaling.1"]["data_offsets"]
        forged = data[:start] + np.full((stop - start) // 8, 1e300).tobytes() + data[stop:]
        with pytest.raises(ModelFileError, match="has an invalid value for state"):
            reload(path, assembled(header, description, forged))

    @pytest.mark.parametrize("n_classes", [0, 1, 3])
    def test_of_the_number_of_classes(self, path, n_classes):
        """Of a machine that chose its number of planes: no parameter names it."""
        machine = make("ConvexPolytopeClassifier", {})
        X, y = some_rows(machine, 0)
        polyplane.save(machine.fit(X, y == y[0]), path)
        header, description, data = parts(path.read_bytes())
        forged = replaced(description, ["estimator", "training", "state", "n_classes"], n_classes)
        with pytest.raises(ModelFileError, match="has an invalid value for state"):
            reload(path, assembled(header, forged, data))

    def test_of_whole_numbers_beyond_those_of_numpy(self, path):
        machine = make("MultiHyperplaneClassifier", {"n_planes": 2})
        polyplane.save(machine.fit(*some_rows(machine, 0)), path)
        header, description, data = parts(path.read_bytes())
        assert isinstance(description["estimator"]["training"]["state"]["scaling"][1], float)
        description["estimator"]["training"]["state"]["scaling"][1] = 2**70
        with pytest.raises(ModelFileError, match=r"has an invalid value for state\.scaling\.1"):
            reload(path, assembled(header, description, data))

    @pytest.mark.parametrize("value", [1e294, np.nan, np.inf])
    def test_of_planes_that_no_program_has(self, path, value):
        machine = make("SuccessiveLPClassifier", {})
        polyplane.save(machine.fit(*some_rows(machine, 0)), path)
        header, description, data = parts(path.read_bytes())
        start = header["state.planes"]["data_offsets"][0]
        forged = data[:start] + np.float64(value).tobytes() + data[start + 8 :]
        with pytest.raises(ModelFileError, match="has an invalid value for state"):
            reload(path, assembled(header, description, forged))
        with pytest.raises(ModelFileError, match="has an invalid value for state"):
            reload(
                path, assembled(header, replaced(description, ["estimator", "training", "state", "radius"], 0.0), data)
            )

    @pytest.mark.parametrize(("loss", "forged"), [("log", "hinge"), ("hinge", "log")])
    def test_of_the_loss(self, path, loss, forged):
        machine = make("MultiHyperplaneClassifier", {"n_planes": 2, "loss": loss})
        polyplane.save(machine.fit(*some_rows(machine, 0)), path)
        header, description, data = parts(path.read_bytes())
        with pytest.raises(ModelFileError, match="has an invalid value for state"):
            reload(path, assembled(header, replaced(description, ["estimator", "parameters", "loss"], forged), data))

    @pytest.mark.parametrize("depth", [50, 3000, 50_000])
    def test_by_a_bomb_of_values_in_values(self, path, saved, depth):
        header, description, data = parts(saved)
        description["metadata"]["n"] = "BOMB"
        bomb = '{\\"dict\\":[[1,' * depth + "1" + "]]}" * depth
        content = assembled(header, description, data)
        text = content[8 : -len(data)].replace(b'\\"BOMB\\"', bomb.encode())
        path.write_bytes(signed(len(text).to_bytes(8, "little") + text + data))
        if depth == 50:
            assert read_model(path).metadata["n"].keys() == {1}
        else:
            with pytest.raises(ModelFileError):
                read_model(path)

    def test_by_a_bomb_of_brackets_and_names_twice(self, path):
        for text in (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a":1,"a":1}', b'{"a":NaN}'):
            with pytest.raises(ModelFileError, match="damaged header"):
                reload(path, len(text).to_bytes(8, "little") + text)


#: What SECURITY.md states: so many times the file, and so many bytes besides.
TIMES, BESIDES = 32, 64 << 20


def memory_of_loading(path, content, load=polyplane.load):
    """The most that NumPy and Python held at a time, and whether the file was refused."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with contextlib.suppress(ModelFileError):
            load(path)
            return tracemalloc.get_traced_memory()[1], False
        return tracemalloc.get_traced_memory()[1], True
    finally:
        tracemalloc.stop()


def described(**changes):
    """A file of a machine with as many classes, planes and features as its arrays say."""
    n_classes, n_features, texts, width, names, metadata = (
        changes.get(name, usual)
        for name, usual in {
            "n_classes": 2, "n_features": 1, "texts": None, "width": None, "names": None, "metadata": {}
        }.items()
    )  # fmt: skip
    arrays = {
        "planes.coef": np.zeros((n_classes, n_features), dtype=np.float32),
        "planes.intercept": np.zeros(n_classes, dtype=np.float32),
        "planes.indptr": np.arange(n_classes + 1, dtype=np.int32),
        "planes.member_weight": np.ones(1),
    }
    planes = {name.split(".")[1]: {"array": name} for name in arrays}
    model = {
        "inputs": {"matrix": {"n_columns": n_features, "given_names": names, "neutral": None}}, "features": None,
        "projection": None, "planes": planes | {"pooling": "max"}, "temperature": None, "learner": "PegasosSVC",
        "classes": {"texts": texts or [f"{c:07d}" for c in range(n_classes)], "width": width},
    }  # fmt: skip
    description = {
        "format": 3, "polyplane": "0.1.0", "model": model, "metadata": metadata,
        "estimator": {"class": "PegasosSVC", "parameters": {}, "fitted": {}, "training": None},
    }  # fmt: skip
    file = io.BytesIO()
    write_container(file, arrays, {"polyplane": json.dumps(description, separators=(",", ":"), ensure_ascii=False)})
    return file.getvalue()


@pytest.mark.parametrize(
    ("changes", "is_refused"),
    [
        ({}, False),
        ({"n_classes": 50_000}, False),
        ({"n_classes": 50_000, "width": 10_000, "n_features": 0}, True),
        ({"n_classes": 50_000, "width": 10_000}, True),
        ({"n_classes": 20_000, "width": 40_000, "texts": [f"{c:05d}" for c in range(19_999)] + ["x" * 40_000]}, True),
        ({"n_features": 200_000, "names": ["ab"] * 200_000}, False),
        ({"n_features": 200_000, "names": ["x[0]{1}"] * 199_999 + ["\U0001f600"]}, False),
        ({"metadata": {"a": [[]] * 700_000}}, True),
        ({"metadata": {"a": [{}] * 700_000}}, True),
        ({"metadata": {"a": [{"": 0}] * 300_000}}, True),
        ({"metadata": {str(i): {"column": i} for i in range(200_000)}}, True),
        ({"metadata": {"a": [0.5] * 500_000}}, True),
        ({"metadata": {"a": {"tuple": [0.5] * 500_000}}}, False),
        ({"metadata": {str(i): i for i in range(200_000)}}, False),
    ],
)
def test_memory_is_bounded_by_the_file(path, changes, is_refused):
    content = described(**changes)
    peak, refused = memory_of_loading(path, content)
    assert refused == is_refused
    assert peak < TIMES * len(content) + BESIDES


def test_a_history_of_one_array_is_refused(path, saved):
    """1,500 lists of the same numbers would take far more memory than the file."""
    header, description, data = parts(saved)
    history = {f"h{i}": {"array": "fitted.history_.loss"} for i in range(1500)}
    content = assembled(header, replaced(description, ["estimator", "fitted", "history_"], history), data)
    peak, refused = memory_of_loading(path, content)
    assert refused
    assert peak < BESIDES // 8


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
def test_committees_that_cannot_be_are_damage(path, keys, value):
    polyplane.save(fitted("committee")[0], path)
    header, description, data = parts(path.read_bytes())
    with pytest.raises(ModelFileError):
        reload(path, assembled(header, replaced(description, keys, value), data))


def of_format_2(name, change):
    """A file of format 2 with other parts: `change(description, arrays)`."""
    header, description, data = parts((Path(__file__).parent / "format2" / f"{name}.safetensors").read_bytes())
    arrays = {}
    for key, entry in header.items():
        if key != "__metadata__":
            flat = np.frombuffer(data, DTYPES[entry["dtype"]], math.prod(entry["shape"]), entry["data_offsets"][0])
            arrays[key] = flat.reshape(entry["shape"])
    change(description, arrays)
    file = io.BytesIO()
    write_container(file, arrays, {"polyplane": json.dumps(description)})
    return file.getvalue()


def many_histories(description, arrays):
    name = next(iter(description["history"].values()))["array"]
    arrays[name] = np.zeros(100_000)
    description["history"] = {f"h{i}": {"array": name} for i in range(1500)}


def many_columns(description, arrays):
    description["tables"]["n_features"] = 2**27


def many_knots(description, arrays):
    preparation = description["preparations"][0]
    arrays[preparation["knot_counts"]["array"]] = np.zeros(3_000_000, dtype=np.int8)
    arrays[preparation["knots"]["array"]] = np.zeros(0)


def many_members(description, arrays):
    description["members"] *= 15_000


def many_weights(description, arrays):
    description["planes"]["members"] = 2**31


@pytest.mark.parametrize("load", [polyplane.load, serving.load])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pegasos", many_histories),
        ("compressed", many_columns),
        ("table_bins", many_knots),
        ("table_bins", many_members),
        ("committee", many_weights),
    ],
)
def test_memory_of_format_2_is_bounded_by_the_file(path, name, change, load):
    content = of_format_2(name, change)
    peak, refused = memory_of_loading(path, content, load)
    assert refused == (change is not many_columns or load is polyplane.load)
    assert peak < TIMES * len(content) + BESIDES // 2


def test_members_are_charged(path):
    """Each is an object, however few planes it has."""
    n_members = 2**15
    planes = PlaneSet(np.zeros((2 * n_members, 1), dtype=np.float32), np.zeros(2 * n_members, dtype=np.float32),
                      np.arange(2 * n_members + 1), np.full(n_members, 1.0 / n_members))  # fmt: skip
    polyplane.save(Model(MatrixInputs(1), Features.identity(1), planes, np.arange(2), learner="X"), path)
    header, description, data = parts(path.read_bytes())
    estimator = {"class": "MultiHyperplaneClassifier", "parameters": {}, "fitted": {}, "training": None}
    content = assembled(header, description | {"estimator": estimator}, data)
    peak, refused = memory_of_loading(path, content)
    assert refused
    assert peak < TIMES * len(content)


@pytest.mark.parametrize("load", [polyplane.load, serving.load])
def test_weights_that_make_probabilities_nan_are_refused(path, load):
    model = polyplane.MultiHyperplaneClassifier(1, max_iter=2, random_state=0).fit(np.eye(3), [0, 1, 1])
    polyplane.save(model, path)
    header, description, data = parts(path.read_bytes())
    start = header["planes.coef"]["data_offsets"][0]
    path.write_bytes(assembled(header, description, data[:start] + np.float64(1e308).tobytes() + data[start + 8 :]))
    with pytest.raises(ModelFileError, match="has weights that are too large for probabilities"):
        load(path)


@pytest.mark.parametrize(
    ("name", "parameter"), [("ConvexPolytopeClassifier", "enclosed"), ("PolyceptronClassifier", "inside")]
)
def test_a_label_that_no_float_holds_is_refused(path, name, parameter):
    """Labels of floats: the comparison with the parameter overflows."""
    model = getattr(polyplane, name)(max_iter=2, random_state=0, **{parameter: 1.0})
    polyplane.save(model.fit(np.eye(3), [0.0, 1.0, 1.0]), path)
    header, description, data = parts(path.read_bytes())
    forged = replaced(description, ["estimator", "parameters", parameter], 10**400)
    with pytest.raises(ModelFileError, match="contains an invalid model: int too large to convert to float"):
        reload(path, assembled(header, forged, data))


@pytest.mark.parametrize("n_columns", [2**27, 2**40])
def test_columns_that_no_array_has_take_no_memory(path, n_columns):
    """A compressed model of two of very many columns, as a `Model`: what it computes does not grow with them."""
    small = compressed_of(n_columns)
    polyplane.save(replace(small.model_, learner="X"), path)
    peak, refused = memory_of_loading(path, path.read_bytes())
    assert not refused
    assert peak < BESIDES // 8


def test_sparse_rows_of_very_many_columns_take_the_memory_of_those_that_count():
    """They were made dense: 16 TB for two rows."""
    X = np.random.default_rng(1).normal(size=(50, 4)) * (np.random.default_rng(2).random((50, 4)) < 0.5)
    wide = sparse.csr_array(X)
    wide = sparse.csr_array((wide.data, wide.indices.astype(np.int64), wide.indptr), shape=(50, 2**40))
    model, few = compressed_of(2**40)._model, compressed_of(4)._model
    expected = few.class_scores(few.encode(X))
    tracemalloc.start()
    try:
        scores = model.class_scores(model.encode(wide))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert np.array_equal(scores, expected)


def compressed_of(n_columns):
    X = np.random.default_rng(0).normal(size=(60, 4))
    small = CompressedClassifier(100, max_iter=2, random_state=0).fit(X, X[:, 0] > X[:, 1])
    features = small._model.features.replace(n_inputs=n_columns)
    small._model, small.n_features_in_ = (
        replace(small._model, inputs=MatrixInputs(n_columns), features=features),
        n_columns,
    )
    return small


def test_an_estimator_whose_planes_would_fill_the_memory_is_refused(path):
    """A compressed classifier predicts by planes over all columns, of which its file has only the number."""
    polyplane.save(compressed_of(2**20), path)
    content = path.read_bytes()
    header, description, data = parts(content)
    forged = replaced(description, ["model", "inputs", "matrix", "n_columns"], 2**27)
    forged = replaced(forged, ["model", "features", "n_inputs"], 2**27)
    peak, refused = memory_of_loading(path, assembled(header, forged, data))
    assert refused
    assert peak < BESIDES // 8
    with pytest.raises(ModelFileError, match="its planes over all columns take more than 512 MB"):
        polyplane.load(path)


def test_the_model_of_a_compressed_classifier_has_no_planes_over_all_columns(path):
    polyplane.save(compressed_of(2**20), path)
    peak, refused = memory_of_loading(path, path.read_bytes(), lambda path: polyplane.load(path).model_)
    assert not refused
    assert peak < 2**20


def test_filled_arrays_are_charged(path):
    """One number in the file, for as many features as there are planes' weights of one byte each."""
    n_features = 2**22
    weights, projection = np.zeros((2, n_features)), Projection(None, np.zeros(n_features, dtype=np.float32))
    weights[1, 0] = 1.0
    planes = PlaneSet(weights, np.zeros(2), [0, 1, 2])
    features = Features.of(np.arange(n_features), factor=2.0, n_inputs=n_features)
    polyplane.save(Model(MatrixInputs(n_features), features, planes, np.arange(2), projection=projection), path)
    peak, refused = memory_of_loading(path, path.read_bytes())
    assert not refused
    assert peak < TIMES * path.stat().st_size + BESIDES


def test_the_header_of_a_table_may_have_as_many_columns_as_it_is_long():
    columns = [{"name": f"c{i}", "kind": "number", "range": [0.0, 1.0]} for i in range(150_000)]
    assert len(parse_json(json.dumps({"columns": columns}))["columns"]) == len(columns)


def test_labels_too_wide_for_an_array_come_back_as_objects(path):
    y = np.array(["a", "b", "c" * 2_000_000])
    model = polyplane.PegasosSVC(max_iter=2).fit(np.eye(3), y)
    polyplane.save(model, path)
    same = polyplane.load(path)
    assert same.classes_.dtype == object
    assert same.classes_.tolist() == y.tolist()
    assert same.predict(np.eye(3)).tolist() == model.predict(np.eye(3)).tolist()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="pipe is not a regular file"):
        polyplane.load(tmp_path / "pipe")
