"""Data files that are wrong, or were made to do harm: one sentence, in little time and memory."""

# ruff: noqa: F401, F811  (fixtures are imported by the names that tests ask for)

import gzip
import io
import os
import struct
import threading
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
from scipy import sparse

from polyplane.readers import batches, read

from .test_readers import file, refused, small_blocks

WIDE = [2**53, 2**53 + 1, 2**63 - 1, -(2**63)]


# Labels are never merged.


@pytest.mark.parametrize("repeat", [1, 20_000])
def test_text_that_is_not_utf8_is_refused(file, repeat):
    rows = ["1,été", "2,ètè"] * repeat
    latin = "\n".join(["a,label", *rows, ""])
    assert "line 2, the label: the text is not UTF-8; convert" in refused(file("x.csv", latin.encode("latin-1")))
    assert set(read(file("y.csv", latin)).y.tolist()) == {"été", "ètè"}
    assert "line 1, the label: the text" in refused(file("x.svm", "été 1:2\nètè 1:1\n".encode("latin-1")))
    assert "the header: the text is not UTF-8" in refused(file("h.csv", "é,è,label\n1,2,3\n".encode("latin-1")))


@pytest.mark.parametrize("repeat", [1, 5000])
def test_whole_labels_beyond_a_float_stay_apart(file, repeat):
    """A float64 holds no whole number between 2**53 and 2**53 + 2."""
    expected = WIDE * repeat
    rows = read(file("x.csv", "a,label\n" + "".join(f"1,{label}\n" for label in expected)))
    assert rows.y.dtype == np.int64
    assert rows.y.tolist() == expected
    rows = read(file("x.svm", "".join(f"{label:+d} 1:2\n" for label in expected)))
    assert rows.y.tolist() == expected
    X = np.ones((len(expected), 1))
    assert read(file("x.npz", {"X": X, "y": np.array(expected)})).y.tolist() == expected
    assert read(file("z.npz", {"X": X, "y": np.array(expected) > 0})).y.tolist() == [
        int(label > 0) for label in expected
    ]


def test_whole_labels_of_parquet_stay_apart(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": WIDE, "label": WIDE}), tmp_path / "x.parquet")
    rows = read(tmp_path / "x.parquet")
    assert rows.y.tolist() == WIDE
    assert rows.X.ravel().tolist() == [float(value) for value in WIDE]


def test_labels_that_no_number_holds_are_text(file):
    table = "a,label\n" + "".join(f"1,{label}\n" for label in (2**63, 2**63 + 1, 1))
    assert read(file("x.csv", table)).y.tolist() == [str(2**63), str(2**63 + 1), "1"]
    assert "64-bit integers" in refused(file("x.csv", table), labels="number")
    mixed = file("y.csv", f"a,label\n1,0.5\n1,{2**53 + 1}\n")
    assert read(mixed).y.tolist() == ["0.5", str(2**53 + 1)]
    y = np.array([2**63 + 1, 2**63 + 2], dtype=np.uint64)
    assert read(file("z.npz", {"X": np.eye(2), "y": y})).y.tolist() == [str(2**63 + 1), str(2**63 + 2)]


def test_fractions_and_wide_labels_in_different_parts_of_a_file(file, small_blocks):
    rows = ["1,0.5"] * 1000 + [f"1,{2**53 + 1}"] * 1000
    assert "beyond 2**53" in refused(file("x.csv", "\n".join(["a,label", *rows])), labels="number")


def test_a_label_of_bytes_is_text_in_utf8(file):
    names = np.array(["été".encode(), b"b"])
    assert read(file("x.npz", {"X": np.eye(2), "y": names})).y.tolist() == ["été", "b"]
    assert "not UTF-8" in refused(file("x.npz", {"X": np.eye(2), "y": np.array([b"\xe9", b"b"])}))


# npz files that do not fit together.


def csr_parts(**changes):
    X = sparse.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0]]))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)} | changes
    return {f"X_{name}": part for name, part in parts.items()} | {"y": np.arange(2)}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(3), "y": np.arange(4)}, "3 rows, but its labels 'y' have the shape (4,)"),
        ({"X": np.eye(3), "y": np.arange(2)}, "3 rows, but its labels 'y' have the shape (2,)"),
        ({"X": np.eye(3), "y": np.zeros((3, 2))}, "3 rows, but its labels 'y' have the shape (3, 2)"),
        ({"X": np.eye(2) * 1j, "y": np.arange(2)}, "'X' has the unsupported dtype complex128"),
        ({"X": np.eye(2), "y": np.eye(2)[0] * 1j}, "'y' has the unsupported dtype complex128"),
        ({"X": np.array([["1", "2"]]), "y": np.arange(1)}, "'X' has the unsupported dtype <U1"),
        ({"X": np.empty((5, 0)), "y": np.arange(5)}, "rows of 'X' have 0 features, not 1 to 16,777,216"),
        (csr_parts(indptr=np.array([1, 2, 3])), "the rows of 'X' do not begin with its first value"),
        (csr_parts(indptr=np.array([0, 3, 2])), "its rows do not follow each other"),
        (csr_parts(indptr=np.array([0, 2, 4])), "a row ends beyond the values"),
        (csr_parts(indptr=np.array([0, 2**63, 3], dtype=np.uint64)), "a row ends beyond the values"),
        (csr_parts(indptr=np.array([0, 3])), "the arrays of 'X' do not fit together"),
        (csr_parts(indices=np.array([0, 2**32 + 2, 1])), "a feature index is beyond the 3 features"),
        (
            csr_parts(indices=np.array([0, 2**32 + 2, 1]), shape=np.array([2, 2**33])),
            "features, not 1 to 2,147,483,647",
        ),
        (csr_parts(indices=np.array([0, -1, 1])), "a feature index is beyond the 3 features"),
        (csr_parts(indices=np.array([0.0, 2.0, 1.0])), "'X_indices' has the unsupported dtype float64"),
        (csr_parts(data=np.array([1j, 2, 3])), "'X_data' has the unsupported dtype complex128"),
        (csr_parts(shape=np.array([2, 3, 4])), "its shape is not two numbers"),
        (csr_parts(shape=np.array([-1, 3])), "the arrays of 'X' do not fit together"),
    ],
)
def test_arrays_that_do_not_fit_together(file, arrays, message):
    assert message in refused(file("x.npz", arrays))


