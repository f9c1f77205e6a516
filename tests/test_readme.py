"""What the README says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_code_runs(capsys):
    if not README.exists():
        pytest.skip("the README is not beside the tests (an installed copy of them)")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 2
    names = {}
    for block in blocks:
        exec(block, names)
    assert float(capsys.readouterr().out.split()[0]) > 0.97


def test_links_inside_the_repository_exist():
    for link in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (README.parent / link).exists(), link
