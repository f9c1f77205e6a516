"""Table 1 of the Convex Polytope Machine paper (Kantchelian et al., 2014): four tasks of two classes."""

from functools import cache, partial

import numpy as np
from benchmarks.baselines import baseline_errors
from benchmarks.data import digits, one_class, pixels, rcv1, url
from benchmarks.experiment import Experiment, Figure, Row, Table, main
from benchmarks.papers.convex_polytope.protocol import (
    EXPECTED,
    SEEDS,
    amm_errors,
    budgeted,
    by_protocol,
    errors,
    free_entropy,
    learning_curve,
    visits_curve,
)

PAPER = EXPECTED["table1"]
#: Rows of the stand-ins, and visits to them.
DIGITS_ROWS = 300_000
STAND_INS = {
    "MNIST8m-2": f"stand-in: the first {DIGITS_ROWS:,} rows of InfiniteDigits, tested on MNIST's test rows",
    "URL": "stand-in: make_url_stream, half of the rows of each of 120 days to train on (60,000), half to test on",
    "RCV1-bin": "stand-in: the topic subsets of RCV1-v2, 12,343 rows instead of 20,242",
}
WEAKER_LAMBDA = ", lambda = 1,000/T"
#: What our figures are called, by task and machine, where it is not "task: machine".
CELLS = {
    ("MNIST-2", "CPM"): "MNIST-2, K=96, 32M visits, min_entropy 0.9",
    ("MNIST-2", "CPM, free entropy"): "MNIST-2, K=96, 32M visits, min_entropy 0",
    ("MNIST-2", "CPM, free entropy" + WEAKER_LAMBDA): "MNIST-2, K=96, 32M visits, min_entropy 0, lambda = 1000/T",
    ("MNIST-2", "CPM, a quarter of the visits"): "MNIST-2, K=48, 8M visits, min_entropy 0.8",
    ("RCV1-bin", "CPM"): "RCV1 topic subsets, K=16, 2M visits",
    ("URL", "CPM"): "URL stream, K=10, 2M visits",
    ("MNIST8m-2", "CPM"): "deformed digits, K=48, 6M visits",
}
PREFIXES = {
    "MNIST-2": "MNIST-2",
    "MNIST8m-2": "deformed digits",
    "URL": "URL stream",
    "RCV1-bin": "RCV1 topic subsets",
}
LEFT_OUT = {
    ("URL", "AMM"): "left out for its time: AMM copies its planes of 3.2 million features at births and prunings",
    ("MNIST8m-2", "RBF-SVM"): "left out: the paper's took two days on 512 processors",
}
BASELINES = ("linear SVM", "RBF-SVM")
PAPER_ROWS = {"RCV1-bin": 20_242, "URL": 1_100_000}
IN_USE = "MNIST-2: planes in use with free entropy"
VISITS = "deformed digits, K=96: error against visits"
URL_CURVE = "URL stream: error against rows"
CURVE = "RCV1 topic subsets: error against rows"


@cache
def mnist_2():
    return one_class(pixels(), 2)


@cache
def digits_2(n_rows=DIGITS_ROWS):
    return one_class(digits(n_rows), 2)


def mnist_2_cpm(n_planes, visits, alpha_visits, min_entropy, seeds):
    split = mnist_2()
    return errors(budgeted(n_planes, visits, len(split.y), alpha_visits, min_entropy), split, seeds)


def baseline_cell(name, rows):
    """A baseline, with its settings chosen on 4,000 training rows."""
    return baseline_errors(name, rows(), 4_000)


