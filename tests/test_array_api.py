"""The same learners over the arrays of other libraries, and on other devices."""

import pickle
import re

import numpy as np
import pytest
import sklearn
from benchmarks.data.infinite_digits import InfiniteDigits
from benchmarks.gpu.device_digits import DeviceDigits
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.utils.fixes import parse_version

from polyplane import (
    AdaptiveMultiHyperplaneClassifier,
    ConvexPolytopeClassifier,
    CuttingPlaneSVC,
    MultiHyperplaneClassifier,
    PegasosSVC,
    PlaneSet,
    PolyceptronClassifier,
    PolyhedralMixtureClassifier,
    SuccessiveLPClassifier,
    WorstCasePolytopeClassifier,
    load,
    save,
)
from polyplane._array_api import ThreadPool, device_of, host_dtype, namespace, to_numpy, within_device_memory
from polyplane.datasets import make_checkerboard
from polyplane.engine.data import AffineScaling, Data
from polyplane.learners import tangents
from polyplane.learners.row_sums import ArrayRowSums, RowSums
from polyplane.learners.tangents import kmeans, tangent_start

if parse_version(sklearn.__version__) < parse_version("1.8"):
    pytest.skip("scikit-learn 1.7 makes float64 of other libraries' float32", allow_module_level=True)

LIBRARIES = ["numpy", "strict on a device", "torch", "torch on cuda", "cupy"]


def maker(library):
    """A function from NumPy arrays to those of a library; skips the test where it is not at hand."""
    if library == "numpy":
        return np.asarray
    if library.startswith("strict"):
        strict = pytest.importorskip("array_api_strict")
        device = strict.Device("CPU_DEVICE" if library == "strict" else "device1")
        return lambda array: strict.asarray(array, device=device)
    if library == "cupy":
        return pytest.importorskip("cupy").asarray
    torch = pytest.importorskip("torch")
    if library == "torch on cuda" and not torch.cuda.is_available():
        pytest.skip("no NVIDIA device")
    return lambda array: torch.asarray(array, device="cuda" if library == "torch on cuda" else "cpu")


@pytest.fixture(params=LIBRARIES)
def array(request, monkeypatch):
    """Makes arrays of each library, and lets scikit-learn dispatch on them."""
    make = maker(request.param)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield make


