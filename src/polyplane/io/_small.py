"""Short svmlight texts in plain Python: done before Numba is imported, let alone has compiled anything."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

#: Longer texts than these are quicker to read by the kernel, its start included.
SMALL = 1 << 16

_NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_IS_NUMBER = re.compile(_NUMBER)
_LINE = re.compile(rb"[ \t\r]*(?:([^\s:#]+)((?:[ \t\r]+\d{1,9}:" + _NUMBER + rb")*)[ \t\r]*)?(?:#.*)?", re.DOTALL)


class Short(NamedTuple):
    """The rows of a text: what `polyplane.kernels.svmlight.Parsed` holds of them."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    spans: np.ndarray
    lines: np.ndarray
    n_lines: int


def parse_small(raw: bytes, limit: int) -> Short | None:
    """Read whole lines; None where anything is unusual or wrong, which is for the kernel to judge."""
    values: list[float] = []
    indices: list[int] = []
    indptr, labels, spans, lines = [0], [], [], []
    start = 0
    for number, line in enumerate(raw.split(b"\n"), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        if match[1] is not None:
            previous = -1
            for pair in match[2].split():
                index, _, value = pair.partition(b":")
                indices.append(int(index))
                values.append(float(value))
                if not previous < indices[-1] <= limit:
                    return None
                previous = indices[-1]
            indptr.append(len(values))
            labels.append(float(match[1]) if _IS_NUMBER.fullmatch(match[1]) else np.nan)
            spans.append((start + match.start(1), start + match.end(1)))
            lines.append(number)
        start += len(line) + 1
    return _arrays(values, indices, indptr, labels, spans, lines, raw.count(b"\n"))


def _arrays(values: Any, indices: Any, indptr: Any, labels: Any, spans: Any, lines: Any, n_lines: int) -> Short | None:
    short = Short(
        np.array(values, dtype=np.float64),
        np.array(indices, dtype=np.int32),
        np.array(indptr, dtype=np.int64),
        np.array(labels, dtype=np.float64),
        np.array(spans, dtype=np.int64).reshape(-1, 2),
        np.array(lines, dtype=np.int64),
        n_lines,
    )
    finite = np.isfinite(short.values).all() and not np.isinf(short.labels).any()
    return short if finite else None