def members(path, change):
    """The bytes of a zip archive with `change(info, content)` applied to its headers."""
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            change(raw, info.header_offset)
    at = raw.find(b"PK\x01\x02")
    while at >= 0:
        change(raw, at, central=True)
        at = raw.find(b"PK\x01\x02", at + 4)
    return bytes(raw)


def encrypt(raw, at, central=False):
    raw[at + (8 if central else 6)] |= 1


def pack_otherwise(raw, at, central=False):
    struct.pack_into("<H", raw, at + (10 if central else 8), 97)


@pytest.mark.parametrize(("change", "message"), [(encrypt, "is encrypted"), (pack_otherwise, "compression")])
def test_archives_that_cannot_be_unpacked(file, change, message):
    path = file("x.npz", {"X": np.eye(2), "y": np.arange(2)})
    assert message in refused(file("y.npz", members(path, change)))


@pytest.mark.parametrize("header", ["{'descr': '<f8', 'shape': (2", "(" * 5000, "{'descr': 1}", "\x00", "1" * 9000])
def test_damaged_npy_headers(file, tmp_path, header):
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", content)
        archive.writestr("y.npy", content)
    assert "The array 'X' has a damaged header" in refused(tmp_path / "x.npz")


# Tables that do not fit.


def test_carriage_returns_alone_do_not_end_lines(file):
    assert "lines end with a carriage return alone" in refused(file("x.csv", "a,label\r1,2\r3,4\r"))


def test_a_very_long_name_of_a_column(file):
    message = refused(file("x.csv", f"{'a' * 200_000},label\n1,2\n"))
    assert "the header cannot be read, field larger than field limit" in message
    assert len(message) < 300


def test_features_of_the_same_name_cannot_be_matched(file):
    assert "feature names must be unique" in refused(file("x.csv", "a,b,label\n1,2,3\n"), feature_names=["a", "a", "b"])


# Time.


def seconds(function, *arguments, **options):
    began = time.perf_counter()
    function(*arguments, **options)
    return time.perf_counter() - began


