"""Data files: the numbers that Python's `float` and pandas read, or one sentence."""

import gzip
import io

import numpy as np
import pandas as pd

from polyplane.readers import batches, read


def _decimal(rng):
    """A number as people and programs write it."""
    match rng.integers(6):
        case 0:
            return repr(float(rng.normal() * 10.0 ** rng.integers(-300, 300)))
        case 1:
            return str(rng.integers(-(2**62), 2**62))
        case 2:
            return f"{rng.integers(10**18)}{rng.integers(10**18)}e{rng.integers(-340, 270)}"
        case 3:
            return (
                f"{'+' if rng.random() < 0.5 else ''}{rng.integers(100)}.{'0' * rng.integers(30)}{rng.integers(1000)}"
            )
        case 4:
            return f".{rng.integers(1000)}E-{rng.integers(20)}"
        case _:
            return str(rng.integers(10))


def _label(rng):
    words = ["a", "b", "été", "a b", "0", "1", "-1", "1.0", "2", str(2**53), str(2**53 + 1), "日本"]
    return words[rng.integers(len(words))]


def csv(rng, folder):
    """A table, read here and by pandas and `float`."""
    n_rows, n_columns = int(rng.integers(1, 40)), int(rng.integers(1, 6))
    delimiter, end = str(rng.choice(list(",;\t|"))), str(rng.choice(["\n", "\r\n"]))
    cells = [[_decimal(rng) for _ in range(n_columns)] for _ in range(n_rows)]
    labels = [_label(rng) for _ in range(n_rows)]
    quoted = rng.random() < 0.3
    lines = [delimiter.join([*(f"c{j}" for j in range(n_columns)), "label"])]
    for row, label in zip(cells, labels, strict=True):
        lines.append(delimiter.join([*row, f'"{label}"' if quoted else label]))
    raw = (end.join(lines) + (end if rng.random() < 0.8 else "")).encode()
    path = folder / "x.csv"
    path.write_bytes(gzip.compress(raw) if rng.random() < 0.2 else raw)
    rows = read(path)
    assert rows.X.tolist() == [[float(cell) for cell in row] for row in cells]
    frame = pd.read_csv(
        io.BytesIO(raw), sep=delimiter, dtype={"label": str}, float_precision="round_trip", na_filter=False
    )
    assert np.array_equal(rows.X, frame.iloc[:, :-1].to_numpy(dtype=float))
    texts = frame["label"].str.strip().tolist()
    if rows.y.dtype.kind in "UO":
        assert rows.y.tolist() == texts
    else:  # equal numbers are one label, whatever their digits; no others are
        assert [float(label) for label in texts] == [float(label) for label in rows.y.tolist()]
        assert len(np.unique(rows.y)) == len({_number(label) for label in texts})
    parts = list(batches(path, int(rng.integers(1, 9)), labels="text"))
    assert np.array_equal(np.concatenate([part.X for part in parts]), rows.X)


def _number(text):
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def svmlight(rng, folder):
    """Sparse rows, read here and by `float`."""
    expected, lines = [], []
    for _ in range(rng.integers(1, 40)):
        indices = np.flatnonzero(rng.random(20) < 0.3) + 1
        values = [_decimal(rng) for _ in indices]
        order = rng.permutation(len(indices)) if rng.random() < 0.3 else range(len(indices))
        pairs = "  ".join(f"{indices[k]}:{values[k]}" for k in order)
        lines.append(f"{rng.integers(3)} {pairs}{'  # comment' if rng.random() < 0.2 else ''}")
        expected.append({int(j) - 1: float(value) for j, value in zip(indices, values, strict=True)})
    path = folder / "x.svm"
    path.write_text("\n".join(lines) + "\n")
    rows = read(path, n_features=20, zero_based=False)
    assert [
        dict(zip(rows.X[[i]].indices.tolist(), rows.X[[i]].data.tolist(), strict=True)) for i in range(len(lines))
    ] == expected


def text(rng, folder):
    """A text with some other characters: rows, or one sentence."""
    pieces = [
        b"a,b,label\n1,2,x\n3,4,y\n",
        b"+1 1:0.5 3:2\n-1 2:1e-3 # c\n",
        b"a\tlabel\n1\t2\n",
        b'a;"b";y\n1;"2";"q""r"\n',
    ]
    raw = bytearray(pieces[rng.integers(4)] * int(rng.integers(1, 5)))
    odd = [
        b"\r",
        b"\n",
        b'"',
        b",",
        b":",
        b"\x00",
        b"\xff",
        b"e",
        b"-",
        b"#",
        b"qid:1 ",
        b"nan",
        b"1" * 400,
        b" " * 3000,
        b"\xef\xbb\xbf",
    ]
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(raw) + 1))
        match rng.integers(3):
            case 0:
                raw[at : at + int(rng.integers(4))] = b""
            case 1:
                raw[at:at] = odd[rng.integers(len(odd))]
            case _:
                raw[at : at + 1] = bytes([rng.integers(256)])
    options = {
        "format": [None, "csv", "svmlight"][rng.integers(3)],
        "labels": ["auto", "ignore", "text"][rng.integers(3)],
    }
    _refused_or_rows(folder, ["x", "x.csv", "x.svm"][rng.integers(3)], bytes(raw), options)


def _refused_or_rows(folder, name, raw, options):
    path = folder / name
    path.write_bytes(raw)
    try:
        rows = read(path, **options)
    except ValueError as error:
        if "\n" in str(error):
            raise
        return
    assert np.isfinite(rows.X.data if hasattr(rows.X, "indptr") else rows.X).all()
    assert rows.y is None or len(rows.y) == rows.X.shape[0] == len(rows.lines)
