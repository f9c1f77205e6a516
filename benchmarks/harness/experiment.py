"""Experiments: one table or figure of a paper, measured again, beside the figures of the paper."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.harness.results import KeptFigures
from scipy import stats

#: The classes of rows. Only the first is counted at the top of the report.
KINDS = {
    "paper": "the paper's algorithm by the paper's protocol",
    "stand-in": "the paper's algorithm on other data than the paper's, or in a variant",
    "time": "times, on other hardware than the paper's",
    "beyond": "methods that the paper does not have",
    "check": "checks that explain a difference",
}


#: Figures of repeated runs are equal unless Welch's t-test says otherwise at this level.
LEVEL = 0.05
#: Errors of single runs on the same test rows are equal up to so many rows: even if all of them changed in one
#: direction, a sign test would not be significant.
ROWS_APART = 5


class Figure(NamedTuple):
    """A number with what is known of its precision.

    Parameters
    ----------
    value : float
        The number.
    std : float or None
        Its deviation, over `n` repetitions or, without these, as a share of `rows`.
    n : int or None
        Repetitions; None: a single run.
    rows : int or None
        Test rows of which a single run of a deterministic method gives a share in %.
    """

    value: float
    std: float | None = None
    n: int | None = None
    rows: int | None = None


def repeated(value: float, runs: Sequence[float]) -> Figure:
    """The figure of several runs, with their deviation."""
    return Figure(value, float(np.std(runs, ddof=1)), len(runs)) if len(runs) > 1 else Figure(value)


def share(value: float, rows: int) -> Figure:
    """A share of test rows in %, of one run of a deterministic method, with its binomial deviation."""
    return Figure(value, float(np.sqrt(value * (100 - value) / rows)), rows=rows)


def printed(figure: Sequence[float], n: int) -> Figure:
    """A figure of a paper: mean and deviation over `n` runs, or a mean alone."""
    return Figure(*figure, n) if len(figure) == 2 else Figure(*figure)


def differ(one: Figure, other: Figure) -> bool:
    """Whether two figures differ by more than chance.

    Of repeated runs by Welch's t-test; where only one has a deviation, the other is taken for one more run. Single runs
    on the same test rows by the number of rows.
    """
    known = [f for f in (one, other) if f.std is not None and f.n is not None]
    gap = abs(one.value - other.value)
    if not known:
        rows = one.rows or other.rows
        return not rows or round(gap / 100 * rows) > ROWS_APART
    parts = [f.std**2 / f.n for f in known] if len(known) == 2 else [known[0].std ** 2 * (1 + 1 / known[0].n)]
    if sum(parts) == 0:
        return True
    freedom = sum(parts) ** 2 / sum(part**2 / (f.n - 1) for part, f in zip(parts, known, strict=True))
    return bool(2 * stats.t.sf(gap / np.sqrt(sum(parts)), freedom) < LEVEL)


@dataclass(frozen=True)
class Row:
    """One figure of a table.

    Parameters
    ----------
    label : str
        What it is of: set and method.
    paper, ours : Figure or None
        The paper's figure and ours; None where there is none.
    why : str, default=""
        The remark: why ours differs, with the experiment that shows it, stand-ins, repetitions.
    source : str or tuple of str, default=()
        The names of the kept figures that ours is made of.
    kind : str or None, default=None
        Its class, one of `KINDS`; None: that of its table.
    cell : str or None, default=None
        The cell of the paper, where several rows show the same one: it is counted once.
    """

    label: str
    paper: Figure | None
    ours: Figure | None
    why: str = ""
    source: str | tuple[str, ...] = ()
    kind: str | None = None
    cell: str | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the kept figures, as a tuple."""
        return (self.source,) if isinstance(self.source, str) else tuple(self.source)


