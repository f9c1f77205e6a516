"""Model files of `TableClassifier`: the same classifier, to the last bit, and nothing of a forged file is believed."""

import contextlib
import json
import tracemalloc
from copy import copy

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import polyplane
from polyplane import TableClassifier
from polyplane.files import ModelFileError
from polyplane.loading import read_model
from tests.models import (
    QUICK,
    assembled,
    assert_same,
    assert_same_model,
    fields_of,
    parts,
    places,
    reload,
    replaced,
    shop,
)

#: What SECURITY.md states: so many times the file.
TIMES = 32
#: Places in the description.
FITTED, COLUMNS = ["estimator", "fitted"], ["model", "inputs", "table", "columns"]
MEMBERS, ENCODER = [*FITTED, "members_"], [*FITTED, "_encoder_parameters"]

pd = pytest.importorskip("pandas", reason="pandas is a development dependency")

#: Each preparation has arrays of its own; the last has several, some of them weighted.
WAYS = [
    {"preparation": "standard"},
    {"preparation": "robust+norm"},
    {"preparation": "squares"},
    {"preparation": "bins", "n_estimators": 1},
    {"preparation": None, "n_planes": None, "max_iter": 2},
]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.safetensors"


@pytest.fixture(scope="module")
def bins():
    frame, y = shop(200)
    return TableClassifier(**QUICK | {"preparation": "bins", "n_estimators": 2}).fit(frame, y)


@pytest.fixture(scope="module")
def saved(bins, path):
    polyplane.save(bins, path)
    return path.read_bytes()


def check_same(loaded, model, frame):
    assert_same_model(loaded, model)
    assert_same(vars(loaded.encoder_).keys(), vars(model.encoder_).keys())
    assert loaded.encoder_.encoding_ == model.encoder_.encoding_
    for mine, other in zip(loaded.members_, model.members_, strict=True):
        assert_same(fields_of(mine.preparation), fields_of(other.preparation))
        assert mine.planes == other.planes
    for method in ("predict_proba", "decision_function"):
        assert getattr(loaded, method)(frame).tobytes() == getattr(model, method)(frame).tobytes()
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


