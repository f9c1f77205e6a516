"""Test errors of the multi-hyperplane machines on the data of their paper (Djuric, Wang and Vucetic, 2020).

Each set is met by GAMM from its zero start, by the tangent start as it comes, and by the tangent start with settings
chosen on held-out training rows (`choosing.py`); test rows are read once, for the figures printed. Five seeds each: of
a board, each seed is a fresh board; of the other sets the split is fixed, and the deviation is that of training.
mnist is met by the defaults alone. Boards and pixels are taken as they are, other features are standardised. Names of
sets as arguments measure these only. Needs POLYPLANE_DATA.
"""

import sys
import time
import tomllib
from functools import cache, partial
from pathlib import Path

import numpy as np
from benchmarks.choosing import choose, grid
from benchmarks.data import board, prepared, real
from benchmarks.results import Results

from polyplane import MultiHyperplaneClassifier

SEEDS = range(5)
EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())["errors"]
SETS = ("board 4x4", "board 5x5", "ijcnn1", "usps", "letter", "mnist")

GAMM = grid(init=["zero"], average=[1 / 3], alpha=[3e-6, 1e-5, 3e-5, 1e-4], max_iter=[15, 30])
HINGE = grid(loss=["hinge"], n_planes=[32, 64, 128], eta0=[0.15, 0.3], max_iter=[30, 60])


def tangent_grid(name):
    """The defaults compete as well. Noise is no choice in two dimensions, where the default is none."""
    noise = [None] if name.startswith("board") else [0.0, None]
    return [{}, *grid(n_planes=[32, 64, 128], eta0=[0.15, 0.3], noise=noise, max_iter=[30, 60]), *HINGE]


@cache
def split_of(name, seed):
    if name.startswith("board"):
        return board(tuple(int(side) for side in name.split()[1].split("x")), seed)
    return real(name)


def rows_of(name, seed):
    """The set for a seed; only boards differ from seed to seed."""
    return split_of(name, seed if name.startswith("board") else 0)


def machine_for(name, seed=0, **settings):
    return prepared(name, MultiHyperplaneClassifier(random_state=seed, **settings))


def chosen(name, candidates):
    """What held-out training rows prefer; boards are tuned on a board of their own."""
    split = rows_of(name, 5_000)
    return choose(partial(machine_for, name), candidates, split.X, split.y)


def errors(name, settings):
    runs, seconds = [], []
    for seed in SEEDS:
        split = rows_of(name, seed)
        machine = machine_for(name, seed, **settings)
        began = time.perf_counter()
        machine.fit(split.X, split.y)
        seconds.append(time.perf_counter() - began)
        runs.append(100 * (1 - machine.score(split.X_test, split.y_test)))
    figures = {"error": np.mean(runs), "std": np.std(runs), "fit_seconds": np.median(seconds)}
    return {key: round(float(value), 4) for key, value in figures.items()} | {"runs": np.round(runs, 4).tolist()}


def measure(results, name):
    """The figures of a set, by column, and the settings chosen; mnist is met by the defaults alone."""
    columns = {"defaults": results.get(f"{name}: tangent start, defaults", lambda: errors(name, {}))}
    if name == "mnist":
        return columns, {}
    gamm = results.get(f"{name}: choice for GAMM", lambda: chosen(name, GAMM))
    columns["GAMM"] = results.get(f"{name}: GAMM", lambda: errors(name, gamm["settings"]))
    best = results.get(f"{name}: choice for the tangent start", lambda: chosen(name, tangent_grid(name)))
    columns["tuned"] = results.get(f"{name}: tangent start, tuned", lambda: errors(name, best["settings"]))
    return columns, best["settings"]


def line(name, columns, settings):
    figures = [f"{columns[c]['error']:6.2f} +- {columns[c]['std']:4.2f}" if c in columns else "-" for c in COLUMNS]
    reach, paper = EXPECTED[name]["reach"], EXPECTED[name]["paper"]
    aims = [f"{reach.get('GAMM', '-'):>6}", f"{reach['tangent']:>8}", f"{paper.get('SVM', '-'):>8}"]
    told = ", ".join(f"{key}={value}" for key, value in settings.items()) or "defaults"
    return " ".join([f"{name:10}", *(f"{f:>15}" for f in figures), *aims, f"  {told}"])


COLUMNS = ("GAMM", "defaults", "tuned")

if __name__ == "__main__":
    results = Results(__file__, seeds=list(SEEDS))
    print(f"{'':10} {'test error, %':>15} {'tangent start':>31} {'aim':>6}")
    heads = ["GAMM", "defaults", "tuned", "GAMM", "tangent", "RBF-SVM"]
    print(" ".join([f"{'':10}", *(f"{h:>{w}}" for h, w in zip(heads, (15, 15, 15, 6, 8, 8), strict=True)), "  tuned"]))
    for name in sys.argv[1:] or SETS:
        print(line(name, *measure(results, name)), flush=True)
