"""The house: who may import whom, and what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import polyplane

PACKAGE = Path(polyplane.__file__).parent
# A room may import from its own floor and from the floors before it.
FLOORS = [
    {"kernels", "_array_api", "_threads", "_files", "_progress", "_batches"},
    {"planes", "_loop", "_validation"},
    {"_stream_run"},
    {"_stream"},
    {"base"},
    {"learners"},
    {"datasets", "geometry", "io"},
    {"dask", "inspection"},
    {"cli"},
]


def room(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("polyplane."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not used here"


def test_imports_form_a_dag():
    floor = {name: level for level, names in enumerate(FLOORS) for name in names}
    for path in PACKAGE.rglob("*.py"):
        if room(path) in ("__init__", "__main__"):
            continue
        for other in imported_rooms(path):
            allowed = room(path) == other or floor[other] < floor[room(path)]
            assert allowed, f"{path.relative_to(PACKAGE)} imports {other}"


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
