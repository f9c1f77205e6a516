import pytest

from polyplane.readers import source


@pytest.fixture
def file(tmp_path):
    """Writes text or bytes to a file of a given name."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 12)