class TestRoundTrip:
    @pytest.mark.parametrize("params", WAYS, ids=lambda params: str(params["preparation"]))
    def test_all_preparations(self, path, params):
        frame, y = shop(300)
        model = TableClassifier(**QUICK | params).fit(frame, y)
        polyplane.save(model, path, metadata={"label": "kept"})
        found = read_model(path)
        assert found.metadata == {"label": "kept"}
        check_same(found.model, model, frame)
        other = frame.assign(colour="violet", price=np.nan, sold=pd.NaT)
        assert found.model.predict_proba(other).tobytes() == model.predict_proba(other).tobytes()
        refitted = found.model.fit(frame, y).predict_proba(frame)
        np.testing.assert_array_equal(refitted, model.predict_proba(frame))

    @pytest.mark.parametrize(
        "params",
        [
            {"gaps": ["?", "-"]},
            {"gaps": {"?", "-"}},
            {"gaps": frozenset({"?"})},
            {"gaps": ()},
            {"kinds": {"new": "category", "price": "number"}, "decimal": ",", "min_rows": 2, "max_levels": 2},
            {"class_weight": {"kept": 1.0, "returned": np.float32(2.0)}, "random_state": np.random.RandomState(3)},
        ],
    )
    def test_parameters(self, path, params):
        frame, y = shop(200)
        model = TableClassifier(**QUICK | {"n_estimators": 1} | params).fit(frame, y)
        polyplane.save(model, path)
        loaded = polyplane.load(path)
        assert_same(loaded.get_params() | {"random_state": 0}, model.get_params() | {"random_state": 0})
        check_same(loaded, model, frame)

    @pytest.mark.parametrize(
        "labels", [np.array(["no", "yes"], dtype=object), np.array([-1, 5]), np.array([False, True]), ["é", 'a "b"']]
    )
    def test_labels(self, path, labels):
        frame, y = shop(200)
        model = TableClassifier(**QUICK | {"n_estimators": 1}).fit(frame, np.asarray(labels)[(y == "kept").astype(int)])
        polyplane.save(model, path)
        check_same(polyplane.load(path), model, frame)

    def test_arrays_and_odd_names(self, path):
        X = np.random.default_rng(0).normal(size=(100, 3))
        model = TableClassifier(**QUICK).fit(X, X[:, 0] > 0)
        polyplane.save(model, path)
        check_same(polyplane.load(path), model, X)
        frame = pd.DataFrame(X, columns=["", 'a "b"\n', "nä\x00me"])
        model = TableClassifier(**QUICK).fit(frame, X[:, 0] > 0)
        polyplane.save(model, path)
        check_same(polyplane.load(path), model, frame)

    def test_parameters_that_were_changed_after_fitting(self, path, bins):
        frame, _ = shop(50)
        expected = bins.predict_proba(frame)
        model = copy(bins)
        model.set_params(n_estimators=7, max_levels=1, gaps=("x",))
        polyplane.save(model, path)
        loaded = polyplane.load(path)
        assert loaded.n_estimators == 7
        assert loaded.encoder_.max_levels == 50
        np.testing.assert_array_equal(loaded.predict_proba(frame), expected)

    def test_the_same_model_gives_the_same_bytes(self, bins, saved, tmp_path):
        polyplane.save(bins, tmp_path / "m")
        assert (tmp_path / "m").read_bytes() == saved

    def test_a_preparation_is_there_once(self, saved):
        header, description, _ = parts(saved)
        (first, *_), (second, *_) = description["estimator"]["fitted"]["members_"]
        assert first == second
        assert sum(name.endswith(".more_factor") for name in header) == 1

    def test_machines_may_share_their_planes(self, path, bins):
        frame, _ = shop(50)
        model = copy(bins)
        model._keep_model((bins.members_[0],) * 2, bins.temperature_)
        polyplane.save(model, path)
        loaded = polyplane.load(path)
        assert loaded.members_[0].planes is loaded.members_[1].planes
        check_same(loaded, model, frame)

    def test_training_goes_on(self, path):
        """With the sample of earlier rows, as if the classifier had never left memory."""
        frame, y = shop(300)
        model = TableClassifier(**QUICK).partial_fit(frame[:100], y[:100], classes=np.unique(y))
        model.partial_fit(frame[100:200], y[100:200])
        polyplane.save(model, path)
        loaded = polyplane.load(path)
        for each in (loaded, model):
            each.partial_fit(frame[200:], y[200:])
        assert loaded.predict_proba(frame).tobytes() == model.predict_proba(frame).tobytes()
        assert loaded.n_iter_ == model.n_iter_ == 3

    def test_figures_of_a_stream(self, path, bins):
        model = copy(bins)
        model.encoder_rows_, model.history_ = 123, {"rows": [10.0, 20.0], "progressive_error": [float("nan"), 0.25]}
        polyplane.save(model, path)
        assert_same_model(polyplane.load(path), model)

    def test_other_programs_can_read_it(self, bins, saved, path):
        from safetensors import safe_open

        path.write_bytes(saved)
        with safe_open(path, framework="np") as file:
            described = json.loads(file.metadata()["polyplane"])
            assert [column["name"] for column in described["model"]["inputs"]["table"]["columns"]] == list(
                bins.encoder_.kinds_
            )
            np.testing.assert_array_equal(file.get_tensor("fitted.members_.1.1.coef"), bins.members_[1].planes.coef)


class TestRefusal:
    def test_of_what_is_not_fitted_and_of_other_types(self, tmp_path):
        class Mine(TableClassifier):
            pass

        with pytest.raises(NotFittedError):
            polyplane.save(TableClassifier(), tmp_path / "m")
        with pytest.raises(TypeError, match="not a Mine"):
            polyplane.save(Mine(), tmp_path / "m")
        assert list(tmp_path.iterdir()) == []

    def test_of_what_no_file_can_hold(self, tmp_path):
        frame, y = shop(100)
        model = TableClassifier(**QUICK, gaps=pd.Index(["?"])).fit(frame, y)
        with pytest.raises(ValueError, match=r"parameters\.gaps is a Index, which model files do not support"):
            polyplane.save(model, tmp_path / "m")
        model.set_params(n_planes=0)
        with pytest.raises(ValueError, match="The 'n_planes' parameter"):
            polyplane.save(model, tmp_path / "m")
        assert list(tmp_path.iterdir()) == []


def without(tree, *keys):
    """A copy of nested dicts and lists with one place left out."""
    tree = json.loads(json.dumps(tree))
    place = tree
    for key in keys[:-1]:
        place = place[key]
    del place[keys[-1]]
    return tree


class TestDamage:
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(at=st.integers(0, 10**9), flip=st.integers(0, 255))
    def test_cut_or_altered_anywhere(self, path, saved, at, flip):
        at %= len(saved)
        content = saved[:at] + bytes([saved[at] ^ flip]) + saved[at + 1 :] if flip else saved[:at]
        with pytest.raises(ModelFileError, match=r"model\.safetensors (is|has|was|holds|contains) "):
            reload(path, content)


