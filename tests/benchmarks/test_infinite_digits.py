import hashlib
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from benchmarks.data.infinite_digits import InfiniteDigits
from hypothesis import given, settings
from hypothesis import strategies as st

STRENGTHS = {"rotation": 0.4, "scale": 0.3, "shear": 0.2, "shift": 3.0, "thickness": 0.5}
MASK = 0xFFFFFFFF


def mix(word):
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & MASK
    word = ((word ^ (word >> 15)) * 0x735A2D97) & MASK
    return word ^ (word >> 15)


def deformed(images, rows, seed, strengths, fields):
    """The same rows by whole arrays and arithmetic of int64 alone.

    `strengths` are those of the seven numbers of an image, in 1/65536.
    """
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


def synthetic(n_images=20, side=28):
    """Images of whole numbers: a disc and a bar each, grey at the edge."""
    r, c = np.mgrid[:side, :side]
    n = np.arange(n_images)[:, None, None]
    disc = 40 * (5 + n % 4) - (r - side // 2 + n % 3) ** 2 * 8 - (c - side // 2) ** 2 * (4 + n % 5)
    bar = 255 - 90 * abs(2 * r + (n % 3 - 1) * c - side // 2)
    return np.clip(np.maximum(disc, bar), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def digits():
    return InfiniteDigits(synthetic(), np.arange(20) % 10)


def test_the_first_rows_are_the_images_given(digits):
    X, y = digits[:20]
    np.testing.assert_array_equal(X, synthetic().reshape(20, -1))
    np.testing.assert_array_equal(y, np.arange(20) % 10)


def test_rows_are_these_bytes_on_every_machine():
    """The digest was computed once; whoever changes it changes every stream that users have trained on."""
    digits = InfiniteDigits(synthetic(), np.arange(20), **STRENGTHS, elastic=0.8, random_state=7)
    X, _ = digits[np.r_[0:1000, 8_099_000:8_100_000, 2**40 : 2**40 + 500]]
    assert hashlib.sha256(X.tobytes()).hexdigest() == "2bc4c920f36c07c0522e11106758d12f8076c3abf8764b7660310fd27dbfad0a"


def test_rows_follow_the_formula():
    """Also on images of another size, and beyond 2^32."""
    for side in (9, 28):
        images = synthetic(side=side)
        digits = InfiniteDigits(images, np.arange(20), **STRENGTHS, elastic=1.5, random_state=3)
        rows = np.r_[0:300, 2**32 - 50 : 2**32 + 50]
        order = ("rotation", "scale", "scale", "shear", "shift", "shift", "thickness")
        strengths = np.array([round(STRENGTHS[name] * 65536) for name in order])
        expected = deformed(images, rows, 3, strengths, digits.fields.astype(np.int64))
        np.testing.assert_array_equal(digits[rows][0], expected)


def test_without_strength_nothing_moves():
    still = InfiniteDigits(synthetic(), np.arange(20), rotation=0, scale=0, shear=0, shift=0, elastic=0, thickness=0)
    np.testing.assert_array_equal(still[20:60][0], np.tile(synthetic().reshape(20, -1), (2, 1)))


@pytest.fixture(scope="module")
def threaded():
    return InfiniteDigits(synthetic(), np.arange(20) % 10, n_jobs=3)


@settings(max_examples=30, deadline=None)
@given(start=st.integers(0, 2**50), sizes=st.lists(st.integers(1, 99), min_size=1, max_size=4))
def test_rows_depend_on_their_number_alone(digits, threaded, start, sizes):
    """Not on the block they come in, nor on the threads."""
    whole, labels = threaded[start : start + sum(sizes)]
    edges = np.cumsum([start, *sizes])
    np.testing.assert_array_equal(whole, np.concatenate([digits[a:b][0] for a, b in pairwise(edges)]))
    np.testing.assert_array_equal(labels, (np.arange(start, edges[-1]) % 20) % 10)
    image, label = digits[start]
    np.testing.assert_array_equal(image, whole[0])
    assert label == labels[0]


def test_rows_differ_from_each_other_and_between_seeds(digits):
    X, _ = digits[20:4020]
    assert len(np.unique(X, axis=0)) == 4000
    other = InfiniteDigits(synthetic(), np.arange(20) % 10, random_state=1)
    assert (other[20:4020][0] != X).any(axis=1).all()


def test_strengths_are_what_they_say():
    """Shift by mass centre: triangular up to 3 pixels, so a deviation of 3 / sqrt(6); fields: 0.8 pixels."""
    dot = np.zeros((1, 28, 28), dtype=np.uint8)
    dot[0, 12:16, 12:16] = 255
    only_shift = InfiniteDigits(dot, [0], rotation=0, scale=0, shear=0, elastic=0, thickness=0, shift=3.0)
    X, _ = only_shift[1:5001]
    images = X.reshape(-1, 28, 28).astype(float)
    centre = (images.sum(axis=1) * np.arange(28)).sum(axis=1) / images.sum(axis=(1, 2))
    assert centre.std() == pytest.approx(3 / np.sqrt(6), rel=0.03)
    fields = InfiniteDigits(dot, [0], elastic=0.8).fields
    assert fields.std() / 256 == pytest.approx(0.8, rel=0.03)
    assert fields.mean() / 256 == pytest.approx(0.0, abs=0.05)


def test_batches_are_fractions_in_order(digits):
    batches = list(digits.batches(300, start=10, stop=1000))
    assert [len(X) for X, _ in batches] == [300, 300, 300, 90]
    X = np.concatenate([X for X, _ in batches])
    assert X.dtype == np.float32
    assert X.min() == 0
    assert X.max() == 1
    np.testing.assert_array_equal(X, digits[10:1000][0] / np.float32(255))
    raw, _ = next(digits.batches(50, dtype=np.uint8))
    assert raw.dtype == np.uint8


def test_a_stream_with_an_end():
    digits = InfiniteDigits(synthetic(), np.arange(20), n_rows=1000)
    assert len(digits) == 1000
    assert sum(len(X) for X, _ in digits.batches(300)) == 1000
    np.testing.assert_array_equal(digits[-1][0], digits[999][0])
    assert len(digits[990:2000][0]) == 10
    with pytest.raises(IndexError, match="Row 1000 is out of range"):
        digits[1000]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (-1, "Row -1 is out of range"),
        (slice(5, None), "slices with an end"),
        ([0.5], "must be an integer"),
        (slice(-5, 7), "from 0"),
    ],
)
def test_rows_that_are_not_there(digits, rows, message):
    with pytest.raises(IndexError, match=message):
        digits[rows]
    with pytest.raises(TypeError, match="no length"):
        len(digits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"images": np.zeros((3, 5, 6), np.uint8), "labels": [0, 1, 2]}, "images must be one or more square"),
        ({"images": np.zeros((3, 25)), "labels": [0, 1, 2]}, "not float64 of shape"),
        ({"images": synthetic(), "labels": [0, 1]}, "one entry for each of the 20 images"),
        ({"images": synthetic(), "labels": range(20), "shift": -1}, "shift=-1 must be from"),
        ({"images": synthetic(), "labels": range(20), "random_state": -5}, "random_state=-5 must be"),
        ({"images": synthetic(), "labels": range(20), "n_rows": 0}, "n_rows=0 must be 1 or more"),
    ],
)
def test_what_cannot_be_deformed_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        InfiniteDigits(**arguments)


