"""The paper's figures, from `expected.toml`."""

import tomllib
from pathlib import Path

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
