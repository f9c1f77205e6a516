"""All figures of the learners on a GPU: ``python -m benchmarks.gpu.figures``.

Times on the device are taken by its own events, after a warm-up, and stand beside two floors: the bytes that must move
over the bandwidth, and the operations of the matrix products over their rate, both ceilings measured in the same run.
The CPU's times are those of two cores of the same machine. Needs PyTorch and POLYPLANE_DATA. ``--quick`` makes
everything small, and ``--device cpu`` tries it without a GPU; neither gives figures to quote. Results lie in
``results/figures.json``, and what is there already is not measured again.
"""

import argparse
import os
import sys
import time
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn asks for it, before SciPy is imported

import numpy as np
import torch
from benchmarks.data.infinite_digits import InfiniteDigits
from benchmarks.data.splits import STANDARDISED, real
from benchmarks.gpu.clock import beside_floors, ceilings, products, seconds
from benchmarks.gpu.device_digits import DeviceDigits
from benchmarks.harness.results import Results
from sklearn import config_context
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from polyplane import (
    CuttingPlaneSVC,
    MultiHyperplaneClassifier,
    PlaneSet,
    PolyceptronClassifier,
    PolyhedralMixtureClassifier,
    TableClassifier,
)
from polyplane.datasets import load_dataset
from polyplane.engine.run import Run

SETS = ("letter", "ijcnn1", "usps", "mnist")
#: Machines that are trained on all digits. The number of planes and of passes of the large one was chosen on the last
#: 10,000 of MNIST's training rows, with digits made of the first 50,000.
DIGITS = {
    "30 planes": ({"n_planes": 30, "max_iter": 10, "batch_size": 16_384}, "full"),
    "200 planes": ({"n_planes": 200, "max_iter": 20, "batch_size": 16_384}, "tf32"),
}
#: Seeds that errors on small sets are averaged over.
SEEDS = 3


class Bench:
    """The device, the sizes, and what has been loaded."""

    def __init__(self, device, quick):
        self.device = torch.device(device)
        self.n_digits = 70_000 if quick else 8_100_000
        self.n_predicted = 20_000 if quick else 10_000_000
        self.quick = quick
        self.limits = ceilings(self.device)
        self._digits = None

    def put(self, array):
        """An array on the device."""
        return torch.asarray(array, device=self.device)

    def empty(self):
        """What tells the library and the device to makers of digits."""
        return torch.empty(0, device=self.device)

    def wait(self):
        """Let the device finish what it was told."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def timed_fit(self, machine, X, y):
        """Wall-clock seconds of a fit on the device, all of it: checks, start, transfers."""
        self.wait()
        began = time.perf_counter()
        with config_context(array_api_dispatch=True):
            machine.fit(X, y)
        self.wait()
        return time.perf_counter() - began

    def digits(self):
        """All digits, on the device, made once."""
        if self._digits is None:
            stream = DeviceDigits(InfiniteDigits(n_rows=self.n_digits), self.empty())
            self._digits = next(stream.batches(self.n_digits))
        return self._digits

    def error(self, machine, X, y):
        """Test error in percent."""
        with config_context(array_api_dispatch=True):
            predicted = machine.predict(self.put(X)).cpu().numpy()
        return round(100 * float((predicted != y).mean()), 2)


def on_two_cores(function):
    """What a function gives when it may use two cores of the host."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(everywhere)[:2]))
    try:
        with threadpool_limits(2):
            return function()
    finally:
        os.sched_setaffinity(0, everywhere)


def training_set(name):
    data = real(name)
    if name not in STANDARDISED:
        return data
    scaler = StandardScaler().fit(data.X)
    return data._replace(X=scaler.transform(data.X), X_test=scaler.transform(data.X_test))


def covtype():
    """Class 2 against the rest, features scaled to [0, 1]."""
    data = load_dataset("covtype")
    low, high = data.data.min(axis=0), data.data.max(axis=0)
    return ((data.data[:464_810] - low) / (high - low)).astype(np.float32), data.target[:464_810] == 2