def measure(results):
    if results.quick:
        return measure_quickly(results)
    k96 = partial(mnist_2_cpm, 96, 32e6, 5000)
    cells = {
        CELLS["MNIST-2", "CPM, a quarter of the visits"]: lambda: mnist_2_cpm(48, 8e6, 1000, 0.8, SEEDS),
        CELLS["MNIST-2", "CPM"]: lambda: k96(0.9, SEEDS),
        CELLS["MNIST-2", "CPM, free entropy"]: lambda: k96(0.0, SEEDS),
        "MNIST-2: AMM": lambda: amm_errors(mnist_2(), 10_000),
        CELLS["RCV1-bin", "CPM"]: lambda: by_protocol(rcv1(), 16, 2e6, 1000),
        "RCV1 topic subsets: AMM": lambda: amm_errors(rcv1(), 1000),
        CURVE: lambda: learning_curve(rcv1(), 16, 2e6, 1, 0.9195, seeds=range(3)),
        IN_USE: lambda: free_entropy(mnist_2(), 96, 4e6, 10_000, seeds=range(2)),
        CELLS["URL", "CPM"]: lambda: by_protocol(url(), 10, 2e6, 1000, range(3), choice_visits=6e5),
        CELLS["MNIST8m-2", "CPM"]: lambda: by_protocol(digits_2(), 48, 6e6, 10_000, range(3), choice_visits=6e5),
        "deformed digits: AMM": lambda: amm_errors(digits_2(), 10_000, range(3), epochs=2),
    }
    shares = (1 / 16, 1 / 4, 1)
    cells[URL_CURVE] = lambda: learning_curve(url(4_000), 10, 2e6, 1000, 0.0, shares, seeds=range(1))
    cells[VISITS] = lambda: visits_curve(digits_2(), 96, 1000, 0.8, (1e6, 4e6, 16e6))
    cells["deformed digits: AMM, 15 epochs"] = lambda: amm_errors(digits_2(), 10_000, range(1), alphas=(1e-6, 1e-5))
    weaker = CELLS["MNIST-2", "CPM, free entropy" + WEAKER_LAMBDA]
    cells[weaker] = lambda: mnist_2_cpm(96, 32e6, 1000, 0.0, range(3))
    tasks = {"URL stream": url, "RCV1 topic subsets": rcv1, "MNIST-2": mnist_2}
    for name in BASELINES:
        for prefix, rows in tasks.items():
            if prefix != "URL stream" or name == "linear SVM":
                cells[f"{prefix}: {name}"] = partial(baseline_cell, name, rows)
    for name, cell in cells.items():
        results.get(name, cell)


def measure_quickly(results):
    """Two orders of the rows, smaller budgets for the choice, few baselines."""
    seeds = SEEDS[:2]
    results.get(CELLS["MNIST-2", "CPM, a quarter of the visits"], lambda: mnist_2_cpm(48, 8e6, 1000, 0.8, seeds))
    results.get(CELLS["RCV1-bin", "CPM"], lambda: by_protocol(rcv1(), 16, 2e6, 1000, seeds, choice_visits=2e5))
    results.get("RCV1 topic subsets: AMM", lambda: amm_errors(rcv1(), 1000, seeds))
    results.get("RCV1 topic subsets: linear SVM", partial(baseline_cell, "linear SVM", rcv1))
    results.get("deformed digits: AMM", lambda: amm_errors(digits_2(100_000), 10_000, seeds, epochs=1))


def cell_of(figures, task, machine):
    """Our cell for a task and machine, with its error under one name, or None."""
    cell = figures.get(CELLS.get((task, machine), f"{PREFIXES.get(task)}: {machine}"))
    if machine == "CPM, free entropy" and task != "MNIST-2":
        both = figures.get(CELLS.get((task, "CPM")))
        cell = both and both | {"error": both["error_free_entropy"], "std": both.get("std_free_entropy")}
    return cell


def why(figures, task, machine, cell):
    """What is to be known about a figure: stand-ins, repetitions, and the experiments that explain it."""
    told = [STAND_INS[task]] if task in STAND_INS else []
    if cell and machine.startswith(("CPM", "AMM")) and len(cell["runs"]) != len(SEEDS):
        told.append(f"{len(cell['runs'])} runs")
    if (task, machine) == ("MNIST-2", "CPM, free entropy") and IN_USE in figures:
        told.append(planes_told(figures))
    if task == "RCV1-bin" and machine.startswith("CPM") and CURVE in figures:
        told.append(curve_told(figures[CURVE]["error_by_rows"], PAPER_ROWS[task]))
    if task == "URL" and machine.startswith("CPM") and URL_CURVE in figures:
        told.append(curve_told(figures[URL_CURVE]["error_by_rows"], PAPER_ROWS[task]))
        told.append("0.8 % of the stream's labels are wrong by design")
    if task == "MNIST8m-2" and machine.startswith("CPM") and VISITS in figures:
        curve = sorted((int(n), error) for n, error in figures[VISITS]["error_by_visits"].items())
        steps = ", ".join(f"{error:.2f} % after {n / 1e6:g}M" for n, error in curve)
        told.append(f"the paper has up to 32M visits, these are 6M; with K = 96 and one run each {steps}")
    if (task, machine) == ("MNIST8m-2", "AMM") and (longer := figures.get(f"{PREFIXES[task]}: AMM, 15 epochs")):
        told.append(f"two epochs; after 15, of one run, {longer['error']:.2f} %")
    if cell is None:
        told.append(LEFT_OUT.get((task, machine), ""))
    return "; ".join(filter(None, told))


