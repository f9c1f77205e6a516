"""What several tests of the readers use."""

import io
import sys

import pytest

from polyplane.readers import read


def refused(path, **options):
    with pytest.raises(ValueError, match=r".") as error:
        read(path, **options)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def read_bytes(raw, **options):
    sys_stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(raw))
    try:
        return read("-", **options)
    finally:
        sys.stdin = sys_stdin
