"""Deformation of images in integer arithmetic, which gives the same bytes on every computer.

Output pixel :math:`(r, c)` is the value of the source at :math:`(r, c)` plus an affine displacement plus a smooth
displacement field, with bilinear interpolation between pixels. Positions are in units of 1/256 of a pixel, the entries
of the affine map in units of 1/65536.
"""

from typing import Any

import numpy as np

from polyplane.kernels._jit import kernel

#: Positions of an image's random numbers in its stream.
ROTATION, ROW_SCALE, COLUMN_SCALE, SHEAR, ROW_SHIFT, COLUMN_SHIFT, THICKNESS, FIELDS = range(8)
#: 2^32 divided by the golden ratio: spreads consecutive words of a stream over the range.
GOLDEN = 0x9E3779B9
MASK = 0xFFFFFFFF


def mix(word: Any) -> Any:
    """Hash a 32-bit word, or an array of words; the hash is a bijection.

    Both factors are below 2^31, so products fit into 63 bits.
    """
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & MASK
    word = ((word ^ (word >> 15)) * 0x735A2D97) & MASK
    return word ^ (word >> 15)


mix_one = kernel(mix)


@kernel
def draw(key: int, row: int, position: int) -> int:
    """Return the random 32-bit word at a position of a row's stream."""
    stem = mix_one(mix_one(key ^ (row >> 32)) ^ (row & MASK))
    return mix_one((stem + position * GOLDEN) & MASK)


@kernel
def centred(word: int, strength: int) -> int:
    """Return an integer from `-strength` to `strength` with a triangular distribution: the sum of a word's halves."""
    return (((word & 0xFFFF) + (word >> 16) - 0xFFFF) * strength) >> 16


@kernel
def pack_corners(image: Any, corners: Any) -> None:
    """Pack four pixels (at a position, right, below, below right) into one word; pixels outside the image are 0.

    Positions range from -1 to `side`, in rows of length `side + 2`.
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
    """Write the images with the given row numbers into `out`: first the given images, then deformed copies.

    Image `i` is ``images[i % len(images)]``, deformed by the affine map and the two fields drawn from its stream.
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
    """Sample one packed image at its displaced positions."""
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
            at = np.uint64(r * side + c)  # unsigned, so that Numba omits the check for negative indices
            y = r * 256 + ((first_y + row_by_column * u) >> 9) + down[at]
            x = c * 256 + ((first_x + column_by_column * u) >> 9) + across[at]
            y = min(max(y, -256), highest) + 256
            x = min(max(x, -256), highest) + 256
            four = corners[np.uint64((y >> 8) * (side + 2) + (x >> 8))]
            out[at] = between(four, y & 255, x & 255, moves[THICKNESS])


@kernel
def between(four: int, y: int, x: int, thickness: int) -> int:
    """Interpolate between four pixels, and add or subtract a multiple of the gradient."""
    own, right, below, beyond = four & 255, (four >> 8) & 255, (four >> 16) & 255, four >> 24
    value = (256 - y) * ((256 - x) * own + x * right) + y * ((256 - x) * below + x * beyond)
    steepness = abs(right + beyond - own - below) + abs(below + beyond - own - right)
    return min(max((value + ((thickness * steepness) >> 1) + 32768) >> 16, 0), 255)
