"""A step that fails in the middle: the estimator, deep inside too, is that of a twin that never failed."""

import dataclasses
import inspect
import sys
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

import polyplane
from polyplane.engine.data import LARGEST_VALUE
from polyplane.engine.state import State, kinds_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SOURCE = str(Path(polyplane.__file__).parent)
PUBLIC = [getattr(polyplane, name) for name in polyplane.__all__]
LEARNERS = [getattr(polyplane, name) for name in polyplane.learners.LEARNERS]
#: No trials, whose steps would be counted.
ONE_START = {"tol": None, "inside": "dog"}
GIVEN = {"n_planes": 3, "alpha": 1e-3}
#: Where a learner has several methods, one machine of each.
VARIANTS = {
    "AdaptiveMultiHyperplaneClassifier": [{}, {"n_planes": 3, "assignment": "epoch", "growth": 0.0}],
    "ConvexPolytopeClassifier": [
        {**GIVEN, "min_entropy": 0.8},
        {**GIVEN, "enclosed": "each", "average": False, "n_jobs": 2},
    ],
    "CuttingPlaneSVC": [{"tol": None}, {"tol": None, "line_search": "exact", "C": 0.01}],
    "MultiHyperplaneClassifier": [
        {"n_planes": 3},
        {"n_planes": 3, "loss": "hinge"},
        {"n_planes": 3, "n_estimators": 2},
    ],
    "PolyceptronClassifier": [{**ONE_START, "average": False}, {**ONE_START, "mode": "online"}],
    "PolyhedralMixtureClassifier": [ONE_START, {**ONE_START, "gating": "hard", "solver": "newton"}],
    "SuccessiveLPClassifier": [ONE_START],
    "WorstCasePolytopeClassifier": [{"n_planes": 3}, {"n_planes": 3, "average": False}],
}
MACHINES = [(learner, how) for learner in LEARNERS for how in VARIANTS.get(learner.__name__, [{}])]
STREAMING = [(learner, how) for learner, how in MACHINES if hasattr(learner(), "fit_stream")]
ERRORS = [RuntimeError, MemoryError, KeyboardInterrupt]


def named(machines):
    return pytest.mark.parametrize(
        ("learner", "how"), machines, ids=[f"{m[0].__name__}-{i}" for i, m in enumerate(machines)]
    )


def make(learner, how, **more):
    params = {"max_iter": 6, "random_state": 0, **how, **more}
    return learner(**{name: value for name, value in params.items() if name in inspect.signature(learner).parameters})


def rows(seed=0, n=160):
    X, y = make_blobs(n, centers=[[-1.0, 0.0, 1.0], [1.0, 0.5, -1.0]], cluster_std=1.3, random_state=seed)
    return X, np.array(["cat", "dog"])[y]


@contextmanager
def failing(machine, at, error, after_work=True):
    """Let the method's step number `at` do all its work, and then fail; or fail before it begins."""
    method = type(machine._method(np.array(["cat", "dog"])))
    step, calls = method.step, 0

    def broken(self, state, data):
        nonlocal calls
        calls += 1
        if calls == at:
            if after_work:
                step(self, state, data)
            raise error("on purpose")
        return step(self, state, data)

    method.step = broken
    try:
        yield
    finally:
        method.step = step


