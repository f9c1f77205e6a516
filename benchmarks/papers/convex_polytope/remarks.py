"""What the report says of the cells of Table 1, and the figures behind it."""

from benchmarks.experiment import Figure, Row, Table
from benchmarks.papers.convex_polytope.cells import (
    AGAIN,
    ALL_ROWS,
    AVERAGED,
    BEYOND,
    CPM,
    CURVE,
    FREE,
    IN_USE,
    K96,
    K96_FREE,
    LEFT_OUT,
    NOT_YET,
    OURS,
    OURS_FREE,
    PREFIXES,
    STAND_INS,
    TENTH,
    URL_CURVE,
    VISITS,
    cell_of,
    name_of,
)
from benchmarks.papers.convex_polytope.protocol import SEEDS


def told_of_curve(figures, name):
    curve = figures[name]["error_by_rows"]
    return ", ".join(f"{curve[n]:.2f} % after {int(n):,} rows" for n in sorted(curve, key=int))


def choice_told(cell, free):
    """What held-out rows preferred, and by how much."""
    if "held_out_by_alpha" not in cell:
        return ""
    by_alpha = ", ".join(f"{int(a):,}/T {e:.2f} %" for a, e in cell["held_out_by_alpha"].items())
    told = f"held-out errors by lambda: {by_alpha}"
    if free:
        return told
    least, *others = sorted(cell["held_out_by_entropy"].values())
    return (
        f"{told}; of {1 + len(others)} entropies min_entropy {cell['min_entropy']:.2f} had the least, {least:.2f} %, "
        f"the others {others[0]:.2f} to {others[-1]:.2f} %"
    )


def why(figures, task, machine, cell):
    """What is to be known about a figure: stand-ins, repetitions, and the experiments that explain it."""
    whole = machine in (AVERAGED, *AGAIN)
    told = [STAND_INS[task]] if task in STAND_INS and not whole else []
    if cell and machine.startswith(("CPM", "AMM")) and len(cell["runs"]) != len(SEEDS):
        told.append(f"{len(cell['runs'])} runs" if len(cell["runs"]) > 1 else "one run")
    if cell and machine in (CPM, FREE):
        told.append(choice_told(cell, machine == FREE))
    if (task, machine) == ("MNIST-2", CPM) and (more := cell_of(figures, task, K96)):
        told.append(
            "0.01 points are one held-out row of 10,000, so that differences of a few hundredths are noise; with a "
            f"larger budget, 96 planes and 32M visits, {more['error']:.2f} %, a row below, but its settings were not "
            "chosen on held-out rows"
        )
    if task == "MNIST-2" and machine in BEYOND[task]:
        off = "lambda off the paper's grid, " if machine in (K96, K96_FREE) else ""
        told.append(f"{off}settings not chosen on held-out rows: test errors were known when they were set")
    if machine == K96_FREE and IN_USE in figures:
        told.append(planes_told(figures))
    if task == "RCV1-bin" and machine in (CPM, FREE, OURS, OURS_FREE) and CURVE in figures:
        told.append(
            "with back-off, means of three runs, the error falls as rows are added (checks below): "
            f"{told_of_curve(figures, CURVE)}"
        )
    if task == "URL" and machine in (CPM, FREE, OURS, OURS_FREE) and URL_CURVE in figures:
        told.append(
            "with back-off and one run, the error falls as rows are added (checks below): "
            f"{told_of_curve(figures, URL_CURVE)}; 0.8 % of the stream's labels are wrong by design, which no number "
            "of rows gets below"
        )
    if (task, machine) == ("URL", "AMM") and cell:
        told.append(
            f"9 epochs; lambda = {cell['alpha']:g} had the least held-out error of three; as with CPM, the rows are "
            "fewer than the paper's and partly mislabelled"
        )
    if task == "MNIST8m-2" and machine in (CPM, FREE, OURS, OURS_FREE) and VISITS in figures:
        curve = sorted((int(n), error) for n, error in figures[VISITS]["error_by_visits"].items())
        steps = ", ".join(f"{error:.2f} % after {n / 1e6:g}M" for n, error in curve)
        told.append(f"6M visits, the paper up to 32M; with back-off, K = 96 and one run each {steps} (checks below)")
    if (task, machine) == ("MNIST8m-2", CPM) and not figures.get(name_of(task, ALL_ROWS)):
        told.append(tenth_told(figures.get(TENTH)))
    if whole:
        told.append("stand-in: 8.1 million rows of `InfiniteDigits`, each visited once, tested on MNIST's test rows")
    if machine in AGAIN:
        told.append(
            "the paper's loop and last planes, K = 48, lambda = 100/T and the entropy as chosen on 10,000 held-out "
            "rows of the first 300,000, with back-off; the time includes that of making the images"
        )
    if machine == AVERAGED:
        told.append(
            "planes averaged, which the paper does not do; kept in benchmarks/scale, `python -m "
            "benchmarks.scale.infinite_digits`; wall-clock time of two threads, images included"
        )
    if (task, machine) == ("MNIST8m-2", "AMM") and (longer := figures.get(f"{PREFIXES[task]}: AMM, 15 epochs")):
        told.append(f"two epochs; after 15, of one run, {longer['error']:.2f} %")
    if task in ("MNIST-2", "RCV1-bin") and machine == "AMM":
        told.append(
            "the paper says that it could not get consistent results with AMM on this task; ours is another "
            "implementation"
        )
    if cell is None:
        told.append(LEFT_OUT.get((task, machine), NOT_YET))
    return "; ".join(filter(None, told))


