"""`DeviceDigits`: deformed images made where they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from benchmarks.data.infinite_digits import InfiniteDigits

from polyplane._array_api import astype, at_least, at_most, kind_of, like, namespace, take_rows
from polyplane.learners.log_loss import run_steps

#: Images made together: enough to keep a device busy, few enough for its cache.
BLOCK = 4096


class Grid(NamedTuple):
    """The pixels of an image, counted row by row, on the device."""

    row: Any
    column: Any
    down: Any  # half pixels from the centre
    across: Any


class DeviceDigits:
    """`InfiniteDigits` made on a device: the same bytes, by gathers and arithmetic of whole numbers on whole blocks.

    Parameters
    ----------
    digits : InfiniteDigits
        The stream.
    like : array
        Images are made as arrays of the same library, on the same device. An empty one will do.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.gpu.device_digits import DeviceDigits
    >>> from benchmarks.data.infinite_digits import InfiniteDigits
    >>> ring = np.zeros((1, 28, 28), dtype=np.uint8)
    >>> ring[0, 6:22, 6:22] = 255
    >>> ring[0, 10:18, 10:18] = 0
    >>> digits = InfiniteDigits(ring, [0])
    >>> X, y = DeviceDigits(digits, np.empty(0))[1_000_000:1_000_003]
    >>> bool((X == digits[1_000_000:1_000_003][0]).all())
    True
    """

    def __init__(self, digits: InfiniteDigits, like: Any) -> None:
        self.digits = digits
        self._like = kind_of(like)
        self.side = digits.images.shape[1]
        self.images = self._moved(digits.images.reshape(len(digits.images), -1))
        self.corners = self._moved(_packed_corners(digits.images).reshape(-1))
        self.fields = self._moved(digits.fields.astype(np.int32))
        row, column = (axis.reshape(-1).astype(np.int32) for axis in np.mgrid[: self.side, : self.side])
        centre = self.side - 1
        self.grid = Grid(*map(self._moved, (row, column, 2 * row - centre, 2 * column - centre)))

    def __getitem__(self, rows: slice) -> tuple[Any, np.ndarray]:
        """Images of consecutive rows as uint8, where `like` is, and their labels, on the host."""
        numbers = self.digits._slice(rows)
        X = self.empty(len(numbers), namespace(self._like).uint8)
        self.write(numbers, X)
        return X, self.digits._labels(numbers)

    def batches(
        self, size: int, start: int = 0, stop: int | None = None, dtype: Any = None
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Batches of consecutive rows, for `partial_fit`, as `InfiniteDigits.batches` gives them.

        Parameters
        ----------
        size, start, stop
            As in `InfiniteDigits.batches`.
        dtype : dtype, default=None
            A float type of the device's library, for pixels from 0 to 1. None: float32.

        Yields
        ------
        X : array of shape (size, side * side)
            The images, on the device.
        y : ndarray of shape (size,)
            Their labels.
        """
        for numbers in self.digits._batch_rows(size, start, stop):
            X = self.empty(len(numbers), dtype or namespace(self._like).float32)
            self.write(numbers, X)
            yield X, self.digits._labels(numbers)

    def empty(self, n_rows: int, dtype: Any) -> Any:
        """An array for images, to be written into."""
        xp = namespace(self._like)
        if xp is np:
            return np.empty((n_rows, self.side**2), dtype=dtype)
        return xp.empty((n_rows, self.side**2), dtype=dtype, device=self._like.device)

    def write(self, rows: np.ndarray, out: Any) -> None:
        """Write the images with these numbers, which rise, into `out`: as bytes, or as fractions of 255."""
        n_given = int(np.searchsorted(rows, len(self.digits.images)))
        if n_given:
            out[:n_given, :] = self._scaled(take_rows(self.images, rows[:n_given]), out.dtype)
        numbers, made = self._moved(rows[n_given:]), out[n_given:, :]
        whole = numbers.shape[0] // BLOCK

        def block(part: Any) -> Any:
            xp = namespace(part)
            return xp.reshape(self._scaled(self._deformed(part), out.dtype), (-1,))

        xp = namespace(out)
        blocks = xp.reshape(numbers[: whole * BLOCK], (whole, BLOCK))
        run_steps(block, [blocks], [()] * whole, xp.reshape(made[: whole * BLOCK, :], (whole, BLOCK * self.side**2)))
        if whole * BLOCK < numbers.shape[0]:
            made[whole * BLOCK :, :] = self._scaled(self._deformed(numbers[whole * BLOCK :]), out.dtype)

    def _moved(self, array: np.ndarray) -> Any:
        return like(array, self._like)

    def _scaled(self, pixels: Any, dtype: Any) -> Any:
        pixels = astype(pixels, dtype)
        return pixels if dtype == namespace(pixels).uint8 else pixels / 255

    def _draw(self, rows: Any, position: int) -> Any:
        """The word at a position of each row's stream; see `benchmarks.data.infinite_digits.draw`."""
        from benchmarks.data.infinite_digits import GOLDEN, MASK, mix

        stem = mix(mix((rows >> 32) ^ self.digits.key) ^ (rows & MASK))
        return mix((stem + position * GOLDEN) & MASK)

    def _deformed(self, rows: Any) -> Any:
        """The images with these numbers; see `benchmarks.data.infinite_digits.resample`."""
        xp, grid = namespace(rows), self.grid
        *words, picked = (self._draw(rows, j) for j in range(8))
        strengths = zip(words, self.digits.strengths.tolist(), strict=True)
        numbers = [(((word & 0xFFFF) + (word >> 16) - 0xFFFF) * strength) >> 16 for word, strength in strengths]
        angle, row_scale, column_scale, shear, row_shift, column_shift, thickness = numbers
        bend = (angle * angle) >> 17
        y = _displaced(grid, 2 * row_shift + 256, row_scale - bend, shear - angle)
        x = _displaced(grid, 2 * column_shift + 256, shear + angle, column_scale - bend)
        n_fields = self.fields.shape[0]
        y += grid.row * 256 + take_rows(self.fields, (picked & 0xFFFF) % n_fields)
        x += grid.column * 256 + take_rows(self.fields, (picked >> 16) % n_fields)
        y, x = (at_most(at_least(place, -256), self.side * 256) + 256 for place in (y, x))
        width = self.side + 2
        base = astype(rows % len(self.digits.images), xp.int32)[:, None] * width**2
        four = xp.take(self.corners, xp.reshape(base + (y >> 8) * width + (x >> 8), (-1,)))
        return _between(xp.reshape(four, y.shape), y & 255, x & 255, astype(thickness, xp.int32)[:, None])


