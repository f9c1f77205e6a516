"""What the README and the documentation say: their code runs, their links lead somewhere."""

import inspect
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import polyplane

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted(p for p in (ROOT / "docs").rglob("*.md") if "auto_examples" not in p.parts)]
#: Setting up a machine is not repeated in tests: `make` and `pip` are what brought us here.
SETS_UP = ("make ", "pip ")

if not README.exists():
    pytest.skip("the README is not beside the tests (an installed copy of them)", allow_module_level=True)


def blocks(page, language):
    if language == "python":  # on pages that are run when the documentation is built, it is called a cell
        language = r"(?:python|\{code-cell\})"
    found = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [re.sub(r"\A(:\w+:.*\n)+", "", block) for block in found]  # options of a cell


def with_blocks(language):
    return [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES if blocks(page, language)]


def commands(page):
    """What is typed after the prompts of a page, block by block; what a program answers stands in blocks of text."""
    typed = (re.sub(r"^\$ ", "", block, flags=re.MULTILINE) for block in blocks(page, "console") if "$ " in block)
    return [block for block in typed if not block.startswith(SETS_UP)]


@pytest.mark.parametrize("page", with_blocks("python"))
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = blocks(page, "python")
    if any("environ" in block for block in code):  # it must be said before anything is imported
        subprocess.run([sys.executable, "-c", "\n".join(code)], check=True, timeout=120)
        return
    names = {"__name__": "__main__"}
    for block in code:
        exec(compile(block, str(page), "exec"), names)
    assert names.keys() - {"__name__", "__builtins__"}


def test_readme_predicts_and_explains_as_it_says(capsys):
    """The first blocks: a table of which the majority class has 82 %, and the explanation as it is printed there."""
    names = {}
    train, explain = blocks(README, "python")[:2]
    exec(train, names)
    assert float(capsys.readouterr().out) > 0.85
    exec(explain, names)
    assert capsys.readouterr().out == blocks(README, "text")[0]


@pytest.mark.parametrize("page", [p for p in with_blocks("console") if commands(p.values[0])])
def test_commands_run(page, tmp_path, local_data):
    local_data("a9a")  # the walkthrough is about it
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": path},
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"


#: The documented packages and modules with an `__all__`.
PACKAGES = ["", ".compression", ".dask", ".datasets", ".explain", ".explain.geometry", ".exports", ".files"]
PACKAGES += [".loading", ".readers", ".serving", ".theory"]


def listed_in_the_api():
    listed, module = set(), ""
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    for line in "\n".join(page.read_text(encoding="utf-8") for page in pages).splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"   [\w.]+", line):
            listed.add(f"{module}.{line.strip()}")
    return listed


def test_the_api_page_lists_what_is_public():
    public = {f"polyplane{p}.{name}" for p in PACKAGES for name in import_module(f"polyplane{p}").__all__}
    elsewhere = {"__version__", "compression.compress", "loading.load", "loading.save", "serving.ModelFileError"}
    elsewhere.add("PlaneCommittee")  # another name of PlaneSet.of_members
    listed = {name for name in listed_in_the_api() if not name.startswith("polyplane.exports.onnx.")}
    assert public - {f"polyplane.{name}" for name in elsewhere} == listed


def test_public_functions_and_estimators_have_examples():
    parts = {name: name.rpartition(".") for name in listed_in_the_api()}
    named = {name: getattr(import_module(module), last) for name, (module, _, last) in parts.items()}
    shown = {k: v for k, v in named.items() if inspect.isroutine(v) or issubclass(v, BaseEstimator)}
    assert len(shown) > 50
    examples = {name: inspect.getdoc(value).partition("\nExamples\n--------\n")[2] for name, value in shown.items()}
    assert not [name for name, example in examples.items() if ">>> " not in example]


