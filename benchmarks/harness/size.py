"""How much code there is, now and at an earlier revision.

Run ``python -m benchmarks.harness.size REVISION``; it prints the figures of both and writes results/size.json.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.harness.worktree import ROOT, checked_out, run_in

import polyplane

SAVING = (
    "model_files/*.py", "io/_model.py", "io/_state.py", "io/_description.py", "io/_schema.py", "io/_safetensors.py",
    "io/_values.py",
)  # fmt: skip
#: Functions in which steps follow one another until training ends; found by calls of a method's step in a loop.
STEPS = {"step", "_step", "epoch"}


def estimators() -> dict[str, Any]:
    """The learners by name."""
    from polyplane.base import PlaneClassifier

    public = {name: getattr(polyplane, name) for name in polyplane.__all__}
    return {
        name: value for name, value in public.items() if inspect.isclass(value) and issubclass(value, PlaneClassifier)
    }


def n_lines(paths: list[Path]) -> int:
    """Lines of some files."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def overridable_names(package: Path) -> list[str]:
    """Names of the base class, or of its own bases in the package, that a learner redefines."""
    from polyplane.base import PlaneClassifier

    bases = [base for base in PlaneClassifier.__mro__ if base.__module__.startswith("polyplane")]
    known = {name for base in bases for name in vars(base) if not name.startswith("__")}
    known -= {"_parameter_constraints", "_abc_impl", *(name for name in known if name.endswith("_request"))}
    redefined = set()
    for learner in estimators().values():
        for part in learner.__mro__:
            if part not in bases and part.__module__.startswith("polyplane"):
                redefined |= known & vars(part).keys()
    return sorted(redefined)


def training_loops(package: Path) -> list[str]:
    """Where a step of training is called in a loop."""
    found = []
    for path in sorted(package.rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                loops = [node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)]
                calls = [node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Call)]
                if any(_is_step(call) for call in calls):
                    found.append(f"{path.relative_to(package)}:{function.name}")
    return found


def _is_step(call: ast.Call) -> bool:
    """Whether this goes from a state to the next on some rows: ``x.step(state, data)``, or a run's ``step(data)``."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    arguments = {ast.unparse(argument) for argument in call.args}
    return name in STEPS and bool(arguments & {"state", "data", "self.state", "trial"})


def walk_of_fit(learner: Any, package: Path) -> dict[str, Any]:
    """What one `fit` passes through: files (of compiled kernels too), and lines of the Python functions that run."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = (X[:, 0] > 0.3).astype(int)
    few = {name: 3 for name in ("max_iter",) if name in inspect.signature(learner).parameters}
    codes = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            codes.add(frame.f_code)

    machine = learner(**few)
    compiled = set(sys.modules)
    sys.setprofile(note)
    try:
        machine.fit(X, y)
    finally:
        sys.setprofile(None)
    new = set(sys.modules) - compiled
    kernels = {sys.modules[name].__file__ for name in new if name.startswith("polyplane.kernels.")}
    ours = [code for code in codes if Path(code.co_filename).is_relative_to(package)]
    files = {Path(code.co_filename) for code in ours} | {Path(name) for name in kernels if name}
    lines = {(code.co_filename, line) for code in ours for *_, line in code.co_lines() if line}
    return {"files": sorted(str(path.relative_to(package)) for path in files), "lines": len(lines)}


def probe(name: str | None = None) -> None:
    """Print the figures of the package that is imported, as JSON; with a name, the way of its fit."""
    warnings.simplefilter("ignore")
    package = Path(polyplane.__file__).parent
    if name is not None:
        print(json.dumps(walk_of_fit(estimators()[name], package)))
        return
    sources = list(package.rglob("*.py"))
    figures = {
        "files of src": len(sources),
        "lines of src": n_lines(sources),
        "lines of saving": n_lines([path for pattern in SAVING for path in package.glob(pattern)]),
        "overridable names of the base": overridable_names(package),
        "training loops": training_loops(package),
        "parameters": {
            name: len(inspect.signature(learner).parameters) for name, learner in sorted(estimators().items())
        },
    }
    print(json.dumps(figures))


def measured(tree: Path) -> dict[str, Any]:
    """The figures of a tree; each fit in a process of its own."""
    figures: dict[str, Any] = run_in(tree, "benchmarks.harness.size", "probe")
    walks = {name: run_in(tree, "benchmarks.harness.size", "probe", name) for name in figures["parameters"]}
    figures["files of a fit"] = {name: walk["files"] for name, walk in walks.items()}
    figures["lines of code of a fit"] = {name: walk["lines"] for name, walk in walks.items()}
    return figures


def main(revision: str) -> None:
    """Print both."""
    with checked_out(revision) as tree:
        both = {"before": measured(tree), "now": measured(ROOT)}
    for figure in both["now"]:
        for when, figures in both.items():
            value = figures[figure]
            if isinstance(value, dict):
                value = {name: len(item) if isinstance(item, list) else item for name, item in value.items()}
            elif isinstance(value, list):
                value = f"{len(value)}: {', '.join(value)}"
            print(f"{figure:<32} {when:<7} {value}")
    path = Path(__file__).parent / "results" / "size.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"revision": revision, **both}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        probe(*sys.argv[2:])
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "HEAD~1")
