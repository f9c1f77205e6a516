"""The scripts that compare revisions: what counts as equal, and what is counted."""

import numpy as np
import pytest
from benchmarks.harness import same_planes, size


@pytest.mark.parametrize(
    ("now", "verdict"),
    [([1.0, -4.0], "same"), ([1.0, -4.0 + 1e-10], "close"), ([1.0 + 1e-6, -4.0], "differs"), ([1.0], "differs")],
)
def test_planes_are_compared_with_the_largest_value(now, verdict):
    gap = same_planes.difference(np.array([1.0, -4.0]), np.array(now))
    assert same_planes._verdict(gap, same_planes.PLANES) == verdict


def test_a_refusal_differs_from_a_model():
    refused = np.array("refused, ValueError")
    assert same_planes.difference(refused, refused) == 0
    assert same_planes.difference(refused, np.ones(3)) == np.inf
    assert same_planes.difference(refused, np.array("refused, TypeError")) == np.inf


SOURCE = '''"""Words."""
from polyplane.engine._rows import Rows
from polyplane.explain._here import mine
from polyplane.planes import PlaneSet

# a comment
def page(model):
    """More words,
    on two lines."""
    if isinstance(model, int | PlaneSet) or isinstance(model, str):
        return Rows, mine
    for _ in range(model.max_iter):
        pass
'''


def test_what_is_counted(tmp_path):
    path = tmp_path / "explain" / "page.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    assert size.code_lines(path) == 8
    assert list(size.private_imports(path, tmp_path)) == ["explain/page.py:2"]
    assert list(size.kind_checks(path)) == ["explain/page.py:10"]
    assert list(size.training_loops(path)) == ["explain/page.py:page"]


def test_a_call_is_followed_through_the_files_of_the_package(tmp_path):
    file = tmp_path / "package.py"
    file.write_text("def inner():\n    return [x for x in 'ab']\n\n\ndef outer():\n    return inner(), inner()\n")
    space = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    assert size.passed_through(space["outer"], tmp_path) | {"depth": 0} == {"files": 1, "functions": 2, "depth": 0}
    assert size.passed_through(lambda: sorted("ba"), tmp_path)["files"] == 0
