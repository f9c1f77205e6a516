"""How many planes of a machine are needed: `polyplane.explain.geometry.simplify` on the rows it was trained on.

Machines grown from zero (GAMM) and from a tangent start; planes and test errors before and after, in percent, and the
seconds it takes. Five seeds each; means are printed. Tolerances are shares of the training rows whose predictions may
change. GAMM has the settings that held-out training rows prefer (`papers/multi_hyperplane/errors.py`), with the
paper's 15 passes. Names of sets as arguments measure these only. Needs POLYPLANE_DATA.
"""

import sys
import time

import numpy as np
from benchmarks.data.splits import prepared, real
from benchmarks.harness.results import Results

from polyplane import AdaptiveMultiHyperplaneClassifier, MultiHyperplaneClassifier
from polyplane.explain.geometry import simplify

SEEDS = range(5)
TOLERANCES = (0.0, 0.001, 0.005)
GAMM = {
    name: {"max_iter": 15, "average_fraction": 1 / 3, "alpha": alpha}
    for name, alpha in {"ijcnn1": 3e-6, "letter": 1e-5, "usps": 3e-5}.items()
}
MACHINES = {f"{name}, GAMM": (name, settings) for name, settings in GAMM.items()}
MACHINES |= {f"{name}, tangent start": (name, {}) for name in GAMM}


def simplified(name, settings, seed):
    """Planes and test error of a machine, and of what is left of it at each tolerance; of one whose rows are scaled."""
    split = real(name)
    learner = AdaptiveMultiHyperplaneClassifier if settings else MultiHyperplaneClassifier
    machine = prepared(name, learner(random_state=seed, **settings)).fit(split.X, split.y)
    learner, before = (machine[-1], machine[:-1]) if hasattr(machine, "steps") else (machine, None)
    X, X_test = (split.X, split.X_test) if before is None else map(before.transform, (split.X, split.X_test))

    def outcome(planes):
        wrong = learner.classes_[planes.predict(X_test)] != split.y_test
        return {"planes": planes.n_planes, "error": 100 * float(np.mean(wrong))}

    rows = {"all": outcome(learner.planes_)}
    for tolerance in TOLERANCES:
        began = time.process_time()
        fewer = simplify(learner.planes_, X, tolerance)
        rows[f"{tolerance:g}"] = outcome(fewer) | {"time": time.process_time() - began}
    return rows


def measure(name, settings):
    runs = [simplified(name, settings, seed) for seed in SEEDS]
    return {
        tolerance: {key: round(float(np.mean([run[tolerance][key] for run in runs])), 4) for key in runs[0][tolerance]}
        for tolerance in runs[0]
    }


def show(label, rows):
    whole = rows["all"]
    print(f"\n{label}: {whole['planes']:.1f} planes, error {whole['error']:.2f} %")
    print(f"{'tolerance':>12} {'planes':>8} {'removed':>8} {'error, %':>9} {'change':>7} {'seconds':>8}")
    for tolerance in map("{:g}".format, TOLERANCES):
        row = rows[tolerance]
        removed, change = 100 * (1 - row["planes"] / whole["planes"]), row["error"] - whole["error"]
        figures = f"{row['planes']:8.1f} {removed:6.1f} % {row['error']:9.2f} {change:+7.3f} {row['time']:8.2f}"
        print(f"{tolerance:>12} {figures}", flush=True)


if __name__ == "__main__":
    results = Results(__file__, seeds=list(SEEDS), tolerances=list(TOLERANCES), settings=GAMM)
    for label, (name, settings) in MACHINES.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            show(label, results.get(label, lambda: measure(name, settings)))  # noqa: B023
