"""The report of the reproduction as one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from benchmarks.harness import report_pictures

if TYPE_CHECKING:
    from benchmarks.harness.report import Chapter, Section

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
    """The report as one page; `pictures` by the names of their files."""
    from benchmarks.harness import report

    links = "".join(f'<a href="#paper{i}">{html.escape(c.name)}</a>' for i, c in enumerate(chapters))
    body = [f"<h1>{html.escape(title)}</h1>", f"<p>{_inline(report.INTRODUCTION)}</p>", f"<nav>{links}</nav>"]
    body.append(_html_table("", *_plain(report.summary(chapters))))
    body.append(f"<ul>{''.join(_term(*found) for found in report.TERMS.items())}</ul>")
    body += [
        f"<p>{_inline(text)}</p>" for text in (report.CURRENCY, report.inventory(chapters), report_pictures.CAPTION)
    ]
    for chapter in chapters:
        name = f"{report_pictures.name_of(chapter.name)}.svg"
        body.append(_image(f"{chapter.name}: paper against ours", "svg+xml", pictures[name]))
    body.append(_html_table("All classes of rows", *_plain(report.classes(chapters))))
    for i, chapter in enumerate(chapters):
        body.append(f'<h2 id="paper{i}">{html.escape(chapter.name)}</h2><p>{_inline(chapter.citation)}</p>')
        body += [_html_section(part, pictures) for part in chapter.sections]
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{meta}<title>{html.escape(title)}</title><style>{STYLE}</style>"
    text = "\n".join(body)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{text}\n</body></html>\n'


def _term(term: str, meaning: str) -> str:
    return f"<li>{_inline(f'*{term}*: {meaning}')}</li>"


def _plain(table: tuple[list[str], list[list[str]]]) -> tuple[list[str], list[tuple[list[str], str]]]:
    return table[0], [(row, "") for row in table[1]]


def _image(alt: str, kind: str, data: bytes) -> str:
    return (
        f'<img alt="{html.escape(alt, quote=True)}" src="data:image/{kind};base64,{base64.b64encode(data).decode()}">'
    )


def _html_section(part: Section, pictures: dict[str, bytes]) -> str:
    from benchmarks.harness import report

    lines = [f"<h3>{html.escape(part.experiment.title)}</h3><p>{_inline(part.experiment.protocol)}</p>"]
    for table in part.tables:
        marks = report.reasons(table)
        rows = [(report.cells(part, table, row, marks), table.verdict(row)) for row in table.rows]
        lines.append(_html_table(table.title, report.heads(table), rows))
        lines += [f'<p class="why">({number}) {_inline(why)}</p>' for why, number in marks.items()]
        lines += [f'<p class="why">{_inline(table.note)}</p>'] if table.note else []
    for plot in part.plots:
        lines.append(f"<figure>{_image(plot.caption, 'png', pictures[f'{plot.name}.png'])}")
        lines.append(f"<figcaption>{_inline(plot.caption)}</figcaption></figure>")
    made = f"python -m {part.module}, kept in {part.results.path.name}: {report.made_with(part)}"
    return "\n".join([*lines, f'<p class="made">{html.escape(made)}</p>'])


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
