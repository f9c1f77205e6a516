"""The paper's figures, from `expected.toml`."""

import tomllib
from pathlib import Path

#: Runs behind each deviation of Table 1.
REPETITIONS = 10
EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
