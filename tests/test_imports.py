"""The house: who may import whom, and what an import costs."""

import ast
import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import polyplane
import polyplane.explain.geometry

PACKAGE = Path(polyplane.__file__).parent
#: A package may import from itself and from lower floors, also inside functions. `files` is a lower floor than in the
#: design, because training on streams writes checkpoints.
FLOORS = [
    {"kernels", "_array_api", "_plain", "_public", "_sklearn", "_version"},
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

#: Imports of another package's private module or name that are still to be removed. This list may only become shorter.
OFFENDERS: set[tuple[str, str]] = set()


def name_of(path):
    """The dotted name of a module; ``__init__`` is part of it, so that all before the last part is its package."""
    return ".".join(["polyplane", *path.relative_to(PACKAGE).with_suffix("").parts])


def imported_names(source):
    """Yield the dotted names that a source imports from the package, wherever in it: `polyplane.planes.PlaneSet`."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import of {node.module}: use the absolute name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            names = [ast.unparse(node.args[0]).strip("f'\"")]
        yield from (name for name in names if name.split(".")[0] == "polyplane")


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def breaks_privacy(importer, name):
    """Whether a module imports what is private to a package that the module is not in.

    A private module or subpackage belongs to the package that contains it, a private name to the package of its module.
    """
    parts = name.split(".")
    private = next((i for i, part in enumerate(parts) if is_private(part)), None)
    if private is None:
        return False
    owner = parts[:private]
    if PACKAGE.parent.joinpath(*owner).with_suffix(".py").exists():
        owner.pop()
    return importer.split(".")[:-1][: len(owner)] != owner


def forbidden(importer, name):
    """Why a module may not import a name; None if it may."""
    room, other = (dotted.split(".")[1] if "." in dotted else "polyplane" for dotted in (importer, name))
    if room in TOP or other == room:
        return None
    if other not in FLOOR:
        return None if room == "cli" else "only the command line may ask the package itself"
    return None if FLOOR[other] < FLOOR[room] else "it is not on a lower floor"


SOURCES = {name_of(path): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def test_every_room_has_a_floor():
    assert {name.split(".")[1] for name in SOURCES} - TOP == FLOOR.keys()


def test_imports_form_a_dag():
    found = [
        f"{importer} imports {name}: {why}"
        for importer, source in SOURCES.items()
        for name in imported_names(source)
        if (why := forbidden(importer, name))
    ]
    assert not found, "\n".join(found)


def test_no_package_imports_what_is_private_to_another():
    pairs = ((importer, name) for importer, source in SOURCES.items() for name in imported_names(source))
    found = {pair for pair in pairs if breaks_privacy(*pair)}
    assert found - OFFENDERS == set(), "these are new: give the module or name a public name, or move it"
    assert OFFENDERS - found == set(), "these are gone: remove them from OFFENDERS"


def test_no_class_has_the_name_of_another():
    homes: dict[str, list[str]] = {}
    for module, source in SOURCES.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    assert not {name: modules for name, modules in homes.items() if len(modules) > 1}


def test_tests_share_what_they_need_by_other_modules():
    found = []
    for path in Path(__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names = [f"{getattr(node, 'module', None) or ''}.{name}" for name in names]
            found += [f"{path.name} imports {name}" for name in names if ".test_" in f".{name}"]
    assert not found


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from polyplane.engine.data import Data, Run", ["polyplane.engine.data.Data", "polyplane.engine.data.Run"]),
        ("def f():\n    from polyplane import exports", ["polyplane.exports"]),
        ("if X:\n    import polyplane.cli.train as cli, numpy", ["polyplane.cli.train"]),
        ("import_module('polyplane.dask')", ["polyplane.dask"]),
        ("importlib.import_module(f'polyplane.{name}')", ["polyplane.{name}"]),
        ("import numpy, polyplanet", []),
    ],
)
def test_imports_are_found_wherever_they_are(source, names):
    assert list(imported_names(source)) == names


@pytest.mark.parametrize(
    ("importer", "name", "is_allowed"),
    [
        ("polyplane.learners.pegasos", "polyplane.engine.run.Run", True),
        ("polyplane.engine.run", "polyplane.learners.LEARNERS", False),
        ("polyplane.exports.onnx", "polyplane.explain.geometry.cells", False),
        ("polyplane.planes", "polyplane.model", False),
        ("polyplane.tables.classifier", "polyplane.PegasosSVC", False),
        ("polyplane.cli.train", "polyplane.PegasosSVC", True),
    ],
)
def test_upper_floors_are_refused(importer, name, is_allowed):
    assert (forbidden(importer, name) is None) == is_allowed


@pytest.mark.parametrize(
    ("importer", "name", "is_broken"),
    [
        ("polyplane.cli.tuning", "polyplane.engine._secret", True),  # a private module
        ("polyplane.cli.tuning", "polyplane.engine._secret.Run", True),  # a public name in it
        ("polyplane.cli.tuning", "polyplane.engine.run._rich_bar", True),  # a private name of a public module
        ("polyplane.explain.report", "polyplane.explain.displays._style.COLOURS", True),  # of a subpackage
        ("polyplane.explain.displays.planes", "polyplane.explain.displays._style.COLOURS", False),
        ("polyplane.explain.displays.planes", "polyplane.explain._text", False),  # of the package around it
        ("polyplane.engine.batches", "polyplane.engine.run._rich_bar", False),
        ("polyplane.explain.displays.__init__", "polyplane.explain.displays._style.COLOURS", False),
        ("polyplane.learners.pegasos", "polyplane._array_api.ThreadPool", False),  # private to the whole package
        ("polyplane.__init__", "polyplane._version.__version__", False),
    ],
)
def test_private_modules_and_names_are_recognised(importer, name, is_broken):
    assert breaks_privacy(importer, name) == is_broken


def test_no_lower_floor_speaks_of_the_command_line():
    for name, source in SOURCES.items():
        if name.split(".")[1] not in {"cli", "__main__"}:
            assert "polyplane train" not in source, name


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_misspelt_names_are_suggested():
    with pytest.raises(AttributeError) as caught:
        polyplane.TableClasifier  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("TableClasifier", polyplane)


def test_the_package_shows_its_public_names_with_readable_annotations():
    for package in (polyplane, polyplane.explain, polyplane.explain.geometry):
        assert dir(package) == sorted(package.__all__)
    assert "(alpha: float = 0.0001, *, " in str(inspect.signature(polyplane.PegasosSVC))
    for public in map(polyplane.__getattr__, ("Model", "PegasosSVC", "PlaneSearchCV", "TableClassifier", "load")):
        shown = pydoc.render_doc(public, renderer=pydoc.plaintext)
        assert ": 'Any'" not in shown
        assert "-> '" not in shown


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
