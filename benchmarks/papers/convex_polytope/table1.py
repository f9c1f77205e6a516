"""Table 1 of the Convex Polytope Machine paper (Kantchelian et al., 2014): four tasks of two classes."""

from functools import cache, partial

from benchmarks.data.splits import digits, one_class, pixels, rcv1, url
from benchmarks.harness import versions
from benchmarks.harness.baselines import baseline_errors
from benchmarks.harness.experiment import Experiment, Figure, Row, Table, main, repeated, share
from benchmarks.papers.convex_polytope.cells import (
    AGAIN,
    ALL_ROWS,
    ALL_ROWS_FREE,
    BASELINES,
    BEYOND,
    CELLS,
    CPM,
    CURVE,
    DIGITS_ROWS,
    IN_USE,
    K48,
    K96,
    K96_FREE,
    K96_WEAKER,
    OURS,
    OURS_FREE,
    PAPER,
    SMALLER,
    TEST_ROWS,
    URL_CURVE,
    VISITS,
    cell_of,
    kind_of,
    name_of,
)
from benchmarks.papers.convex_polytope.protocol import (
    ALPHA_VISITS,
    BACK_OFF,
    SEEDS,
    amm_errors,
    budgeted,
    by_protocol,
    errors,
    free_entropy,
    learning_curve,
    printed_figure,
    visits_curve,
)
from benchmarks.papers.convex_polytope.remarks import checks, entropy_told, why
from benchmarks.papers.convex_polytope.whole_stream import one_pass


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


def rcv1_cpm(seeds=SEEDS, **how):
    return by_protocol(rcv1(), 16, 2e6, 1000, seeds, **how)


def url_cpm(**how):
    return by_protocol(url(), 10, 2e6, 1000, range(3), choice_visits=6e5, **how)


def digits_cpm(**how):
    return by_protocol(digits_2(), 48, 6e6, 10_000, range(3), choice_visits=6e5, **how)


def mnist_cpm():
    return by_protocol(mnist_2(), 48, 8e6, 10_000, choice_visits=2e6)


def mnist_cpm_largest():
    """With about the most planes and visits that the paper names."""
    return by_protocol(mnist_2(), 96, 32e6, 10_000, choice_visits=4e6)


def amm_cell(rows, n_held_out, *how, **more):
    return amm_errors(rows(), n_held_out, *how, **more)


def rcv1_curve():
    return learning_curve(rcv1(), 16, 2e6, 10, 0.8714, seeds=range(3))


def url_curve():
    return learning_curve(url(4_000), 10, 2e6, 1000, 0.0, (1 / 16, 1 / 4, 1), seeds=range(1))


def planes_in_use():
    return free_entropy(mnist_2(), 96, 4e6, 10_000, seeds=range(2))


def digits_by_visits():
    return visits_curve(digits_2(), 96, 1000, 0.8, (1e6, 4e6, 16e6))


#: The cells whose machines skip rows.
WITH_BACK_OFF = {CELLS[key] for key in CELLS if key[1] in (OURS, OURS_FREE, K48, K96, K96_FREE, K96_WEAKER)}
WITH_BACK_OFF |= {CURVE, URL_CURVE, IN_USE, VISITS}
#: The generators of sets that are not read from files.
GENERATORS = {"URL stream": "make_url_stream", "deformed digits": "InfiniteDigits"}


def all_cells():
    k96 = partial(mnist_2_cpm, 96, 32e6, 5000)
    cells = {
        CELLS["MNIST-2", CPM]: mnist_cpm_largest,
        SMALLER: mnist_cpm,
        CELLS["RCV1-bin", CPM]: rcv1_cpm,
        CELLS["URL", CPM]: url_cpm,
        CELLS["MNIST8m-2", CPM]: digits_cpm,
        CELLS["RCV1-bin", OURS]: partial(rcv1_cpm, backoff=BACK_OFF),
        CELLS["URL", OURS]: partial(url_cpm, backoff=BACK_OFF),
        CELLS["MNIST8m-2", OURS]: partial(digits_cpm, backoff=BACK_OFF),
        CELLS["MNIST-2", K48]: partial(mnist_2_cpm, 48, 8e6, 1000, 0.8, SEEDS),
        CELLS["MNIST-2", K96]: partial(k96, 0.9, SEEDS),
        CELLS["MNIST-2", K96_FREE]: partial(k96, 0.0, SEEDS),
        CELLS["MNIST-2", K96_WEAKER]: partial(mnist_2_cpm, 96, 32e6, 1000, 0.0, range(3)),
        "MNIST-2: AMM": partial(amm_cell, mnist_2, 10_000),
        "RCV1 topic subsets: AMM": partial(amm_cell, rcv1, 1000),
        "URL stream: AMM": partial(amm_cell, url, 1000, range(2), epochs=9, alphas=(1e-6, 1e-5, 1e-4)),
        "deformed digits: AMM": partial(amm_cell, digits_2, 10_000, range(3), epochs=2),
        "deformed digits: AMM, 15 epochs": partial(amm_cell, digits_2, 10_000, range(1), alphas=(1e-6, 1e-5)),
        CURVE: rcv1_curve,
        URL_CURVE: url_curve,
        IN_USE: planes_in_use,
        VISITS: digits_by_visits,
        CELLS["MNIST8m-2", ALL_ROWS]: partial(one_pass, 48, 100, 0.8209),
        CELLS["MNIST8m-2", ALL_ROWS_FREE]: partial(one_pass, 48, 100, 0.0),
    }
    tasks = {"URL stream": url, "RCV1 topic subsets": rcv1, "MNIST-2": mnist_2}
    for name in BASELINES:
        for prefix, rows in tasks.items():
            if prefix != "URL stream" or name == "linear SVM":
                cells[f"{prefix}: {name}"] = partial(baseline_cell, name, rows)
    return cells


