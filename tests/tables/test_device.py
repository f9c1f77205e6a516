"""Tables whose members are trained on a device: that of PyTorch if there is one, and that of array-api-strict."""

import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification

from polyplane import MultiHyperplaneClassifier, TableClassifier, load, save
from polyplane.datasets import make_checkerboard
from polyplane.engine.run import Run
from polyplane.learners import log_loss
from polyplane.learners.many import Part
from polyplane.tables import classifier, members
from polyplane.tables.members import EncodedRows, TableCommittee
from polyplane.tables.preparation import RECIPES

STRICT = array_api_strict.empty(0, device=array_api_strict.Device("device1"))


def table(n_rows=500):
    rng = np.random.default_rng(0)
    size, age = rng.normal(size=n_rows), rng.integers(18, 80, n_rows)
    colour = rng.choice(["red", "blue", "green"], n_rows)
    frame = pd.DataFrame({"size": np.where(size > 2, np.nan, size), "age": age, "colour": colour})
    return frame, np.where((size > 0) == (colour == "red"), "ripe", np.where(age > 60, "old", "raw"))


FRAME, Y = table()


@pytest.fixture(params=["strict", "torch"])
def device(request, monkeypatch):
    """The name of a device; NumPy cannot look at the arrays of array-api-strict."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    if request.param == "torch":
        pytest.importorskip("torch")
        return "cpu"
    monkeypatch.setattr(classifier, "on_device", lambda name: STRICT)
    return "strict"


def rows_of(kind=STRICT):
    fitted = TableClassifier(preparation="standard", n_planes=1, max_iter=1).fit(FRAME, Y)
    encoding = fitted.encoder_.encoding_
    Z, codes = fitted.encoder_.transform(FRAME), np.searchsorted(fitted.classes_, Y)
    rows = EncodedRows(np.asarray(Z, dtype=float), codes, np.ones(len(Y)), encoding.is_indicator, 3)
    return rows.on_device(kind)


@pytest.mark.parametrize("name", RECIPES)
def test_rows_are_prepared_as_on_the_host(name):
    rows = rows_of()
    gain = np.linspace(0.5, 2.0, rows.Z.shape[1])
    for preparation in (rows.prepare(name), rows.prepare(name).weighted(gain)):
        there = members.to_numpy(rows.prepared(preparation))
        np.testing.assert_allclose(there, preparation.transform(rows.Z), atol=1e-5)


def test_the_error_is_that_of_the_cpu(device):
    errors = {}
    for name in (None, device):
        model = TableClassifier(n_estimators=2, preparation="bins", max_iter=15, random_state=0, device=name)
        model.fit(FRAME[:400], Y[:400])
        errors[name] = 1 - model.score(FRAME[400:], Y[400:])
    assert errors[device] < errors[None] + 0.03 < 0.15


def test_the_model_is_one_of_the_host(device, tmp_path):
    model = TableClassifier(n_estimators=2, preparation="bins", n_planes=4, random_state=0, device=device)
    model.fit(FRAME, Y)
    assert all(type(member.planes.coef) is np.ndarray for member in model.members_)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(FRAME), model.predict_proba(FRAME))
    model.partial_fit(FRAME[:100], Y[:100])  # on the CPU
    assert model.score(FRAME, Y) > 0.9


def test_members_are_the_same_on_each_device(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    how = {"n_estimators": 3, "preparation": "bins", "n_planes": 3, "max_iter": 10, "random_state": 0}
    there = TableClassifier(**how, device="cpu").fit(FRAME, Y)
    monkeypatch.setattr(classifier, "on_device", lambda name: STRICT)
    strict = TableClassifier(**how, device="strict").fit(FRAME, Y)
    np.testing.assert_allclose(there.decision_function(FRAME), strict.decision_function(FRAME), atol=1e-3)


def test_members_with_the_same_rows_are_a_stack(device, monkeypatch):
    seen = []
    start = TableCommittee.start
    monkeypatch.setattr(TableCommittee, "start", lambda self, *args: seen.append(self.parts) or start(self, *args))
    TableClassifier(n_estimators=4, preparation="bins", n_planes=3, random_state=0, device=device).fit(FRAME, Y)
    assert [part.members for part in seen[0]] == [[0, 1, 2, 3]]
    assert isinstance(seen[0][0], Part)


def test_after_ctrl_c_the_model_is_that_of_the_last_pass(device, monkeypatch):
    """Also before planes are averaged."""
    step = Run.step

    def interrupted(self, data):
        if isinstance(self.method, TableCommittee) and self.n_steps == 2:
            raise KeyboardInterrupt
        step(self, data)

    monkeypatch.setattr(Run, "step", interrupted)
    model = TableClassifier(n_estimators=2, preparation="bins", n_planes=4, random_state=0, device=device)
    with pytest.raises(KeyboardInterrupt):
        model.fit(FRAME, Y)
    assert model.n_iter_ == 2
    assert model.score(FRAME, Y) > 0.8


def test_progress_shows_the_loss_and_all_planes(device, capsys):
    how = {"n_estimators": 2, "preparation": "bins", "n_planes": 4, "max_iter": 8, "verbose": 1}
    TableClassifier(**how, random_state=0, device=device).fit(FRAME, Y)
    first, *_, last = (line.split() for line in capsys.readouterr().out.splitlines() if "loss" in line)
    assert float(last[3]) < float(first[3]) < 2.0
    assert int(last[5]) == 24


def test_a_device_that_is_missing_is_named(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        with pytest.raises(ImportError, match=r"device='cuda' needs PyTorch: pip install"):
            TableClassifier(device="cuda").fit(FRAME, Y)
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"device='abacus' is not available to PyTorch here: "):
        TableClassifier(device="abacus").fit(FRAME, Y)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"device='cuda' is not available to PyTorch here: "):
            TableClassifier(device="cuda").fit(FRAME, Y)


def test_monotone_members_are_trained_on_the_cpu(device):
    with pytest.raises(ValueError, match="monotonic_cst needs device=None"):
        TableClassifier(device=device, monotonic_cst={"age": {"old": 1}}).fit(FRAME, Y)


class Graph:
    """A graph that calls the recorded step again; what was called while it was recorded counts as the first replay."""

    made = 0

    def replay(self):
        if self.is_new:
            self.is_new = False
        else:
            self.step()


@contextmanager
def recorded(graph, stream):
    graph.is_new, graph.step = True, sys._getframe(2).f_locals["numbered_step"]
    Graph.made += 1
    yield


@pytest.fixture
def graphs(monkeypatch):
    """Graphs of CUDA, without CUDA."""
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    stream = SimpleNamespace(wait_stream=lambda other: None, synchronize=lambda: None)
    for name in ("Stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, lambda device: stream)
    for name, value in (("stream", lambda stream: nullcontext()), ("CUDAGraph", Graph), ("graph", recorded)):
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(Graph, "made", 0)
    return lambda: monkeypatch.setattr(log_loss, "is_on_cuda", lambda array: True)


def test_steps_of_a_stack_are_recorded_once(graphs):
    import torch

    rows = rows_of(torch.empty(0))
    data = rows.data(rows.prepare("standard"))
    tasks = [members.MemberTask(data, 4, None, 6, seed) for seed in (0, 1)]
    plain = members.train_members(tasks)
    graphs()
    replayed = members.train_members(tasks)
    assert Graph.made == 1
    for one, other in zip(plain, replayed, strict=True):
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backoff", [0, 31])
def test_steps_of_a_classifier_are_recorded_once(graphs, backoff):
    import torch

    X, y = make_classification(1500, 8, n_informative=6, n_classes=3, random_state=0)
    X, model = torch.asarray(X, dtype=torch.float32), MultiHyperplaneClassifier(4, backoff=backoff, random_state=0)
    with config_context(array_api_dispatch=True):
        plain = model.fit(X, y).coef_.numpy()
        graphs()
        replayed = model.fit(X, y).coef_.numpy()
    assert Graph.made == 2  # with and without an average
    np.testing.assert_allclose(plain, replayed, rtol=1e-3, atol=1e-3 * np.abs(plain).max())


def test_a_committee_on_a_device_is_a_stack(graphs):
    import torch

    X, y = make_classification(900, 8, n_informative=6, n_classes=3, random_state=0)
    X, model = X.astype(np.float32), MultiHyperplaneClassifier(4, n_estimators=3, backoff=0, max_iter=8, random_state=0)
    expected = clone(model).fit(X, y)
    graphs()
    with config_context(array_api_dispatch=True):
        model.fit(torch.asarray(X), y)
    assert Graph.made == 1
    scale = np.abs(expected.coef_).max()
    np.testing.assert_allclose(model.to_numpy().coef_, expected.coef_, rtol=1e-4, atol=1e-4 * scale)
    np.testing.assert_allclose(model.history_["loss"], expected.history_["loss"], rtol=0.05)


def test_the_number_of_planes_on_a_device_is_that_of_the_host(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, y = make_checkerboard(1500, random_state=0)
    # Noise decides for one plane: without it all numbers of planes have a loss of nearly 0.
    linear = (X[:, 0] + 0.3 * np.random.default_rng(0).standard_normal(len(X)) > 0).astype(int)
    for labels in (y, linear):
        expected = MultiHyperplaneClassifier(max_iter=2, random_state=0).fit(X, labels)
        with config_context(array_api_dispatch=True):
            found = MultiHyperplaneClassifier(max_iter=2, random_state=0)
            found.fit(array_api_strict.asarray(X, device=array_api_strict.Device("device1")), labels)
        assert found.planes_.coef.shape == expected.planes_.coef.shape
    assert expected.planes_.n_planes == 2