class TestForgery:
    """The checksum agrees, and still nothing is believed."""

    @pytest.mark.parametrize(
        ("keys", "value", "message"),
        [
            (["estimator", "parameters", "n_estimators"], 0, "an invalid model: The 'n_estimators' parameter"),
            (["estimator", "parameters", "colour"], 1, "the parameter 'colour', which TableClassifier does not have"),
            (["estimator", "parameters", "gaps"], {"list": [1, None]}, "invalid value for parameters.gaps"),
            (["estimator", "parameters", "gaps"], {"list": [], "set": []}, "invalid value for parameters.gaps"),
            (["estimator", "parameters", "gaps"], {"os.system": ["ls"]}, "invalid value for parameters.gaps"),
            ([*ENCODER, "dict"], [["dtype", "float32"]], "no encoder"),
            ([*ENCODER, "dict"], [["decimal", "x"]], "The 'decimal' parameter"),
            (ENCODER, None, "no encoder"),
            ([*COLUMNS, 1, "levels"], ["red", "red", "blue"], "'levels': it must be a list of distinct"),
            ([*COLUMNS, 1, "levels"], ["red", "blue"], "'counts': it must be a list of one count per level"),
            ([*COLUMNS, 1, "kind"], "picture", "Column 'colour' has an invalid 'kind'"),
            ([*COLUMNS, 0, "neutral"], "a", "Column 'price' has an invalid 'neutral'"),
            ([*COLUMNS, 0, "name"], "noise", "without duplicates"),
            ([*COLUMNS, 0, "has_gaps"], True, "invalid value for features"),
            ([*COLUMNS, 3, "parts"], [], "invalid value for features"),
            (["model", "inputs", "table", "names"], ["price"], "must list each of its names"),
            (COLUMNS, [], "must have at least one column"),
            (["model", "inputs", "table"], [], "The encoding must be a dict"),
            (["model", "features", "op"], {"all": 300}, "invalid value for features.op"),
            (["model", "features", "op"], {"all": 4}, "invalid value for features"),
            (["model", "features", "centre"], {"all": {"float": "nan"}}, "invalid value for features.centre"),
            (["model", "features", "factor"], {"all": 0}, "invalid value for features"),
            (["model", "features", "low"], {"all": 1e9}, "invalid value for features"),
            (MEMBERS, [], "preparation_ does not match the members"),
            ([*MEMBERS, 0], 1, "invalid value for members_.0"),
            ([*MEMBERS, 0, 0, "name"], "squares", "invalid value for members_.0.0"),
            ([*MEMBERS, 0, 0, "name"], "cubes", "invalid value for members_.0.0.name"),
            ([*MEMBERS, 0, 0, "name"], [], "invalid value for members_.0.0.name"),
            ([*MEMBERS, 0, 0, "centre"], {"array": "planes.intercept"}, "invalid value for members_.0.0"),
            ([*MEMBERS, 0, 0, "knots"], [], "invalid value for members_.0.0"),
            ([*MEMBERS, 0, 0, "extra"], 1, "invalid value for members_.0.0"),
            ([*MEMBERS, 0, 1, "coef"], {"array": "planes.coef"}, "invalid value for members_.0.1"),
            ([*MEMBERS, 0, 1], [], "invalid value for members_.0.1"),
            (["model", "temperature"], None, "the model has no temperature"),
            (["model", "temperature"], 1e-30, "invalid value for temperature"),
            ([*FITTED, "n_iter_"], -1, "invalid value for n_iter_"),
            ([*FITTED, "preparation_"], ["bins"], "preparation_ does not match the members"),
            ([*FITTED, "preparation_"], ["bins", "standard"], "preparation_ does not match the members"),
            ([*FITTED, "choice_"], {"dict": [["bins", "x"]]}, "invalid value for choice_"),
            ([*FITTED, "history_"], {"rows": 1}, "has no array for history_.rows"),
            ([*FITTED, "encoder_rows_"], -1, "invalid value for encoder_rows_"),
            ([*FITTED, "__class__"], "x", "an attribute that its learner does not have"),
        ],
    )
    def test_of_one_value(self, path, saved, keys, value, message):
        header, description, data = parts(saved)
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, replaced(description, keys, value), data))

    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ([*MEMBERS, 1], "preparation_ does not match the members"),
            ([*COLUMNS, 1], "must list each of its names"),
            ([*MEMBERS, 0, 0, "gain"], "invalid value for members_.0.0"),
            (["model", "planes"], "invalid value for planes"),
            (["model", "classes"], "has invalid classes"),
            (["model"], "invalid value for model"),
        ],
    )
    def test_by_leaving_out(self, path, saved, keys, message):
        header, description, data = parts(saved)
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, without(description, *keys), data))

    @pytest.mark.parametrize(
        ("array", "value", "message"),
        [
            ("fitted.members_.0.0.factor", -1.0, "invalid value for members_.0.0"),
            ("fitted.members_.0.0.gain", 0.0, "invalid value for members_.0.0"),
            ("fitted.members_.0.0.more_factor", np.nan, "invalid value for members_.0.0"),
            ("fitted.members_.0.0.centre", np.inf, "invalid value for members_.0.0"),
            ("fitted.members_.0.0.knots.0", 1e9, "invalid value for members_.0.0"),
            ("fitted.members_.0.1.coef", np.float32(np.nan), "coef and intercept must be finite"),
            ("features.centre", np.inf, "invalid value for features"),
            ("features.factor", 0.0, "invalid value for features"),
            ("planes.coef", np.nan, "coef and intercept must be finite"),
        ],
    )
    def test_of_numbers(self, path, saved, array, value, message):
        header, description, data = parts(saved)
        start, raw = header[array]["data_offsets"][0], np.asarray(value).tobytes()
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, description, data[:start] + raw + data[start + len(raw) :]))

    @pytest.mark.parametrize(
        ("array", "byte", "message"),
        [
            ("features.source", 127, "invalid value for features.source"),
            ("features.source", 255, "invalid value for features"),
            ("fitted.members_.0.0.is_number", 0, "invalid value for members_.0.0"),
            ("planes.indptr", 1, "indptr must increase"),
        ],
    )
    def test_of_an_index(self, path, saved, array, byte, message):
        header, description, data = parts(saved)
        start = header[array]["data_offsets"][0]
        with pytest.raises(ModelFileError, match=message):
            reload(path, assembled(header, description, data[:start] + bytes([byte]) + data[start + 1 :]))

    def test_of_an_indicator_that_is_a_number(self, path):
        frame, y = shop(100)
        model = TableClassifier(**QUICK | {"n_estimators": 1}).fit(frame, y)
        polyplane.save(model, path)
        header, description, data = parts(path.read_bytes())
        place = header["fitted.members_.0.0.is_number"]["data_offsets"][0] + 1
        with pytest.raises(ModelFileError, match="the features of a member do not match the columns"):
            reload(path, assembled(header, description, data[:place] + b"\x01" + data[place + 1 :]))

    def test_of_a_learner(self, path, saved):
        header, description, data = parts(saved)
        with pytest.raises(ModelFileError, match="PegasosSVC does not have"):
            reload(path, assembled(header, replaced(description, ["estimator", "class"], "PegasosSVC"), data))

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        pick=st.integers(0, 10**6),
        value=st.sampled_from([None, -1, 7, 1e308, "x", [], {}, {"array": "planes.coef"}, True, [0.5], 2**70]),
    )
    def test_of_any_value_is_refused_or_harmless(self, path, saved, pick, value):
        header, description, data = parts(saved)
        keys = list(places(description))
        forged = replaced(description, keys[pick % len(keys)], value)
        assume(forged != description)
        with contextlib.suppress(ModelFileError):
            model = reload(path, assembled(header, forged, data))
            frame = shop(20)[0].rename(columns={"price": model.encoder_.encoding_.columns[0].name})
            with contextlib.suppress(ValueError), np.errstate(all="ignore"):  # a column may have another kind, or name
                assert model.predict(frame).shape == (20,)


@pytest.mark.parametrize("what", ["levels", "dropped", "names", "columns", "gaps", "members", "nothing"])
def test_memory_is_bounded_by_the_file(path, saved, what):
    header, description, data = parts(saved)
    many = 100_000
    texts = [f"{i:x}" for i in range(many)]
    table = json.loads(json.dumps(description["model"]["inputs"]["table"]))
    columns, forged = table["columns"], description
    match what:
        case "levels":
            columns[1] |= {"levels": texts, "counts": [0] * many}
        case "dropped":
            table |= {"dropped": dict.fromkeys(texts, ""), "names": [*table["names"], *texts]}
        case "names" | "gaps":
            table[what] = texts
        case "columns":
            table["columns"] = [{**columns[0], "name": text} for text in texts[:10_000]]
        case "members":
            forged = replaced(description, MEMBERS, description["estimator"]["fitted"]["members_"][:1] * 5_000)
    content = assembled(header, replaced(forged, ["model", "inputs", "table"], table), data)
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with contextlib.suppress(ModelFileError):
            polyplane.load(path)
            assert what in ("nothing", "dropped", "gaps")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < TIMES * len(content) + (1 << 20)
