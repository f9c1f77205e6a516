"""Check that a version can be released, before `make release` builds it: ``python packaging/release.py 1.2.3``."""

import re
import runpy
import subprocess
import sys
from datetime import date
from pathlib import Path


def problems(version: str, root: Path) -> list[str]:
    """Return what has to be repaired in a repository before this version is released, one sentence each."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        found.append(f"VERSION={version} must be a version such as 1.2.3 or 1.2.3rc1.")
    written = runpy.run_path(str(root / "src" / "polyplane" / "_version.py"))["__version__"]
    if written != version:
        found.append(f"src/polyplane/_version.py has the version {written}, not {version}.")
    headings = re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    match = re.fullmatch(rf"{re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)", headings[0] if headings else "")
    if not match or date.fromisoformat(match[1]) > date.today():
        found.append(f"CHANGELOG.md must begin with '## {version} ({date.today()})', not '## {''.join(headings[:1])}'.")
    if git(root, "status", "--porcelain"):
        found.append("There are changes that are not committed.")
    if git(root, "tag", "--list", f"v{version}"):
        found.append(f"The tag v{version} exists.")
    return found


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command."""
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit("\n".join(problems(sys.argv[1] if len(sys.argv) > 1 else "", Path(__file__).parents[1])) or None)
