"""Add built pages to the site, one folder for each version: ``python docs/publish.py build/docs site v1.2.0 URL``.

The folder of a release is its number, that of the main branch is "dev". ``versions.json`` tells the pages which
versions there are, and the site's first page leads to the latest release.
"""

import json
import shutil
import sys
from pathlib import Path

FIRST_PAGE = (
    '<!DOCTYPE html><meta charset="utf-8"><title>Polyplane</title><meta http-equiv="refresh" content="0; url={}/">\n'
)


def publish(built: Path, site: Path, version: str, url: str) -> None:
    """Put the built pages in the folder of their version, in place of what was there."""
    name = version.removeprefix("v")
    shutil.rmtree(site / name, ignore_errors=True)
    shutil.copytree(built, site / name)
    names = sorted((path.parent.name for path in site.glob("*/index.html")), key=_age)
    releases = [name for name in names if name != "dev"]
    latest = next((name for name in releases if name.replace(".", "").isdecimal()), names[0])
    entries = [
        {"name": f"{name} (stable)" if name == latest else name, "version": name, "url": f"{url}/{name}/"}
        for name in names
    ]
    (site / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(FIRST_PAGE.format(latest), encoding="utf-8")
    (site / ".nojekyll").touch()  # or GitHub would leave out folders whose names begin with an underscore


def _age(name: str) -> tuple:
    """Newest first: dev, 1.10.0, 1.10.0rc1, 1.9.0."""
    parts = name.split(".")
    if not all(part[:1].isdecimal() for part in parts):
        return (0,)
    whole = [int("".join(c for c in part if c.isdecimal()) or 0) for part in parts[:-1]]
    number, _, candidate = parts[-1].partition("rc")
    return (1, [-n for n in [*whole, int(number)]], candidate != "", -int(candidate or 0))


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
