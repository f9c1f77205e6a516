"""Smooth random displacement fields for images, in integer arithmetic."""

from math import isqrt

import numpy as np

#: Number of fields.
N_FIELDS = 1024
#: Number of fields generated at a time.
CHUNK = 128
#: Width of the box filter, applied three times in each direction: about a Gaussian with sigma = 4.5 pixels.
BOX = 9


def smooth_fields(side: int, deviation: float, key: int) -> np.ndarray:
    """Return fields of smoothed white noise: int16 displacements in units of 1/256 of a pixel, one field per row.

    Images are `side` pixels high and wide; the standard deviation of the displacements is in pixels; `key` has 32 bits.
    """
    weights = np.convolve(np.convolve(np.ones(BOX, np.int64), np.ones(BOX, np.int64)), np.ones(BOX, np.int64))
    raw_deviation = isqrt(2**32 // 12) * int((weights**2).sum())  # standard deviation of 16-bit noise after smoothing
    fields = np.empty((N_FIELDS, side * side), dtype=np.int16)
    for first in range(0, N_FIELDS, CHUNK):
        raw = _smoothed(_noise(first, side + 3 * (BOX - 1), key))
        fields[first : first + CHUNK] = (raw * round(deviation * 2**18) // (raw_deviation * 2**10)).reshape(CHUNK, -1)
    return fields


def _noise(first: int, side: int, key: int) -> np.ndarray:
    """Return integers from -32768 to 32767: for each cell of each field, a hash of its index and the key."""
    from polyplane.datasets._deform import MASK, mix

    cells = np.arange(first * side * side, (first + CHUNK) * side * side, dtype=np.int64)
    noise: np.ndarray = (mix(mix(cells) ^ mix(key ^ MASK)) >> 16) - 32768
    return noise.reshape(CHUNK, side, side)


def _smoothed(field: np.ndarray) -> np.ndarray:
    """Apply a box sum three times vertically and three times horizontally; cells without a full box are dropped."""
    for axis in (1, 2, 1, 2, 1, 2):
        field = np.lib.stride_tricks.sliding_window_view(field, BOX, axis=axis).sum(axis=-1)
    return field
