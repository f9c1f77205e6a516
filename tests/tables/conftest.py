import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def local_table():
    """Reads a table with text in it, or skips the test where it is not at hand."""

    def load(name):
        pd = pytest.importorskip("pandas", reason="pandas is a development dependency")
        path = Path(os.environ.get("POLYPLANE_DATA", "/nonexistent")) / name
        if not path.exists():
            pytest.skip(f"{name} is not in the folder that POLYPLANE_DATA names")
        return pd.read_csv(path)

    return load
