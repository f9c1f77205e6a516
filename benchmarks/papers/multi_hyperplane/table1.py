"""Table 1 of Djuric, Wang and Vucetic (2020): AMM and GAMM on checkerboards from 1x2 to 5x5.

The paper's protocol: 15,000 rows to train on, 5,000 to test on, 15 epochs, p = 0.2, beta = 0.99, c = 10 for AMM and 50
for GAMM, ten fresh boards each, and lambda (`alpha`) by held-out training rows, here of a board of its own, split eight
times: AMM differs more from run to run than from one alpha to the next. Measured with the last planes, as in the paper,
and, with the same alpha, with the planes of the last third of the epochs averaged.
"""

import sys
import tomllib
from functools import partial
from pathlib import Path

import numpy as np

from polyplane import MultiHyperplaneClassifier

sys.path.insert(0, str(Path(__file__).parents[2]))
from choosing import choose, grid
from data import board
from results import Results

SEEDS = range(10)
EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())["table1"]
MACHINES = {"AMM": {"growth": 0.0, "prune": 10.0}, "GAMM": {"growth": 0.2, "prune": 50.0}}
AVERAGES = {"last": 0.0, "averaged": 1 / 3}
ALPHAS = grid(alpha=[1e-6, 3e-6, 1e-5, 3e-5, 1e-4])
N_SPLITS = 8


def machine_of(name, alpha, seed=0, average=0.0):
    return MultiHyperplaneClassifier(
        init="zero", max_iter=15, alpha=alpha, average=average, random_state=seed, **MACHINES[name]
    )


def chosen(name, shape):
    split = board(shape, 5_000)
    return choose(partial(machine_of, name), ALPHAS, split.X, split.y, N_SPLITS, rungs={})


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
    alpha = results.get(f"{board_name}: choice for {name}", partial(chosen, name, shape))["settings"]["alpha"]
    for how, average in AVERAGES.items():
        figures = results.get(f"{board_name}: {name}, {how}", partial(errors, name, shape, alpha, average))
        yield figures["error"], figures["std"]


def cell(mean, std):
    return f"{mean:6.2f} +- {std:5.2f}"


if __name__ == "__main__":
    results = Results(__file__, seeds=list(SEEDS), machines=MACHINES, n_splits=N_SPLITS)
    heads = [f"{name}, {how}" for name in MACHINES for how in ("paper", *AVERAGES)]
    print(" ".join([f"{'':5}", *(f"{head:>15}" for head in heads)]))
    for board_name, paper in EXPECTED.items():
        cells = []
        for name in MACHINES:
            cells += [cell(*paper[name]), *(cell(*figures) for figures in measure(results, name, board_name))]
        print(" ".join([f"{board_name:5}", *(f"{c:>15}" for c in cells)]), flush=True)
