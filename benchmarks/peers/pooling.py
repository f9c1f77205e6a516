"""Prediction with the log-sum-exp of the planes, as trained, beside their maximum: the same fitted models.

    POLYPLANE_DATA=... python -m benchmarks.peers.pooling

Test error and log-loss of `MultiHyperplaneClassifier` with its defaults, on the tables (five splits) and on larger sets
(five seeds); then the means, with the standard error of the difference, and how often the predictions differ.
"""

import warnings

import numpy as np
from benchmarks.data.splits import real
from benchmarks.data.tables import TABLES, splits
from benchmarks.harness.results import Results

from polyplane import MultiHyperplaneClassifier
from polyplane._array_api import softmax

SPLITS = 5
LARGE = ("letter", "usps", "ijcnn1", "mnist")


def measure(name):
    found = {"max": [], "logsumexp": [], "differs": [], "planes": []}
    chosen = [real(name)] * SPLITS if name in LARGE else splits(name, SPLITS)
    for seed, split in enumerate(chosen):
        machine = MultiHyperplaneClassifier(random_state=seed).fit(split.X, split.y)
        known = np.isin(split.y_test, machine.classes_)  # a rare class may have no training row
        y, predicted = np.searchsorted(machine.classes_, split.y_test[known]), {}
        for pooling in ("max", "logsumexp"):
            scores = machine.planes_.replace(pooling=pooling).class_scores(split.X_test[known])
            predicted[pooling] = scores.argmax(axis=1)
            losses = -np.log(np.maximum(softmax(scores.astype(float))[np.arange(len(y)), y], 1e-30))
            found[pooling].append([100 * float(np.mean(predicted[pooling] != y)), float(losses.mean())])
        found["differs"].append(100 * float(np.mean(predicted["max"] != predicted["logsumexp"])))
        found["planes"].append(machine.planes_.n_planes / len(machine.classes_))
    return {key: np.round(value, 4).tolist() for key, value in found.items()}


def summary(figures):
    print(f"{'':20} error, %: max  logsumexp   difference   log-loss: max  logsumexp   differ, %   planes")
    changes = {"tables with several planes": [], "larger sets": []}
    for name, found in figures.items():
        hard, soft = np.array(found["max"]), np.array(found["logsumexp"])
        change = soft - hard
        error = change[:, 0].std(ddof=1) / len(change) ** 0.5
        (e, loss), (e_soft, loss_soft), planes = hard.mean(axis=0), soft.mean(axis=0), np.mean(found["planes"])
        print(
            f"{name:20} {e:13.2f} {e_soft:10.2f} {e_soft - e:+7.2f} +- {error:4.2f} {loss:15.3f} {loss_soft:10.3f} "
            f"{np.mean(found['differs']):11.2f} {planes:8.1f}"
        )
        if name in LARGE or planes > 1:
            changes["larger sets" if name in LARGE else "tables with several planes"].append(change.mean(axis=0))
    for which, rows in changes.items():
        mean, error = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / len(rows) ** 0.5
        changed = f"error {mean[0]:+.3f} +- {error[0]:.3f} points, log-loss {mean[1]:+.4f} +- {error[1]:.4f}"
        print(f"{which}, {len(rows)}: {changed}")


def main():
    """Measure what is not measured yet and print the summary."""
    warnings.simplefilter("ignore")
    results = Results(__file__, splits=SPLITS)
    for name in [*LARGE, *TABLES]:
        results.get(name, lambda name=name: measure(name))
    summary(results.figures)


if __name__ == "__main__":
    main()