def test_the_page_about_stability_names_each_package():
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    said = set(re.findall(r"`([\w.]+)`", page.split("## What is public")[1].split("## Deprecation")[0]))
    assert {name.rpartition(".")[0] for name in listed_in_the_api()} <= said
    rooms = {path.stem for path in Path(polyplane.__file__).parent.glob("[a-z]*") if path.suffix in ("", ".py")}
    assert rooms <= {name.removeprefix("polyplane.") for name in said}


def test_versions_of_the_documentation_stand_side_by_side(tmp_path):
    publish = runpy.run_path(str(ROOT / "docs" / "publish.py"))["publish"]
    built, site = tmp_path / "built", tmp_path / "site"
    (built / "_static").mkdir(parents=True)
    for version in ["dev", "v0.9.1", "v1.10.0rc1", "v1.9.0", "v1.10.0", "dev"]:
        (built / "index.html").write_text(version)
        publish(built, site, version, "https://example.org/docs")
    entries = json.loads((site / "versions.json").read_text())
    assert [entry["version"] for entry in entries] == ["dev", "1.10.0", "1.10.0rc1", "1.9.0", "0.9.1"]
    assert entries[1] == {"name": "1.10.0 (stable)", "version": "1.10.0", "url": "https://example.org/docs/1.10.0/"}
    assert "url=1.10.0/" in (site / "index.html").read_text()
    assert (site / "1.9.0" / "index.html").read_text() == "v1.9.0"


def test_links_inside_the_repository_exist():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not link.startswith("http") and "auto_examples" not in link:  # these are made with the documentation
                assert (page.parent / link).exists(), f"{page}: {link}"


def test_files_that_pages_name_exist():
    for page in sorted({*PAGES, *ROOT.glob("*.md")}):
        for name in re.findall(
            r"`((?:benchmarks|docs|examples|packaging|src|tests)/[\w./-]+)`", page.read_text(encoding="utf-8")
        ):
            assert (ROOT / name).exists() or name.startswith("packaging/"), f"{page}: {name}"  # not in the sdist


def test_a_release_needs_its_version_a_dated_changelog_and_committed_changes(tmp_path):
    script = ROOT / "packaging" / "release.py"
    if not script.exists():
        pytest.skip("it is no part of a source distribution")
    problems = runpy.run_path(str(script))["problems"]
    package = tmp_path / "src" / "polyplane"
    package.mkdir(parents=True)
    (package / "_version.py").write_text('__version__ = "1.2.3"')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-01-31)\n\n## 1.2.2 (2025-01-31)\n")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "A release"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    assert problems("1.2.3", tmp_path) == []
    wrong = problems("1.2", tmp_path)
    assert [words in problem for words, problem in zip(("must be", "not 1.2", "'## 1.2 ("), wrong, strict=True)] == [
        True
    ] * 3
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 1.2.3 (2026-01-31)\n")
    subprocess.run([*git, "tag", "v1.2.3"], cwd=tmp_path, check=True)
    assert [problem.split()[0] for problem in problems("1.2.3", tmp_path)] == ["CHANGELOG.md", "There", "The"]


def test_the_recipe_for_conda_asks_for_the_same_versions_and_imports_what_there_is():
    recipe = ROOT / "packaging" / "conda-forge" / "recipe.yaml"
    if not recipe.exists():
        pytest.skip("the recipe is no part of a source distribution")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    run = recipe.read_text(encoding="utf-8").split("  run:\n")[1].split("\n\n")[0]
    required = project["dependencies"] + project["optional-dependencies"]["cli"]  # conda has no extras
    expected = ["python >=${{ python_min }}", *(name.replace(">=", " >=") for name in required)]
    assert [line.strip().removeprefix("- ") for line in run.splitlines()] == expected
    for name in re.search(r"imports: \[(.*)\]", recipe.read_text(encoding="utf-8"))[1].split(", "):
        import_module(name)
    assert f'python_min: "{project["requires-python"].removeprefix(">=")}"' in recipe.read_text(encoding="utf-8")
