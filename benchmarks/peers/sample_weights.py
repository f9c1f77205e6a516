"""Is a row of weight 3 a row given three times? Test errors, predictions and planes beside those of another seed.

    python -m benchmarks.peers.sample_weights

Half of the training rows have weight 3. Each line is a mean over three splits: the test error in percent with weights,
with repeated rows and with weights and another seed; the share of the test rows on which the first and each of the
others differ; and the numbers of planes.
"""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from polyplane import (
    AdaptiveMultiHyperplaneClassifier,
    ConvexPolytopeClassifier,
    MultiHyperplaneClassifier,
    PegasosSVC,
)
from polyplane.datasets import make_checkerboard

SETS = {
    "cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "moons": make_moons(800, noise=0.25, random_state=0),
    "checkerboard": make_checkerboard(1500, random_state=0),
}
MACHINES = {
    "multi-hyperplane": MultiHyperplaneClassifier(),
    "multi-hyperplane, 4": MultiHyperplaneClassifier(4),
    "the same, hinge": MultiHyperplaneClassifier(4, loss="hinge"),
    "adaptive": AdaptiveMultiHyperplaneClassifier(),
    "polytope": ConvexPolytopeClassifier(),
    "polytope, 4": ConvexPolytopeClassifier(4, alpha=1e-4),
    "pegasos": PegasosSVC(),
}
#: Characters of each figure.
WIDTHS = (7, 9, 6, 18, 6, 17, 9, 6)


def measured(machine, X, y, seed):
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    weight = np.where(np.random.default_rng(seed).random(len(train)) < 0.5, 3, 1)
    fits = [(train, y_train, weight), (np.repeat(train, weight, axis=0), np.repeat(y_train, weight), None)]
    predicted, planes = [], []
    for rows, random_state in zip([*fits, fits[0]], [seed, seed, seed + 100], strict=True):
        machine.set_params(random_state=random_state).fit(*rows)
        predicted.append(machine.predict(test))
        planes.append(machine.planes_.n_planes)
    errors = [100 * np.mean(labels != y_test) for labels in predicted]
    return [*errors, *(100 * np.mean(labels != predicted[0]) for labels in predicted[1:]), *planes]


def main():
    warnings.simplefilter("ignore")
    print(f"{'':34}error: weights repeated  seed  differ: repeated  seed  planes: weights repeated  seed")
    for name, machine in MACHINES.items():
        for which, (X, y) in SETS.items():
            mean = np.mean([measured(machine, X, y, seed) for seed in range(3)], axis=0)
            figures = "".join(
                f"{value:{width}.1f}" for value, width in zip(mean, (7, 9, 6, 18, 6, 17, 9, 6), strict=True)
            )
            print(f"{name:21}{which:13}{'':7}{figures}", flush=True)


if __name__ == "__main__":
    main()
