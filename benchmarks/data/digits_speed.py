"""How fast `InfiniteDigits` makes images: per second of one core, and against SciPy at the same places.

SciPy's `map_coordinates` reads the same base images, bilinearly, at places as irregular, drawn beforehand: the peer's
time is that of reading alone. Times are those of the process, which other processes disturb less. Needs no data: the
base images are noise, and their content does not matter to the time.
"""

import time

import numpy as np
from benchmarks.data.infinite_digits import InfiniteDigits
from scipy import ndimage

N_BASE, N_IMAGES, REPEATS = 60_000, 20_000, 7


def best(function):
    """Shortest of some runs, in seconds of the process."""
    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        function()
        seconds.append(time.process_time() - began)
    return min(seconds)


def peer(images, n_images):
    """A function that reads `n_images` images with SciPy, at places moved by up to two pixels."""
    rng = np.random.default_rng(0)
    places = np.mgrid[:28, :28] + rng.uniform(-2, 2, size=(2, 28, 28))
    result = np.empty((28, 28), dtype=np.uint8)

    def read():
        for image in images[:n_images]:
            ndimage.map_coordinates(image, places, output=result, order=1)

    return read


def iterate(digits, dtype):
    """A function that runs over batches of 1,000 images."""

    def run():
        for _ in digits.batches(1000, N_BASE, N_BASE + N_IMAGES, dtype):
            pass

    return run


def main():
    images = np.random.default_rng(0).integers(0, 256, size=(N_BASE, 28, 28), dtype=np.uint8)
    began = time.process_time()
    digits = InfiniteDigits(images, np.arange(N_BASE) % 10)
    print(f"start                         {time.process_time() - began:10.2f} s, with the import of Numba")
    iterate(digits, np.uint8)()  # compile first
    scipy_rate = 1000 / best(peer(images, 1000))
    print(f"SciPy's map_coordinates       {scipy_rate:10,.0f} images/s")
    for name, dtype in (("bytes", np.uint8), ("float32", np.float32)):
        rate = N_IMAGES / best(iterate(digits, dtype))
        print(f"InfiniteDigits, {name:8}      {rate:10,.0f} images/s  {rate / scipy_rate:6.1f} times SciPy's")


if __name__ == "__main__":
    main()