def planes_told(figures):
    """What regularisation does to the planes when the entropy is free."""
    counts = ", ".join(
        f"{cell['planes']:.0f} at {int(alpha):,}/T ({cell['held_out_error']:.2f} % of held-out rows wrong)"
        for alpha, cell in sorted(figures[IN_USE].items())
        if alpha != "seconds"
    )
    return (
        "lambda = 5,000/T, between the values of the paper's grid, is too strong where the entropy is free: the "
        f"stronger, the fewer of the 96 planes are in use, after 4M visits {counts}; with 1,000/T the paper's figure "
        "comes back, as the row of that name shows"
    )


def curve_told(curve, n_paper):
    """What a curve of errors against rows says about as many rows as the paper has."""
    n_rows, errors = np.array(sorted((int(n), error) for n, error in curve.items())).T
    slope, height = np.polyfit(np.log(n_rows), np.log(errors), 1)
    at_paper = np.exp(height + slope * np.log(n_paper))
    steps = ", ".join(f"{error:.2f} % after {n:,.0f} rows" for n, error in zip(n_rows, errors, strict=True))
    return (
        f"the error falls with the rows: {steps}; the power law through them gives {at_paper:.2f} % after {n_paper:,}"
    )


def rows_of(figures, paper_key, our_key):
    """One row per task and machine, those of the paper first."""
    rows = []
    for task, paper in PAPER.items():
        extra = ("CPM, free entropy" + WEAKER_LAMBDA, "CPM, a quarter of the visits") if task == "MNIST-2" else ()
        for machine in dict.fromkeys([*paper, *extra, "AMM", *BASELINES]):
            cell = cell_of(figures, task, machine)
            if machine not in paper and cell is None:
                continue
            expected = paper.get(machine.removesuffix(WEAKER_LAMBDA))
            theirs = expected and Figure(expected[paper_key], expected.get("std") if paper_key == "error" else None)
            ours = None if cell is None or our_key(cell) is None else our_key(cell)
            rows.append(Row(f"{task}, {machine}", theirs, ours, why(figures, task, machine, cell)))
    return rows


def error_of(cell):
    return Figure(cell["error"], cell.get("std"))


def seconds_of(cell):
    """Seconds of one run, training and testing."""
    if "fit_seconds" in cell:
        return Figure(cell["fit_seconds"] + cell["predict_seconds"])
    if "run_seconds" in cell:
        return Figure(cell["run_seconds"])
    return None if "alpha_visits" in cell else Figure(cell["seconds"] / len(cell["runs"]))


def tables(figures):
    yield Table("Test error, %", rows_of(figures, "error", error_of))
    rows = [Row(row.label, row.paper, row.ours) for row in rows_of(figures, "seconds", seconds_of) if row.ours]
    if rows:
        yield Table(
            "Seconds to train and test once",
            rows,
            better=None,
            digits=1,
            note="Machines differ, and ours was shared when it ran: orders of magnitude compare, digits do not.",
        )


EXPERIMENT = Experiment(
    script=__file__,
    title="Table 1: errors and times on four tasks of two classes",
    protocol=(
        "MNIST-2 is the 2 against the rest, K = 96, T = 32 million visits, lambda = 5000/T. Elsewhere the paper's "
        "protocol: with free entropy lambda is chosen in 1/T, 10/T, ..., 10000/T on held-out training rows (10,000 of "
        "the digits, 1,000 of RCV1 and URL), then the entropy; of the deformed digits and URLs with a budget of "
        "600,000 visits. Both polytopes, last planes, no averaging. Five orders of the rows (seeds 0 to 4) where the "
        "row does not say otherwise. AMM: lambda by the same held-out rows, 15 epochs, 2 of the deformed digits. C and "
        "gamma of the SVMs on held-out fifths of 4,000 training rows, one run."
    ),
    measure=measure,
    tables=tables,
    settings={"seeds": list(SEEDS)},
)

if __name__ == "__main__":
    main(EXPERIMENT)
