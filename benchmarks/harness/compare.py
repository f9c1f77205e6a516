"""Whether a fresh run gives the report that is kept: figure by figure, within their deviations.

    python -m benchmarks.harness.compare HEAD .

compares the figures of a revision, or of another checkout, with those of this one: run it after
``make reproduce FRESH=1``. Errors, accuracies and sizes must agree within the larger of their deviations, or in the
digits that the report shows where neither has one; times never fail. Exit status 1: a figure has moved.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import reproduce
from benchmarks.harness.experiment import Figure
from benchmarks.harness.report import Chapter


class Difference(NamedTuple):
    """One row in both reports.

    Parameters
    ----------
    where : str
        Paper, table and row.
    before, now : Figure or None
        Ours, in one and the other.
    verdict : {"same", "moved", "time", "missing", "new"}
        "missing": only before; "new": only now.
    """

    where: str
    before: Figure | None
    now: Figure | None
    verdict: str


def compared(before: Chapter, now: Chapter) -> Iterator[Difference]:
    """Every row of two chapters of the same paper, by table and label."""
    first, second = (dict(_rows(chapter)) for chapter in (before, now))
    for key in dict.fromkeys([*first, *second]):
        (old, *_), (new, digits, is_time) = first.get(key, (None, 2, False)), second.get(key, (None, 2, False))
        if old is not None or new is not None:
            yield Difference(" | ".join((now.name, *key)), old, new, _verdict(old, new, digits, is_time))


def _rows(chapter: Chapter) -> Iterator[tuple[tuple[str, str, str], tuple[Figure | None, int, bool]]]:
    for part, table, row in chapter.rows():
        key = part.module.rsplit(".", 1)[-1], table.title, row.label
        yield key, (row.ours, table.digits, table.kind_of(row) == "time")


def _verdict(old: Figure | None, new: Figure | None, digits: int, is_time: bool) -> str:
    if old is None or new is None:
        return "new" if old is None else "missing"
    if is_time:
        return "time"
    allowed = max(old.std or 0.0, new.std or 0.0, 0.5 * 10.0**-digits)
    return "same" if abs(old.value - new.value) <= allowed + 1e-12 else "moved"


@contextmanager
def folder_of(place: str) -> Iterator[Path]:
    """A folder as it is, or the results of a revision unpacked into one."""
    if Path(place).is_dir():
        yield Path(place).resolve()
        return
    archive = ["git", "-C", str(reproduce.ROOT), "archive", "--format=tar", place, "benchmarks/papers"]
    with tempfile.TemporaryDirectory() as unpacked:
        found = subprocess.run(archive, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", unpacked], input=found.stdout, check=True)
        yield Path(unpacked)


def differences(before: str, now: str) -> list[Difference]:
    """All rows of two reports: each a folder of a checkout, or a revision."""
    papers = list(reproduce.PAPERS)
    with folder_of(before) as one, folder_of(now) as other:
        pairs = zip(*(reproduce.chapters(papers, quick=False, root=root) for root in (one, other)), strict=True)
        return [difference for pair in pairs for difference in compared(*pair)]


def told(difference: Difference) -> str:
    """One line."""
    texts = [
        "-" if figure is None else f"{figure.value:.4g}" + ("" if figure.std is None else f" +- {figure.std:.2g}")
        for figure in (difference.before, difference.now)
    ]
    return f"{difference.verdict:8}{texts[0]:>18}{texts[1]:>18}  {difference.where}"


def main() -> int:
    """Print what has moved, and how many figures have not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a revision (HEAD) or the folder of a checkout")
    parser.add_argument("now", nargs="?", default=str(reproduce.ROOT), help="another; this checkout by default")
    parser.add_argument("--all", action="store_true", help="print figures that have not moved, too")
    given = parser.parse_args()
    found = differences(given.before, given.now)
    for difference in found:
        if given.all or difference.verdict in ("moved", "missing"):
            print(told(difference))
    counts = Counter(difference.verdict for difference in found)
    print(", ".join(f"{counts[verdict]} {verdict}" for verdict in ("same", "moved", "missing", "new", "time")))
    return 1 if counts["moved"] or counts["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())
