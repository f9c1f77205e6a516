"""`InfiniteDigits` by whole arrays: gathers and arithmetic of int64 alone, as any array library has them."""

import numpy as np

MASK = 0xFFFFFFFF


def mix(word):
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & MASK
    word = ((word ^ (word >> 15)) * 0x735A2D97) & MASK
    return word ^ (word >> 15)


def deformed(images, rows, seed, strengths, fields):
    """Rows of uint8; `strengths` are those of the seven numbers of an image, in 1/65536."""
    n_base, side = images.shape[:2]
    stem = mix(mix(mix(np.int64(seed)) ^ (rows >> 32)) ^ (rows & MASK))
    words = mix((stem[:, None] + np.arange(8) * 0x9E3779B9) & MASK)
    moves = (((words[:, :7] & 0xFFFF) + (words[:, :7] >> 16) - 0xFFFF) * strengths) >> 16
    angle, row_scale, column_scale, shear, row_shift, column_shift, thickness = moves.T[:, :, None, None]
    down, across = (
        fields[pick % len(fields)].reshape(-1, side, side) for pick in (words[:, 7] & 0xFFFF, words[:, 7] >> 16)
    )
    r, c = np.arange(side)[:, None], np.arange(side)
    v, u = 2 * r - side + 1, 2 * c - side + 1
    bend = (angle * angle) >> 17
    y = 256 * r + ((2 * row_shift + (row_scale - bend) * v + (shear - angle) * u + 256) >> 9) + down
    x = 256 * c + ((2 * column_shift + (shear + angle) * v + (column_scale - bend) * u + 256) >> 9) + across
    y, x = np.clip(y, -256, 256 * side) + 256, np.clip(x, -256, 256 * side) + 256
    padded = np.pad(images.astype(np.int64), ((0, 0), (1, 2), (1, 2)))
    base, top, left = (rows % n_base)[:, None, None], y >> 8, x >> 8
    here, right = padded[base, top, left], padded[base, top, left + 1]
    below, beyond = padded[base, top + 1, left], padded[base, top + 1, left + 1]
    y, x = y & 255, x & 255
    value = (256 - y) * ((256 - x) * here + x * right) + y * ((256 - x) * below + x * beyond)
    steepness = abs(right + beyond - here - below) + abs(below + beyond - here - right)
    value = np.clip((value + ((thickness * steepness) >> 1) + 32768) >> 16, 0, 255)
    made = np.where((rows < n_base)[:, None, None], images[rows % n_base], value)
    return made.reshape(len(rows), -1).astype(np.uint8)
