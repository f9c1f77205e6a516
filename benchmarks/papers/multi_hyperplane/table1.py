"""Table 1 of Djuric, Wang and Vucetic (2020): AMM and GAMM on checkerboards from 1x2 to 5x5.

The paper's protocol: 15,000 rows to train on, 5,000 to test on, 15 epochs, p = 0.2, beta = 0.99, c = 10 for AMM and 50
for GAMM, and lambda (`alpha`) by held-out training rows: here those of eight boards of their own, each with its own
seed, since the luck of a run moves AMM more than alpha does. Five fresh boards, where the paper has ten. Measured with
the last planes, as in the paper, and, with the same alpha, with the planes of the last third of the epochs averaged.
"""

import tomllib
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.data import board
from benchmarks.results import Results
from sklearn.model_selection import train_test_split

from polyplane import MultiHyperplaneClassifier

SEEDS = range(5)
EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())["table1"]
MACHINES = {"AMM": {"growth": 0.0, "prune": 10.0}, "GAMM": {"growth": 0.2, "prune": 50.0}}
AVERAGES = {"last": 0.0, "averaged": 1 / 3}
ALPHAS = (1e-6, 1e-5, 1e-4)
CHOICE_SEEDS = range(5_000, 5_008)


def machine_of(name, alpha, seed=0, average=0.0):
    return MultiHyperplaneClassifier(
        init="zero", max_iter=15, alpha=alpha, average=average, random_state=seed, **MACHINES[name]
    )


def chosen(name, shape):
    """The alpha with the least mean error on held-out fifths of the training rows of some boards."""
    errors = dict.fromkeys(ALPHAS, 0.0)
    for seed in CHOICE_SEEDS:
        split = board(shape, seed)
        X, X_held_out, y, y_held_out = train_test_split(split.X, split.y, test_size=0.2, random_state=seed)
        for alpha in ALPHAS:
            accuracy = machine_of(name, alpha, seed).fit(X, y).score(X_held_out, y_held_out)
            errors[alpha] += 100 * (1 - accuracy) / len(CHOICE_SEEDS)
    return {"alpha": min(errors, key=errors.get), "held_out": {str(a): round(e, 3) for a, e in errors.items()}}


def errors(name, shape, alpha, average):
    """Errors and numbers of planes on fresh boards."""
    runs, planes = [], []
    for seed in SEEDS:
        split = board(shape, seed)
        machine = machine_of(name, alpha, seed, average).fit(split.X, split.y)
        runs.append(100 * (1 - machine.score(split.X_test, split.y_test)))
        planes.append(len(machine.coef_))
    figures = {"error": np.mean(runs), "std": np.std(runs), "planes": np.mean(planes)}
    return {key: round(float(value), 3) for key, value in figures.items()} | {"runs": np.round(runs, 3).tolist()}


def measure(results, name, board_name):
    """Mean and deviation of the error, with the last planes and averaged."""
    shape = tuple(int(side) for side in board_name.split("x"))
    alpha = results.get(f"{board_name}: choice for {name}", partial(chosen, name, shape))["alpha"]
    for how, average in AVERAGES.items():
        figures = results.get(f"{board_name}: {name}, {how}", partial(errors, name, shape, alpha, average))
        yield figures["error"], figures["std"]


def cell(mean, std):
    return f"{mean:6.2f} +- {std:5.2f}"


if __name__ == "__main__":
    results = Results(__file__, seeds=list(SEEDS), machines=MACHINES, alphas=ALPHAS, choice_seeds=list(CHOICE_SEEDS))
    heads = [f"{name}, {how}" for name in MACHINES for how in ("paper", *AVERAGES)]
    print(" ".join([f"{'':5}", *(f"{head:>15}" for head in heads)]))
    for board_name, paper in EXPECTED.items():
        cells = []
        for name in MACHINES:
            cells += [cell(*paper[name]), *(cell(*figures) for figures in measure(results, name, board_name))]
        print(" ".join([f"{board_name:5}", *(f"{c:>15}" for c in cells)]), flush=True)
