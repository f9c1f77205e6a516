"""Damaged and forged model files: one sentence that names the file, and nothing is run."""

import contextlib
import hashlib
import json
import pickle
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import polyplane
from polyplane.io import ModelFileError, read_model
from polyplane.io._safetensors import DIGEST_AT, ZEROS
from tests.machines import METADATA, machine_with_everything, make, some_rows


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.safetensors"


@pytest.fixture(scope="module")
def small():
    return machine_with_everything()


@pytest.fixture(scope="module")
def saved(small, path):
    polyplane.save(small, path, metadata=METADATA)
    return path.read_bytes()


#: One learner for each kind of state that holds indices.
FORGED = {
    "ConvexPolytopeClassifier": {"n_planes": 2},
    "MultiHyperplaneClassifier": {"init": "zero", "random_state": np.random.RandomState(0)},
    "CuttingPlaneSVC": {"warm_start": True, "tol": None, "max_iter": 12},
}


@cache
def content_of(name):
    """A saved learner of `FORGED`, as bytes."""
    machine = make(name, FORGED[name])
    with tempfile.TemporaryDirectory() as folder:
        polyplane.save(machine.fit(*some_rows(machine, 0)), f"{folder}/model")
        return Path(f"{folder}/model").read_bytes()


def reload(path, content):
    path.write_bytes(content)
    return polyplane.load(path)


def signed(content):
    """The bytes with the checksum that belongs to them: what a forger would write."""
    content = content[:DIGEST_AT] + ZEROS + content[DIGEST_AT + 64 :]
    return content[:DIGEST_AT] + hashlib.sha256(content).hexdigest().encode() + content[DIGEST_AT + 64 :]


def parts(content):
    """The header, the description in it, and the bytes of the arrays."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["polyplane"]), content[8 + length :]


def assembled(header, description, data):
    header = {**header, "__metadata__": {"sha256": "0" * 64, "polyplane": json.dumps(description)}}
    text = json.dumps(header, separators=(",", ":")).encode()
    return signed(len(text).to_bytes(8, "little") + text + data)


class TestDamage:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(at=st.integers(0, 10**9))
    def test_cut_anywhere(self, path, saved, at):
        with pytest.raises(ModelFileError, match=r"model\.safetensors (is|has|was) "):
            reload(path, saved[: at % len(saved)])

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(at=st.integers(0, 10**9), flip=st.integers(1, 255))
    def test_altered_anywhere(self, path, saved, at, flip):
        content = bytearray(saved)
        content[at % len(saved)] ^= flip
        with pytest.raises(ModelFileError, match=r"model\.safetensors (is|has|was|holds) "):
            reload(path, bytes(content))

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(content=st.binary(max_size=200))
    def test_any_bytes(self, path, content):
        with pytest.raises(ModelFileError):
            reload(path, content)
        with pytest.raises(ModelFileError):
            reload(path, len(content).to_bytes(8, "little") + b'{"a":' + content)

    def test_longer(self, path, saved):
        with pytest.raises(ModelFileError, match="has 3 bytes too many at its end"):
            reload(path, saved + b"abc")

    def test_a_newer_format_is_named(self, path, saved):
        header, description, data = parts(saved)
        newer = assembled(header, description | {"format": 2, "polyplane": "9.1"}, data)
        with pytest.raises(ModelFileError, match=r"written by Polyplane 9\.1 in format 2; this is Polyplane 0"):
            reload(path, newer)

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


def replaced(tree, keys, value):
    """A copy of nested dicts and lists with one place changed."""
    tree = json.loads(json.dumps(tree))
    place = tree
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return tree


def places(tree, at=()):
    """All places in nested dicts and lists."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


class TestForgery:
    """The checksum agrees, and still nothing is believed."""

    @pytest.mark.parametrize(
        ("keys", "value", "message"),
        [
            (["learner"], "Pipeline", "names the learner 'Pipeline'"),
            (["learner"], "os.system", "names the learner 'os.system'"),
            (["parameters", "alpha"], -1.0, "holds a model that cannot be: The 'alpha' parameter"),
            (["parameters", "colour"], 1, "the parameter 'colour', which ConvexPolytopeClassifier does not have"),
            (["parameters", "random_state", "position"], 700, "holds no parameters.random_state"),
            (["classes", "values"], ["yes", "no"], "holds no classes"),
            (["classes", "values"], ["no", "yes", "zoo"], "holds no classes"),
            (["classes", "dtype"], "<U1", "holds no classes"),
            (["classes", "dtype"], "O", "holds no classes"),
            (["feature_names"], ["a", "b"], "does not name its features one by one"),
            (["feature_names"], ["a", "b", 3], "does not name its features one by one"),
            (["planes", "coef"], {"array": "planes.intercept"}, "holds a model that cannot be: coef must be"),
            (["planes", "indptr"], {"array": "planes.none"}, "has no array for planes.indptr"),
            (["fitted", "n_features_in_"], 4, "a n_features_in_ that does not fit the planes"),
            (["fitted", "n_iter_"], {"float": "inf"}, "a n_iter_ that does not fit"),
            (["fitted", "__class__"], "x", "an attribute that its learner does not have"),
            (["history", "loss"], {"array": "planes.coef"}, "holds a history"),
            (["metadata", "extra"], {"import": "os"}, "holds no metadata.extra"),
            (["state", "kind"], "CutState", "a state of training that is not of its learner"),
            (["state", "value", "polytopes"], [], "state.polytopes does not fit the rest"),
            (["state", "value", "polytopes", 0, "outer"], 2, "state.polytopes.0.outer does not fit"),
            (["state", "value", "polytopes", 0, "counts"], {"array": "planes.indptr"}, "polytopes.0.counts does not"),
            (["state", "value", "polytopes", 1, "coef"], {"array": "planes.coef"}, "polytopes.1.coef does not fit"),
            (["state", "value", "t"], 1.5, "state.t does not fit"),
            (["state", "value", "seed"], -1, "state.seed does not fit"),
            (["state", "value", "extra"], 1, "state does not fit"),
            (["state"], None, "holds an array that has no use: 'state"),
        ],
    )
    def test_of_one_value(self, path, saved, keys, value, message):
        header, description, data = parts(saved)
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, replaced(description, keys, value), data))

    @pytest.mark.parametrize("name", FORGED)
    @settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
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
            ("MultiHyperplaneClassifier", "state.owner", 9, "state does not fit"),
            ("MultiHyperplaneClassifier", "state.counts", 2**40, "state does not fit"),
            ("CuttingPlaneSVC", "state.searches.0.bundle.support", 99, r"state.searches.0.bundle does not fit"),
            ("CuttingPlaneSVC", "planes.indptr", 1, "cannot be: indptr must rise"),
            ("ConvexPolytopeClassifier", "fitted.assignments_", 100, "a assignments_ that does not fit the planes"),
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
            with pytest.raises(ModelFileError, match="cannot be: coef and intercept must be finite"):
                reload(path, assembled(header, description, forged))

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