@dataclass(frozen=True)
class Table:
    """Figures of one kind.

    Parameters
    ----------
    title : str
        What is shown, with its unit.
    rows : sequence of Row
        The figures.
    better : {"lower", "higher", None}
        Which is better; None where the figure is a description and neither is.
    digits : int, default=2
        Digits after the point.
    note : str, default=""
        What a reader must know of all rows.
    kind : str, default="paper"
        The class of the rows that do not say theirs, one of `KINDS`.
    """

    title: str
    rows: Sequence[Row]
    better: str | None = "lower"
    digits: int = 2
    note: str = ""
    kind: str = "paper"

    def kind_of(self, row: Row) -> str:
        """The class of a row."""
        return row.kind or self.kind

    def verdict(self, row: Row) -> str:
        """How our figure compares: better, equal (as printed, or up to chance) or worse."""
        if row.paper is None:
            return ""
        if row.ours is None:
            return "not run"
        gain = row.paper.value - row.ours.value if self.better == "lower" else row.ours.value - row.paper.value
        if abs(gain) <= 0.5 * 10.0**-self.digits or not differ(row.paper, row.ours):
            return "equal"
        if self.better is None:
            return "differs"
        return "better" if gain > 0 else "worse"


@dataclass(frozen=True)
class Plot:
    """A picture.

    Parameters
    ----------
    name : str
        Name of the file, without its ending.
    caption : str
        What to see in it.
    draw : callable
        Draws on a Matplotlib figure that it is given.
    """

    name: str
    caption: str
    draw: Callable[[Any], None]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper.

    Parameters
    ----------
    script : str
        ``__file__`` of the module that holds it.
    title : str
        Which table or figure of the paper, and of what.
    protocol : str
        How it is measured, with data, seeds and repetitions, and where that departs from the paper.
    measure : callable
        ``measure(results)`` takes each figure by ``results.get``; ``results.quick`` asks for a run of a minute or two.
    tables : callable
        ``tables(figures)`` makes the tables from the kept figures, by name; missing ones have no ``ours``.
    plots : callable, optional
        ``plots(figures)`` makes the pictures likewise.
    settings : dict
        What all figures depend on; with other settings they are stale. If the code that measures is changed so that
        figures may change, change a setting, too, such as ``protocol=2``.
    uses : sequence of str
        The methods and generators (`versions.toml`) of the figures that do not say theirs.
    """

    script: str
    title: str
    protocol: str
    measure: Callable[[KeptFigures], None]
    tables: Callable[[dict[str, Any]], Iterable[Table]]
    plots: Callable[[dict[str, Any]], Iterable[Plot]] = lambda figures: ()
    settings: dict[str, Any] = field(default_factory=dict)
    uses: Sequence[str] = ()

    def results(self, quick: bool, only: str = "", exactly: str = "") -> KeptFigures:
        """Where its figures are kept; those with `only` in their names are measured, or the one called `exactly`."""
        return KeptFigures(self.script, quick=quick, only=only, exactly=exactly, uses=self.uses, **self.settings)

    def looked_through(self, quick: bool, root: Path | None = None) -> KeptFigures:
        """Its figures with their states; nothing is measured."""
        results = KeptFigures(self.script, quick=quick, root=root, only=None, uses=self.uses, **self.settings)
        self.measure(results)
        return results


def show(table: Table) -> str:
    """A table as plain text."""

    def cell(figure: Figure | None) -> str:
        if figure is None:
            return "-"
        deviation = "" if figure.std is None else f" +- {figure.std:.{table.digits}f}"
        return f"{figure.value:.{table.digits}f}{deviation}"

    width = max(len(row.label) for row in table.rows)
    lines = [table.title, f"{'':{width}}  {'paper':>16}  {'ours':>16}  verdict"]
    for row in table.rows:
        lines.append(f"{row.label:{width}}  {cell(row.paper):>16}  {cell(row.ours):>16}  {table.verdict(row)}".rstrip())
    return "\n".join(lines)


def main(experiment: Experiment) -> None:
    """Run one experiment from its own module and print its tables; it goes on where it stopped."""
    parser = argparse.ArgumentParser(description=f"{experiment.title}. {experiment.protocol}")
    parser.add_argument("--quick", action="store_true", help="smaller repeats, kept apart from the full results")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only figures with this in their names")
    parser.add_argument(
        "--vouch", metavar="REASON", help="measure nothing: say that what changed since does not change these figures"
    )
    given = parser.parse_args()
    if given.vouch:
        results = experiment.looked_through(given.quick)
        results.only = given.only
        print("\n".join(["Vouched for:", *results.vouch(given.vouch)]))
        return
    results = experiment.results(given.quick, given.only)
    experiment.measure(results)
    for table in experiment.tables(results.figures):
        print(show(table), end="\n\n")
