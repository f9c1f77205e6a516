"""Readers of data files: the numbers that `float` gives, and a sentence with a line number for what is wrong."""

import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from polyplane.readers import batches, read
from polyplane.readers import text as text_reader
from tests.readers.helpers import read_bytes, refused

# Numbers.

decimals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6, width=32).map(lambda value: f"{value:.16g}"),
    st.tuples(st.integers(0, 10**19), st.integers(-330, 310)).map(lambda parts: f"{parts[0]}e{parts[1]}"),
    st.tuples(st.integers(0, 10**24), st.integers(0, 24)).map(lambda parts: f"{parts[0] / 10 ** parts[1]:.25f}"),
    st.from_regex(r"[+-]?([0-9]{1,25}\.[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True),
)


@pytest.fixture(autouse=True, params=["kernel", "plain"])
def way(request, monkeypatch):
    """All tests are run with the kernel alone, and with short texts read by plain Python where that can."""
    if request.param == "kernel":
        monkeypatch.setattr(text_reader, "SMALL_TEXT_BYTES", 0)


@given(st.lists(decimals.filter(lambda text: np.isfinite(float(text))), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_numbers_are_those_of_float(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("numbers") / "x.svm"
    path.write_text("".join(f"1 {i + 1}:{text}\n" for i, text in enumerate(texts)))
    found = read(path).X.data
    assert found.tobytes() == np.array([float(text) for text in texts]).tobytes()
    path = path.with_suffix(".csv")
    path.write_text("x,label\n" + "".join(f"{text},a\n" for text in texts))
    assert read(path).X.ravel().tobytes() == found.tobytes()


def test_numbers_between_two_floats_are_rounded_as_float_does():
    """Half-way cases and their neighbours, which decide whether rounding is right to the last bit."""
    rng = np.random.default_rng(0)
    exact = rng.integers(2**52, 2**53, 2000).tolist()
    texts = [str(2 * n + 1 + d) for n in exact for d in (-1, 0, 1)] + [f"{n}.5" for n in exact if n < 10**16]
    raw = "".join(f"1 1:{text}\n" for text in texts).encode()
    found = read_bytes(raw).X.data
    assert found.tolist() == [float(text) for text in texts]


def test_float32_is_the_rounded_float64(file):
    path = file("x.svm", "1 1:0.1 2:16777217\n0 1:1e-50\n")
    rows = read(path, dtype=np.float32)
    assert rows.X.dtype == np.float32
    assert rows.X.data.tolist() == np.array([0.1, 16777217.0, 1e-50]).astype(np.float32).tolist()


# svmlight.


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_svmlight_files_are_read_as_scikit_learn_does(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rng.integers(1, 50), rng.integers(1, 40)))
    X[rng.random(X.shape) < 0.7] = 0.0
    X[0, 0] = 1.0
    y = rng.integers(-1, 3, X.shape[0])
    path = tmp_path_factory.mktemp("svmlight") / "x.txt"
    dump_svmlight_file(sparse.csr_matrix(X), y, str(path), zero_based=bool(seed % 2), comment="made")
    theirs, labels = load_svmlight_file(str(path))
    rows = read(path)
    assert abs(rows.X - theirs).nnz == 0
    assert rows.X.has_canonical_format
    assert (rows.y == labels).all()
    assert rows.y.dtype == np.int64
    assert rows.facts == {"format": "svmlight", "zero_based": bool(seed % 2)}


def test_svmlight_oddities(file):
    text = (
        "# a comment\r\n\r\n+1 qid:7 3:1 1:2.5 # unsorted\r\n  -1\t2:.5\t\r\n1\r\n-1 1:+1E2#c\n"
        "1 4:-0.0"  # no newline at the end
    )
    rows = read(file("x", text))
    assert rows.X.toarray().tolist() == [[2.5, 0, 1, 0], [0, 0.5, 0, 0], [0, 0, 0, 0], [100, 0, 0, 0], [0, 0, 0, 0]]
    assert rows.y.tolist() == [1, -1, 1, -1, 1]
    assert rows.lines.tolist() == [3, 4, 5, 6, 7]


def test_unsorted_rows_keep_their_hard_numbers(file):
    long = "0." + "1" * 40
    rows = read(file("x.svm", f"1 9:2 4:{long} 7:3 1:{long}5\n"))
    assert rows.X.data.tolist() == [float(f"{long}5"), float(long), 3.0, 2.0]
    n = 2000
    order = np.random.default_rng(0).permutation(n)
    rows = read(file("y.svm", "1 " + " ".join(f"{j + 1}:{j}" for j in order) + "\n"))
    assert rows.X.data.tolist() == list(range(n))


def test_labels_are_numbers_where_all_are_and_text_otherwise(file, small_blocks):
    assert read(file("a.svm", "1 1:1\n2.5 1:1\n")).y.tolist() == [1.0, 2.5]
    assert read(file("b.svm", "yes 1:1\nno 1:1\n")).y.tolist() == ["yes", "no"]
    mixed = file("c.svm", "1 1:1\n" * 2_000 + "b-side 1:1\n")  # in another block than the first
    assert set(read(mixed).y) == {"1", "b-side"}
    with pytest.raises(ValueError, match=r"line 2001: the label 'b-side' is not a number"):
        list(batches(mixed))
    assert read(file("d.svm", "1:1\n2 2:1\n"), labels="ignore").y is None
    assert "line 1: the row has no label" in refused(file("e.svm", "1:1\n2 2:1\n"))


def test_where_indices_begin(file, small_blocks):
    path = file("x.svm", "1 1:1\n0 0:1 2:1\n")
    assert read(path).X.shape == (2, 3)
    assert "line 2: feature index 0" in refused(path, zero_based=False)
    assert read(file("y.svm", "1 1:1\n"), zero_based=True).X.shape == (1, 2)
    late = file("z.svm", "1 1:1\n" * 2_000 + "0 0:1\n")
    assert read(late).X.shape == (2_001, 2)
    with pytest.raises(ValueError, match=r"line 2001: feature index 0"):
        list(batches(late, None))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2:3 x", "expected index:value, found 'x'"),
        ("1 2", "expected index:value, found '2'"),
        ("1 -2:3", "expected index:value, found '-2:3'"),
        ("1 2:", "expected a number, found nothing"),
        ("1 2:x", "expected a number, found 'x'"),
        ("1 2:1.5.2", "expected a number, found '1.5.2'"),
        ("1 2:1_0", "expected a number, found '1_0'"),
        ("1 2:1e", "expected a number, found '1e'"),
        ("1 2:nan", "the value 'nan' is missing or infinite"),
        ("1 2:-inf", "the value '-inf' is missing or infinite"),
        ("1 2:1e999", "the number '1e999' is too large"),
        ("1 2:3 2:4", "duplicate feature index"),
        ("1 99999999999:1", "feature index 99999999999 is too large"),
        ("1 99999999999999999999999:1", "is too large"),
    ],
)
def test_bad_svmlight_lines(file, line, message):
    path = file("x.svm", f"1 1:1\n# comment\n{line}\n1 1:1\n")
    said = refused(path)
    assert f"{path}, line 3: " in said
    assert message in said


