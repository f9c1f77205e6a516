"""`read_table` and `table_batches`: tables of all kinds of columns, from files of all formats."""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import closing
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from polyplane import TableEncoder
from polyplane.readers import read, read_table, table_batches

MIXED = 'name,age,city\n"Ann, B.",39,"Ur\nbana"\nBob,?,Öl\n"He said ""no""",41.5,\n'
FOUND = {"name": ["Ann, B.", "Bob", 'He said "no"'], "age": ["39", "?", "41.5"], "city": ["Ur\nbana", "Öl", ""]}


@pytest.fixture
def write(tmp_path):
    def write(content, name="x.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("packed", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_quotes_newlines_and_delimiters_are_read_plain_or_packed(write, packed, delimiter):
    rows = [f'"Ann, B."{delimiter}39{delimiter}"Ur\nbana"', f"Bob{delimiter}?{delimiter}Öl"]
    rows.append(f'"He said ""no"""{delimiter}41.5{delimiter}')
    text = "\n".join([delimiter.join(FOUND), *rows]) + "\n"
    assert read_table(write(packed(text.encode())), numbers=False).to_pydict() == FOUND


@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        (codecs.BOM_UTF8 + MIXED.encode(), None),
        (codecs.BOM_UTF8 + MIXED.encode(), "utf-8"),
        (MIXED.encode("latin-1"), "latin-1"),
        (MIXED.encode("utf-16"), None),
        (codecs.BOM_UTF16_BE + MIXED.encode("utf-16-be"), None),
        (MIXED.replace("\n", "\r\n").replace("Ur\r\n", "Ur\n").encode(), None),
        (b"\n\n" + MIXED.encode().rstrip(b"\n"), None),
    ],
)
def test_encodings_and_line_ends(write, raw, encoding):
    assert read_table(write(raw), encoding=encoding, numbers=False).to_pydict() == FOUND


def test_columns_of_numbers_become_numbers_and_others_stay_texts(write):
    rows = ["7, 1.5 ,007,1e3,x,yes,-3", "8,NA,010,.5,1,no,", "9,?,100,2.,2,yes,4"]
    table = read_table(write("\n".join(["whole,gaps,zip,real,mixed,flag,signed", *rows])))
    assert {field.name: str(field.type) for field in table.schema} == {
        "whole": "int64",
        "gaps": "string",  # a single value is a level
        "zip": "string",
        "real": "double",
        "mixed": "string",
        "flag": "string",
        "signed": "int64",
    }
    assert table.column("real").to_pylist() == [1000.0, 0.5, 2.0]
    assert table.column("signed").to_pylist() == [-3, None, 4]


