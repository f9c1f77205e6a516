"""Every table and figure of the papers: ``make reproduce``, ``make reproduce PAPER=cpm``, ``make reproduce QUICK=1``.

Figures in ``results/`` that are current are not measured again; ``--fresh`` forgets them first. It says at the start
what is stale and how long that took when it was measured last; stopped, it goes on where it was. A full run writes its
report to ``docs/reproduction.md``, a quick one, with fewer repetitions and smaller sets, to ``build/reproduce-quick``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.harness.experiment import Experiment
from benchmarks.harness.results import CURRENT, QUICK, ROOT, STALE, minutes

TITLE = "The papers, reproduced"
#: By the name to ask for: folder, name and source of each paper.
PAPERS = {
    "cpm": (
        "convex_polytope",
        "Convex polytope machine",
        "A. Kantchelian, M. C. Tschantz, L. Huang, P. L. Bartlett, A. D. Joseph and J. D. Tygar. "
        "*Large-Margin Convex Polytope Machine.* NIPS 2014.",
    ),
    "gamm": (
        "multi_hyperplane",
        "Multi-hyperplane machines",
        "N. Djuric, Z. Wang and S. Vucetic. *Growing Adaptive Multi-hyperplane Machines.* ICML 2020.",
    ),
    "plume": (
        "plume",
        "PLUME and SPLA1",
        "K. Shah, P. S. Sastry and N. Manwani. *PLUME: Polyhedral Learning Using Mixture of Experts.* 2019.",
    ),
    "polyceptron": (
        "polyceptron",
        "Polyceptron",
        "N. Manwani and P. S. Sastry. *Polyceptron: A Polyhedral Learning Algorithm.* 2011.",
    ),
    "cutting-plane": (
        "cutting_plane",
        "Cutting planes",
        "N. A. Arnosti and J. K. Kalita. *Cutting Plane Training for Linear Support Vector Machines.* IEEE TKDE, 2013.",
    ),
}
FOLDERS = {paper: folder for paper, (folder, _, _) in PAPERS.items()}
#: What stands below the counts.
EXTRA = (
    "[Each table and figure of each paper](reproduction_contents.md), row by row, with the reason where one is not "
    "here. "
    "[Each default of each estimator](reproduction_defaults.md), with where and on which rows it was chosen. "
    "`python -m benchmarks.harness.compare HEAD .` compares a fresh run with this one, figure by figure."
)


def experiments(folder: str) -> Iterator[str]:
    """The names of the modules of a paper that define an experiment."""
    for path in sorted((ROOT / "benchmarks" / "papers" / folder).glob("*.py")):
        module = f"benchmarks.papers.{folder}.{path.stem}"
        if hasattr(importlib.import_module(module), "EXPERIMENT"):
            yield module


def experiment(module: str) -> Experiment:
    """The experiment that a module defines."""
    found: Experiment = importlib.import_module(module).EXPERIMENT
    return found


def measure(module: str, quick: bool, only: str = "", exactly: str = "") -> str:
    """Measure the figures that are not current; return the error message, if any."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    one = experiment(module)
    try:
        one.measure(one.results(quick, only, exactly))
    except (FileNotFoundError, ImportError, OSError) as error:
        return f"{one.title}: {error}"
    return ""


def outlook(modules: Sequence[str], quick: bool) -> str:
    """What will be measured, and how long it took last time, or for a quick run in a full one."""
    lines: list[str] = []
    total: Counter[str] = Counter()
    for module in modules:
        results = experiment(module).looked_through(quick)
        due = [name for name in results.wanted if results.state(name) != CURRENT]
        if not due:
            continue
        full = experiment(module).looked_through(quick=False).figures if quick else {}
        took: Counter[str] = Counter()
        for name in due:
            if name in results.figures:
                took["known"] += results.figures[name].get("seconds", 0.0)
            elif name in full:
                took["full"] += full[name].get("seconds", 0.0)
            else:
                took["unknown"] += 1
        total += took
        stale = Counter(results.state(name) or "not measured yet" for name in due)
        told = ", ".join(f"{n} {state}" for state, n in stale.items())
        lines.append(f"{module}: {told}; {_duration(took)}")
        reasons = Counter(results.changed(name) for name in due if results.state(name) == STALE)
        lines += [f"    stale since a change of {reason}: {n}" for reason, n in reasons.items()]
    if not lines:
        return "All figures are current: nothing to measure."
    return "\n".join([*lines, f"In all, on one core: {_duration(total)}."])


def _duration(took: Counter[str]) -> str:
    """What is known of the time that measuring will take."""
    told = {
        "known": f"about {minutes(took['known'])}, as measured last",
        "full": f"at most {minutes(took['full'])}, as in a full run",
        "unknown": f"an unknown time for {took['unknown']} figures never measured",
    }
    return " and ".join(words for kind, words in told.items() if took[kind])


