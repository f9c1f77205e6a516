"""`InfiniteDigits`: an unlimited stream of deformed images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import DTypeLike
from sklearn.utils import check_random_state

from polyplane._threads import in_threads
from polyplane.datasets._checks import check_counts
from polyplane.datasets._fields import smooth_fields
from polyplane.datasets._loaders import load_mnist

#: One past the last row of an unlimited stream: row numbers have 64 bits.
LAST_ROW = 2**63 - 1
#: Smallest number of images per thread.
IMAGES_PER_THREAD = 64


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
    (`polyplane.datasets._deform.mix`). With the key :math:`k = m(\text{seed})`, row
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
    >>> from polyplane.datasets import InfiniteDigits
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
        from polyplane.datasets._deform import mix

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
        from polyplane.datasets._deform import deform

        X = np.empty((len(rows), self.images[0].size), dtype=np.uint8)
        n_shares = max(1, min(effective_n_jobs(self.n_jobs or 1), len(rows) // IMAGES_PER_THREAD))
        edges = [len(rows) * share // n_shares for share in range(n_shares + 1)]

        def share(edge: tuple[int, int]) -> None:
            part = slice(*edge)
            deform(self.images, rows[part], self.key, self.strengths, self.fields, X[part])

        in_threads(share, pairwise(edges), n_shares)
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
