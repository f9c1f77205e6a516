"""The house: who may import whom, and what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import polyplane

PACKAGE = Path(polyplane.__file__).parent
# A room may import from its own floor and from the floors before it, also inside functions.
FLOORS = [
    {"kernels", "_array_api", "_plain", "_version"},
    {"planes"},
    {"features"},
    {"inputs"},
    {"model"},
    {"engine"},
    {"files"},
    {"_prediction"},
    {"_streaming"},
    {"base"},
    {"learners"},
    {"tables"},
    {"compression"},
    {"loading", "exports", "readers", "datasets", "theory", "search", "serving"},
    {"dask", "explain"},
    {"cli"},
]
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}
TOP = {"__init__", "__main__"}


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path):
    """The rooms that a file imports from, wherever in it; "polyplane" itself when it asks the package for a name."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not used here"
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names = below if node.module == "polyplane" else [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            names = [ast.unparse(node.args[0]).strip("f'\"")]
        for name in names:
            if name.split(".")[0] == "polyplane":
                inner = name.split(".")[1] if "." in name else "polyplane"
                yield inner if inner in FLOOR else "polyplane"


def test_every_room_has_a_floor():
    assert {room(path) for path in PACKAGE.rglob("*.py")} - TOP == FLOOR.keys()


@pytest.mark.parametrize("name", sorted(FLOOR))
def test_imports_form_a_dag(name):
    for path in PACKAGE.rglob("*.py"):
        if room(path) != name:
            continue
        for other in imported_rooms(path):
            where = f"{path.relative_to(PACKAGE)} imports {other}"
            assert other in FLOOR or name == "cli", f"{where}: only the command line may ask the package itself"
            assert other not in FLOOR or other == name or FLOOR[other] < FLOOR[name], where


def test_no_lower_floor_speaks_of_the_command_line():
    for path in PACKAGE.rglob("*.py"):
        if room(path) not in {"cli", "__main__"}:
            assert "polyplane train" not in path.read_text(), path


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_is_cheap():
    """`import polyplane` brings neither Numba nor Matplotlib, and little more than scikit-learn itself."""
    assert (
        run("import sys, polyplane; print('numba' in sys.modules, 'matplotlib' in sys.modules)").split()
        == ["False"] * 2
    )
    code = (
        "import time, sklearn.base; start = time.process_time(); import polyplane; print(time.process_time() - start)"
    )
    assert min(float(run(code)) for _ in range(3)) < 0.1


def test_prediction_from_planes_needs_numpy_alone():
    code = """
import sys
import numpy as np
from polyplane import PlaneSet

planes = PlaneSet(np.eye(3), np.zeros(3), np.arange(4))
X = np.array([[0.0, 2.0, 1.0], [3.0, 1.0, 2.0]])
print(planes.predict(X).tolist(), planes.margins(X).tolist(), planes.scores(X).shape)
print(sorted({name.split('.')[0] for name in sys.modules} & {'scipy', 'sklearn', 'joblib', 'numba', 'threadpoolctl'}))
"""
    assert run(code).splitlines() == ["[1, 0] [1.0, 1.0] (2, 3)", "[]"]
