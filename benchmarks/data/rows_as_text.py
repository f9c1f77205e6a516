"""Makers of svmlight files of any size: labelled sparse rows, written as fast as Python can."""

from typing import NamedTuple

import numpy as np

CHUNK = 20_000


class Shape(NamedTuple):
    """What the rows of a file look like.

    Each row has one feature out of each of `n_values` equal groups, so that indices are in order; its value has
    `digits` decimal digits, or is 1 when there are none. The label is the side of a fixed plane that the row is on, but
    for one row in twenty.
    """

    n_features: int
    n_values: int
    digits: int


A9A = Shape(n_features=120, n_values=14, digits=0)
RCV1 = Shape(n_features=47_250, n_values=75, digits=16)
DENSE = Shape(n_features=100, n_values=100, digits=6)


def write_rows(path, shape, n_rows=None, n_bytes=None, seed=0):
    """Write rows until there are `n_rows`, or `n_bytes` of them; return how many rows that is."""
    rng = np.random.default_rng(seed)
    words = Words(shape)
    done = size = 0
    with open(path, "wb") as file:
        while (n_rows is None or done < n_rows) and (n_bytes is None or size < n_bytes):
            count = CHUNK if n_rows is None else min(CHUNK, n_rows - done)
            text = words.rows(count, rng)
            file.write(text)
            done, size = done + count, size + len(text)
    return done


class Words:
    """The words that rows are made of: all indices, and a thousand values."""

    def __init__(self, shape):
        rng = np.random.default_rng(12345)
        values = rng.uniform(0.001, 1.0, 1000) if shape.digits else np.ones(1)
        texts = [f"{value:.{shape.digits}f}" for value in values] if shape.digits else ["1"]
        self.shape = shape
        self.values = np.array([float(text) for text in texts])
        self.value_words = np.array([f"{text} ".encode() for text in texts], dtype=object)
        self.index_words = np.array([f"{j + 1}:".encode() for j in range(shape.n_features)], dtype=object)
        self.plane = rng.normal(size=shape.n_features)
        self.labels = np.array([b"-1 ", b"+1 "], dtype=object)

    def rows(self, count, rng):
        """The text of some rows."""
        n_values, width = self.shape.n_values, self.shape.n_features // self.shape.n_values
        indices = rng.integers(0, width, (count, n_values)) + width * np.arange(n_values)
        values = rng.integers(0, len(self.values), (count, n_values))
        scores = (self.values[values] * self.plane[indices]).sum(axis=1)
        side = (scores > 0.5 * self.plane.mean() * n_values) ^ (rng.random(count) < 0.05)
        cells = np.empty((count, 2 * n_values + 2), dtype=object)
        cells[:, 0] = self.labels[side.astype(int)]
        cells[:, 1:-1:2] = self.index_words[indices]
        cells[:, 2:-1:2] = self.value_words[values]
        cells[:, -1] = b"\n"
        return b"".join(cells.ravel().tolist())
