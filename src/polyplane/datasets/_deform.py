"""Deformed images, in whole numbers alone: the same bytes on every machine.

An image is read at moved places: output pixel :math:`(r, c)` takes the value of the source at :math:`(r, c)` plus an
affine displacement plus a smooth field, between pixels by bilinear interpolation. Places are in 1/256 of a pixel,
the entries of the affine map in 1/65536.
"""

from typing import Any

import numpy as np

from polyplane.kernels._jit import kernel

#: The numbers drawn for an image, by their position in its stream.
ROTATION, ROW_SCALE, COLUMN_SCALE, SHEAR, ROW_SHIFT, COLUMN_SHIFT, THICKNESS, FIELDS = range(8)
#: 2^32 over the golden ratio: consecutive words of a stream start far apart.
GOLDEN = 0x9E3779B9
MASK = 0xFFFFFFFF


def mix(word: Any) -> Any:
    """A bijection of 32-bit words, one or an array of them, that looks random.

    Both factors are below 2^31, so nothing exceeds 63 bits.
    """
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & MASK
    word = ((word ^ (word >> 15)) * 0x735A2D97) & MASK
    return word ^ (word >> 15)


mix_one = kernel(mix)


@kernel
def draw(key: int, row: int, position: int) -> int:
    """The random 32-bit word at a position of a row's stream."""
    stem = mix_one(mix_one(key ^ (row >> 32)) ^ (row & MASK))
    return mix_one((stem + position * GOLDEN) & MASK)


@kernel
def centred(word: int, strength: int) -> int:
    """A whole number between minus and plus `strength`, near 0 more often: the sum of the halves of a word."""
    return (((word & 0xFFFF) + (word >> 16) - 0xFFFF) * strength) >> 16


@kernel
def pack_corners(image: Any, corners: Any) -> None:
    """Write each place's four pixels (its own, right, below, below right) into one word; outside of the image is 0.

    Places are those from -1 to the side of the image, in rows of two more than the side.
    """
    corners[:] = 0
    side = len(image)
    width = side + 2
    for r in range(side):
        for c in range(side):
            value = np.uint32(image[r, c])
            at = (r + 1) * width + c + 1
            corners[at] |= value
            corners[at - 1] |= value << np.uint32(8)
            corners[at - width] |= value << np.uint32(16)
            corners[at - width - 1] |= value << np.uint32(24)


@kernel
def deform(images: Any, rows: Any, key: int, strengths: Any, fields: Any, out: Any) -> None:
    """Write the images with the given numbers into `out`: the first are those given, the others are made from them.

    Image `i` comes from ``images[i % len(images)]``, moved by the affine map and the two fields that its stream draws.
    """
    n_base, side, _ = images.shape
    corners = np.empty((side + 2) * (side + 2), dtype=np.uint32)
    moves = np.empty(FIELDS, dtype=np.int32)
    for n in range(len(rows)):
        row = rows[n]
        if row < n_base:
            out[n] = images[row].ravel()
            continue
        for j in range(FIELDS):
            moves[j] = centred(draw(key, row, j), strengths[j])
        picked = draw(key, row, FIELDS)
        pack_corners(images[row % n_base], corners)
        down = fields[(picked & 0xFFFF) % len(fields)]
        across = fields[(picked >> 16) % len(fields)]
        resample(corners, side, moves, down, across, out[n])


@kernel
def resample(corners: Any, side: int, moves: Any, down: Any, across: Any, out: Any) -> None:
    """Read one packed image at its moved places."""
    angle = moves[ROTATION]
    bend = (angle * angle) >> 17  # cos(a) is 1 - a^2 / 2
    row_by_column, column_by_column = moves[SHEAR] - angle, moves[COLUMN_SCALE] - bend
    highest = side * 256
    for r in range(side):
        v = 2 * r - side + 1  # half pixels from the centre
        first_y = 2 * moves[ROW_SHIFT] + (moves[ROW_SCALE] - bend) * v + 256
        first_x = 2 * moves[COLUMN_SHIFT] + (moves[SHEAR] + angle) * v + 256
        for c in range(side):
            u = 2 * c - side + 1
            at = np.uint64(r * side + c)  # unsigned, like all positions: Numba need not ask if it counts from the end
            y = r * 256 + ((first_y + row_by_column * u) >> 9) + down[at]
            x = c * 256 + ((first_x + column_by_column * u) >> 9) + across[at]
            y = min(max(y, -256), highest) + 256
            x = min(max(x, -256), highest) + 256
            four = corners[np.uint64((y >> 8) * (side + 2) + (x >> 8))]
            out[at] = between(four, y & 255, x & 255, moves[THICKNESS])


@kernel
def between(four: int, y: int, x: int, thickness: int) -> int:
    """The value between four pixels, made larger or smaller where the image is steep."""
    own, right, below, beyond = four & 255, (four >> 8) & 255, (four >> 16) & 255, four >> 24
    value = (256 - y) * ((256 - x) * own + x * right) + y * ((256 - x) * below + x * beyond)
    steepness = abs(right + beyond - own - below) + abs(below + beyond - own - right)
    return min(max((value + ((thickness * steepness) >> 1) + 32768) >> 16, 0), 255)
