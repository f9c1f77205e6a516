"""What the README and the documentation say: their code runs, their links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted(p for p in (ROOT / "docs").rglob("*.md") if "auto_examples" not in p.parts)]
#: Setting up a machine is not repeated in tests: `make` and `pip` are what brought us here.
SETS_UP = ("make ", "pip ")

if not README.exists():
    pytest.skip("the README is not beside the tests (an installed copy of them)", allow_module_level=True)


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


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


def test_readme_predicts_well(capsys):
    exec(blocks(README, "python")[0], {})
    assert float(capsys.readouterr().out.split()[0]) > 0.97


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


def test_links_inside_the_repository_exist():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not link.startswith("http") and "auto_examples" not in link:  # these are made with the documentation
                assert (page.parent / link).exists(), f"{page}: {link}"