def same_planes(bench):
    """Largest difference to the planes that NumPy gives, relative to the largest weight; training errors of both.

    Rounding differs, and training makes more of it at each step; so the iterative learners make few.
    """
    cover, is_two = covtype()
    ijcnn1 = training_set("ijcnn1")
    cases = {
        "mixture": (PolyhedralMixtureClassifier(6, max_iter=10), ijcnn1.X, ijcnn1.y),
        "cutting_plane": (CuttingPlaneSVC(), cover, is_two),
        "polyceptron": (PolyceptronClassifier(6, max_iter=50), ijcnn1.X, ijcnn1.y),
    }
    for name in SETS:
        data = training_set(name)
        cases[f"multi_hyperplane_{name}"] = MultiHyperplaneClassifier(16, max_iter=2, random_state=0), data.X, data.y
    figures = {}
    for name, (machine, X, y) in cases.items():
        expected = machine.fit(X, y).planes_
        figures[f"{name}_error"] = round(100 * float((machine.predict(X) != y).mean()), 2)
        bench.timed_fit(machine, bench.put(X), y)
        gap = np.abs(machine.planes_.to_numpy().coef - expected.coef).max(axis=1) / np.abs(expected.coef).max()
        figures[f"{name}_difference"] = float(f"{gap.max():.2g}")
        figures[f"{name}_median_difference"] = float(f"{np.median(gap):.2g}")
        figures[f"{name}_error_on_device"] = bench.error(machine, X, y)
    return figures


def making(bench):
    """Images made on the device per second."""
    stream = DeviceDigits(InfiniteDigits(), bench.empty())
    n = min(bench.n_digits, 1_000_000)
    rows, out = np.arange(100_000, 100_000 + n), stream.empty(n, torch.float32)
    measured = seconds(lambda: stream.write(rows, out), bench.device, 3)
    n_bytes = n * 784 * 4 + 2 * n * 784 * 4  # written, and as many gathered from images and fields
    return beside_floors(measured, n_bytes, 0, bench.limits) | {"images_per_second": round(n / measured)}


def one_epoch(bench, batch_size, precision):
    """A pass over all digits with 30 planes per class, no row at rest."""
    X, y = bench.digits()
    machine = MultiHyperplaneClassifier(30, batch_size=batch_size, backoff=0, max_iter=10, random_state=0)
    with config_context(array_api_dispatch=True), products(precision):
        data = machine._validated(X, y, None, None)
        run = Run(machine._method(machine.classes_))
        measured = seconds(lambda: run.step(data), bench.device, 3)
    n, d = X.shape
    return beside_floors(measured, 4 * n * d, 4 * n * (d + 1) * 300, bench.limits, precision)


def all_digits(bench, how, precision):
    """Train on all digits, made on the device: time of all, and the error on MNIST's test rows."""
    bench._digits = None
    test = real("mnist")
    began = time.perf_counter()
    X, y = bench.digits()
    bench.wait()
    made = time.perf_counter() - began
    machine = MultiHyperplaneClassifier(random_state=0, **how)
    with products(precision):
        trained = bench.timed_fit(machine, X, y)
    return {
        "make_s": round(made, 2),
        "train_s": round(trained, 2),
        "total_s": round(made + trained, 2),
        "error": bench.error(machine, test.X_test, test.y_test),
        "first_epochs_s": np.diff([0, *machine.history_["time"][:3]]).round(2).tolist(),
    }


def beside_cpu(bench, name):
    """Error and time of the default machine and of a committee of five: on the device, and on two cores."""
    data = training_set(name)
    how = {"max_iter": 5} if bench.quick else {}
    X = bench.put(data.X)
    figures = {}
    settings = {"device_256": {}, "device_4096": {"batch_size": 4096}, "device_committee": {"n_estimators": 5}}
    for kind, own in settings.items():
        machines = [MultiHyperplaneClassifier(random_state=seed, **own, **how) for seed in range(SEEDS)]
        times = [bench.timed_fit(machine, X, data.y) for machine in machines]
        figures[f"{kind}_s"] = round(min(times), 3)
        errors = [bench.error(machine, data.X_test, data.y_test) for machine in machines]
        figures[f"{kind}_error"] = round(float(np.mean(errors)), 2)

    def on_host(seed):
        machine = MultiHyperplaneClassifier(random_state=seed, **how)
        began = time.perf_counter()
        machine.fit(data.X, data.y)
        return time.perf_counter() - began, 100 * float((machine.predict(data.X_test) != data.y_test).mean())

    n_seeds = 1 if name == "mnist" else SEEDS
    outcomes = [on_two_cores(lambda seed=seed: on_host(seed)) for seed in range(n_seeds)]
    figures["cpu_s"], figures["cpu_error"] = round(min(outcomes)[0], 3), round(float(np.mean(outcomes, axis=0)[1]), 2)
    return figures


