"""How much code there is, and how much of it one call passes through, now and at an earlier revision.

``python -m benchmarks.harness.size REVISION`` prints the figures of both: code lines and files of each package, the
points at which methods extend `Method`, tests of the kind of a model, imports of other packages' private modules,
training loops, and the files and functions of one call. Without a revision only those of this checkout.
"""

from __future__ import annotations

import ast
import json
import pkgutil
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.harness.results import ROOT
from benchmarks.harness.same_planes import table
from benchmarks.harness.worktree import checked_out, output

#: Classes of fitted models, of any revision: code that asks for one of them chooses between kinds of models.
KINDS = {
    "CommitteeClassifier", "CompressedClassifier", "CompressedTables", "Model", "PlaneClassifier", "PlaneCommittee",
    "PlanePrediction", "PlaneSet", "TableClassifier",
}  # fmt: skip
ESTIMATORS = ("MultiHyperplaneClassifier", "ConvexPolytopeClassifier", "TableClassifier")


def code_lines(path: Path) -> int:
    """Lines without docstrings, comments and blank ones."""
    text = path.read_text()
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if has_docstring and ast.get_docstring(node, clean=False) is not None:
            documented |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and i not in documented for i, line in lines)


def package_of(path: Path, root: Path) -> str:
    """The package in which a file lies; a module beside the packages is one of its own."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def kind_checks(path: Path) -> Iterator[str]:
    """Where ``isinstance`` asks for a kind of model."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and len(node.args) == 2:
            names = {ast.unparse(part).split(".")[-1] for part in ast.walk(node.args[1]) if hasattr(part, "ctx")}
            if names & KINDS:
                yield f"{path.parent.name}/{path.name}:{node.lineno}"


def private_imports(path: Path, root: Path) -> Iterator[str]:
    """Imports from a private module of another package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polyplane."):
            package, *inner = (node.module or "").split(".")[1:]
            names = [*inner, *(alias.name for alias in node.names)]
            is_private = any(name.startswith("_") and not name.endswith("__") for name in names)
            if is_private and package != package_of(path, root):
                yield f"{path.parent.name}/{path.name}:{node.lineno}"


def training_loops(path: Path) -> Iterator[str]:
    """Functions with a loop over passes, or over steps of a method: ``x.step(state, data)``, a run's ``step(data)``.

    k-means is one of them; the inner loops of kernels are not.
    """
    if path.parent.name == "kernels":
        return
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef):
            loops = [node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)]
            headers = [ast.unparse(loop.iter if isinstance(loop, ast.For) else loop.test) for loop in loops]
            calls = [node for loop in loops for node in ast.walk(loop) if isinstance(node, ast.Call)]
            over_passes = any(name in header for header in headers for name in ("max_iter", "n_passes"))
            if over_passes or any(_is_step(call) for call in calls):
                yield f"{path.parent.name}/{path.name}:{function.name}"


def _is_step(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    arguments = {ast.unparse(argument) for argument in call.args}
    return name in {"step", "_step"} and bool(arguments & {"state", "data", "self.state", "trial"})


def extension_points() -> list[str]:
    """Names of `Method` that one of its subclasses defines anew."""
    import polyplane
    from polyplane.engine.method import Method

    for module in pkgutil.walk_packages(polyplane.__path__, "polyplane."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    names = {name for name in {**vars(Method), **Method.__annotations__} if not name.startswith("_")}
    below, found = [Method], set()
    while below:
        subclasses = [cls for parent in below for cls in parent.__subclasses__()]
        found |= {name for cls in subclasses for name in names & vars(cls).keys()}
        below = subclasses
    return sorted(found)


def passed_through(call: Callable[[], Any], package: Path) -> dict[str, int]:
    """Files and functions of the package in a call, all threads included, and the depth of its own calls."""
    codes: set[Any] = set()
    depth = [0]

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(package)):
            codes.add(frame.f_code)
            level = 0
            while frame is not None:
                level += frame.f_code.co_filename.startswith(str(package))
                frame = frame.f_back
            depth[0] = max(depth[0], level)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = {code for code in codes if not code.co_name.startswith("<")}
    return {"files": len({code.co_filename for code in codes}), "functions": len(functions), "depth": depth[0]}


def calls(package: Path) -> dict[str, dict[str, int]]:
    """What the second `fit` and the second `predict` of the main estimators pass through, on 300 rows."""
    import polyplane

    numbers = np.random.default_rng(0).normal(size=(300, 4))
    frame, labels = table()
    found = {}
    for name in ESTIMATORS:
        is_table = name == "TableClassifier"
        X, y = (frame[:300], labels[:300]) if is_table else (numbers, (numbers[:, 0] > 0.3).astype(int))
        estimator = getattr(polyplane, name)(random_state=0)
        estimator.fit(X, y).predict(X)
        found[f"{name}.fit"] = passed_through(partial(estimator.fit, X, y), package)
        found[f"{name}.predict"] = passed_through(partial(estimator.predict, X), package)
    return found


def probe() -> None:
    """Print the figures of the package that is imported, as JSON."""
    import polyplane

    warnings.simplefilter("ignore")
    root = Path(polyplane.__file__).parent
    sources = sorted(root.rglob("*.py"))
    by_package = {path: package_of(path, root) for path in sources}
    lines, files = Counter[str](), Counter(by_package.values())
    for path in sources:
        lines[by_package[path]] += code_lines(path)
    figures = {
        "code lines": lines.total(),
        "files": len(sources),
        "lines, files by package": {name: [lines[name], files[name]] for name in sorted(files)},
        "extension points of Method": extension_points(),
        "isinstance of kinds of models": [site for path in sources for site in kind_checks(path)],
        "private imports across packages": [site for path in sources for site in private_imports(path, root)],
        "training loops": [site for path in sources for site in training_loops(path)],
        "files, functions, depth of a second call": calls(root),
    }
    print(json.dumps(figures))


def show(both: dict[str, dict[str, Any]]) -> None:
    """Print a line for each figure, and for each entry of one that has several."""
    for figure in both["now"]:
        values = {when: figures[figure] for when, figures in both.items()}
        if isinstance(values["now"], dict):
            print(f"{figure}:")
            for name in sorted({name for entries in values.values() for name in entries}):
                entries = [entries.get(name, "-") for entries in values.values()]
                texts = [list(entry.values()) if isinstance(entry, dict) else entry for entry in entries]
                print(f"  {name:<36}" + " -> ".join(map(str, texts)))
        else:
            counts = [len(value) if isinstance(value, list) else value for value in values.values()]
            print(f"{figure:<38}" + " -> ".join(map(str, counts)))
            if isinstance(values["now"], list):
                print(f"  now: {', '.join(values['now']) or 'none'}")


def main(revision: str | None) -> None:
    """Print the figures of this checkout, after those of a revision."""
    script = ("-m", "benchmarks.harness.size", "probe")
    both = {}
    if revision:
        with checked_out(revision) as tree:
            both["before"] = json.loads(output(tree, *script).splitlines()[-1])
    show(both | {"now": json.loads(output(ROOT, *script).splitlines()[-1])})


if __name__ == "__main__":
    if sys.argv[1:2] == ["probe"]:
        probe()
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else None)