def chapters(papers: Sequence[str], quick: bool, root: Path | None = None) -> list[Any]:
    """The chapters of the report, from the kept figures, or from those of another checkout, `root`."""
    from benchmarks.harness import report

    return [
        report.Chapter(
            name, citation, [report.section(experiment(module), quick, root) for module in experiments(folder)]
        )
        for folder, name, citation in (PAPERS[paper] for paper in papers)
    ]


def write(papers: Sequence[str], quick: bool) -> None:
    """Write the report and print where."""
    from benchmarks.harness import report

    target = QUICK if quick else ROOT / "docs"
    text = target / ("report.md" if quick else "reproduction.md")
    single_page = (QUICK if quick else ROOT / "build") / ("report.html" if quick else "reproduction.html")
    images = target / "images" / ("" if quick else "reproduction")
    title = TITLE + (" (quick run: fewer repetitions, smaller sets)" if quick else "")
    found = chapters(papers, quick)
    report.write(found, title, text, images, single_page, "" if quick else EXTRA)
    if not quick:
        for name, page in pages(found).items():
            (ROOT / "docs" / name).write_text(page, encoding="utf-8")
    for chapter in found:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in chapter.verdicts().items() if verdict)
        print(f"{chapter.name}: {counts}")
    print(report.inventory(found))
    print(f"Written: {text.relative_to(ROOT)}, {single_page.relative_to(ROOT)}")


def pages(found: Sequence[Any]) -> dict[str, str]:
    """The pages beside the report, by their files."""
    from benchmarks.harness import contents, defaults

    return {
        "reproduction_contents.md": contents.markdown(dict(zip(PAPERS, found, strict=True)), FOLDERS),
        "reproduction_defaults.md": defaults.markdown(),
    }


def main() -> int:
    """Measure, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"any of {', '.join(PAPERS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="minutes: fewer repetitions, smaller sets")
    parser.add_argument("--fresh", action="store_true", help="measure again what is current, too")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only figures with this in their names")
    parser.add_argument("--dry-run", action="store_true", help="only list what is stale, and write the report")
    parser.add_argument(
        "--no-report", action="store_true", help="only measure: neither Matplotlib nor pandas is needed"
    )
    parser.add_argument("--jobs", type=int, default=1, help="figures at a time; times are only fair with 1")
    given = parser.parse_args()
    if given.jobs < 1:
        parser.error(f"--jobs {given.jobs}: expected at least 1")
    unknown = [paper for paper in given.papers if paper not in PAPERS]
    if unknown:
        parser.error(f"there is no paper {unknown[0]!r}; choose from {', '.join(PAPERS)}")
    papers = given.papers or list(PAPERS)
    modules = [module for paper in papers for module in experiments(FOLDERS[paper])]
    if given.fresh and not given.dry_run:
        for module in modules:
            experiment(module).results(given.quick).path.unlink(missing_ok=True)
    print(outlook(modules, given.quick), file=sys.stderr)
    failures = [] if given.dry_run else measured(modules, given)
    for failure in filter(None, failures):
        print(f"Not measured. {failure}", file=sys.stderr)
    if not given.no_report:
        write(papers if given.quick else list(PAPERS), given.quick)
    return 1 if any(failures) else 0


def measured(modules: Sequence[str], given: argparse.Namespace) -> list[str]:
    """Measure, one or several figures at a time; return the error messages."""
    failures: list[str] = []
    if given.jobs == 1:
        for done, module in enumerate(modules):
            print(
                f"{len(modules) - done} of {len(modules)} experiments left; {_left(modules[done:], given.quick)}",
                file=sys.stderr,
            )
            failures.append(measure(module, given.quick, given.only))
        return failures
    tried: set[tuple[str, str, str]] = set()
    with ProcessPoolExecutor(given.jobs) as pool:
        # Some figures depend on others: measured these, they are due, or due again.
        while tasks := [task for task in due(modules, given.quick, given.only) if task not in tried]:
            tried.update(tasks)
            parts, names, _ = zip(*tasks, strict=True)
            n = len(tasks)
            failures += pool.map(measure, parts, [given.quick] * n, [given.only] * n, names)
    return failures


def due(modules: Sequence[str], quick: bool, only: str) -> list[tuple[str, str, str]]:
    """The figures that can be measured, those that took longest first: module, name and digest of the settings."""
    found: list[tuple[float, tuple[str, str, str]]] = []
    for module in modules:
        results = experiment(module).looked_through(quick)
        for name, key in results.wanted.items():
            if only in name and name not in results.waiting and results.state(name) != CURRENT:
                seconds = results.figures.get(name, {}).get("seconds", 0.0)
                found.append((seconds, (module, name, key.settings)))
    return [task for _, task in sorted(found, key=lambda pair: -pair[0])]


def _left(modules: Sequence[str], quick: bool) -> str:
    """The expected time of the rest."""
    return outlook(modules, quick).splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())