def test_a_feature_beyond_those_expected(file):
    path = file("x.svm", "1 1:1\n1 5:1\n")
    assert "line 2: feature index 5 is out of range: 4 features are expected" in refused(path, n_features=4)
    assert read(path, n_features=9).X.shape == (2, 9)
    zero = file("y.svm", "1 0:1\n1 4:1\n")
    assert "line 2: feature index 4 is out of range: 4 features are expected" in refused(zero, n_features=4)


@given(st.text(st.sampled_from('01 :.e-+#q\t\r\n"x,'), max_size=200))
@settings(max_examples=120, deadline=None)
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("any")
    for name, start in (("x.svm", ""), ("x.csv", "a,b\n")):
        (folder / name).write_bytes((start + text).encode())
        for labels in ("auto", "ignore"):
            with suppress(ValueError):
                rows = read(folder / name, labels=labels)
                assert len(rows.lines) == rows.X.shape[0] > 0
                assert np.isfinite(rows.X.data if name == "x.svm" else rows.X).all()


words = ["1:2", "2:0.5", "3:-1e-3", "4:nan", "0:7", "x", "qid:3", "5:1e999", "2:.5#c", "6:1_0", "9999999999:1", "\r"]
labels = ["1", "-1", "+2.5", "a", "", "1e400"]
rows_of_text = st.lists(
    st.tuples(st.sampled_from(labels), st.lists(st.sampled_from(words), max_size=5)), max_size=6
).map(lambda rows: "\n".join(" ".join([label, *pairs]) for label, pairs in rows))


cells = ["1", "-2.5", " 3 ", "", "x", "nan", '"4"', '"a ""b"""', '"5', "1e999", "6\r", "0." + "1" * 30]
tables = st.lists(st.lists(st.sampled_from(cells), min_size=2, max_size=3), max_size=5).map(
    lambda rows: "\n".join(["a,b", *(",".join(row) for row in rows)])
)


@given(st.one_of(rows_of_text.map(lambda text: ("x.svm", text)), tables.map(lambda text: ("x.csv", text))))
@settings(max_examples=200, deadline=None)
def test_short_texts_are_read_alike_by_both_ways(tmp_path_factory, name_and_text):
    name, text = name_and_text
    path = tmp_path_factory.mktemp("ways") / name
    path.write_bytes(text.encode())
    outcomes = []
    for limit in (0, 1 << 16):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_reader, "SMALL_TEXT_BYTES", limit)
            try:
                rows = read(path)
            except ValueError as error:
                outcomes.append(str(error))
            else:
                X = rows.X.toarray() if name == "x.svm" else rows.X
                outcomes.append((X.tolist(), rows.y.tolist(), rows.lines.tolist(), rows.facts))
    assert outcomes[0] == outcomes[1]


def test_short_texts_need_no_numba(tmp_path):
    """What takes a second to import is imported for long texts alone."""
    (tmp_path / "x.svm").write_text("1 1:2\n-1 2:3\n")
    (tmp_path / "x.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    code = "import sys; from polyplane.readers import read; read('x.svm'); read('x.csv'); print('numba' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout == "False\n"
