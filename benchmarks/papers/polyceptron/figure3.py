"""Figure 3 of the Polyceptron paper: wrong rows of the online form on two separable sets, pass by pass.

``python -m benchmarks.papers.polyceptron.figure3``.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from benchmarks.harness.experiment import Experiment, Figure, Plot, Row, Table, main
from benchmarks.papers.polyhedra import OUR_COLOUR, TITLES, fitted, load

from polyplane import PolyceptronClassifier

#: Planes of each set, as in the paper.
SETS = {"dataset_1": 3, "dataset_2": 4}
SEEDS = range(10)
MAX_PASSES = 30_000
PROTOCOL = """\
All 1,000 rows of Dataset 1 and of Dataset 2 (drawn with seed 0), not standardised; as many planes as half-spaces, steps
of 1, one start, rows in a new order in each pass. Ten runs (seeds 0 to 9), each until a pass makes no mistake, at most
30,000 passes. Quick: three runs of at most 1,000 passes. The paper plots one run per set and gives no numbers: after
finitely many passes no training row is misclassified."""


def run(name, seed, max_passes, n_init=1):
    """Wrong training rows after some of the passes."""
    X, y = load(name)
    machine = PolyceptronClassifier(
        SETS[name],
        mode="online",
        eta0=1.0,
        inside=1,
        average=False,
        max_iter=max_passes,
        n_init=n_init,
        random_state=seed,
    )
    wrong = np.rint(len(y) * np.asarray(fitted(machine, X, y).history_["error"])).astype(int)
    kept = np.unique(np.geomspace(1, len(wrong), 150).astype(int))
    outcome = {"passes": len(wrong), "converged": bool(wrong[-1] == 0)}
    return outcome | {"pass": kept.tolist(), "wrong": wrong[kept - 1].tolist()}


def measure(results):
    max_passes = 1_000 if results.quick else MAX_PASSES
    for name in SETS:
        for seed in SEEDS[:3] if results.quick else SEEDS:
            first = results.get(f"{name}, seed {seed}", partial(run, name, seed, max_passes))
            if not first["converged"]:
                again = partial(run, name, seed, max_passes, n_init=2)
                results.get(f"{name}, seed {seed}, better of two starts", again)


def runs_of(figures, name):
    return [figures[key] for key in (f"{name}, seed {seed}" for seed in SEEDS) if key in figures]


def tables(figures):
    rows = []
    for name in SETS:
        runs = runs_of(figures, name)
        passes = [run["passes"] if run["converged"] else np.inf for run in runs]
        median = Figure(float(np.median(passes))) if passes else None
        why = f"{np.isfinite(passes).sum()} of {len(passes)} runs converge, the first after {min(passes, default=0)}."
        again = [f for key, f in figures.items() if key.startswith(name) and key.endswith("starts")]
        ends = [f"after {f['passes']} passes" if f["converged"] else "no convergence" for f in again]
        why += f" The rest from the better of two starts: {', '.join(ends)}." if ends else ""
        source = tuple(f"{name}, seed {seed}" for seed in SEEDS)
        rows.append(Row(TITLES[name], None, median, why if passes else "", source))
    note = "The paper has no numbers; its plots show one run on each set, which converges."
    title = "Passes of the online Polyceptron until no training row is misclassified, median"
    yield Table(title, rows, digits=0, note=note)


def plots(figures):
    caption = (
        "Misclassified training rows after each pass of the online Polyceptron, one line per run. A polyhedron "
        "separates the classes of both sets, and nearly all runs find one, as in the paper, which has no proof of "
        "convergence. One run on Dataset 2 does not converge, but does from a second start."
    )

    def draw(figure):
        figure.set_size_inches(12, 5)
        axes = figure.subplots(1, len(SETS), sharey=True)
        for axis, name in zip(axes, SETS, strict=True):
            for run in runs_of(figures, name):
                axis.plot(run["pass"], run["wrong"], color=OUR_COLOUR, alpha=0.5, linewidth=1.2)
                if run["converged"]:
                    axis.plot(run["passes"], 0, "o", color="black", markersize=6, zorder=3, clip_on=False)
            axis.set_xscale("log")
            axis.set_yscale("symlog", linthresh=10)
            axis.set_ylim(bottom=0)
            axis.set_yticks([0, 5, 10, 50, 100, 200], ["0", "5", "10", "50", "100", "200"])
            axis.set_title(f"{TITLES[name]}: {SETS[name]} planes", fontsize=15)
            axis.set_xlabel("passes over the rows", fontsize=14)
            axis.tick_params(labelsize=13)
            axis.grid(color="0.9")
        axes[0].set_ylabel("misclassified rows of 1,000", fontsize=14)
        every = [run["converged"] for name in SETS for run in runs_of(figures, name)]
        title = f"Figure 3: {sum(every)} of {len(every)} runs of the online Polyceptron converge (dots)"
        figure.suptitle(title, fontsize=16)

    return [Plot("polyceptron-figure3", caption, draw)]


EXPERIMENT = Experiment(
    __file__,
    "Figure 3 of Polyceptron: the online form converges on separable sets",
    PROTOCOL,
    measure,
    tables,
    plots,
    {"seeds": list(SEEDS), "max_passes": MAX_PASSES},
    uses=("PolyceptronClassifier", "make_polyceptron_1", "make_polyceptron_2"),
)

if __name__ == "__main__":
    main(EXPERIMENT)
