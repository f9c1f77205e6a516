"""Table 2 and section 6.2 of Djuric, Wang and Vucetic (2020): errors, times and sizes on real data."""

import time
from functools import cache, partial

import numpy as np
from benchmarks.baselines import baseline_errors
from benchmarks.choosing import choose, grid
from benchmarks.data import prepared, rcv1, real
from benchmarks.experiment import Experiment, main
from sklearn.preprocessing import StandardScaler

from polyplane import MultiHyperplaneClassifier

SEEDS = range(5)
EPOCHS = {"usps": 15, "letter": 15, "ijcnn1": 15, "rcv1": 5}
ALPHAS = grid(alpha=[1e-6, 1e-5, 1e-4, 1e-3])
MACHINES = {"AMM": {"growth": 0.0, "prune": 10.0}, "GAMM": {"growth": 0.2, "prune": 50.0}}
#: Chosen on held-out training rows by `python -m benchmarks.peers.multi_hyperplane --choose`.
SVM = {"usps": {"C": 3, "gamma": 0.01}, "letter": {"C": 30, "gamma": 0.2}, "ijcnn1": {"C": 10, "gamma": 0.1}}
#: Baselines that the paper has not, as they come.
OTHERS = ("random forest", "MLP", "gradient boosting")


@cache
def split_of(name):
    return rcv1() if name == "rcv1" else real(name)


def machine_for(name, machine, seed=0, average=0.0, **settings):
    """AMM or GAMM with the paper's settings, or the tangent start as it comes."""
    if machine in MACHINES:
        settings |= {"init": "zero", "max_iter": EPOCHS[name], "average": average} | MACHINES[machine]
    return prepared(name, MultiHyperplaneClassifier(random_state=seed, **settings))


def errors(name, machine, settings, seeds):
    """Errors, seconds of training and planes per class over seeds."""
    split = split_of(name)
    runs, seconds, planes = [], [], []
    for seed in seeds:
        trained = machine_for(name, machine, seed, **settings)
        began = time.perf_counter()
        trained.fit(split.X, split.y)
        seconds.append(time.perf_counter() - began)
        runs.append(100 * (1 - trained.score(split.X_test, split.y_test)))
        last = trained[-1] if name in ("ijcnn1", "letter") else trained
        planes.append(last.planes_.n_planes / last.planes_.n_classes)
    figures = {
        "error": np.mean(runs),
        "std": np.std(runs),
        "fit_seconds": np.median(seconds),
        "planes": np.mean(planes),
    }
    told = {"settings": settings, "runs": np.round(runs, 4).tolist(), "rows": len(split.y)}
    return {key: round(float(value), 4) for key, value in figures.items()} | told


def chosen(name, machine):
    """The alpha with the least error on held-out fifths of the training rows, over two splits."""
    split = split_of(name)
    return choose(partial(machine_for, name, machine), ALPHAS, split.X, split.y, n_splits=2, rungs={1: 2})


def baseline_cell(name, machine):
    split = split_of(name)
    if name in ("ijcnn1", "letter"):
        scaler = StandardScaler().fit(split.X)
        split = split._replace(X=scaler.transform(split.X), X_test=scaler.transform(split.X_test))
    settings = SVM.get(name) if machine == "RBF-SVM" else {} if machine in OTHERS else None
    return baseline_errors(machine, split, choice_rows=4_000, settings=settings)


def measure(results):
    seeds = SEEDS[:2] if results.quick else SEEDS
    for name in ("usps", "letter") if results.quick else EPOCHS:
        for machine in MACHINES:
            settings = results.get(f"{name}: choice for {machine}", partial(chosen, name, machine))["settings"]
            results.get(f"{name}: {machine}", partial(errors, name, machine, settings, seeds))
            averaged = settings | {"average": 1 / 3}
            if machine == "GAMM" and EPOCHS[name] > 1:
                results.get(f"{name}: GAMM, averaged", partial(errors, name, machine, averaged, seeds))
        results.get(f"{name}: tangent start", partial(errors, name, "tangent start", {}, seeds))
        for machine in ("linear SVM", "RBF-SVM", *(() if results.quick or name in ("rcv1", "mnist") else OTHERS)):
            results.get(f"{name}: {machine}", partial(baseline_cell, name, machine))


def tables(figures):
    return ()


EXPERIMENT = Experiment(
    script=__file__,
    title="Table 2",
    protocol="",
    measure=measure,
    tables=tables,
    settings={"seeds": list(SEEDS)},
)

if __name__ == "__main__":
    main(EXPERIMENT)