def test_an_encoder_learns_the_same_from_numbers_as_from_their_texts(write):
    rng = np.random.default_rng(0)
    columns = {
        "id": [f"{i}.0" for i in range(200)],
        "real": [repr(v) for v in rng.normal(size=200).tolist()],
        "gaps": ["NA" if i % 7 == 0 else str(i % 5) for i in range(200)],
        "level": ["" if i % 2 else "1.0" for i in range(200)],
        "constant": ["2.50"] * 200,
        "plus": [f"+{i % 9}" for i in range(200)],
        "zip": [f"00{i % 3}" for i in range(200)],
    }
    path = write("\n".join([",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]))
    texts, numbers = read_table(path, numbers=False), read_table(path)
    assert texts.schema != numbers.schema
    expected, found = TableEncoder().fit(texts), TableEncoder().fit(numbers)
    assert found.to_dict() == expected.to_dict()
    assert list(found.dropped_) == ["id", "constant"]
    np.testing.assert_array_equal(found.transform(numbers), expected.transform(texts))


def test_only_plain_numbers_are_parsed_and_others_are_left_to_the_encoder(write):
    table = read_table(write("a;b;c\n1,5;2.5;x\n;3;y\n2,25;4;z\n"))
    assert [str(field.type) for field in table.schema] == ["string", "double", "string"]


def test_index_columns_of_pandas_are_left_out(write, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]}, index=[5, 9])
    for header in ("", "Unnamed: 0"):
        path = tmp_path / "i.csv"
        frame.to_csv(path, index_label=header)
        parts = table_batches(path)
        assert [part.column_names for part in parts] == [["a", "b"]]
        assert parts.index == (header,)
        assert read_table(path, keep_index=True).column(header).to_pylist() == [5, 9]
    frame.to_parquet(tmp_path / "i.parquet")
    assert read_table(tmp_path / "i.parquet").to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    frame.set_index("a").to_parquet(tmp_path / "named.parquet")  # an index with a name is a column like others
    assert "b" in read_table(tmp_path / "named.parquet").column_names
    assert read_table(write("a,,c,\n1,2,3,\n")).column_names == ["a", "Unnamed: 1", "c", "Unnamed: 3"]


def test_parquet_keeps_its_types_in_parts_and_by_column(tmp_path):
    table = pa.table({"n": [1, None, 3], "t": pa.array(["a", "b", None]).dictionary_encode(), "f": [True, False, None]})
    path = tmp_path / "x.parquet"
    parquet.write_table(table, path, row_group_size=2)
    assert read_table(path).to_pydict() == table.to_pydict()
    parts = list(table_batches(path, 1, columns=["f", "n", "other"]))
    assert [part.to_pydict() for part in parts] == [
        {"n": [n], "f": [f]} for n, f in ((1, True), (None, False), (3, None))
    ]
    parquet.write_table(pa.table({"n": [1], "parts": [[1, 2]]}), path)
    with pytest.raises(ValueError, match=r"column 'parts' has the unsupported type list<.*numbers, text"):
        read_table(path)
    packed = tmp_path / "x.parquet.gz"
    parquet.write_table(table, path)
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_table(packed).num_rows == 3


@pytest.mark.parametrize("codes", [pa.uint8(), pa.uint32(), pa.uint64(), pa.int16()])
def test_levels_may_have_codes_of_any_integers(tmp_path, codes):
    """Those of Polars and DuckDB are unsigned."""
    levels = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1] * 20, codes), pa.array(["a", "b"]))
    parquet.write_table(pa.table({"t": levels, "n": range(80)}), tmp_path / "x.parquet")
    encoded = TableEncoder().fit_transform(read_table(tmp_path / "x.parquet"))
    plain = TableEncoder().fit_transform(pa.table({"t": levels.cast(pa.string()), "n": range(80)}))
    np.testing.assert_array_equal(encoded, plain)


def test_parts_have_the_rows_of_the_whole_in_bounded_memory(write):
    lines = [f'{i},"row\n{i}"' for i in range(1000)]
    path = write("\n".join(["i,text", *lines]))
    parts = table_batches(path, 300)
    assert [len(part) for part in parts] == [300, 300, 300, 100]
    assert [part.column("i")[0].as_py() for part in parts] == ["0", "300", "600", "900"]  # again
    reading = "\n".join(
        [
            "import sys, resource",
            "from polyplane.readers import table_batches",
            "next(iter(table_batches(sys.argv[1])))",
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss",
            "n = sum(len(part) for part in table_batches(sys.argv[2]))",
            "print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)",
        ]
    )
    row = b"some text of a hundred characters," * 3 + b"0.123456\n"
    long = write(b"a,b,c,d\n" + row * 1_000_000, "long.csv")  # 110 MB
    out = subprocess.run([sys.executable, "-c", reading, path, long], capture_output=True, text=True, check=True).stdout
    long.unlink()
    n_rows, kilobytes = map(int, out.split())
    assert n_rows == 1_000_000
    assert kilobytes < 60_000