def measure(results):
    for name, cell in (few_cells() if results.quick else all_cells()).items():
        if name.endswith(BASELINES):
            method = []
        else:
            method = ["AdaptiveMultiHyperplaneClassifier" if ": AMM" in name else "ConvexPolytopeClassifier"]
        if name in WITH_BACK_OFF:
            method.append(versions.BACK_OFF)
        generators = [generator for prefix, generator in GENERATORS.items() if name.startswith(prefix)]
        results.get(name, cell, [*method, *generators])


def few_cells():
    """Two orders of the rows, smaller budgets for the choice, few baselines."""
    seeds = SEEDS[:2]
    return {
        CELLS["MNIST-2", K48]: partial(mnist_2_cpm, 48, 8e6, 1000, 0.8, seeds),
        CELLS["RCV1-bin", CPM]: partial(rcv1_cpm, seeds, choice_visits=2e5),
        "RCV1 topic subsets: AMM": partial(amm_cell, rcv1, 1000, seeds),
        "RCV1 topic subsets: linear SVM": partial(baseline_cell, "linear SVM", rcv1),
        "deformed digits: AMM": partial(amm_cell, partial(digits_2, 100_000), 10_000, seeds, epochs=1),
    }


def rows_of(figures, paper_key, our_key):
    """One row per task and machine, those of the paper first."""
    rows = []
    for task, paper in PAPER.items():
        for machine in dict.fromkeys([*paper, *AGAIN, OURS, OURS_FREE, *BEYOND.get(task, ()), *BASELINES]):
            cell = cell_of(figures, task, machine)
            if machine not in paper and cell is None:
                continue
            expected = paper.get(AGAIN.get(machine, machine))
            theirs = expected and printed_figure(expected, paper_key)
            ours = None if cell is None else our_key(task, cell)
            source = name_of(task, machine)
            told = why(figures, task, machine, cell)
            cell_ = f"{task}, {AGAIN.get(machine, machine)}, {paper_key}"
            rows.append(Row(f"{task}, {machine}", theirs, ours, told, source, kind_of(task, machine), cell_))
    return rows


def error_of(task, cell):
    """Its deviation is that over runs or, of one run, that of a share of so many test rows."""
    runs = cell["runs"]
    return repeated(cell["error"], runs) if len(runs) > 1 else share(cell["error"], TEST_ROWS[task])


def seconds_of(task, cell):
    """Seconds of one run, training and testing."""
    if "fit_seconds" in cell:
        return Figure(cell["fit_seconds"] + cell["predict_seconds"])
    if "run_seconds" in cell:
        return Figure(cell["run_seconds"])
    return None if "alpha_visits" in cell else Figure(cell["seconds"] / len(cell["runs"]))


def tables(figures):
    note = (
        "Deviations are over orders of the rows, with settings chosen once; that another choice of held-out rows could "
        "prefer other settings is not part of them. The deviation of a single run is the binomial one, for the number "
        "of test rows."
    )
    yield Table("Test error, %", rows_of(figures, "error", error_of), note=f"{note} {entropy_told(figures)}".strip())
    rows = [
        Row(row.label, row.paper, row.ours, "" if row.ours else row.why, row.source)
        for row in rows_of(figures, "seconds", seconds_of)
        if row.ours or row.paper
    ]
    yield Table(
        "Seconds to train and test once",
        rows,
        better=None,
        digits=1,
        note=(
            "Processor seconds, unless the row says otherwise, on other hardware than the paper's: compare orders of "
            "magnitude only."
        ),
        kind="time",
    )
    yield from checks(figures)


EXPERIMENT = Experiment(
    script=__file__,
    title="Table 1: errors and times on four tasks of two classes",
    protocol=(
        "CPM and CPM with free entropy are the paper's: its loop, which looks at the row of each of T visits "
        "(`backoff=0`), both polytopes, last planes, no averaging. With free entropy lambda is chosen in 1/T, 10/T, "
        "..., 10000/T on held-out training rows (10,000 of the digits, 1,000 of RCV1 and URL), then the entropy. The "
        "paper gives T only as up to 32 million and K as 10 to 100; here K = 96 and T = 32 million for MNIST-2 (the "
        "choice with a budget of 4 million), 16 and 2 million for RCV1, 10 and 2 million for URL, 48 and 6 million for "
        "MNIST8m-2 (for the last two the choice with 600,000). *With back-off* is ours: rows are skipped for about "
        "as long as their margins last, and for fewer passes if a random sample of the skipped rows shows that more "
        "than 0.5 % of the updates are missed; T counts the skipped visits as well. Five orders of the rows (seeds 0 "
        "to 4) where the row does not say otherwise. AMM: lambda by the same held-out rows, 15 epochs, 9 of URL and 2 "
        "of MNIST8m-2; the paper chose T by hand, from 500,000 to 36 million visits. C and gamma of the "
        "SVMs on held-out fifths of 4,000 training rows, one run."
    ),
    measure=measure,
    tables=tables,
    settings={"seeds": SEEDS, "alpha_visits": ALPHA_VISITS, "digits_rows": DIGITS_ROWS},
)

if __name__ == "__main__":
    main(EXPERIMENT)
