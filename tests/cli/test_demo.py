import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import polyplane
from polyplane.cli import app


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The output of the demo, and its picture."""
    picture = tmp_path_factory.mktemp("demo") / "polytope.png"
    result = CliRunner().invoke(app, ["demo", "--out", str(picture)])
    assert result.exit_code == 0, result.output
    return result.output, picture


def errors(table, name):
    return [float(e) for e in re.findall(rf"^{name}\t([\d.]+)\t", table, re.MULTILINE)]


def test_the_demo_shows_what_planes_can_do(shown):
    table, _ = shown
    names = ("LinearSVC", "SVC, RBF kernel", "Polyplane, multi-hyperplane", "Polyplane, convex polytope")
    linear, kernel, planes, polytope = (errors(table, name) for name in names)
    assert len(linear) == len(kernel) == len(planes) == len(polytope) == 3
    assert all(a < b for a, b in zip(polytope, linear, strict=True))
    assert all(a < b + 1.0 for a, b in zip(planes, kernel, strict=True))
    assert polytope[2] < 1.0 < kernel[2]


def test_the_demo_draws_the_polytope(shown):
    _, picture = shown
    from matplotlib.image import imread

    image = imread(picture)
    assert image.shape[0] > 800
    assert len({tuple(pixel) for pixel in image[::40, ::40, :3].reshape(-1, 3)}) > 3


def test_a_bad_path_is_refused_before_any_work(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "nowhere" / "x.png")])
    assert result.exit_code == 2
    assert "No such folder" in result.output


def test_the_version_and_the_module_form():
    assert polyplane.__version__ in CliRunner().invoke(app, ["--version"]).output
    ran = subprocess.run([sys.executable, "-m", "polyplane", "--help"], check=True, capture_output=True, text=True)
    assert "demo" in ran.stdout
