"""Hundreds of multi-hyperplane machines at once on a GPU: ``python -m benchmarks.gpu.many_machines``.

A thousand machines on letter (200 settings in 5 folds) and 500 on 10,000 made rows of 1,000 features (50 settings in 10
folds), the task for which Wang and others publish 37.7 s with TorchKM and 279 s with ThunderSVM (kernel machines, exact
solutions). Times are wall-clock and include the starts on the host, all transfers and the scoring of the folds. The
matrix products of a step are timed by themselves too, in the same run. Needs PyTorch and POLYPLANE_DATA; ``--quick``
makes everything small, and ``--device cpu`` tries it without a GPU.
"""

import argparse
import os
import time

os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn asks for it, before SciPy is imported

import numpy as np
import torch
from benchmarks.gpu.clock import seconds
from benchmarks.harness.results import Results
from scipy.stats import loguniform
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.model_selection import ParameterSampler, StratifiedKFold

from polyplane import MultiHyperplaneClassifier
from polyplane._plain import plain
from polyplane.learners.many import fit_many

SPACE = {
    "eta0": loguniform(0.1, 1.0),
    "scale": loguniform(1.0, 6.0),
    "noise": [0.0, 0.1, 0.2, 0.3],
    "alpha": [None, 1e-4, 1e-3],
}


def letter():
    """The training rows of letter and its test rows."""
    with np.load(os.path.join(os.environ["POLYPLANE_DATA"], "letter.npz")) as file:
        return [np.asarray(file[key], dtype="f4" if key[0] == "X" else None) for key in
                ("X_train", "y_train", "X_test", "y_test")]  # fmt: skip


def search(X, y, n_settings, n_folds, n_planes, device, **how):
    """Seconds of a search, and the errors of all settings."""
    settings = list(ParameterSampler({**SPACE, "n_planes": n_planes}, n_settings, random_state=0))
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
    began = time.perf_counter()
    there = torch.asarray(X, device=device)
    machines = [MultiHyperplaneClassifier(random_state=0, **how, **setting) for setting in settings for _ in folds]
    rows = [train for _ in settings for train, _ in folds]
    with config_context(array_api_dispatch=True):
        fitted = fit_many(machines, there, y, rows, n_jobs=os.cpu_count())
        tests = [(there[torch.asarray(test, device=device)], y[test]) for _ in settings for _, test in folds]
        predicted = [machine.planes_.predict(rows) for machine, (rows, _) in zip(fitted, tests, strict=True)]
    wrong = [
        100 * float((machine.classes_[guess.cpu().numpy()] != truth).mean())
        for machine, guess, (_, truth) in zip(fitted, predicted, tests, strict=True)
    ]
    took = time.perf_counter() - began
    errors = np.reshape(wrong, (len(settings), n_folds)).mean(axis=1)
    return took, errors, settings


def product_seconds(n_machines, n_rows, n_planes, n_inputs, device):
    """Seconds of the two matrix products of a step of a stack."""
    x = torch.randn((n_machines, n_rows, n_inputs), device=device)
    W = torch.randn((n_machines, n_planes, n_inputs), device=device)
    scores = x @ W.mT
    return seconds(lambda: (x @ W.mT, scores.mT @ x), torch.device(device), repeats=5, warm_up=2)


def measure_letter(n_settings, device):
    """The search on letter, and the test error of what it found."""
    X, y, X_test, y_test = letter()
    took, errors, settings = search(X, y, n_settings, 5, [16, 32, 48, 64], device)
    best = settings[int(errors.argmin())]
    with config_context(array_api_dispatch=True):
        machine = MultiHyperplaneClassifier(random_state=0, backoff=0, **best).fit(torch.asarray(X, device=device), y)
    tested = 100 * float((machine.to_numpy().predict(X_test) != y_test).mean())
    share = sum(
        60 * -(-12_000 // 256) * product_seconds(n, 256, 26 * k, 17, device)
        for k in (16, 32, 64)
        if (n := 5 * sum(k // 2 < setting["n_planes"] <= k for setting in settings))
    )
    return {
        "machines": 5 * n_settings, "seconds of the search": took, "seconds of matrix products": share,
        "best cross-validated error": float(errors.min()), "best": {name: plain(value) for name, value in best.items()},
        "test error of the best": tested,
    }  # fmt: skip


def measure_wide(n_settings, device, n_rows=10_000, n_features=1_000):
    """The search on made rows of two classes."""
    X, y = make_classification(n_rows, n_features, n_informative=50, flip_y=0.05, random_state=0)
    took, errors, _ = search(X.astype("f4"), y, n_settings, 10, [2, 4, 8], device)
    return {
        "machines": 10 * n_settings,
        "seconds of the search": took,
        "best cross-validated error": float(errors.min()),
    }


def main():
    """Measure what has not been measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    device = options.device
    results = Results(__file__, quick=options.quick, seed=0)
    name = torch.cuda.get_device_name() if device == "cuda" else device
    sizes = (4, 2) if options.quick else (200, 50)
    search(*letter()[:2], 1, 5, [16], device, max_iter=1)  # libraries set themselves up
    for task, measure, size in (("letter", measure_letter, sizes[0]), ("wide", measure_wide, sizes[1])):
        figures = results.get(task, lambda measure=measure, size=size: {"device": name, **measure(size, device)})
        print(task, figures, flush=True)


if __name__ == "__main__":
    main()