@pytest.fixture
def on_device(monkeypatch):
    """Makes arrays that NumPy cannot look at."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield maker("strict on a device")


def blobs(n_classes, dtype=np.float32, n_rows=400):
    X, y = make_blobs(n_rows, 6, centers=2 * n_classes, cluster_std=2.0, random_state=0)
    return X.astype(dtype), y % n_classes


CASES = {
    "multi-hyperplane": (MultiHyperplaneClassifier(4, max_iter=4, batch_size=64, backoff=0, random_state=0), 3),
    "multi-hyperplane, anchored": (
        MultiHyperplaneClassifier(2, max_iter=2, alpha=0.1, noise=0.0, backoff=0, random_state=0),
        2,
    ),
    "multi-hyperplane, one plane": (MultiHyperplaneClassifier(1, backoff=0, random_state=0), 3),
    "committee": (
        MultiHyperplaneClassifier(3, n_estimators=2, max_iter=4, batch_size=64, backoff=0, random_state=0),
        3,
    ),
    "mixture": (PolyhedralMixtureClassifier(3, max_iter=8), 2),
    "mixture, hard": (PolyhedralMixtureClassifier(2, gating="hard", n_init=2, random_state=0, max_iter=8), 2),
    "mixture, newton": (PolyhedralMixtureClassifier(3, solver="newton", max_iter=4), 2),
    "cutting plane": (CuttingPlaneSVC(0.01), 2),
    "cutting plane, exact": (CuttingPlaneSVC(0.01, line_search="exact"), 3),
    "cutting plane, ovr": (CuttingPlaneSVC(0.01, multi_class="ovr", fit_intercept=False), 3),
    "polyceptron": (PolyceptronClassifier(3, max_iter=20), 2),
}


def a_step(machine, X, y):
    """One more step, or a warm start for a learner that needs all rows at once."""
    if not hasattr(machine, "partial_fit"):
        return machine.fit(X, y)
    return machine.partial_fit(X, y, classes=np.unique(to_numpy(y)))


@pytest.mark.parametrize("case", CASES)
class TestLearners:
    def test_finds_the_planes_of_numpy(self, array, case):
        learner, n_classes = CASES[case]
        # A row that is between two planes falls to either by rounding, and hard gating makes a step of that.
        dtype = np.float64 if case == "mixture, hard" else np.float32
        X, y = blobs(n_classes, dtype)
        weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)).astype(dtype)
        expected = clone(learner).fit(X, y, weight)
        fitted = clone(learner).fit(array(X), array(y), array(weight))
        for name in ("coef", "intercept"):
            ours, theirs = getattr(fitted.planes_, name), getattr(expected.planes_, name)
            assert namespace(ours) is namespace(array(X))
            assert device_of(ours) == device_of(array(X))
            assert host_dtype(ours) == dtype
            np.testing.assert_allclose(to_numpy(ours), theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())
        assert fitted.n_iter_ == expected.n_iter_

    def test_predicts_where_the_rows_are(self, array, case):
        learner, n_classes = CASES[case]
        X, y = blobs(n_classes, np.float64)
        fitted = clone(learner).fit(array(X), y)
        home = fitted.to_numpy()
        for method in ("predict", "decision_function", "predict_proba", "mixture_proba"):
            if hasattr(fitted, method):
                result = getattr(fitted, method)(array(X))
                assert device_of(result) == device_of(array(X))
                np.testing.assert_allclose(to_numpy(result), getattr(home, method)(X), rtol=1e-9, atol=1e-12)

    def test_goes_on_at_home(self, array, case):
        learner, n_classes = CASES[case]
        X, y = blobs(n_classes)
        if not hasattr(learner, "partial_fit"):
            learner = clone(learner).set_params(warm_start=True, tol=None, max_iter=3)
        expected = a_step(a_step(clone(learner), X, y), X, y)
        started = a_step(clone(learner), array(X), array(y))
        moved = pickle.loads(pickle.dumps(started)).to_numpy()
        assert type(moved.coef_) is np.ndarray
        # An exact search ends where the margin of a row is 0, and rounding tells on which side the next cut sees it.
        tolerance = (0.03 if case == "cutting plane, exact" else 1e-4) * np.abs(expected.coef_).max()
        np.testing.assert_allclose(a_step(moved, X, y).coef_, expected.coef_, rtol=1e-4, atol=tolerance)
        there = to_numpy(a_step(started, array(X), y).coef_)
        np.testing.assert_allclose(there, expected.coef_, rtol=1e-4, atol=tolerance)


def test_a_saved_model_is_at_home(array, tmp_path):
    X, y = blobs(2)
    for learner in (CuttingPlaneSVC(0.01), PolyhedralMixtureClassifier(max_iter=3)):
        fitted = learner.fit(array(X), array(y))
        save(fitted, tmp_path / "model.safetensors")
        assert load(tmp_path / "model.safetensors").planes_ == fitted.planes_.to_numpy()


class TestMultiHyperplane:
    def test_small_machines_compete_there(self, array):
        X, y = blobs(2, n_rows=80)
        machine = MultiHyperplaneClassifier(max_iter=1, random_state=0)
        expected, fitted = clone(machine).fit(X, y), clone(machine).fit(array(X), y)
        assert fitted.planes_.n_planes == expected.planes_.n_planes
        np.testing.assert_allclose(to_numpy(fitted.coef_), expected.coef_, rtol=1e-4, atol=1e-4)

    def test_rows_rest_and_noise_falls_alike(self, array):
        X, y = blobs(3, n_rows=900)
        machine = MultiHyperplaneClassifier(
            4, max_iter=12, batch_size=128, backoff=3, early_stopping=True, random_state=1
        )
        if isinstance(array(X), np.ndarray):
            pytest.skip("Dense rows on the host get other noise, and teach the planes in contention alone.")
        expected, fitted = clone(machine).fit(sparse.csr_array(X), y), clone(machine).fit(array(X), y)
        np.testing.assert_allclose(fitted.history_["loss"], expected.history_["loss"], rtol=1e-3)
        assert fitted.history_["validation_error"] == pytest.approx(expected.history_["validation_error"], abs=0.03)

    @pytest.mark.parametrize("batch_size", [4096, 16_384])
    def test_large_batches_keep_the_accuracy(self, batch_size):
        X, y = make_checkerboard(12_000, (4, 4), random_state=0)
        X_test, y_test = make_checkerboard(4_000, (4, 4), random_state=1)
        how = {"n_planes": 16, "max_iter": 20, "random_state": 0}
        usual, large = (
            np.mean(MultiHyperplaneClassifier(batch_size=size, **how).fit(X, y).predict(X_test) != y_test)
            for size in (256, batch_size)
        )
        assert usual < 0.05
        assert large < usual + 0.01

    def test_few_rows_are_learned_in_the_usual_batches(self):
        X, y = blobs(3)
        usual, large = (
            MultiHyperplaneClassifier(2, batch_size=size, max_iter=2, random_state=0).fit(X, y) for size in (256, 4096)
        )
        assert usual.planes_ == large.planes_

    def test_kmeans_serves_idle_centres(self, array):
        X = np.repeat(np.arange(5.0), 20)[:, None].astype(np.float32) ** 2
        for seed in range(5):
            expected = kmeans(X, 5, np.random.default_rng(seed))
            found = kmeans(array(X), 5, np.random.default_rng(seed))
            np.testing.assert_allclose(np.sort(to_numpy(found), axis=0), np.sort(expected, axis=0), rtol=1e-5)

    @pytest.mark.parametrize("most", [tangents.MOST_DISTANCES, 0])
    def test_centres_of_all_classes_are_found_together(self, array, monkeypatch, most):
        """Of classes with many rows, with equal ones, with as many as planes, with one, and with none."""
        monkeypatch.setattr(tangents, "MOST_DISTANCES", most)
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(400, 3)), [300, *[3] * 99, *[1] * 300], axis=0).astype(np.float32)
        y = np.repeat([0, 1, 2, 3], [800, 90, 6, 1])
        X[:300] *= 5.0
        X[800:830], X[891], n_planes = X[800], X[890], np.array([12, 60, 6, 1, 1])
        starts = []
        for rows in (X, array(X)):
            data = Data(rows, y, np.ones(len(y), dtype=np.float32), np.arange(len(y)), 5)
            scaling = AffineScaling.common(rows, data.training_weight)
            starts.append(tangent_start(data, n_planes, scaling, 1.0, seed=0))
        expected, found = (np.sort(to_numpy(start.centres), axis=1) for start in starts)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_array_equal(starts[1].mask, starts[0].mask)
        assert starts[1].scale == pytest.approx(starts[0].scale, rel=1e-4)

    def test_labels_that_are_words_stay_on_the_host(self, array):
        X, y = blobs(2)
        words = np.array(["ham", "spam"])[y]
        fitted = MultiHyperplaneClassifier(2, max_iter=5, random_state=0).fit(array(X), words)
        predicted = fitted.predict(array(X))
        assert type(predicted) is np.ndarray
        assert (predicted == words).mean() > 0.9


class TestPlaneSet:
    planes = PlaneSet(np.eye(5, 3, dtype=np.float32), np.arange(5, dtype=np.float32) / 5, [0, 1, 3, 5])

    @pytest.mark.parametrize("pooling", ["max", "logsumexp"])
    def test_scores_on_any_device(self, array, pooling):
        X = np.random.default_rng(0).normal(size=(70, 3)).astype(np.float32)
        for indptr in ([0, 1, 3, 5], [0, 3, 6]):  # classes of different sizes, and of the same
            coef, intercept = np.eye(indptr[-1], 3, dtype=np.float32), np.arange(indptr[-1], dtype=np.float32) / 5
            planes, y = PlaneSet(coef, intercept, indptr, pooling=pooling), np.arange(70) % (len(indptr) - 1)
            there = planes.to(array(X))
            for method in ("scores", "class_scores", "winners", "predict", "margins"):
                expected, found = getattr(planes, method)(X), getattr(there, method)(array(X))
                np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(to_numpy(there.margins(array(X), array(y))), planes.margins(X, y), atol=1e-6)

    def test_blocks_do_not_show(self, array, monkeypatch):
        X = np.random.default_rng(0).normal(size=(70, 3)).astype(np.float32)
        monkeypatch.setattr("polyplane.planes.DEVICE_BLOCK_SCORES", 64)
        np.testing.assert_array_equal(to_numpy(self.planes.to(array(X)).predict(array(X))), self.planes.predict(X))

    def test_comes_home_the_same(self, array):
        there = self.planes.to(array(np.zeros((1, 3), dtype=np.float32)))
        assert there.to_numpy() == self.planes
        keep = np.array([True, False, True, True, False])
        assert there.prune(keep).to_numpy() == self.planes.prune(keep)
        assert pickle.loads(pickle.dumps(there)).to_numpy() == self.planes

    def test_says_where_it_is(self, on_device):
        assert repr(self.planes.to(on_device(np.zeros(1)))).endswith(
            "dtype=float32, device=array_api_strict.Device('device1'))"
        )


class TestArrayRowSums:
    """Against the compiled sums, on the same rows."""

    @pytest.mark.parametrize("n_planes", [1, 4])
    @pytest.mark.parametrize("form", ["numpy", "strict"])
    def test_sums_are_those_of_the_kernels(self, n_planes, form):
        form = maker(form)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 5))
        target = (rng.integers(0, n_planes, 200) if n_planes > 1 else rng.choice([-1, 1], 200)).astype(np.int32)
        weight = rng.uniform(0.5, 2.0, 200)
        expected = RowSums(X, target, weight, n_planes, 1.0, ThreadPool(1))
        found = ArrayRowSums(form(X), target, weight, n_planes, 1.0)
        current, candidate = rng.normal(size=(2, n_planes, 6))
        for sums in (expected, found):
            sums.set_current(current)
            sums.set_candidate(candidate)
        np.testing.assert_allclose(found.risks([0.0, 0.3, 1.2]), expected.risks([0.0, 0.3, 1.2]), rtol=1e-12)
        assert found.slope() == pytest.approx(expected.slope(), rel=1e-12)
        for a, b in zip(found.kinks(2.0), expected.kinks(2.0), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        for mu in (0.2, 0.9):
            (normal, offset), (normal_b, offset_b) = found.cut(mu), expected.cut(mu)
            np.testing.assert_allclose(normal, normal_b, rtol=1e-9, atol=1e-9)
            assert offset == pytest.approx(offset_b, rel=1e-12)
        found.move(0.4)
        expected.move(0.4)
        np.testing.assert_allclose(found.risks([0.0]), expected.risks([0.0]), rtol=1e-12)

    def test_no_kinks_up_to_nowhere(self):
        sums = ArrayRowSums(np.ones((3, 1)), np.ones(3, dtype=np.int32), np.ones(3), 1, 1.0)
        sums.set_current(np.zeros((1, 2)))
        sums.set_candidate(np.ones((1, 2)))
        assert [len(part) for part in sums.kinks(1e-9)] == [0, 0]


NUMBA_LEARNERS = [
    ConvexPolytopeClassifier(),
    PegasosSVC(),
    SuccessiveLPClassifier(),
    PolyceptronClassifier(mode="online"),
    MultiHyperplaneClassifier(loss="hinge"),
    AdaptiveMultiHyperplaneClassifier(),
    WorstCasePolytopeClassifier(),
]


class TestDeviceDigits:
    images = np.random.default_rng(0).integers(0, 256, (7, 12, 12)).astype(np.uint8)

    @pytest.mark.parametrize("strength", [0.1, 8.0])
    def test_the_same_bytes(self, array, strength):
        strengths = dict.fromkeys(("rotation", "scale", "shear", "shift", "elastic", "thickness"), strength)
        digits = InfiniteDigits(self.images, np.arange(7), random_state=3, **strengths)
        device_digits = DeviceDigits(digits, array(np.zeros(1)))
        for first in (0, 2**40):
            X, y = device_digits[first : first + 50]
            expected = digits[first : first + 50]
            assert device_of(X) == device_of(array(np.zeros(1)))
            np.testing.assert_array_equal(to_numpy(X), expected[0])
            np.testing.assert_array_equal(y, expected[1])

    def test_blocks_do_not_show(self, array, monkeypatch):
        digits = InfiniteDigits(self.images, np.arange(7))
        monkeypatch.setattr("benchmarks.gpu.device_digits.BLOCK", 16)
        X, _ = DeviceDigits(digits, array(np.zeros(1)))[3:400]
        np.testing.assert_array_equal(to_numpy(X), digits[3:400][0])

    def test_batches_are_learned_from_where_they_are_made(self, array):
        digits = InfiniteDigits(self.images, np.arange(7))
        machine = MultiHyperplaneClassifier(1, max_iter=5, random_state=0)
        batches = list(DeviceDigits(digits, array(np.zeros(1))).batches(100, stop=350))
        for X, y in batches:
            machine.partial_fit(X, y, classes=range(7))
        streamed = clone(machine).fit_stream(batches, classes=range(7), validation=batches[-1])
        np.testing.assert_array_equal(to_numpy(streamed.coef_), to_numpy(machine.coef_))
        assert streamed.history_["validation_error"][-1] < 0.5
        assert device_of(machine.coef_) == device_of(X)
        expected = list(digits.batches(100, stop=350))[-1][0]
        assert X.shape == expected.shape
        np.testing.assert_allclose(to_numpy(X), expected, rtol=1e-6)
        assert (machine.to_numpy().predict(digits[:7][0].astype(np.float32) / 255) == np.arange(7)).all()


class TestBadInput:
    X, y = blobs(2)

    @pytest.mark.parametrize("learner", NUMBA_LEARNERS)
    def test_loops_refuse_device_arrays(self, on_device, learner):
        with pytest.raises(TypeError, match=r"trains row by row.*pass a NumPy array"):
            learner.fit(on_device(self.X), self.y)
        assert not hasattr(learner, "classes_")

    def test_device_array_without_dispatch(self, on_device):
        machine = CuttingPlaneSVC().fit(self.X, self.y)
        with config_context(array_api_dispatch=False):
            for name, arguments in (("X", (on_device(self.X), self.y)), ("y", (self.X, on_device(self.y)))):
                with pytest.raises(ValueError, match=rf"^{name} is an array of array_api_strict.*dispatch is off"):
                    CuttingPlaneSVC().fit(*arguments)
            with pytest.raises(ValueError, match="dispatch is off"):
                machine.predict(on_device(self.X))

    def test_host_array_without_dispatch_is_taken_as_numpy(self):
        array = maker("strict")
        fitted = CuttingPlaneSVC().fit(array(self.X), array(self.y))
        assert type(fitted.coef_) is np.ndarray

    def test_two_devices(self, on_device):
        strict = namespace(on_device(self.y))
        elsewhere = strict.asarray(self.y, device=strict.Device("device2"))
        with pytest.raises(ValueError, match=r"y is .*device2.* but X is .*device1.*move one"):
            CuttingPlaneSVC().fit(on_device(self.X), elsewhere)
        with pytest.raises(ValueError, match=r"sample_weight is .*device2.* but X is .*device1"):
            CuttingPlaneSVC().fit(on_device(self.X), self.y, elsewhere)
        with pytest.raises(ValueError, match=r"coef is .*device1.* but intercept is a NumPy array"):
            PlaneSet(on_device(np.eye(2)), np.zeros(2), [0, 1, 2])

    def test_planes_elsewhere(self, on_device):
        at_home = CuttingPlaneSVC().fit(self.X, self.y)
        away = CuttingPlaneSVC(warm_start=True).fit(on_device(self.X), self.y)
        for model, rows in ((at_home, on_device(self.X)), (away, self.X)):
            with pytest.raises(ValueError, match=r"X is a.* but the planes are a.*to_numpy"):
                model.predict(rows)
            with pytest.raises(ValueError, match="move the planes"):
                model.planes_.predict(rows)
        before = away.planes_
        with pytest.raises(ValueError, match="but the planes are"):
            away.fit(self.X, self.y)
        assert away.planes_ is before
        np.testing.assert_array_equal(
            to_numpy(at_home.planes_.to(on_device(self.X)).predict(on_device(self.X))), at_home.predict(self.X)
        )

    def test_no_float64_there(self, on_device):
        strict = namespace(on_device(self.y))
        coarse = strict.asarray(self.X, device=strict.Device("no_float64"))
        planes = PlaneSet(np.eye(2, 6), np.zeros(2), [0, 1, 2])
        with pytest.raises(ValueError, match=r"float64, which .*no_float64.* does not support"):
            planes.to(coarse)
        for learner in (
            CuttingPlaneSVC(0.01),
            PolyhedralMixtureClassifier(max_iter=5),
            PolyceptronClassifier(max_iter=5),
        ):
            fitted = learner.fit(coarse, self.y, np.ones(len(self.y)))
            assert host_dtype(fitted.coef_) == np.float32
            assert (to_numpy(fitted.predict(coarse)) == self.y).mean() > 0.7

    def test_half_precision(self, on_device):
        torch = pytest.importorskip("torch")
        with pytest.raises(ValueError, match="bfloat16, which is not precise enough"):
            CuttingPlaneSVC().fit(torch.asarray(self.X).bfloat16(), self.y)

    def test_sparse_arrays_of_devices(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(TypeError, match=r"sparse array of torch.*SciPy CSR.*to_dense"):
            CuttingPlaneSVC().fit(torch.asarray(self.X).to_sparse(), self.y)

        class FromCuPy:
            __module__ = "cupyx.scipy.sparse._csr"

        with pytest.raises(TypeError, match="sparse array of cupyx"):
            CuttingPlaneSVC().fit(FromCuPy(), self.y)

    def test_not_finite(self, array):
        X = self.X.copy()
        X[3, 2] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            CuttingPlaneSVC().fit(array(X), self.y)

    @pytest.mark.parametrize(
        ("message", "size"),
        [
            ("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has", "20.00 MiB"),
            ("Out of memory allocating 1,234,567 bytes (allocated so far: 3 bytes).", "1,234,567 bytes"),
        ],
    )
    def test_out_of_device_memory(self, on_device, monkeypatch, message, size):
        class OutOfMemoryError(RuntimeError):
            pass

        def full(*arguments):
            raise OutOfMemoryError(message)

        fitted = MultiHyperplaneClassifier(2, max_iter=1, batch_size=128, warm_start=True, random_state=0)
        fitted.fit(on_device(self.X), self.y)
        before = fitted.planes_
        monkeypatch.setattr("polyplane.learners.log_loss.dense_gradient", full)
        with pytest.raises(MemoryError, match=rf"{re.escape(size)} more.*smaller batch_size than 128"):
            fitted.fit(on_device(self.X), self.y)
        assert fitted.planes_ is before

    def test_other_errors_pass(self):
        with pytest.raises(ZeroDivisionError), within_device_memory("Never mind."):
            1 / 0  # noqa: B018
