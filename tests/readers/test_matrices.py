"""Readers of tables and Parquet files, and where they read from: files, compressed or not, and pipes."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest
from scipy import sparse

from polyplane.readers import batches, read, source
from polyplane.readers import rows as rows_module
from tests.readers.helpers import read_bytes, refused

COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


# Tables.


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_tables(file, delimiter):
    lines = ["a, b ,class", "1, 2.5 ,x", '"3",-4e-1,"a ""b"" c"', "", "5,6,y"]
    path = file("x.csv", "\ufeff" + "\r\n".join(lines).replace(",", delimiter))
    rows = read(path)
    assert rows.X.tolist() == [[1, 2.5], [3, -0.4], [5, 6]]
    assert rows.y.tolist() == ["x", 'a "b" c', "y"]
    assert rows.feature_names == ("a", "b")
    assert rows.lines.tolist() == [2, 3, 5]


def test_the_label_column(file):
    path = file("x.csv", "p,q,r\n1,2,3\n4,5,6\n")
    assert read(path).y.tolist() == [3, 6]
    assert read(path, label="q").X.tolist() == [[1, 3], [4, 6]]
    assert read(path, label=0).y.tolist() == read(path, label="-3").y.tolist() == [1, 4]
    assert read(file("y.csv", "p,Target,r\n1,2,3\n")).y.tolist() == [2]
    assert "has no column 'z'; its columns are p, q, r" in refused(path, label="z")
    assert "index 3 is out of range" in refused(path, label=3)


def test_columns_are_matched_by_name(file):
    path = file("x.csv", "b,label,a\n1,2,3\n")
    rows = read(path, feature_names=["a", "b"])
    assert rows.X.tolist() == [[3, 1]]
    assert "has no column 'c', which the model requires" in refused(path, feature_names=["a", "b", "c"])
    assert read(path, feature_names=["a"]).X.tolist() == [[3]]  # others are ignored
    bare = read(file("y.csv", "b,a\n1,3\n"), feature_names=["a", "b"], labels="ignore")
    assert bare.X.tolist() == [[3, 1]]
    assert bare.y is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,,x", "line 3: column 'b' is empty"),
        ("1,NaN,x", "line 3, column 'b': the value 'NaN' is missing or infinite"),
        ("1,red,x", "line 3, column 'b': expected a number, found 'red'; encode text columns"),
        ("1,2", "line 3: fewer columns than the 3 of the header"),
        ("1,2,x,4", "line 3: more columns than the 3 of the header"),
        ('1,2,"x', "line 3: column 'label' has a quoted value that does not end"),
        ("1,2,", "line 3: the row has no label"),
        ("1,2\r3,x", "line 3, column 'b': expected a number, found '2\\r3'"),
        ("1,1e999,x", "line 3, column 'b': the number '1e999' is too large"),
    ],
)
def test_bad_table_lines(file, line, message):
    assert message in refused(file("x.csv", f"a,b,label\n1,2,x\n{line}\n1,2,x\n"))


def test_columns_that_are_not_wanted_may_be_empty(file):
    path = file("x.csv", "a,label\n" + "1,\n" * 5000)
    assert read(path, labels="ignore").X.ravel().tolist() == [1.0] * 5000


def test_bad_headers(file):
    assert "has no header" in refused(file("a.csv", "1,2,3\n4,5,6\n"))
    assert "'a' occurs twice" in refused(file("b.csv", "a,b,a\n1,2,3\n"))
    assert "no columns other than the label" in refused(file("c.csv", "label\n1\n"))


def test_parquet(file, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(**columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
        return tmp_path / "x.parquet"

    path = write(a=[1, 2, 3], label=["x", "y", "x"], b=[0.5, True, 2.0])
    rows = read(path)
    assert rows.X.tolist() == [[1, 0.5], [2, 1.0], [3, 2.0]]
    assert rows.y.tolist() == ["x", "y", "x"]
    packed = file("y.parquet.gz", gzip.compress(path.read_bytes()))
    assert read(packed).X.tolist() == rows.X.tolist()
    assert [part.X.shape[0] for part in batches(path, 2)] == [2, 1]
    assert "row 2, column 'a': the value is missing" in refused(write(a=[1, None], label=[0, 1]))
    assert "column 'a' is of type string; encode" in refused(write(a=["p", "q"], label=[0, 1]))
    assert "row 1: the row has no label" in refused(write(a=[1, 2], label=[None, 1]))
    assert "damaged" in refused(file("z.parquet", b"PAR1 and nothing more"))
    assert "but different content" in refused(file("w.parquet", "1 1:1\n"))


@pytest.mark.parametrize("name", ["x.npz", "x", "x.npy"])
def test_numpy_files_are_loaded_by_numpy(tmp_path, name):
    path = tmp_path / name
    with path.open("wb") as opened:
        np.save(opened, np.eye(2)) if name == "x.npy" else np.savez(opened, X=np.eye(2), y=np.arange(2))
    message = refused(path)
    assert f"{path} is a NumPy file or another archive, which is not read here: load it with numpy.load" in message
    assert "mmap_mode='r', and pass the arrays to fit" in message


# Sources.


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed_files_are_known_by_their_content(file, suffix):
    raw = b"1 1:2\n-1 2:3\n"
    path = file("x" + suffix, COMPRESSORS[suffix](raw))
    assert read(path).X.toarray().tolist() == [[2, 0], [0, 3]]
    assert read_bytes(COMPRESSORS[suffix](raw)).y.tolist() == [1, -1]
    if suffix:
        cut = file("cut" + suffix, COMPRESSORS[suffix](raw * 2000)[:-12])
        assert "is damaged" in refused(cut)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.svm", "", "is empty"),
        ("x.svm", "# nothing\n\n", "has no rows"),
        ("x.csv", "a,label\n", "has no rows"),
        ("x", "\n# nothing\n", "has no rows"),
        ("x", "hello world\n", "neither 'label index:value ...' (svmlight) nor a header"),
        ("x", b"\x7fELF\x00\x01", "neither text nor Parquet"),
    ],
)
def test_files_without_rows(file, name, content, message):
    path = file(name, content)
    assert message in refused(path)
    assert str(path) in refused(path)


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ("1 2:3\n", "svmlight"),
        ("2:3\n", "svmlight"),
        ("# c\n\n+1\n+1 1:2\n", "svmlight"),
        ("a b 1:2\n", None),
        ("only,names\n1,2\n", "csv"),
        ("p\tq\n1\t2\n", "csv"),
    ],
)
def test_texts_without_a_telling_name(file, content, format):
    path = file("x", content)
    if format is None:
        refused(path)
    else:
        assert read(path, labels="ignore").facts["format"] == format


def test_missing_files_and_wrong_options(tmp_path, file):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")
    path = file("x.svm", "1 1:1\n")
    for option in ({"format": "xml"}, {"labels": "none"}, {"zero_based": 2}, {"dtype": np.int32}):
        assert next(iter(option)) in refused(path, **option)
    with pytest.raises(ValueError, match="batch_size=0 must be 1 or more"):
        batches(path, 0)


def test_a_stream_has_the_rows_of_the_file_again_and_again(file, small_blocks):
    rng = np.random.default_rng(0)
    text = "".join(f"{i % 2} 1:{i} {rng.integers(2, 50)}:0.5\n" for i in range(5000))
    path = file("x.svm", text)
    whole = read(path)
    parts = batches(path, 700, n_features=50)
    for _ in range(2):
        found = list(parts)
        assert [part.X.shape[0] for part in found] == [700] * 7 + [100]
        assert abs(sparse.vstack([part.X for part in found])[:, : whole.X.shape[1]] - whole.X).nnz == 0
        assert np.concatenate([part.lines for part in found]).tolist() == list(range(1, 5001))


def test_a_long_line_needs_no_more_than_itself(file, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 1 << 16)
    row = " ".join(f"{j}:1" for j in range(1, 2000))
    assert read(file("x.svm", f"1 {row}\n0 1:1\n")).X.nnz == 2000
    assert "has a line of more than" in refused(file("y.svm", "1 1:" + "1" * 200_000))


def test_batches_of_wide_rows_are_smaller(file, monkeypatch):
    monkeypatch.setattr(rows_module, "MAX_BATCH_VALUES", 100)
    path = file("x.svm", ("1 " + " ".join(f"{j}:1" for j in range(1, 31)) + "\n") * 10)
    assert [part.X.shape[0] for part in batches(path, 8)] == [3, 3, 3, 1]
    table = file("x.csv", "a,b,c,label\n" + "1,2,3,0\n" * 70)
    assert [part.X.shape[0] for part in batches(table, 50)] == [33, 33, 4]


class Dribble(io.RawIOBase):
    """A pipe whose writer is slow: a few characters at a time."""

    def __init__(self, raw):
        self.raw = raw

    def readable(self):
        return True

    def readinto(self, buffer):
        n = min(3, len(buffer), len(self.raw))
        buffer[:n], self.raw = self.raw[:n], self.raw[n:]
        return n


def test_a_slow_pipe_is_waited_for(monkeypatch):
    pipe = io.BufferedReader(Dribble(b"first,second,label\n1,2,a\n3,4,b\n"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    assert [part.y.tolist() for part in batches("-")] == [["a", "b"]]
    assert not pipe.closed


def test_standard_input_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"1 1:1\n0 2:1\n"))))
    parts = batches("-", 1)
    assert len(list(parts)) == 2
    with pytest.raises(ValueError, match="only once"):
        list(parts)