def tenth_told(cell):
    """How long all rows of the stand-in would take, by a tenth of them."""
    if cell is None:
        return ""
    return (
        f"one pass over 810,000 rows has {cell['error']:.2f} % and took {cell['run_seconds']:.0f} processor seconds "
        f"(checks below); 8.1 million would take about {cell['run_seconds'] / 6:.0f} minutes, and are measured by "
        "`make reproduce`"
    )


def planes_told(figures):
    """What regularisation does to the planes when the entropy is free."""
    counts = ", ".join(
        f"{cell['planes']:.0f} at {int(alpha):,}/T ({cell['held_out_error']:.2f} % of held-out rows wrong)"
        for alpha, cell in sorted(figures[IN_USE].items())
        if alpha.isdecimal()
    )
    return (
        "with free entropy, the larger lambda is the fewer of the 96 planes are in use (checks below): after 4M visits "
        f"{counts}"
    )


def checks(figures):
    """The figures that the remarks above quote."""
    curves = {
        "RCV1-bin, CPM with back-off, {:,} rows": (CURVE, "error_by_rows"),
        "URL, CPM with back-off, {:,} rows": (URL_CURVE, "error_by_rows"),
        "MNIST8m-2, CPM with back-off, K=96, T={:,}": (VISITS, "error_by_visits"),
    }
    rows = []
    for label, (name, key) in curves.items():
        for n, error in sorted((int(n), error) for n, error in figures.get(name, {}).get(key, {}).items()):
            rows.append(Row(label.format(n), None, Figure(error), source=name))
    if tenth := figures.get(TENTH):
        label = "MNIST8m-2, CPM, the paper's loop, one pass over 810,000 rows"
        rows.append(Row(label, None, Figure(tenth["error"]), source=TENTH))
    longer = f"{PREFIXES['MNIST8m-2']}: AMM, 15 epochs"
    if longer in figures:
        rows.append(Row("MNIST8m-2, AMM, 15 epochs", None, Figure(figures[longer]["error"]), source=longer))
    by_alpha = {int(a): found for a, found in figures.get(IN_USE, {}).items() if a.isdecimal()}
    in_use = []
    for alpha, found in sorted(by_alpha.items()):
        label = f"MNIST-2, CPM with back-off, free entropy, K=96, 4M visits, lambda = {alpha:,}/T"
        rows.append(Row(f"{label}, held-out rows", None, Figure(found["held_out_error"]), source=IN_USE))
        in_use.append(Row(label, None, Figure(found["planes"]), source=IN_USE))
    if rows:
        yield Table("Checks: error, %", rows, note="The figures that the remarks above refer to.", kind="check")
    if in_use:
        yield Table("Checks: planes in use, of 96 on each side", in_use, better=None, digits=0, kind="check")