ITERATE = """
import resource
import numpy as np
from benchmarks.data.infinite_digits import InfiniteDigits
digits = InfiniteDigits(np.zeros((100, 784), dtype=np.uint8), np.zeros(100))
next(digits.batches(2000))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for X, y in digits.batches(2000, stop=50_000):
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module, which tells the peak, is for Unix")
def test_iterating_holds_one_batch():
    """50,000 images are 157 MB as float32, a batch 6 MB; two may be alive at a time, in two types."""
    ran = subprocess.run([sys.executable, "-c", ITERATE], check=True, capture_output=True, text=True)
    assert float(ran.stdout) < 20


def test_deformed_rows_teach_what_the_originals_do_not(local_data):
    """The nearest of 1,000 images errs on 13.4 % of unseen training rows; with 9 deformations of each, on 9.0 %."""
    mnist = local_data("mnist")
    X, _ = InfiniteDigits(mnist.data[:1000], mnist.target[:1000])[:10_000]
    unseen = mnist.data[50_000:53_000].astype(np.float32)
    distances = (X.astype(np.float32) ** 2).sum(axis=1) - 2 * unseen @ X.T.astype(np.float32)
    errors = [
        np.mean(mnist.target[distances[:, :n].argmin(axis=1) % 1000] != mnist.target[50_000:53_000])
        for n in (1000, 10_000)
    ]
    assert errors[1] < 0.75 * errors[0]