def test_pipes_are_read_once_and_in_parts(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(gzip.compress(MIXED.encode()),))
    writer.start()
    parts = table_batches(pipe)
    assert [part.to_pydict() for part in parts] == [FOUND]
    writer.join()
    with pytest.raises(ValueError, match="can be read only once"):
        list(parts)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n3\n")))
    with pytest.raises(ValueError, match=r"standard input, row 1 \(from 0\): fewer columns than the 2 of the header"):
        list(table_batches("-"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="Standard input is closed"):
        read_table("-")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "x.csv is empty."),
        ("\n\n", "x.csv is empty."),
        ('a,b\n"x\ny",1\n\n2\n', "x.csv, line 5: fewer columns than the 2 of the header."),
        ("a,b\n1,2\n1,2,3\n", "x.csv, line 3: more columns than the 2 of the header."),
        ('a,b\n1,2\n3,"x\n5,6\n', "x.csv, line 3: a closing quotation mark is missing."),
        ('a,b\n1,2\n"x,3\n5,6\n', "x.csv, line 3: a closing quotation mark is missing."),
        ('a,b\n1,"' + "x\n" * 3_000_000, "x.csv, line 2: a closing quotation mark is missing."),
        ('a,b\n1,"' + "x\n" * 9_000_000, "x.csv, line 2: a row of more than 4 MB starts here"),
        ("a,b,a\n1,2,3\n", "x.csv: the column 'a' occurs twice in the header."),
        ("1,2\n3,4\n", "x.csv has no header: the first line must contain the column names, not numbers."),
        (b"a,b\n1,2\n\n3,\xe9\n", "x.csv, line 4: byte 0xe9 is not UTF-8; specify the encoding of the file"),
        (
            b"a,b\n" + b"1,2\n" * 99_999 + b"3,\x00\n",
            "x.csv, line 100001: the file contains a zero byte, so it is not a text file.",
        ),
        (bytes(range(256)), "x.csv is neither text nor Parquet."),
        (b"PAR1 no", "x.csv is not a Parquet file, or is damaged"),
        (gzip.compress(MIXED.encode() * 99, mtime=0)[:100], "x.csv is damaged"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_its_line(write, content, sentence):
    path = write(content)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        read_table(path)


CELLS = ["", "a", "é日", "1.5", "007", " x ", "?", 'q"q', "c,c", "n\nn", "r\r\nr", ";", "\t", "|", "'", '"', "\u2028"]


@pytest.mark.parametrize("seed", range(24))
def test_what_pythons_writer_writes_is_read_as_it_was(write, seed):
    """Random cells, delimiters, quoting, line ends and encodings; and some bytes changed, never a crash."""
    rng = np.random.default_rng(seed)
    n_columns, text = int(rng.integers(2, 6)), io.StringIO(newline="")
    rows = [[CELLS[i] for i in rng.integers(len(CELLS), size=n_columns)] for _ in range(rng.integers(30))]
    rows = [row for row in rows if any(row)]
    writer = csv.writer(
        text,
        delimiter=",;\t|"[rng.integers(4)],
        lineterminator=["\n", "\r\n"][rng.integers(2)],
        quoting=[csv.QUOTE_MINIMAL, csv.QUOTE_ALL][rng.integers(2)],
    )
    writer.writerows([[f"c{j}" for j in range(n_columns)], *rows])
    raw = bytearray(text.getvalue().encode(["utf-8", "utf-8-sig", "utf-16"][rng.integers(3)]))
    found = read_table(write(bytes(raw)), numbers=False).to_pydict()
    assert [list(row) for row in zip(*found.values(), strict=True)] == rows
    raw[rng.integers(len(raw))] = rng.integers(256)
    with contextlib.suppress(ValueError):
        list(table_batches(write(bytes(raw)), 7))


def test_wide_tables_are_read_in_time(write):
    path = write("\n".join([",".join(f"c{j}" for j in range(5000)), *[",".join(["1.5", "2"] * 2500)] * 3, "3," * 4999]))
    began = time.process_time()
    assert read_table(path).num_columns == 5000
    assert time.process_time() - began < 2.0


def test_wrong_parameters_are_refused(write):
    path = write(MIXED)
    for wrong, match in (
        ({"encoding": "klingon"}, "encoding='klingon' is not a known encoding"),
        ({"encoding": "rot13"}, "encoding='rot13' is not a known encoding"),
        ({"format": "npz"}, "format='npz' must be one of"),
        ({"columns": ["size"]}, "has none of the requested columns; its columns are name, age, city"),
    ):
        with pytest.raises(ValueError, match=match):
            read_table(path, **wrong)
    with pytest.raises(ValueError, match="batch_size=0"):
        table_batches(path, 0)
    svm = write("1 1:2\n-1 1:3\n", "x.svm")
    with pytest.raises(ValueError, match="in svmlight format; tables are read from CSV, TSV, Parquet, Arrow"):
        read_table(svm)
    with pytest.raises(OSError, match="directory"):
        read_table(path.parent)


def test_a_header_without_rows_is_a_table_without_rows(write):
    table = read_table(write("a,b\n"))
    assert table.column_names == ["a", "b"]
    assert len(table) == 0


def test_without_arrow_the_error_names_the_extra(write, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "polyplane\[tables\]"'):
        read_table(write(MIXED))


class TestOtherFormats:
    ROWS = (
        {"kind": "a", "size": 1.5, "n": 3, "day": datetime(2024, 5, 31), "on": True},
        {"kind": None, "size": None, "n": -4, "day": None, "on": False},
        {"kind": "b", "size": 2.0, "n": 2**40, "day": datetime(2024, 6, 1, 17, 30), "on": True},
    )

    @pytest.fixture
    def table(self):
        return pa.Table.from_pylist(list(self.ROWS))

    def check(self, found, table):
        assert [str(field.type) for field in found.schema] == ["string", "double", "int64", "timestamp[us]", "bool"]
        assert found.to_pylist() == table.to_pylist()

    @pytest.mark.parametrize("compression", ["", ".gz"])
    def test_arrow(self, table, tmp_path, compression):
        path = tmp_path / "x.feather"
        feather.write_feather(table, path)
        if compression:
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
        self.check(read_table(f"{path}{compression}"), table)
        path.write_bytes(path.read_bytes()[:50])
        with pytest.raises(ValueError, match="is not an Arrow file, or is damaged"):
            read_table(path)

    def test_excel(self, table, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")
        path, book = tmp_path / "x.xlsx", openpyxl.Workbook()
        for row in ([None], [*self.ROWS[0]], *([*row.values()] for row in self.ROWS)):
            book.active.append(row)
        book.create_sheet("more").append(["a", ""])
        book["more"].append([1, "x"])
        book["more"].append(["one", 2])
        book.save(path)
        self.check(read_table(path), table)
        assert read_table(path, table="more").to_pydict() == {"a": ["1", "one"], "Unnamed: 1": ["x", "2"]}
        with pytest.raises(ValueError, match=r"it has no sheet 'less'; its sheets are Sheet, more"):
            read_table(path, table="less")
        path.write_bytes(path.read_bytes()[:500])
        with pytest.raises(ValueError, match="cannot be read as an Excel file"):
            read_table(path)
        path.write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match="has the extension of an Excel file, but different content"):
            read_table(path)

    def test_an_excel_file_that_grows_is_refused(self, tmp_path):
        pytest.importorskip("openpyxl")
        with zipfile.ZipFile(tmp_path / "x.xlsx", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a", "w") as file:
            for _ in range(600):
                file.write(bytes(1 << 20))
        with pytest.raises(ValueError, match="has more than 512 MB: convert it to Parquet"):
            read_table(tmp_path / "x.xlsx")

    @pytest.mark.parametrize("form", ["rows", "columns", "lines"])
    def test_json(self, tmp_path, form):
        rows = [{"a": 1, "b": "x"}, {"a": None, "b": "y", "c": 2.5}, {"a": 3, "b": 1e400, "c": 1}]
        rows[2]["b"] = 7
        texts = {
            "rows": json.dumps(rows, indent=1),
            "columns": json.dumps({name: [row.get(name) for row in rows] for name in "abc"}),
            "lines": "\n".join(map(json.dumps, rows)),
        }
        path = tmp_path / ("x.jsonl" if form == "lines" else "x.json")
        path.write_text(texts[form])
        assert read_table(path).to_pydict() == {"a": [1, None, 3], "b": ["x", "y", "7"], "c": [None, 2.5, 1.0]}

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ("[1, 2]", "is no table: it must be a list of rows"),
            ('{"a": [1], "b": [1, 2]}', "is no table"),
            ("{", "is not JSON"),
            ("[" * 100_000, "is not JSON"),
            ('[{"a": [1]}]', "Column 'a' contains lists or objects"),
        ],
    )
    def test_what_is_no_table_in_json_is_refused(self, tmp_path, text, match):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match=match):
            read_table(tmp_path / "x.json")

    def test_sqlite(self, tmp_path):
        path = tmp_path / "x.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute('CREATE TABLE "my ""own""" (a INTEGER, b TEXT)')
            database.executemany('INSERT INTO "my ""own""" VALUES (?, ?)', [(1, "x"), (None, "y"), ("3", None)])
        before = path.read_bytes()
        assert read_table(path).to_pydict() == {"a": [1, None, 3], "b": ["x", "y", None]}
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE other AS SELECT 5 AS c")
        assert read_table(path, table="other").to_pydict() == {"c": [5]}
        with pytest.raises(ValueError, match=r'has 2 tables: my "own", other; give one of them as `table`'):
            read_table(path)
        with pytest.raises(ValueError, match="has no table 'none': my"):
            read_table(path, table="none")
        path.write_bytes(before[:3000])
        with pytest.raises(ValueError, match="cannot be read by SQLite"):
            read_table(path)

    def test_booleans_of_sqlite(self, tmp_path):
        path = tmp_path / "x.db"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE rows (paid BOOLEAN, other bool, count INTEGER)")
            database.executemany("INSERT INTO rows VALUES (?, ?, ?)", [(True, 2, 1), (None, 0, 0), (False, 1, 1)])
        found = read_table(path).to_pydict()
        assert found == {"paid": [True, None, False], "other": [2, 0, 1], "count": [1, 0, 1]}
        assert [type(value) for value in found["count"]] == [int] * 3
        assert found["paid"][0] is True

    def test_duckdb(self, table, tmp_path):
        duckdb = pytest.importorskip("duckdb")
        path = tmp_path / "x.duckdb"
        with closing(duckdb.connect(str(path))) as database:
            database.register("given", table)
            database.execute("CREATE TABLE rows AS SELECT * FROM given")
        self.check(read_table(path), table)
        path.write_bytes(path.read_bytes()[:3000])
        with pytest.raises(ValueError, match="cannot be read by DuckDB"):
            read_table(path)

    def test_matrices_are_not_read_from_them(self, tmp_path):
        (tmp_path / "x.json").write_text('[{"a": 1, "y": 0}]')
        with pytest.raises(ValueError, match="is in json format; matrices are read from svmlight, csv, parquet files"):
            read(tmp_path / "x.json")


def test_a_negative_zero_among_integers_keeps_its_sign(tmp_path):
    """A column that is declared a category would have another level than in a data frame."""
    (tmp_path / "x.csv").write_text("a,b\n-0,1\n7,2\n")
    table = read_table(tmp_path / "x.csv")
    assert table.to_pydict() == {"a": ["-0", "7"], "b": [1, 2]}
    assert TableEncoder(min_rows=1).fit_transform(table).tolist() == [[0.0, 1.0], [7.0, 2.0]]
    assert "a = -0" in TableEncoder(kinds={"a": "category"}, min_rows=1).fit(table).get_feature_names_out()
