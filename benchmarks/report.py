"""The report of the reproduction: one Markdown file with pictures beside it, and one self-contained HTML page."""

from __future__ import annotations

import base64
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from benchmarks.experiment import Experiment, Figure, Plot, Row, Table

VERDICTS = ("better", "equal", "worse", "differs", "not run")
HEADS = ("", "paper", "ours", "difference", "verdict")


@dataclass(frozen=True)
class Section:
    """One experiment with what it gave."""

    experiment: Experiment
    tables: Sequence[Table]
    plots: Sequence[Plot]
    seconds: float
    environment: dict[str, Any]


@dataclass(frozen=True)
class Chapter:
    """One paper."""

    name: str
    citation: str
    sections: Sequence[Section] = field(default_factory=list)

    def verdicts(self) -> Counter[str]:
        """How often each verdict was given."""
        return Counter(t.verdict(row) for s in self.sections for t in s.tables for row in t.rows)


def section(experiment: Experiment, quick: bool) -> Section:
    """What the figures at hand give."""
    results = experiment.results(quick)
    folder = Path(experiment.script).parent.name.replace("_", "-")
    tables = tuple(experiment.tables(results.figures))
    plots = tuple(
        replace(plot, name=f"{folder}-{plot.name.removeprefix(folder + '-')}")  # two papers have a Figure 2
        for plot in experiment.plots(results.figures)
    )
    seconds = sum(figure.get("seconds", 0.0) for figure in results.figures.values())
    return Section(experiment, tables, plots, seconds, results.environment)


def heads(table: Table) -> Sequence[str]:
    """The names of the columns; where the paper has no figures there is nothing to compare."""
    return HEADS if any(row.paper for row in table.rows) else ("", "ours")


def cells(table: Table, row: Row, marks: dict[str, int]) -> list[str]:
    """The texts of a row; a reason stands below the table, its number behind the verdict."""
    difference = ""
    if row.paper is not None and row.ours is not None:
        difference = f"{row.ours.value - row.paper.value:+.{table.digits}f}"
    mark = f" ({marks[row.why]})" if row.why else ""
    if len(heads(table)) == 2:
        return [row.label, _text(row.ours, table) + mark]
    return [row.label, _text(row.paper, table), _text(row.ours, table), difference, table.verdict(row) + mark]


def reasons(table: Table) -> dict[str, int]:
    """Each reason with its number, in the order of the rows."""
    return {why: i for i, why in enumerate(dict.fromkeys(row.why for row in table.rows if row.why), start=1)}


def _text(figure: Figure | None, table: Table) -> str:
    if figure is None:
        return "-"
    deviation = "" if figure.std is None else f" ± {figure.std:.{table.digits}f}"
    return f"{figure.value:.{table.digits}f}{deviation}"


def _made_with(part: Section) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in part.environment.items() if name not in ("cores",))
    minutes = part.seconds / 60
    took = f"{minutes:.0f} minutes" if minutes >= 1.5 else f"{part.seconds:.0f} seconds"
    return f"{took} of measuring; {versions}."


def _summary(chapters: Iterable[Chapter]) -> list[list[str]]:
    rows = []
    for chapter in chapters:
        counts = chapter.verdicts()
        rows.append([chapter.name, *(str(counts[verdict]) for verdict in VERDICTS)])
    return rows


INTRODUCTION = (
    "Every table and figure of the five papers, measured again by `make reproduce`. *Better*, *equal* and *worse* "
    "compare with the paper's figure; *equal* means within the deviation that the paper gives, or ours where it gives "
    "none. *Differs* is said of figures of which neither more nor less is better. A number in brackets leads to the "
    "remark below the table. Sets that could not be had are replaced by stand-ins, which are labelled so."
)


# Markdown


def markdown(chapters: Sequence[Chapter], title: str, images: str) -> str:
    """The report; pictures are looked for in the folder `images`."""
    lines = [f"# {title}", "", INTRODUCTION, ""]
    lines += _markdown_table(["paper", *VERDICTS], _summary(chapters))
    for chapter in chapters:
        lines += ["", f"## {chapter.name}", "", chapter.citation]
        for part in chapter.sections:
            lines += ["", f"### {part.experiment.title}", "", part.experiment.protocol, ""]
            for table in part.tables:
                lines += _markdown_figures(table)
            lines += [f"![{plot.caption}]({images}/{plot.name}.png)\n\n*{plot.caption}*\n" for plot in part.plots]
            lines.append(f"<sub>{_made_with(part)}</sub>")
    return "\n".join(lines) + "\n"


