"""The figures behind remarks on Figures 4 to 6: other C and tol, and COVTYPE read as the paper's numbers suggest."""

from benchmarks.harness.experiment import Figure, Row, Table, share
from benchmarks.papers.cutting_plane.sets import EXPECTED, TITLES

ALL_C = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2]
ALL_TOL = [0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0005]
#: Where ours is worse than the paper's: another C and tol that may explain it, and how.
FURTHER = {
    ("news20", 1e-2): (1e-2, 1e-4, "Where training stops matters: with tol = 0.0001 the error is"),
    ("covtype", 1e-4): (
        1.25e-4,
        1e-2,
        "The paper has 581,012 training rows, whose losses sum to 1.25 times ours: with C = 0.000125 the error is",
    ),
}
PART = "covtype, 100,000 rows"
#: A reading of the paper's numbers of rows, 581,012 and 115,826: all rows train, the last ones of the file test.
OF_THE_FILE = "covtype of the file"
#: Whether the paper may have left the features of COVTYPE unscaled, from 0 to thousands.
AS_IT_COMES = "covtype, 20,000 rows as they come, C=1, tol=0.01, OCA-T"
TEST_ROWS = {"rcv1": 11_422, "news20": 3_993, "mnist": 10_000, "covtype": 116_202}


def at_c(figures, name, C, search="OCA-T"):
    return figures.get(f"{name}, C={C:g}, tol=0.01, {search}")


def at_tol(figures, name, tol, search="OCA-T"):
    return figures.get(f"{name}, C=1, over tol, {search}", {}).get(f"tol={tol:g}")


def error_of(found, name):
    """Test error, with the deviation that it has for the number of test rows alone."""
    return None if found is None else share(found["error"], TEST_ROWS[name])


def covtype_told(figures, check):
    """What is known of the difference on COVTYPE: most of it comes from the test rows."""
    told = "Not the paper's test rows; features are scaled to [0, 1], of which the paper says nothing."
    if check:
        told += (
            " Trained on all rows of the file with unscaled features and tested on its last 115,826 rows, which is how "
            f"we read the paper's numbers of rows, the error is {check['error']:.2f} (checks below)."
        )
    return told


def checks(figures):
    """The figures that the remarks above quote."""
    rows = []
    for (which, _), (C, tol, _) in FURTHER.items():
        name = f"{which}, C={C:g}, tol={tol:g}, OCA-T"
        if found := figures.get(name):
            told = f"{found['iterations']} cuts, within {100 * found['gap']:.2g} % of the optimum."
            rows.append(Row(name.replace(which, TITLES[which], 1), None, error_of(found, which), told, name))
    if found := figures.get(AS_IT_COMES):
        told = f"{found['iterations']} cuts, within {100 * found['gap']:.2g} % of the optimum."
        label = "COVTYPE, 20,000 training rows with unscaled features, C = 1, random test rows"
        rows.append(Row(label, None, error_of(found, "covtype"), told, AS_IT_COMES))
    label = "COVTYPE of the file"
    for C, paper in zip(ALL_C, EXPECTED["error_over_C"]["covtype"], strict=True):
        if found := at_c(figures, OF_THE_FILE, C):
            source = f"{OF_THE_FILE}, C={C:g}, tol=0.01, OCA-T"
            gap = 100 * found["gap"]
            told = "" if gap < 1 else f"Stopped after {found['iterations']} cuts, within {gap:.0f} % of the optimum."
            rows.append(Row(f"{label}, C = {C:g}, tol = 0.01", Figure(paper), error_of(found, "covtype"), told, source))
    for tol, paper in zip(ALL_TOL, EXPECTED["error_over_tol"]["covtype"], strict=True):
        if found := at_tol(figures, OF_THE_FILE, tol):
            source = f"{OF_THE_FILE}, C=1, over tol, OCA-T"
            rows.append(Row(f"{label}, C = 1, tol = {tol:g}", Figure(paper), error_of(found, "covtype"), "", source))
    if rows:
        yield Table("Checks: test error, %", rows, note=check_note(rows), kind="check")


CHECKED = (
    "The figures that the remarks refer to. *COVTYPE of the file*: the paper gives 581,012 training and 115,826 test "
    "rows, of a set that has 581,012; here all rows train, with unscaled features, and the last 115,826 rows test. "
    "Classes are distributed unevenly over the file: class 2 has 69 % of its first fifth and 40 % of these rows. "
    "Scaling alone does not explain the difference: with unscaled features and random test rows the error is near ours."
)


def check_note(rows):
    """What the checks are, and how much of the difference on COVTYPE they leave."""
    left = [abs(row.ours.value - row.paper.value) for row in rows if row.paper]
    if not left:
        return CHECKED
    return f"{CHECKED} On the rows of the file a difference of {min(left):.1f} to {max(left):.1f} points is left."