def same(a, b, where="estimator"):
    """Equal to the last bit, all the way down; times aside."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif isinstance(a, State):
        for name in kinds_of(type(a)):
            same(getattr(a, name), getattr(b, name), f"{where}.{name}")
    elif isinstance(a, dict):
        timed = {"time", "reading", "outputs", "line_search", "cut", "qp"}
        assert a.keys() == b.keys(), where
        for name in a.keys() - timed:
            same(a[name], b[name], f"{where}[{name}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (inner, other) in enumerate(zip(a, b, strict=True)):
            same(inner, other, f"{where}[{i}]")
    elif isinstance(a, float):
        assert a == b or (a != a and b != b) or where.endswith(("outputs", "line_search", "cut", "qp")), where
    elif dataclasses.is_dataclass(a) or a is None or isinstance(a, int | str | bytes | np.generic | polyplane.PlaneSet):
        assert a == b or dataclasses.is_dataclass(a), where
    return True


def assert_twins(machine, twin):
    assert vars(machine).keys() == vars(twin).keys()
    same(vars(machine), vars(twin))


@named(MACHINES)
@pytest.mark.parametrize("error", ERRORS)
class TestFit:
    def test_a_first_fit(self, learner, how, error):
        """An error leaves nothing; Ctrl-C leaves the model of the last finished step."""
        machine, twin = make(learner, how), make(learner, how)
        with failing(machine, 3, error), pytest.raises(error):
            machine.fit(*rows())
        if error is KeyboardInterrupt:
            with failing(twin, 3, error, after_work=False), pytest.raises(error):
                twin.fit(*rows())
            assert machine.n_iter_ == 2
        assert_twins(machine, twin)

    def test_a_warm_start_on_the_same_rows(self, learner, how, error):
        machine = make(learner, how, warm_start=True).fit(*rows())
        twin = deepcopy(machine)
        with failing(machine, 2, error), pytest.raises(error):
            machine.fit(*rows())
        if error is KeyboardInterrupt:
            with failing(twin, 2, error, after_work=False), pytest.raises(error):
                twin.fit(*rows())
        assert_twins(machine, twin)
        assert_twins(machine.fit(*rows()), twin.fit(*rows()))

    def test_a_warm_start_on_other_rows(self, learner, how, error):
        machine = make(learner, how, warm_start=True).fit(*rows())
        twin = deepcopy(machine)
        with failing(machine, 1, error), pytest.raises(error):
            machine.fit(*rows(seed=1))
        assert_twins(machine, twin)
        assert_twins(machine.fit(*rows(seed=1)), twin.fit(*rows(seed=1)))


@named(STREAMING)
@pytest.mark.parametrize("error", ERRORS)
class TestBatches:
    def test_partial_fit(self, learner, how, error):
        machine = make(learner, how).partial_fit(*rows(), classes=["cat", "dog"])
        twin = deepcopy(machine)
        with failing(machine, 1, error), pytest.raises(error):
            machine.partial_fit(*rows(seed=1))
        assert_twins(machine, twin)
        assert_twins(machine.partial_fit(*rows(seed=2)), twin.partial_fit(*rows(seed=2)))

    def test_fit_stream(self, learner, how, error, tmp_path):
        """The model, and the checkpoint, are those of the batches before."""
        machine, twin = make(learner, how), make(learner, how)
        batches, path = [rows(seed=seed) for seed in range(6)], tmp_path / "checkpoint"
        with failing(machine, 4, error), pytest.raises(error):
            machine.fit_stream(batches, checkpoint=path)
        twin.fit_stream(batches[:3])
        assert_twins(machine, twin)
        assert polyplane.load(path).planes_ == twin.planes_
        assert_twins(machine.partial_fit(*batches[3]), twin.partial_fit(*batches[3]))
        resumed = make(learner, how).fit_stream(batches, checkpoint=path, resume=True)
        assert resumed.planes_ == make(learner, how).fit_stream(batches).planes_


@contextmanager
def interrupted_at_line(number):
    """Raise KeyboardInterrupt before the line of that number, counted over all lines of the package that are run."""
    left = number

    def trace(frame, event, argument):
        nonlocal left
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: number - left
    finally:
        sys.settrace(before)


@named(MACHINES)
def test_ctrl_c_anywhere(learner, how):
    """Wherever in a warm start Ctrl-C comes, what is left is the model of a whole number of steps."""
    X, y = rows()
    start = make(learner, how | {"n_jobs": None}, max_iter=3, warm_start=True).fit(X, y)  # lines are counted
    models = [start.planes_]
    for n in (1, 2):
        machine = deepcopy(start)
        with failing(machine, n + 1, KeyboardInterrupt, after_work=False), pytest.raises(KeyboardInterrupt):
            machine.fit(X, y)
        models.append(machine.planes_)
    models.append(deepcopy(start).fit(X, y).planes_)
    machine = deepcopy(start)
    with interrupted_at_line(10**9) as lines_run:
        machine.fit(X, y)
    points = np.unique(np.random.default_rng(0).integers(1, lines_run(), 60))
    for point in points:
        machine = deepcopy(start)
        with interrupted_at_line(int(point)), pytest.raises(KeyboardInterrupt):
            machine.fit(X, y)
        steps = machine.n_iter_ if machine.planes_ is not start.planes_ and machine.planes_ != models[0] else 0
        assert machine.planes_ == models[steps], f"line {point}"
        machine.fit(X, y)  # and it can go on


@pytest.mark.parametrize("half_life", [None, 2.0])
@pytest.mark.parametrize("average", [True, False])
def test_wide_sparse_streams(half_life, average):
    """Only the features that a batch has are saved; more of them come with each batch, and the sums are rescaled."""
    rng = np.random.default_rng(0)

    def batch(width):
        X = sparse.random_array((40, width), density=20 / width, format="csr", rng=rng, data_sampler=rng.normal)
        return X, np.where(np.arange(40) % 2, "cat", "dog")

    batches = [batch(width) for width in (2000, 2500, 2200, 4000, 4000)]
    make_one = partial(polyplane.ConvexPolytopeClassifier, 3, average=average, random_state=0)
    machine, twin = make_one(), make_one().fit_stream(batches[:3], half_life=half_life)
    with failing(machine, 4, RuntimeError), pytest.raises(RuntimeError):
        machine.fit_stream(batches, half_life=half_life)
    assert machine.n_features_in_ == 2500
    assert_twins(machine, twin)


HUGE = {np.float32: 5e37, np.float64: 1e300}


def huge(X, dtype):
    """Finite rows whose squares are not."""
    return (X.astype(dtype) * dtype(HUGE[dtype])).clip(np.finfo(dtype).min, np.finfo(dtype).max)


@named(MACHINES)
@pytest.mark.parametrize("dtype", HUGE)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
class TestOverflow:
    """Rows that would overflow are refused before any step; warnings are errors here."""

    def test_fit(self, learner, how, dtype, container):
        X, y = rows()
        machine = make(learner, how).fit(container(X.astype(dtype)), y)
        twin = deepcopy(machine)
        with pytest.raises(ValueError, match=r"X contains \S+, and the squares of such values overflow .*\.$"):
            machine.fit(container(huge(X, dtype)), y)
        assert_twins(machine, twin)

    def test_just_below_the_bound(self, learner, how, dtype, container):
        X, y = rows()
        bound = LARGEST_VALUE[np.dtype(dtype).itemsize]
        machine = make(learner, how).fit(container((X * (0.99 * bound / np.abs(X).max())).astype(dtype)), y)
        assert np.isfinite(machine.planes_.coef).all()


@named(STREAMING)
@pytest.mark.parametrize("dtype", HUGE)
class TestOverflowInBatches:
    def test_partial_fit(self, learner, how, dtype):
        """The next good batch goes on as if the bad one had never come."""
        X, y = rows()
        X = X.astype(dtype)
        machine = make(learner, how).partial_fit(X, y, classes=["cat", "dog"])
        twin = deepcopy(machine)
        with pytest.raises(ValueError, match="overflow"):
            machine.partial_fit(huge(X, dtype), y)
        assert_twins(machine, twin)
        assert_twins(machine.partial_fit(X, y), twin.partial_fit(X, y))

    def test_fit_stream(self, learner, how, dtype, tmp_path):
        """The model, and the checkpoint, are those of the batches before; with a good one instead it can go on."""
        batches = [(X.astype(dtype), y) for X, y in (rows(seed=seed) for seed in range(6))]
        bad, path = [*batches[:3], (huge(batches[3][0], dtype), batches[3][1]), *batches[4:]], tmp_path / "checkpoint"
        machine = make(learner, how)
        with pytest.raises(ValueError, match=r"Batch 4 of the stream: X contains \S+, and the squares .* overflow"):
            machine.fit_stream(bad, checkpoint=path)
        assert_twins(machine, make(learner, how).fit_stream(batches[:3]))
        assert polyplane.load(path).planes_ == machine.planes_
        resumed = make(learner, how).fit_stream(batches, checkpoint=path, resume=True)
        assert resumed.planes_ == make(learner, how).fit_stream(batches).planes_


def test_a_stream_whose_planes_are_not_finite_costs_nothing(monkeypatch):
    """What was fitted before stays when no model can be made of the batches."""
    X, y = rows()
    machine = polyplane.PegasosSVC(random_state=0).fit(X, y)
    twin, method = deepcopy(machine), type(machine._trained_by)

    def no_planes(self, state):
        raise ValueError("coef and intercept must be finite.")

    monkeypatch.setattr(method, "planes", no_planes)
    with pytest.raises(ValueError, match="finite"):
        machine.fit_stream([(X, y), (X, y)], progressive=False)
    assert_twins(machine, twin)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_class_weights_are_finite_and_not_negative(weight):
    model = polyplane.PegasosSVC(class_weight={0: 1.0, 1: weight})
    with pytest.raises(ValueError, match=r"class_weight must be finite and non-negative; the weight of .*1.* is"):
        model.fit(np.eye(2), [0, 1])


@pytest.mark.parametrize(
    ("weight", "dtype"),
    [(5e-324, "float64"), (1e-300, "float64"), (1e308, "float64"), (1e-30, "float32"), (1e30, "float32")],
)
@pytest.mark.parametrize("name", ["MultiHyperplaneClassifier", "PegasosSVC", "SuccessiveLPClassifier"])
def test_sample_weights_whose_sums_overflow_or_underflow_are_refused(name, weight, dtype):
    """The messages about planes that are not finite, or those of SciPy, say nothing of weights."""
    with pytest.raises(
        ValueError, match=r"^The largest sample weight, .* must be between .*: scale the sample weights"
    ):
        getattr(polyplane, name)().fit(np.eye(6, dtype=dtype), [0, 1] * 3, sample_weight=np.full(6, weight))
