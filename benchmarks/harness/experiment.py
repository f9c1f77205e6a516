"""Experiments: one table or figure of a paper, measured again, beside the figures of the paper."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.results import KeptFigures

#: The classes of rows. Only the first is counted at the top of the report.
KINDS = {
    "paper": "the paper's method by the paper's protocol",
    "stand-in": "the paper's method on other data than the paper's, or in a variant",
    "time": "times, on other hardware than the paper's",
    "beyond": "methods that the paper does not have",
    "check": "checks that explain a difference",
}


class Figure(NamedTuple):
    """A number and, where known, its deviation over repetitions."""

    value: float
    std: float | None = None


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
    """

    label: str
    paper: Figure | None
    ours: Figure | None
    why: str = ""
    source: str | tuple[str, ...] = ()
    kind: str | None = None

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
        """How our figure compares: better, equal (within the paper's spread, or ours if it gives none), or worse."""
        if row.paper is None:
            return ""
        if row.ours is None:
            return "not run"
        gain = row.paper.value - row.ours.value if self.better == "lower" else row.ours.value - row.paper.value
        spread = next((f.std for f in (row.paper, row.ours) if f.std is not None), 0.0)
        noise = max(spread, 0.5 * 10.0**-self.digits)
        if abs(gain) <= noise:
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

    def results(self, quick: bool, only: str = "") -> KeptFigures:
        """Where its figures are kept; those with `only` in their names are measured."""
        return KeptFigures(self.script, quick=quick, only=only, uses=self.uses, **self.settings)

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
