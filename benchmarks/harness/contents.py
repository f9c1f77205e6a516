"""The list of what the papers show: each row and column of each table and figure, here or with the reason why not.

`papers/contents.toml` lists what is in the papers. Whether it is here is looked up in the tables of the report, so that
the list cannot say what the report does not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.report import Chapter, Section, Table, markdown_table
from benchmarks.harness.results import ROOT

LISTED: dict[str, list[dict[str, Any]]] = tomllib.loads((ROOT / "benchmarks" / "papers" / "contents.toml").read_text())
INTRODUCTION = (
    "Each table and figure of the five papers, row by row and column by column. A cell gives the "
    "verdict of the [report](reproduction.md) on our figure: *equal*, *better*, *worse* or *differs*; *here* where the "
    "paper has no number to compare with; *not run* or *absent* with the reason below. A star (*) marks rows that do "
    "not follow the paper's protocol: a stand-in, a variant, or a time on other hardware."
)


def markdown(chapters: Mapping[str, Chapter], folders: Mapping[str, str]) -> str:
    """The page, from the chapters by the names of the papers."""
    lines = ["# What the papers show, and where it is", "", INTRODUCTION]
    for paper, chapter in chapters.items():
        lines += ["", f"## {chapter.name}", "", chapter.citation]
        sections = {Path(part.experiment.script).stem: part for part in chapter.sections}
        for item in LISTED[paper]:
            lines += ["", f"### {item['name']}: {item['what']}", "", *_item(item, sections, folders[paper])]
    return "\n".join(lines) + "\n"


def _item(item: dict[str, Any], sections: Mapping[str, Section], folder: str) -> list[str]:
    if "reason" in item:
        return [f"Absent: {item['reason']}"]
    part = sections[item["section"]]
    lines = [f"In the report: *{part.experiment.title}* (`benchmarks/papers/{folder}/{item['section']}.py`)."]
    if "plot" in item:
        names = [plot.name for plot in part.plots]
        if not any(name.endswith(item["plot"]) for name in names):
            raise ValueError(f"{item['name']}: there is no picture {item['plot']!r} among {names}.")
        lines += [
            "",
            f"![{item['what']}](images/reproduction/{next(n for n in names if n.endswith(item['plot']))}.png)",
        ]
    if "rows" in item:
        lines += ["", *_cells(item, part)]
    return [*lines, "", item["note"]] if "note" in item else lines


def _cells(item: dict[str, Any], part: Section) -> list[str]:
    tables = [table for table in part.tables if table.title.startswith(item["table"])]
    if not tables:
        raise ValueError(f"{item['name']}: there is no table {item['table']!r} in {part.module}.")
    reasons: dict[str, int] = {}
    lines = []
    for row in item["rows"]:
        texts = [_cell(item, tables, row, column, reasons) for column in item["columns"]]
        lines.append([row, *texts])
    words = [f"({number}) {reason}\n" for reason, number in reasons.items()]
    return [*markdown_table(["", *item["columns"]], lines), "", *words]


def _cell(item: dict[str, Any], tables: Sequence[Table], row: str, column: str, reasons: dict[str, int]) -> str:
    """What is said of a cell; one that is neither in the report nor explained is an error."""
    label = item.get("label", "{column}, {row}").format(
        row=_name(item["rows"], row), column=_name(item["columns"], column)
    )
    within = _name(item.get("tables", {}), column, "")
    for table in tables:
        found = next((r for r in table.rows if r.label == label and within in table.title), None)
        if found is not None:
            verdict = table.verdict(found) or "here"
            star = "" if table.kind_of(found) == "paper" else "*"
            why = found.why or table.note
            return verdict + star if found.ours is not None else f"not run ({_number(reasons, why)})"
    reason = item.get("absent", {}).get(f"{row}, {column}") or item.get("absent", {}).get(row)
    if reason is None:
        raise ValueError(f"{item['name']}: {label!r} is neither in the report nor has it a reason to be absent.")
    return f"absent ({_number(reasons, reason)})"


def _name(names: Any, name: str, default: str | None = None) -> str:
    """Our name for what the paper calls `name`: lists say that it is the same."""
    fallback = name if default is None else default
    return str(names.get(name, fallback)) if isinstance(names, dict) else fallback


def _number(reasons: dict[str, int], reason: str) -> int:
    return reasons.setdefault(reason, len(reasons) + 1)