def test_headers_cost_time_by_the_column(file):
    """100,000 columns took 159 s; ten times as many columns may take at most some 30 times as long."""
    names = [f"column {j}" for j in range(100_000)]

    def table(n):
        return file(f"{n}.csv", ",".join([*names[:n], "label"]) + "\n" + "1," * n + "0\n")

    few, many = table(10_000), table(100_000)
    read(few)
    times = [seconds(read, path, feature_names=names[:n]) for path, n in ((few, 10_000), (many, 100_000))]
    assert times[1] < 30 * max(times[0], 0.05)


@pytest.mark.parametrize(
    "text",
    [
        " " * 1_000_000 + "\na,label\n1,2\n",
        "a,label\n" + "1" * 60_000 + "x,2\n",
        "1 1:" + "1" * 60_000 + "x\n",
        "1 " + "1:1 " * 15_000 + "x\n",
        "1" + " " * 60_000 + "x\n",
    ],
)
def test_no_text_takes_time_by_the_square(file, text):
    def attempt():
        try:
            read(file("x", text), labels="ignore", format="csv" if "label" in text else "svmlight")
        except ValueError:
            return

    attempt()
    assert seconds(attempt) < 1.0


# Memory.


def peak(function):
    """The most memory that NumPy and Python held at a time."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def npy(dtype, shape, n_bytes):
    """The beginning of an array, and as many zeros as it needs."""
    head = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    yield b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head
    zeros = bytes(1 << 20)
    for start in range(0, n_bytes, len(zeros)):
        yield zeros[: n_bytes - start]


def bomb(path, **arrays):
    """An archive of zeros, packed twice: a few KB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (dtype, shape) in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                for part in npy(dtype, shape, int(np.prod(shape)) * np.dtype(dtype).itemsize):
                    member.write(part)
    path.write_bytes(gzip.compress(buffer.getvalue()))
    return path


#: What SECURITY.md states for the parts of a file.
STATED = 1 << 29


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": ("<f8", (1, 40_000_000)), "y": ("<f8", (1,))},
        {"X": ("<f8", (4, 8_000_000)), "y": ("<f8", (4,))},
        {"X": ("|i1", (50_000_000, 1)), "y": ("|i1", (50_000_000,))},
        {"X": ("<f8", (3, 2)), "y": ("<U30000000", (3,))},
        {"X": ("<f8", (1000, 2)), "y": ("<U80000", (1000,))},
        {"X": ("<f8", (3, 2)), "y": ("<f8", (3,)), "feature_names": ("<U40000000", (2,))},
        {
            "X_data": ("<f8", (30_000_000,)),
            "X_indices": ("<i4", (30_000_000,)),
            "X_indptr": ("<i8", (11,)),
            "X_shape": ("<i8", (2,)),
            "y": ("|i1", (10,)),
        },
    ],
)
def test_packed_arrays_stay_within_the_stated_memory(tmp_path, arrays):
    path = bomb(tmp_path / "x.npz.gz", **arrays)
    assert path.stat().st_size < 10_000

    def attempt():
        try:
            for part in batches(path):
                assert part.X.shape[0]
        except ValueError:
            return

    assert peak(attempt) < STATED


@pytest.mark.parametrize("cell", [b",", b"a,", b"\t"])
def test_packed_headers_stay_within_the_stated_memory(file, cell):
    """Tens of MB of header in some KB: it did not end."""
    path = file("x.csv.gz", gzip.compress(cell * (50_000_000 // len(cell)) + b"\n1\n", 1))
    assert peak(lambda: refused(path)) < STATED


def test_one_long_label_does_not_widen_the_others(file):
    rows = ["1,a"] * 400_000 + [f"1,{'b' * 100_000}"]
    path = file("x.csv", "\n".join(["x,label", *rows]))
    assert peak(lambda: read(path)) < STATED
    assert set(read(path).y.tolist()) == {"a", "b" * 100_000}


# Pipes.


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("packed", [False, True])
def test_a_named_pipe_is_read_once(tmp_path, packed):
    path, raw = tmp_path / "pipe", b"".join(b"%d 1:%d\n" % (i % 2, i) for i in range(1, 5000))

    def opened(way):
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=[gzip.compress(raw) if packed else raw])
        writer.start()
        try:
            return way()
        finally:
            writer.join()
            path.unlink()

    assert opened(lambda: read(path)).X.sum() == sum(range(1, 5000))
    assert opened(lambda: sum(part.X.sum() for part in batches(path, 700))) == sum(range(1, 5000))
