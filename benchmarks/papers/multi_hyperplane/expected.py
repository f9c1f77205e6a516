"""The paper's figures, from `expected.toml`."""

import tomllib
from pathlib import Path

#: Runs behind each deviation of Table 1.
REPETITIONS = 10
ADAPTIVE, TANGENT = "AdaptiveMultiHyperplaneClassifier", "MultiHyperplaneClassifier"


def method_of(machine: str) -> list[str]:
    """The method that a machine of the figures uses, if it is one of ours."""
    return [TANGENT] if machine.startswith("tangent") else [ADAPTIVE] if "AMM" in machine else []


EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())
