"""Data files that are wrong, or were made to do harm: one sentence, in little time and memory."""

import gzip
import os
import threading
import time
import tracemalloc

import numpy as np
import pytest

from polyplane.readers import batches, read, read_table, table_batches
from tests.readers.helpers import refused

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


def test_fractions_and_wide_labels_in_different_parts_of_a_file(file, small_blocks):
    rows = ["1,0.5"] * 1000 + [f"1,{2**53 + 1}"] * 1000
    assert "beyond 2**53" in refused(file("x.csv", "\n".join(["a,label", *rows])), labels="number")


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
    began = time.process_time()
    function(*arguments, **options)
    return time.process_time() - began


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


#: What SECURITY.md states for the parts of a file.
STATED = 1 << 29


@pytest.mark.parametrize("cell", [b",", b"a,", b"\t"])
def test_packed_headers_stay_within_the_stated_memory(file, cell):
    """Tens of MB of header in some KB: it did not end."""
    path = file("x.csv.gz", gzip.compress(cell * (50_000_000 // len(cell)) + b"\n1\n", 1))
    assert peak(lambda: refused(path)) < STATED


@pytest.mark.parametrize("name", ["x.csv", "x.tsv"])
def test_a_long_header_is_read_or_refused_by_both_readers(file, name):
    """Longer than a block of 4 MB, with a quoted name over two lines; and longer than the maximum."""
    pytest.importorskip("pyarrow")
    cell = "\t" if name == "x.tsv" else ","
    names = [f"c{j:079d}" for j in range(60_000)]
    path = file(name, cell.join([*names, '"two\nlines"', "label"]) + "\n" + cell.join(["1"] * 60_002) + "\n")
    assert read_table(path, numbers=False).column_names == [*names, "two\nlines", "label"]
    path = file(name, cell.join([*names, "label"]) + "\n" + cell.join(["1"] * 60_001) + "\n")
    assert read(path).feature_names == tuple(names)
    path = file(name, cell.join(name * 4 for name in names) + "\n1\n")
    for reader in (read, read_table):
        with pytest.raises(ValueError, match="a header of more than 16 MB, the maximum"):
            reader(path)


def test_a_long_line_of_a_table_is_refused_in_bounded_memory(file):
    pytest.importorskip("pyarrow")
    path = file("x.csv.gz", gzip.compress(b"a,b\n1,2\n" + b"1," * 100_000_000, 1))

    def attempt():
        with pytest.raises(ValueError, match="line 3: a row of more than 4 MB starts here"):
            list(table_batches(path))

    assert peak(attempt) < STATED // 2


def test_long_labels(file):
    """One has a maximum length, and batches of many are smaller."""
    path = file("x.svm", "a 1:1\n" + "b" * 2_000_000 + " 1:1\n")
    assert "line 2: the label has more than 1 MB, the maximum" in refused(path)
    path = file("x.svm", "".join(f"{'b' * 900_000}{i} 1:1\n" for i in range(60)))

    def sizes():
        return [sum(map(len, part.y)) for part in batches(path)]

    assert peak(sizes) < STATED // 2
    assert sum(sizes()) == 60 * 900_000 + 110


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


def test_no_cell_marks_the_end_of_a_table(file):
    """Arrow does not notice an open quotation mark, so the reader adds a last row, which no row of a file may equal."""
    n_rows = 300_000  # in blocks of 4 MB, all of which end in such a row
    table = read_table(file("x.csv", "a,b\n" + "\x1fend of the rows\x1f,1\n" * n_rows))
    assert (table.num_rows, table.column("a").unique().to_pylist()) == (n_rows, ["\x1fend of the rows\x1f"])


def test_labels_that_look_alike_stay_apart(file, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    labels = ["a", "a\0", "a\0\0", "a\u00a0b", "a b", "1", "01", "\uff11"]
    table = pytest.importorskip("pyarrow").table({"x": np.arange(8.0), "label": labels})
    parquet.write_table(table, tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet").y.tolist() == labels
    assert read(file("x.csv", "x,label\n" + "".join(f"1,{cell}\n" for cell in labels[3:]))).y.tolist() == labels[3:]
    numbers = file("y.csv", "x,label\n1,1\n1,01\n1,+1\n1,1.0\n")
    assert read(numbers).y.tolist() == [1, 1, 1, 1]
    assert read(numbers, labels="text").y.tolist() == ["1", "01", "+1", "1.0"]