def _displaced(grid: Grid, shift: Any, by_row: Any, by_column: Any) -> Any:
    """How far, in 1/256 of a pixel, an affine map moves each pixel of each image."""
    shift, by_row, by_column = (astype(part, namespace(part).int32)[:, None] for part in (shift, by_row, by_column))
    return (shift + by_row * grid.down + by_column * grid.across) >> 9


def _packed_corners(images: np.ndarray) -> np.ndarray:
    """Each place's four pixels in one word, for all images; see `benchmarks.data.infinite_digits.pack_corners`."""
    n_images, side, _ = images.shape
    padded = np.zeros((n_images, side + 3, side + 3), dtype=np.uint32)
    padded[:, 1:-2, 1:-2] = images
    own, right = padded[:, :-1, :-1], padded[:, :-1, 1:]
    below, beyond = padded[:, 1:, :-1], padded[:, 1:, 1:]
    return (own | right << 8 | below << 16 | beyond << 24).view(np.int32)


def _between(four: Any, y: Any, x: Any, thickness: Any) -> Any:
    """The value between four pixels; see `benchmarks.data.infinite_digits.between`."""
    xp = namespace(four)
    own, right, below, beyond = (four >> shift & 255 for shift in (0, 8, 16, 24))
    value = (256 - y) * ((256 - x) * own + x * right) + y * ((256 - x) * below + x * beyond)
    steepness = xp.abs(right + beyond - own - below) + xp.abs(below + beyond - own - right)
    return at_most(at_least((value + ((thickness * steepness) >> 1) + 32768) >> 16, 0), 255)
