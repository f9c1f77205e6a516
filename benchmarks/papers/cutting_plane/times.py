"""What the paper says of the time of OCA-E and OCA-T, and of their iterations."""

from benchmarks.experiment import Figure, Row, Table
from benchmarks.papers.cutting_plane import sets
from benchmarks.papers.cutting_plane.checks import OF_THE_FILE, PART, at_c
from benchmarks.papers.cutting_plane.sets import EXPECTED, TITLES

TIME_NOTE = (
    "Another program on other hardware: what a cheaper search saves depends on what the other parts of an iteration "
    "cost, which differs from program to program."
)


def comparison(figures):
    """What the paper says of time: the share that OCA-T saves, the share of the exact search, and standing still."""
    saved, share = [], []
    for name in EXPECTED["saving"]:
        exact, three_point = (at_c(figures, name, 1.0, search) for search in sets.SEARCHES)
        both = exact is not None and three_point is not None
        ours = Figure(100 * (1 - three_point["time_s"] / exact["time_s"])) if both else None
        saved.append(_time_row(name, EXPECTED["saving"], ours))
        ours = Figure(100 * exact["line_search_s"] / exact["time_s"]) if both else None
        if name in EXPECTED["search_share"]:
            share.append(_time_row(name, EXPECTED["search_share"], ours))
    title = "Figures 4 and 5: training time that OCA-T saves, in %, C = 1, tol = 0.01"
    yield Table(title, saved, None, digits=1, note=TIME_NOTE, kind="time")
    title = "Time of OCA-E spent on the line search, in %, C = 1, tol = 0.01"
    yield Table(title, share, None, digits=1, note=TIME_NOTE, kind="time")
    yield searches(figures)
    rows = []
    for search, key in {"OCA-E": "iterations_exact", "OCA-T": "iterations_three_point"}.items():
        whole = at_c(figures, OF_THE_FILE, 1e2, search)
        name, found = (OF_THE_FILE, whole) if whole else (PART, at_c(figures, PART, 1e2, search))
        ours = None if found is None else Figure(found["iterations"])
        why = "" if found is None else f"{found['stood_still']} of them did not lower the objective."
        why += " On all rows, with features as the file has them." if whole else " On 100,000 rows, features scaled."
        source = f"{name}, C=100, tol=0.01, {search}"
        rows.append(Row(search, Figure(EXPECTED["covtype_C_100"][key]), ours, why, source))
    note = "The paper has 581,012 training rows, and 490 of OCA-E's iterations did not lower the objective."
    title = "Section 4.2: iterations on COVTYPE with C = 100, tol = 0.01"
    yield Table(title, rows, None, digits=0, note=note, kind="stand-in")


def searches(figures):
    """The time on the line search that OCA-T saves, of which the paper says something in words."""
    rows = []
    for name in EXPECTED["saving"]:
        pair = [at_c(figures, name, 1.0, search) for search in sets.SEARCHES]
        if all(pair):
            saved = 100 * (1 - pair[1]["line_search_s"] / pair[0]["line_search_s"])
            source = tuple(f"{name}, C=1, tol=0.01, {search}" for search in sets.SEARCHES)
            rows.append(Row(TITLES[name], None, Figure(saved), source=source))
    title = "Time on the line search that OCA-T saves, in %, C = 1, tol = 0.01"
    note = "In the paper over 75 % on all sets but NEWS20."
    return Table(title, rows, None, digits=1, note=note, kind="time")


def _time_row(name, expected, ours):
    """A row of shares of time; those of a stand-in have no figure to compare with."""
    source = tuple(f"{name}, C=1, tol=0.01, {search}" for search in sets.SEARCHES)
    if name == "rcv1":
        return Row(TITLES[name], None, ours, f"The paper has {expected[name]} on its own RCV1.", source)
    return Row(TITLES[name], Figure(expected[name]), ours, "", source)
