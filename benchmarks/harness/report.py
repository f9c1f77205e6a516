"""The report of the reproduction: one Markdown file with pictures beside it, and one self-contained HTML page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.harness import report_html, report_pictures
from benchmarks.harness.experiment import KINDS, Experiment, Figure, Plot, Row, Table
from benchmarks.harness.results import CURRENT, STALE, UNKNOWN, KeptFigures, minutes

VERDICTS = ("equal", "better", "worse", "differs", "not run")
HEADS = ("", "paper", "ours", "difference", "verdict")
#: Signs behind figures that are not as measured today, from the worst to the best.
MARKS = {UNKNOWN: "‡", STALE: "†", CURRENT: ""}


@dataclass(frozen=True)
class Section:
    """One experiment with what it gave.

    Parameters
    ----------
    experiment : Experiment
        What is measured, and how.
    results : KeptFigures
        Its figures, of which is known which are current.
    tables, plots : sequences
        What is made of them.
    """

    experiment: Experiment
    results: KeptFigures
    tables: Sequence[Table]
    plots: Sequence[Plot]

    @property
    def seconds(self) -> float:
        """How long measuring took."""
        return sum(figure.get("seconds", 0.0) for figure in self.results.figures.values())

    @property
    def module(self) -> str:
        """The module to run."""
        return ".".join(["benchmarks", "papers", *Path(self.experiment.script).with_suffix("").parts[-2:]])

    def state(self, row: Row) -> str:
        """Whether our figure is current: the worst state of those it is made of; "" where there is none.

        A figure that another experiment keeps is unverified here.
        """
        if row.ours is None:
            return ""
        states = {self.results.state(name) or UNKNOWN for name in row.sources} or {UNKNOWN}
        return next(state for state in MARKS if state in states)

    def states(self) -> Counter[str]:
        """How many of the kept figures are in which state."""
        return Counter(self.results.state(name) for name in {*self.results.figures, *self.results.wanted})


@dataclass(frozen=True)
class Chapter:
    """One paper."""

    name: str
    citation: str
    sections: Sequence[Section] = field(default_factory=list)

    def rows(self) -> Iterable[tuple[Section, Table, Row]]:
        """All rows, with where they stand."""
        return ((part, table, row) for part in self.sections for table in part.tables for row in table.rows)

    def counted(self, kind: str) -> Iterable[tuple[Section, Table, Row]]:
        """The rows of a class; of those that show the same cell of the paper the first."""
        seen = set()
        for part, table, row in self.rows():
            cell = (part.module, row.cell) if row.cell else (part.module, table.title, row.label)
            if table.kind_of(row) == kind and cell not in seen:
                seen.add(cell)
                yield part, table, row

    def verdicts(self, kind: str = "paper") -> Counter[str]:
        """How often each verdict was given to rows of a class; "": no figure in the paper to compare with."""
        return Counter(table.verdict(row) for _, table, row in self.counted(kind))

    def outdated(self, kind: str = "paper") -> int:
        """Rows of a class with a verdict whose figure is not current."""
        return sum(
            part.state(row) in (STALE, UNKNOWN) and bool(table.verdict(row)) for part, table, row in self.counted(kind)
        )


def section(experiment: Experiment, quick: bool, root: Path | None = None) -> Section:
    """The tables of the kept figures."""
    results = experiment.looked_through(quick, root)
    folder = Path(experiment.script).parent.name.replace("_", "-")
    tables = tuple(experiment.tables(results.figures))
    plots = tuple(
        replace(plot, name=f"{folder}-{plot.name.removeprefix(folder + '-')}")  # two papers have a Figure 2
        for plot in experiment.plots(results.figures)
    )
    return Section(experiment, results, tables, plots)


def heads(table: Table) -> Sequence[str]:
    """The names of the columns; where the paper has no figures there is nothing to compare."""
    return HEADS if any(row.paper for row in table.rows) else ("", "ours")


def cells(part: Section, table: Table, row: Row, marks: dict[str, int]) -> list[str]:
    """The texts of a row; a reason stands below the table, its number behind the verdict."""
    difference = ""
    if row.paper is not None and row.ours is not None:
        difference = f"{row.ours.value - row.paper.value:+.{table.digits}f}"
    mark = f" ({marks[row.why]})" if row.why else ""
    ours = _text(row.ours, table) + MARKS.get(part.state(row), "")
    if len(heads(table)) == 2:
        return [row.label, ours + mark]
    return [row.label, _text(row.paper, table), ours, difference, table.verdict(row) + mark]


def reasons(table: Table) -> dict[str, int]:
    """Each reason with its number, in the order of the rows."""
    return {why: i for i, why in enumerate(dict.fromkeys(row.why for row in table.rows if row.why), start=1)}


def _text(figure: Figure | None, table: Table) -> str:
    if figure is None:
        return "-"
    deviation = "" if figure.std is None else f" ± {figure.std:.{table.digits}f}"
    return f"{figure.value:.{table.digits}f}{deviation}"


def made_with(part: Section) -> str:
    """How long measuring took, with what, and which figures are not current."""
    versions = ", ".join(f"{name} {value}" for name, value in part.results.environment.items() if name != "cores")
    took = minutes(part.seconds)
    counts = part.states()
    states = ", ".join(f"{counts[state]} {state}{MARKS[state] and f' ({MARKS[state]})'}" for state in MARKS)
    return f"{took} of measuring; figures: {states}; {versions}."


def summary(chapters: Iterable[Chapter]) -> tuple[list[str], list[list[str]]]:
    """The counts at the top: the paper's methods by the paper's protocol alone."""
    rows = []
    for chapter in chapters:
        counts = chapter.verdicts()
        numbers = (*(counts[verdict] for verdict in VERDICTS), chapter.outdated())
        rows.append([chapter.name, *map(str, numbers)])
    return ["paper", *VERDICTS, "of these not current"], rows


def classes(chapters: Iterable[Chapter]) -> tuple[list[str], list[list[str]]]:
    """The counts of all classes of rows."""
    rows = []
    for chapter in chapters:
        for kind, words in KINDS.items():
            counts = chapter.verdicts(kind)
            if counts:
                numbers = (*(counts[verdict] for verdict in VERDICTS), counts[""], chapter.outdated(kind))
                rows.append([f"{chapter.name}: {words}", *map(str, numbers)])
    return ["class of row", *VERDICTS, "no figure in the paper", "with a verdict, not current"], rows


INTRODUCTION = (
    "Every table and figure of the five papers, measured again by `make reproduce`. The table below counts the rows "
    "with the paper's algorithm as printed and the paper's protocol, and no others; smaller departures from the "
    "protocol, such as fewer repetitions, are named in the row. A cell of a paper counts once. The other rows are "
    "counted further down."
)
#: The words of the report, with their meanings.
TERMS = {
    "equal": "the same in the digits shown, or no significant difference: by Welch's t-test at 5 % between repeated "
    "runs (their deviations, theirs and ours, and the numbers of runs; a figure without a deviation counts as one more "
    "run of the other); between single runs of deterministic methods at most five test rows, which even in one "
    "direction are not significant",
    "better, worse": "a difference that is not that small",
    "differs": "likewise, where neither a larger nor a smaller figure is better, as of times and numbers of planes",
    "not run": "the paper has a figure and we have none; the remark says why",
    "stand-in": "data in place of a set that could not be obtained: another sample of the same source, or synthetic "
    "data of the same shape",
    "variant": "the paper's method with a difference that the row names, such as averaged planes",
    "held-out rows": "training rows kept apart to choose settings; test rows choose nothing, unless a remark "
    "or the protocol says so",
    "as it comes": "with default parameters; the page on defaults says how these were chosen",
    "remarks": "a number in brackets leads to the remark below the table; a figure leads to the file that keeps it, "
    "and shows the command that measures it",
}
CURRENCY = (
    "Each of our figures is kept with its settings and with the versions of the methods and of the synthetic data that "
    "it was measured with. † marks a *stale* figure: one of these has changed since. ‡ marks an *unverified* one: it "
    "is not known what it was measured with, or it is taken from an experiment outside the papers, which records no "
    "versions. `make reproduce` measures stale figures again, and says how long that takes. *Current* figures have "
    "neither mark."
)


def inventory(chapters: Iterable[Chapter]) -> str:
    """How many figures are current, and how many rows are not."""
    chapters = list(chapters)
    counts: Counter[str] = sum((part.states() for chapter in chapters for part in chapter.sections), Counter())
    marked = Counter(part.state(row) for chapter in chapters for part, _, row in chapter.rows())
    return (
        f"Of the kept figures {counts[CURRENT]} are current, {counts[STALE]} are stale, {counts[UNKNOWN]} have no "
        f"versions; {counts['']} are not measured yet. Of the rows {marked[STALE]} are stale (†) and {marked[UNKNOWN]} "
        "are unverified (‡)."
    )


# Markdown


def markdown(chapters: Sequence[Chapter], title: str, text: Path, images: str, extra: str = "") -> str:
    """The report, which will lie at `text`; pictures are looked for in the folder `images`."""
    lines = [f"# {title}", "", INTRODUCTION, "", *markdown_table(*summary(chapters)), ""]
    lines += [*(f"* *{term}*: {meaning}" for term, meaning in TERMS.items()), "", CURRENCY]
    lines += ["", inventory(chapters), "", report_pictures.CAPTION, ""]
    for chapter in chapters:
        name = report_pictures.name_of(chapter.name)
        lines += [f"![{chapter.name}: paper against ours]({images}/{name}.svg)", ""]
    lines += [
        "The same counts for all classes of rows:",
        "",
        *markdown_table(*classes(chapters)),
    ]
    lines += ["", extra] if extra else []
    for chapter in chapters:
        lines += ["", f"## {chapter.name}", "", chapter.citation]
        for part in chapter.sections:
            lines += ["", f"### {part.experiment.title}", "", part.experiment.protocol, ""]
            for table in part.tables:
                lines += _markdown_figures(part, table, text)
            lines += [f"![{plot.caption}]({images}/{plot.name}.png)\n\n*{plot.caption}*\n" for plot in part.plots]
            path = part.results.path
            file = f"[{path.name}]({_link(part, text)})" if path.exists() else path.name
            lines.append(f"<sub>`python -m {part.module}`, kept in {file}: {made_with(part)}</sub>")
    return "\n".join(lines) + "\n"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table whose first column is left-aligned, the others right."""
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *([c.replace("|", "\\|") for c in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _link(part: Section, text: Path) -> str:
    """The way from the report to the file of the figures."""
    return Path(os.path.relpath(part.results.path, text.parent)).as_posix()


def _command(part: Section, row: Row) -> str:
    """What measures a figure: shown where the pointer rests on it."""
    more = f", and {len(row.sources) - 1} more" if row.sources[1:] else ""
    return f"python -m {part.module} --only '{row.sources[0]}'{more}".replace('"', "&quot;").replace("|", "&#124;")


def _markdown_figures(part: Section, table: Table, text: Path) -> list[str]:
    marks = reasons(table)
    rows = []
    for row in table.rows:
        texts = cells(part, table, row, marks)
        if row.ours is not None and row.sources and row.sources[0] in part.results.figures:
            at = 1 if len(texts) == 2 else 2
            texts[at] = f'[{texts[at]}]({_link(part, text)} "{_command(part, row)}")'
        rows.append(texts)
    lines = [f"**{table.title}**", "", *markdown_table(heads(table), rows), ""]
    lines += [f"({number}) {why}\n" for why, number in marks.items()]
    return [*lines, table.note, ""] if table.note else lines


# Files


def write(
    chapters: Sequence[Chapter], title: str, text: Path, images: Path, single_page: Path, extra: str = ""
) -> None:
    """Write the Markdown file, its pictures and the HTML page."""
    plots = [plot for chapter in chapters for part in chapter.sections for plot in part.plots]
    pictures: dict[str, bytes] = {f"{plot.name}.png": report_pictures.picture(plot) for plot in plots}
    for chapter in chapters:
        pictures[f"{report_pictures.name_of(chapter.name)}.svg"] = report_pictures.diagonal(
            points(chapter), chapter.name
        )
    for folder in (text.parent, images, single_page.parent):
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in pictures.items():
        (images / name).write_bytes(data)
    text.write_text(
        markdown(chapters, title, text, images.relative_to(text.parent).as_posix(), extra), encoding="utf-8"
    )
    single_page.write_text(report_html.page(chapters, title, pictures), encoding="utf-8")


def points(chapter: Chapter) -> list[dict[str, Any]]:
    """Every figure that the paper has, too, with its class and its state; accuracies in % as errors."""
    found = []
    for part, table, row in chapter.rows():
        if row.paper is not None and row.ours is not None:
            kind = table.kind_of(row)
            is_error = "%" in table.title and kind != "time"
            is_accuracy = is_error and "accuracy" in table.title.lower()
            values = [100 - f.value if is_accuracy else f.value for f in (row.paper, row.ours)]
            point = {"paper": values[0], "ours": values[1], "kind": kind, "is_error": is_error}
            found.append(point | {"current": part.state(row) == CURRENT})
    return found
