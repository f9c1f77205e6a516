"""Table 1 of the Convex Polytope Machine paper (Kantchelian et al., 2014): four tasks of two classes."""

from functools import partial

from benchmarks.baselines import baseline_errors
from benchmarks.data import one_class, pixels, rcv1
from benchmarks.experiment import Experiment, main
from benchmarks.papers.convex_polytope.protocol import (
    EXPECTED,
    SEEDS,
    amm_errors,
    budgeted,
    by_protocol,
    errors,
    free_entropy,
    learning_curve,
)

PAPER = EXPECTED["table1"]
RCV1 = "RCV1 topic subsets, K=16, 2M visits"
BASELINES = ("linear SVM", "RBF-SVM", "random forest")


def mnist_2():
    return one_class(pixels(), 2)


def mnist_2_cpm(seeds, n_planes, visits, alpha_visits, min_entropy):
    split = mnist_2()
    return errors(budgeted(n_planes, visits, len(split.y), alpha_visits, min_entropy), split, seeds)


def baseline_cell(name, rows):
    """A baseline, with its settings chosen on 4,000 training rows; the forest as it comes."""
    split = rows()
    if name == "random forest":
        return baseline_errors(name, split._replace(X=split.X.tocsc()), settings={})
    return baseline_errors(name, split, 4_000)


#: The cells of the table, by name; each takes the seeds of its runs.
CELLS = {
    "MNIST-2, K=48, 8M visits, min_entropy 0.8": partial(
        mnist_2_cpm, n_planes=48, visits=8e6, alpha_visits=1000, min_entropy=0.8
    ),
    "MNIST-2, K=96, 32M visits, min_entropy 0.9": partial(
        mnist_2_cpm, n_planes=96, visits=32e6, alpha_visits=5000, min_entropy=0.9
    ),
    "MNIST-2, K=96, 32M visits, min_entropy 0": partial(
        mnist_2_cpm, n_planes=96, visits=32e6, alpha_visits=5000, min_entropy=0.0
    ),
    "MNIST-2: AMM": lambda seeds: amm_errors(mnist_2(), 10_000, seeds),
    RCV1: lambda seeds: by_protocol(rcv1(), 16, 2e6, 1000, seeds),
    "RCV1 topic subsets: AMM": lambda seeds: amm_errors(rcv1(), 1000, seeds),
}
#: What explains cells.
EXPERIMENTS = {
    "MNIST-2: planes in use with free entropy": lambda: free_entropy(mnist_2(), 96, 8e6, 10_000, seeds=range(2)),
    "RCV1 topic subsets: error against rows": lambda: learning_curve(rcv1(), 16, 2e6, 1, 0.9195, seeds=range(3)),
}
#: What a quick run measures, with two orders of the rows.
QUICK = {"MNIST-2, K=48, 8M visits, min_entropy 0.8", "RCV1 topic subsets: AMM"}


def measure(results):
    for name, cell in CELLS.items():
        if not results.quick or name in QUICK:
            results.get(name, partial(cell, SEEDS[:2] if results.quick else SEEDS))
    for name in ("linear SVM",) if results.quick else BASELINES:
        for prefix, rows in (("RCV1 topic subsets", rcv1), ("MNIST-2", mnist_2)):
            results.get(f"{prefix}: {name}", partial(baseline_cell, name, rows))
    if not results.quick:
        for name, experiment in EXPERIMENTS.items():
            results.get(name, experiment)


def tables(figures):
    return ()


EXPERIMENT = Experiment(
    script=__file__,
    title="Table 1 and figures",
    protocol="",
    measure=measure,
    tables=tables,
    settings={"seeds": list(SEEDS)},
)

if __name__ == "__main__":
    main(EXPERIMENT)