def _markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *([c.replace("|", "\\|") for c in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def _markdown_figures(table: Table) -> list[str]:
    marks = reasons(table)
    lines = [
        f"**{table.title}**",
        "",
        *_markdown_table(heads(table), (cells(table, row, marks) for row in table.rows)),
        "",
    ]
    lines += [f"({number}) {why}\n" for why, number in marks.items()]
    return [*lines, table.note, ""] if table.note else lines


# HTML

STYLE = """
:root { color-scheme: light dark; --line: #8884; --better: #0072b2; --worse: #c44e00; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; display: block; overflow-x: auto; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
td.better { color: var(--better); font-weight: 600; } td.worse { color: var(--worse); font-weight: 600; }
@media (prefers-color-scheme: dark) { :root { --better: #56b4e9; --worse: #e69f00; } img { background: #fff; } }
img { max-width: 100%; height: auto; border-radius: 6px; } figure { margin: 1rem 0; }
figcaption, .made, .why { font-size: .88rem; opacity: .85; }
nav a { display: inline-block; margin-right: 1rem; }
"""


def page(chapters: Sequence[Chapter], title: str, pictures: dict[str, bytes]) -> str:
    """The report as one page that needs nothing but itself."""
    links = "".join(f'<a href="#paper{i}">{html.escape(c.name)}</a>' for i, c in enumerate(chapters))
    body = [f"<h1>{html.escape(title)}</h1>", f"<p>{_inline(INTRODUCTION)}</p>", f"<nav>{links}</nav>"]
    body.append(_html_table("", ["paper", *VERDICTS], [(row, "") for row in _summary(chapters)]))
    for i, chapter in enumerate(chapters):
        body.append(f'<h2 id="paper{i}">{html.escape(chapter.name)}</h2><p>{_inline(chapter.citation)}</p>')
        body += [_html_section(part, pictures) for part in chapter.sections]
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{meta}<title>{html.escape(title)}</title><style>{STYLE}</style>"
    text = "\n".join(body)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{text}\n</body></html>\n'


def _html_section(part: Section, pictures: dict[str, bytes]) -> str:
    lines = [f"<h3>{html.escape(part.experiment.title)}</h3><p>{_inline(part.experiment.protocol)}</p>"]
    for table in part.tables:
        marks = reasons(table)
        rows = [(cells(table, row, marks), table.verdict(row)) for row in table.rows]
        lines.append(_html_table(table.title, heads(table), rows))
        lines += [f'<p class="why">({number}) {_inline(why)}</p>' for why, number in marks.items()]
        lines += [f'<p class="why">{_inline(table.note)}</p>'] if table.note else []
    for plot in part.plots:
        data, alt = base64.b64encode(pictures[plot.name]).decode(), html.escape(plot.caption, quote=True)
        lines.append(f'<figure><img alt="{alt}" src="data:image/png;base64,{data}">')
        lines.append(f"<figcaption>{_inline(plot.caption)}</figcaption></figure>")
    return "\n".join([*lines, f'<p class="made">{html.escape(_made_with(part))}</p>'])


def _html_table(title: str, columns: Sequence[str], rows: Iterable[tuple[Sequence[str], str]]) -> str:
    head = "".join(f"<th>{html.escape(h)}</th>" for h in columns)
    body = ""
    for texts, verdict in rows:
        *others, last = (html.escape(text) for text in texts)
        body += "<tr>" + "".join(f"<td>{t}</td>" for t in others) + f'<td class="{verdict}">{last}</td></tr>\n'
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _inline(text: str) -> str:
    """Markdown's code and emphasis, in HTML."""
    for mark, tag in (("`", "code"), ("*", "em")):
        pieces = (html.escape(text, quote=False) if mark == "`" else text).split(mark)
        if len(pieces) % 2:
            text = "".join(p if i % 2 == 0 else f"<{tag}>{p}</{tag}>" for i, p in enumerate(pieces))
    return text


# Pictures and files


def picture(plot: Plot) -> bytes:
    """A plot as PNG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9.0, 4.8), layout="constrained", dpi=110)
    plot.draw(canvas)
    buffer = BytesIO()
    FigureCanvasAgg(canvas).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def write(chapters: Sequence[Chapter], title: str, text: Path, images: Path, single_page: Path) -> None:
    """Write the Markdown file, its pictures and the HTML page."""
    plots = [plot for chapter in chapters for part in chapter.sections for plot in part.plots]
    pictures = {plot.name: picture(plot) for plot in plots}
    for folder in (text.parent, images, single_page.parent):
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in pictures.items():
        (images / f"{name}.png").write_bytes(data)
    text.write_text(markdown(chapters, title, images.relative_to(text.parent).as_posix()))
    single_page.write_text(page(chapters, title, pictures))
