import os
import signal
from pathlib import Path

import pytest

from polyplane.datasets import load_dataset


def pytest_configure():
    """Processes in the background of a script ignore Ctrl-C, which tests send."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def local_data():
    """Reads a real data set, or skips the test where it is not at hand."""

    def load(name):
        try:
            return load_dataset(name, download_if_missing=False)
        except FileNotFoundError as error:
            pytest.skip(str(error))

    return load


@pytest.fixture(autouse=True)
def quiet_terminal(monkeypatch):
    """Rich looks at these variables; tests should not depend on them."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TERM"):
        if name in os.environ:
            monkeypatch.delenv(name)


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


@pytest.fixture(scope="session")
def browser():
    """Chromium, or the test is skipped where there is none."""
    from tests.programs import opened_chromium  # takes a second to import

    with opened_chromium() as found:
        yield found
