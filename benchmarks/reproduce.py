"""Every table and figure of the papers: ``make reproduce``, ``make reproduce PAPER=cpm``, ``make reproduce QUICK=1``.

Figures that are at hand in ``results/`` are not measured again; ``--fresh`` forgets them first. A full run writes its
report to ``docs/reproduction.md``, a quick one, with fewer repetitions and smaller sets, to ``build/reproduce-quick``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks import report
from benchmarks.experiment import Experiment
from benchmarks.results import QUICK

ROOT = Path(__file__).parents[1]
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


def experiments(folder: str) -> Iterator[str]:
    """The modules of a paper that hold an experiment, by name."""
    for path in sorted((ROOT / "benchmarks" / "papers" / folder).glob("*.py")):
        module = f"benchmarks.papers.{folder}.{path.stem}"
        if hasattr(importlib.import_module(module), "EXPERIMENT"):
            yield module


def experiment(module: str) -> Experiment:
    """The experiment that a module holds."""
    found: Experiment = importlib.import_module(module).EXPERIMENT
    return found


def measure(module: str, quick: bool, fresh: bool) -> str:
    """Measure what is not at hand yet; what went wrong, if anything did."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    one = experiment(module)
    try:
        results = one.results(quick)
        if fresh:
            results.path.unlink(missing_ok=True)
            results = one.results(quick)
        one.measure(results)
    except (FileNotFoundError, ImportError, OSError) as error:
        return f"{one.title}: {error}"
    return ""


def chapters(papers: Sequence[str], quick: bool) -> list[report.Chapter]:
    """The report's chapters, from the figures at hand."""
    return [
        report.Chapter(name, citation, [report.section(experiment(module), quick) for module in experiments(folder)])
        for folder, name, citation in (PAPERS[paper] for paper in papers)
    ]


def write(papers: Sequence[str], quick: bool) -> None:
    """Write the report and say where."""
    target = QUICK if quick else ROOT / "docs"
    text = target / ("report.md" if quick else "reproduction.md")
    single_page = (QUICK if quick else ROOT / "build") / ("report.html" if quick else "reproduction.html")
    images = target / "images" / ("" if quick else "reproduction")
    title = TITLE + (" (quick run: fewer repetitions, smaller sets)" if quick else "")
    found = chapters(papers, quick)
    report.write(found, title, text, images, single_page)
    for chapter in found:
        counts = ", ".join(f"{n} {verdict}" for verdict, n in chapter.verdicts().items() if verdict)
        print(f"{chapter.name}: {counts}")
    print(f"Written: {text.relative_to(ROOT)}, {single_page.relative_to(ROOT)}")


def main() -> int:
    """Measure, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"any of {', '.join(PAPERS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="minutes: fewer repetitions, smaller sets")
    parser.add_argument("--fresh", action="store_true", help="measure again what is at hand already")
    parser.add_argument("--jobs", type=int, default=1, help="experiments at a time; times are only fair with 1")
    given = parser.parse_args()
    unknown = [paper for paper in given.papers if paper not in PAPERS]
    if unknown:
        parser.error(f"there is no paper {unknown[0]!r}; choose from {', '.join(PAPERS)}")
    papers = given.papers or list(PAPERS)
    modules = [module for paper in papers for module in experiments(PAPERS[paper][0])]
    if given.jobs == 1:
        failures = [measure(module, given.quick, given.fresh) for module in modules]
    else:
        with ProcessPoolExecutor(given.jobs) as pool:
            n = len(modules)
            failures = list(pool.map(measure, modules, [given.quick] * n, [given.fresh] * n))
    for failure in filter(None, failures):
        print(f"Not measured. {failure}", file=sys.stderr)
    write(papers if given.quick else list(PAPERS), given.quick)
    return 1 if any(failures) else 0


if __name__ == "__main__":
    sys.exit(main())
