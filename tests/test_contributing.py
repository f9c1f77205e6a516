"""The learner of CONTRIBUTING.md, put in as it says: one file and one export, and everything works with it."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator
from typer.testing import CliRunner

import polyplane
from polyplane import learners

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
if not PAGE.exists():
    pytest.skip("CONTRIBUTING.md is not beside the tests (an installed copy of them)", allow_module_level=True)
EXAMPLE = PAGE.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]


@pytest.fixture(scope="module")
def learner(tmp_path_factory):
    """The estimator, in a folder that the package of learners also looks into."""
    folder = tmp_path_factory.mktemp("learners")
    (folder / "perceptron.py").write_text(EXAMPLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learners, "__path__", [*learners.__path__, str(folder)])
        patch.setitem(learners.LEARNERS, "PerceptronClassifier", "perceptron")
        patch.setitem(polyplane._HOMES, "PerceptronClassifier", "learners.perceptron")
        yield importlib.import_module("polyplane.learners.perceptron").PerceptronClassifier
        sys.modules.pop("polyplane.learners.perceptron")


def test_it_is_short():
    assert len(EXAMPLE.splitlines()) < 60


@pytest.mark.filterwarnings("default")
def test_scikit_learn_compatible(learner):
    reason = "the visits are random, so a weighted row and a repeated row lead to different planes"
    names = ("dense", "sparse")
    check_estimator(
        learner(),
        expected_failed_checks={f"check_sample_weight_equivalence_on_{name}_data": reason for name in names},
        on_skip=None,
    )


def test_training_in_every_way(learner, tmp_path):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    machine = learner(100, random_state=0).fit(X, y)
    assert machine.score(X, y) > 0.9
    batches = [(X[i : i + 30], y[i : i + 30]) for i in range(0, 150, 30)]
    path = tmp_path / "checkpoint"
    streamed = learner(random_state=0).fit_stream(batches, passes=20, checkpoint=path)
    assert streamed.score(X, y) > 0.8
    loaded = polyplane.load(path)
    assert loaded.planes_ == streamed.planes_
    assert loaded.partial_fit(X, y).planes_ == streamed.partial_fit(X, y).planes_


def test_a_failed_step_is_undone(learner, monkeypatch):
    X, y = load_iris(return_X_y=True)
    machine = learner(3, random_state=0, warm_start=True).fit(X, y)
    before = machine._state.planes.copy()
    method = type(machine._trained_by)
    step = method.step

    def fails(self, state, data):
        step(self, state, data)
        raise MemoryError

    monkeypatch.setattr(method, "step", fails)
    with pytest.raises(MemoryError):
        machine.fit(X, y)
    np.testing.assert_array_equal(machine._state.planes, before)


def test_the_command_line_knows_it(learner, tmp_path):
    from polyplane.cli import app

    X, y = load_iris(return_X_y=True)
    data, model = tmp_path / "iris.csv", tmp_path / "model.safetensors"
    np.savetxt(data, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,label", comments="")
    done = CliRunner().invoke(app, ["train", str(data), "--learner", "perceptron", "--tune", "--out", str(model)])
    assert done.exit_code == 0, done.output
    assert type(polyplane.load(model)) is learner


def test_a_cluster_trains_it(learner):
    pytest.importorskip("distributed")
    import dask.array as da
    from dask.distributed import Client

    from polyplane.dask import DaskPlaneClassifier

    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    with Client(processes=False, dashboard_address=":0"):
        machine = DaskPlaneClassifier(learner(40, random_state=0)).fit(
            da.from_array(X[order], chunks=(50, -1)), da.from_array(y[order], chunks=50)
        )
    assert machine.to_local().score(X, y) > 0.8
