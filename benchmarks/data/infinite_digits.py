"""`InfiniteDigits`: an unlimited stream of deformed images, in integer arithmetic: the same bytes on every computer.

Output pixel :math:`(r, c)` is the value of the source at :math:`(r, c)` plus an affine displacement plus a smooth
displacement field, with bilinear interpolation between pixels. Positions are in units of 1/256 of a pixel, the entries
of the affine map in units of 1/65536.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isqrt
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numba import njit
from numpy.typing import DTypeLike
from sklearn.utils import check_random_state

from polyplane.datasets import load_mnist
from polyplane.datasets.synthetic import check_counts

#: One past the last row of an unlimited stream: row numbers have 64 bits.
LAST_ROW = 2**63 - 1
#: Smallest number of images per thread.
IMAGES_PER_THREAD = 64
#: Positions of an image's random numbers in its stream.
ROTATION, ROW_SCALE, COLUMN_SCALE, SHEAR, ROW_SHIFT, COLUMN_SHIFT, THICKNESS, FIELDS = range(8)
#: 2^32 divided by the golden ratio: spreads consecutive words of a stream over the range.
GOLDEN = 0x9E3779B9
MASK = 0xFFFFFFFF
#: Number of fields.
N_FIELDS = 1024
#: Number of fields generated at a time.
CHUNK = 128
#: Width of the box filter, applied three times in each direction: about a Gaussian with sigma = 4.5 pixels.
BOX = 9


class InfiniteDigits:
    r"""Unlimited stream of deformed images of digits, similar to MNIST8M and reproducible row by row.

    The first rows are the given images. Each later row ``i`` is the image ``i % n_base``, shifted, rotated, scaled,
    sheared, displaced by smooth random fields, and with thicker or thinner strokes. Row ``i`` is identical in every
    call, for any batch size, number of threads and computer: its random numbers are a hash of (seed, i), and all
    computations use integers.

    Parameters
    ----------
    images : array-like of shape (n_base, side, side) or (n_base, side * side), default=None
        Square images, uint8. By default the 60,000 training images of MNIST, from `load_mnist`.
    labels : array-like of shape (n_base,), default=None
        Labels of the images; required if `images` is given.
    n_rows : int, default=None
        Number of rows; MNIST8M has 8,100,000. If None, the stream is unlimited.
    rotation : float, default=0.15
        Largest rotation angle, in radians.
    scale : float, default=0.07
        Largest relative change of height, and of width.
    shear : float, default=0.07
        Largest shear.
    shift : float, default=0.7
        Largest vertical and horizontal shift, in pixels.
    elastic : float, default=0.5
        Standard deviation of the smooth displacements, in pixels, in each direction.
    thickness : float, default=0.15
        Largest multiple of the gradient that is added to or subtracted from each pixel, which makes strokes thicker or
        thinner.
    random_state : int, RandomState instance or None, default=0
        Seed of the deformations. If None, each object has a different stream.
    n_jobs : int or None, default=1
        Number of threads that generate images.

    Attributes
    ----------
    images : ndarray of shape (n_base, side, side)
        The base images.
    labels : ndarray of shape (n_base,)
        Labels of the base images.
    key : int
        The 32-bit key of all hashes (k in the Notes).
    strengths : ndarray of shape (7,)
        The largest values of the seven random numbers of an image, in units of 1/65536.
    fields : ndarray of shape (n_fields, side * side)
        The smooth displacement fields, in units of 1/256 of a pixel.

    Notes
    -----
    Words of 32 bits come from :math:`m`, a bijection made of two multiplications and three shifts
    (`mix`). With the key :math:`k = m(\text{seed})`, row
    :math:`i = 2^{32} i_1 + i_0` has the words :math:`w_j = m(m(m(k \oplus i_1) \oplus i_0) + j g)`,
    :math:`g` being :math:`2^{32}` divided by the golden ratio. The sum of the halves of a word, centred and scaled, is
    one of seven numbers :math:`a, s, s', h, t, t', b`. They are at most the rotation, scale (two), shear, shift (two)
    and thickness in absolute value, in units of 1/65536. The eighth word selects two fields :math:`F, F'` of 1024. The
    pixel in row
    :math:`r`, column :math:`c`, at :math:`v = r - (n - 1) / 2`, :math:`u = c - (n - 1) / 2` from the centre of an
    image of side :math:`n`, is the value of the source, by bilinear interpolation, 0 outside, at

    .. math::

        y &= r + (s - a^2 / 2) v + (h - a) u + t + F_{rc} \\
        x &= c + (h + a) v + (s' - a^2 / 2) u + t' + F'_{rc}

    rounded to 1/256 of a pixel, plus :math:`b` times the gradient. The gradient is computed from the four pixels around
    this position: half the absolute difference of the lower two and the upper two, plus half that of the right two and
    the left two. Only gathers, additions, multiplications and shifts of integers are needed, so any array library can
    produce the same bytes.

    The default strengths were chosen on the training rows of MNIST only, with images generated from the first 50,000
    rows and errors measured on the last 10,000. After two million images, polytopes that separate "2" from the other
    digits (48 planes) have an error of 0.50 %, and a classifier of ten classes with 30 planes each has an error of
    1.85 %. After as many visits to the original images, the errors are 0.55 % and 2.38 %.
    ``benchmarks/data/digit_strengths.py`` measures them.

    References
    ----------
    .. [1] G. Loosli, S. Canu and L. Bottou, "Training invariant support vector machines using selective sampling", in
       Large Scale Kernel Machines, MIT Press, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.data.infinite_digits import InfiniteDigits
    >>> ring = np.zeros((1, 28, 28), dtype=np.uint8)
    >>> ring[0, 6:22, 6:22] = 255
    >>> ring[0, 10:18, 10:18] = 0
    >>> digits = InfiniteDigits(ring, [0])
    >>> X, y = digits[1_000_000:1_000_003]
    >>> X.shape, X.dtype, int(X[0].sum())
    ((3, 784), dtype('uint8'), 47426)
    >>> for X, y in digits.batches(1000, stop=2500):
    ...     print(X.shape, X.dtype)
    (1000, 784) float32
    (1000, 784) float32
    (500, 784) float32
    """

    def __init__(
        self,
        images: Any = None,
        labels: Any = None,
        *,
        n_rows: int | None = None,
        rotation: float = 0.15,
        scale: float = 0.07,
        shear: float = 0.07,
        shift: float = 0.7,
        elastic: float = 0.5,
        thickness: float = 0.15,
        random_state: Any = 0,
        n_jobs: int | None = 1,
    ) -> None:
        if n_rows is not None:
            check_counts(n_rows=n_rows)
        self.images, self.labels = _check_images(images, labels)
        self.n_rows, self.n_jobs = n_rows, n_jobs
        self._end = LAST_ROW if n_rows is None else n_rows
        self.strengths = _whole_strengths(
            rotation=rotation, scale=scale, shear=shear, shift=shift, thickness=thickness, elastic=elastic
        )
        self.key = mix(_seed(random_state))
        self.fields = smooth_fields(self.images.shape[1], elastic, self.key)

    def __len__(self) -> int:
        if self.n_rows is None:
            raise TypeError("This stream is unlimited and has no length: set n_rows.")
        return self.n_rows

    def __repr__(self) -> str:
        end = "unlimited" if self.n_rows is None else f"n_rows={self.n_rows}"
        return f"InfiniteDigits({len(self.images)} images, {end})"

    def __getitem__(self, rows: Any) -> tuple[np.ndarray, Any]:
        """Return images as rows of uint8, and their labels; for an integer, one image and its label."""
        if isinstance(rows, Integral):
            X, y = self._make(self._check_rows(np.array([rows])))
            return X[0], y[0]
        return self._make(self._slice(rows) if isinstance(rows, slice) else self._check_rows(np.asarray(rows)))

    def batches(
        self, size: int, start: int = 0, stop: int | None = None, dtype: DTypeLike = np.float32
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of consecutive rows, for `partial_fit`; only the current batch is in memory.

        Parameters
        ----------
        size : int
            Number of rows per batch; the last batch may be smaller.
        start : int, default=0
            First row.
        stop : int, default=None
            One past the last row. If None, `n_rows`.
        dtype : dtype, default=numpy.float32
            A floating-point dtype for pixels from 0 to 1, or uint8 for pixels from 0 to 255.

        Yields
        ------
        X : ndarray of shape (size, side * side)
            The images.
        y : ndarray of shape (size,)
            Their labels.
        """
        for rows in self._batch_rows(size, start, stop):
            X, y = self._make(rows)
            yield (X if dtype == np.uint8 else np.divide(X, 255, dtype=dtype)), y

    def _batch_rows(self, size: int, start: int, stop: int | None) -> Iterator[np.ndarray]:
        """Yield the row numbers of each batch."""
        check_counts(size=size)
        end = self._end if stop is None else min(stop, self._end)
        for first in range(start, end, size):
            yield np.arange(first, min(first + size, end), dtype=np.int64)

    def _labels(self, rows: np.ndarray) -> np.ndarray:
        labels: np.ndarray = self.labels[rows % len(self.images)]
        return labels

    def _make(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = np.empty((len(rows), self.images[0].size), dtype=np.uint8)
        n_shares = max(1, min(effective_n_jobs(self.n_jobs or 1), len(rows) // IMAGES_PER_THREAD))
        edges = [len(rows) * share // n_shares for share in range(n_shares + 1)]

        def share(edge: tuple[int, int]) -> None:
            part = slice(*edge)
            deform(self.images, rows[part], self.key, self.strengths, self.fields, X[part])

        Parallel(n_shares, prefer="threads")(delayed(share)(edge) for edge in pairwise(edges))
        return X, self._labels(rows)

    def _slice(self, rows: slice) -> np.ndarray:
        if self.n_rows is None and (rows.stop is None or min(rows.start or 0, rows.stop) < 0):
            raise IndexError("This stream is unlimited: use row numbers from 0, and slices with an end.")
        return np.arange(*rows.indices(self._end), dtype=np.int64)

    def _check_rows(self, rows: np.ndarray) -> np.ndarray:
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise IndexError("Rows must be an integer, a slice or a list of integers.")
        counted_back = self.n_rows or 0
        if len(rows) and not -counted_back <= int(rows.min()) <= int(rows.max()) < self._end:
            wrong = rows.min() if rows.min() < -counted_back else rows.max()
            raise IndexError(f"Row {wrong} is out of range for {self!r}.")
        rows = rows.astype(np.int64)
        return np.where(rows < 0, rows + counted_back, rows)


def _check_images(images: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    if images is None:
        images, labels = load_mnist(return_X_y=True)
    images, labels = np.asarray(images), np.asarray(labels)
    side = round(images[0].size ** 0.5) if images.ndim > 1 and len(images) else 0
    if images.dtype != np.uint8 or not side or images.shape[1:] not in ((side, side), (side * side,)):
        raise ValueError(f"images must be one or more square uint8 images, not {images.dtype} of shape {images.shape}.")
    if labels.shape != (len(images),):
        raise ValueError(f"labels must have one entry for each of the {len(images)} images, not shape {labels.shape}.")
    return np.ascontiguousarray(images).reshape(-1, side, side), labels


def _seed(random_state: Any) -> int:
    if not isinstance(random_state, Integral):
        return int(check_random_state(random_state).randint(2**32, dtype=np.uint32))
    if not 0 <= int(random_state) < 2**32:
        raise ValueError(f"random_state={random_state} must be from 0 to 2^32 - 1.")
    return int(random_state)


def _whole_strengths(**strengths: float) -> np.ndarray:
    """Return the largest values of an image's random numbers, in the order of its stream, in units of 1/65536."""
    for name, value in strengths.items():
        if not 0 <= value <= 8:
            raise ValueError(f"{name}={value} must be from 0 to 8.")
    order = ("rotation", "scale", "scale", "shear", "shift", "shift", "thickness")
    return np.array([round(strengths[name] * 65536) for name in order])


def mix(word: Any) -> Any:
    """Hash a 32-bit word, or an array of words; the hash is a bijection.

    Both factors are below 2^31, so products fit into 63 bits.
    """
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & MASK
    word = ((word ^ (word >> 15)) * 0x735A2D97) & MASK
    return word ^ (word >> 15)


mix_one = njit(nogil=True, cache=True)(mix)


@njit(nogil=True, cache=True)
def draw(key: int, row: int, position: int) -> int:
    """Return the random 32-bit word at a position of a row's stream."""
    stem = mix_one(mix_one(key ^ (row >> 32)) ^ (row & MASK))
    return mix_one((stem + position * GOLDEN) & MASK)


@njit(nogil=True, cache=True)
def centred(word: int, strength: int) -> int:
    """Return an integer from `-strength` to `strength` with a triangular distribution: the sum of a word's halves."""
    return (((word & 0xFFFF) + (word >> 16) - 0xFFFF) * strength) >> 16


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def between(four: int, y: int, x: int, thickness: int) -> int:
    """Interpolate between four pixels, and add or subtract a multiple of the gradient."""
    own, right, below, beyond = four & 255, (four >> 8) & 255, (four >> 16) & 255, four >> 24
    value = (256 - y) * ((256 - x) * own + x * right) + y * ((256 - x) * below + x * beyond)
    steepness = abs(right + beyond - own - below) + abs(below + beyond - own - right)
    return min(max((value + ((thickness * steepness) >> 1) + 32768) >> 16, 0), 255)


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
    cells = np.arange(first * side * side, (first + CHUNK) * side * side, dtype=np.int64)
    noise: np.ndarray = (mix(mix(cells) ^ mix(key ^ MASK)) >> 16) - 32768
    return noise.reshape(CHUNK, side, side)


def _smoothed(field: np.ndarray) -> np.ndarray:
    """Apply a box sum three times vertically and three times horizontally; cells without a full box are dropped."""
    for axis in (1, 2, 1, 2, 1, 2):
        field = np.lib.stride_tricks.sliding_window_view(field, BOX, axis=axis).sum(axis=-1)
    return field