def cutting_plane(bench):
    """Class 2 of covtype to a proven gap of 1 %, beside two cores."""
    X, y = covtype()
    on_device = bench.put(X)

    def on_host():
        CuttingPlaneSVC(max_iter=2, n_jobs=2, tol=None).fit(X, y)
        began = time.perf_counter()
        machine = CuttingPlaneSVC(n_jobs=2).fit(X, y)
        return time.perf_counter() - began, machine

    taken, host_machine = on_two_cores(on_host)
    machine = CuttingPlaneSVC()
    bench.timed_fit(machine, on_device, y)
    measured = min(bench.timed_fit(machine, on_device, y) for _ in range(3))
    n, d = X.shape
    floors = beside_floors(measured, 2 * machine.n_cuts_ * n * d * 4, 0, bench.limits)
    parts = {part: round(sum(machine.history_[part]), 4) for part in ("outputs", "line_search", "cut", "qp")}
    return (
        floors
        | parts
        | {
            "cuts": machine.n_cuts_,
            "cpu_cuts": host_machine.n_cuts_,
            "cpu_s": round(taken, 3),
            "times_faster": round(taken / measured, 1),
        }
    )


def table(bench):
    """All of covtype but 50,000 test rows, as a raw table: time of a fit with its selection, and the test error."""
    data = load_dataset("covtype")
    order = np.random.default_rng(0).permutation(len(data.target))
    train, test = order[:-50_000], order[-50_000:]
    if bench.quick:
        train = train[:5000]
    model = TableClassifier(device=str(bench.device), random_state=0, verbose=1)
    began = time.perf_counter()
    model.fit(data.data[train], data.target[train])
    taken = time.perf_counter() - began
    probability = model.predict_proba(data.data[test])
    index = np.searchsorted(model.classes_, data.target[test])
    return {
        "rows": len(train),
        "fit_s": round(taken, 1),
        "error": round(100 * float((probability.argmax(axis=1) != index).mean()), 2),
        "log_loss": round(-float(np.log(probability[np.arange(len(index)), index]).mean()), 4),
        "members": model.preparation_,
        "planes": [len(member.planes.coef) for member in model.members_],
        "choice": dict(list(model.choice_.items())[:8]),
    }


def prediction(bench):
    """Dense rows by 300 planes of 10 classes."""
    n, d, k = bench.n_predicted, 784, 300
    bench._digits = None
    X = torch.rand(n, d, device=bench.device)
    planes = PlaneSet(torch.randn(k, d, device=bench.device), torch.randn(k, device=bench.device), range(0, k + 1, 30))
    measured = seconds(lambda: planes.predict(X), bench.device, 5)
    return beside_floors(measured, n * (4 * d + 8), 2 * n * d * k, bench.limits)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("There is no NVIDIA device here; try --device cpu --quick.")
    warnings.simplefilter("ignore")
    bench = Bench(options.device, options.quick)
    name = torch.cuda.get_device_name() if bench.device.type == "cuda" else "cpu"
    results = Results(__file__, device=name, torch=torch.__version__, quick=options.quick)
    measures = {
        "ceilings": lambda: {k: float(f"{v:.4g}") for k, v in bench.limits._asdict().items()},
        "same planes": lambda: same_planes(bench),
        "making digits": lambda: making(bench),
        **{
            f"one epoch, batches of {size}, {precision}": lambda size=size, p=precision: one_epoch(bench, size, p)
            for size, precision in ((4096, "full"), (16_384, "full"), (16_384, "tf32"))
        },
        **{f"all digits, {name}": lambda how=how: all_digits(bench, *how) for name, how in DIGITS.items()},
        "prediction": lambda: prediction(bench),
        "covtype": lambda: cutting_plane(bench),
        "table, covtype": lambda: table(bench),
        **{name: lambda name=name: beside_cpu(bench, name) for name in SETS},
    }
    for figure, measure in measures.items():
        print(f"{figure}:", flush=True)
        for key, value in results.get(figure, measure).items():
            print(f"    {key:32} {value}", flush=True)


if __name__ == "__main__":
    main()
