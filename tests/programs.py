"""Exported programs, run: C by gcc, JavaScript by node and Chromium, SQL by SQLite, DuckDB and PostgreSQL."""

import atexit
import ctypes
import functools
import itertools
import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest

from polyplane import Model
from polyplane.exports import to_c, to_javascript, to_sql

COUNT = itertools.count()
#: The column that says which row is which.
KEY = 'the "number" of the row'
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]


def classes_of(model):
    return Model.of(model).classes


def needed(program):
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def plain(value):
    """A cell in the types of JSON: None for a gap."""
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if isinstance(value, np.generic) else str(value) if isinstance(value, pd.Timestamp) else value


def cells(frame):
    """The rows of a data frame as lists."""
    return [[plain(value) for value in row] for row in frame.itertuples(index=False, name=None)]


class Outcome:
    """Labels, scores and probabilities (None where there are none) of some rows."""

    def __init__(self, labels, scores, probabilities):
        self.labels, self.scores = list(labels), np.array(scores, dtype=float)
        self.probabilities = None if probabilities is None else np.array(probabilities, dtype=float)


def run_c(model, X, folder, dtype=None, name="model", flags=("-O1",)):
    """Predict rows, a matrix for learners and a data frame for tables, by compiled C."""
    gcc, text = needed("gcc"), to_c(model, dtype, name=name)
    source, library = folder / f"{name}.c", folder / f"{name}_{next(COUNT)}.so"  # one that is loaded must stay
    source.write_text(text, encoding="utf-8")
    subprocess.run([gcc, *FLAGS, *flags, "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    predict = getattr(loaded, f"{name}_predict")
    has_probabilities = "*probabilities" in text
    real = ctypes.c_double if "double *scores" in text else ctypes.c_float
    n_classes = len(classes_of(model))
    scores, probabilities = (real * n_classes)(), (real * n_classes)()
    fields = re.findall(r"^    (double |const char \*)(\w+); ", text, flags=re.MULTILINE)
    given = rows_in_c(used_columns(model, X, is_struct=bool(fields)), fields, real)
    winners, all_scores, all_probabilities = [], [], []
    for row in given:
        winners.append(predict(row, scores, *([probabilities] if has_probabilities else [])))
        all_scores.append(list(scores))
        all_probabilities.append(list(probabilities))
    labels = [None if winner < 0 else classes_of(model)[winner] for winner in winners]
    return Outcome(labels, all_scores, all_probabilities if has_probabilities else None)


def used_columns(model, X, is_struct):
    """A table without the columns that its model does not use."""
    if not is_struct:
        return X
    if not isinstance(X, pd.DataFrame):
        return as_frame(model, X).iloc[:, np.unique(Model.of(model).features.source)]
    return X.rename(columns=str)[[column.name for column in Model.of(model).inputs.columns]]


def rows_in_c(X, fields, real):
    if not isinstance(X, pd.DataFrame):
        return [(real * len(row))(*row) for row in X.tolist()]
    kinds = {"double ": ctypes.c_double, "const char *": ctypes.c_char_p}
    struct = type("Row", (ctypes.Structure,), {"_fields_": [(name, kinds[kind]) for kind, name in fields]})

    def cell(value, kind):
        if kind == "double ":
            return math.nan if value is None else float(value)
        return None if value is None else str(value).encode()

    kinds = [kind for kind, _ in fields]
    return [
        ctypes.byref(struct(*(cell(value, kind) for value, kind in zip(row, kinds, strict=True)))) for row in cells(X)
    ]


PREDICT = """
const results = rows.map((row) => {
  try {
    return predict(names === null ? row : Object.fromEntries(names.map((name, j) => [name, row[j]])));
  } catch (error) {
    return {error: error.message};
  }
});
"""
NODE = f"""
import {{predict}} from "./model.mjs";
import {{readFileSync, writeFileSync}} from "node:fs";
const {{names, rows}} = JSON.parse(readFileSync("rows.json", "utf8"));
{PREDICT}
writeFileSync("results.json", JSON.stringify(results));
"""


def rows_as_json(X):
    """Rows for JavaScript, and the names of their columns where they have some."""
    names = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else None
    return json.dumps({"names": names, "rows": cells(X if isinstance(X, pd.DataFrame) else pd.DataFrame(X))})


def run_node(model, X, folder, dtype=None):
    """Predict rows by node."""
    node = needed("node")
    (folder / "rows.json").write_text(rows_as_json(X), encoding="utf-8")
    (folder / "model.mjs").write_text(to_javascript(model, dtype), encoding="utf-8")
    (folder / "main.mjs").write_text(NODE)
    subprocess.run([node, "main.mjs"], cwd=folder, check=True)
    return from_javascript(json.loads((folder / "results.json").read_text(encoding="utf-8")))


PAGE = f"""<!doctype html>
<meta charset="utf-8">
<script type="module">
import {{predict}} from "./model.js";
const {{names, rows}} = await (await fetch("rows.json")).json();
{PREDICT}
window.results = results;
</script>
"""


@contextmanager
def opened_chromium():
    """Chromium, at most once at a time in a process; skips where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
    if chromium is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def run_chromium(browser, model, X, dtype=None):
    """Predict rows by a page in Chromium that imports the module."""
    files = {
        "/": ("text/html", PAGE),
        "/model.js": ("text/javascript", to_javascript(model, dtype)),
        "/rows.json": ("application/json", rows_as_json(X)),
    }

    def answer(route):
        kind, body = files.get(urlsplit(route.request.url).path, ("text/plain", ""))
        route.fulfill(body=body, content_type=f"{kind}; charset=utf-8")

    page = browser.new_page()
    page.route("**/*", answer)
    page.goto("http://model.test/")
    page.wait_for_function("window.results", timeout=120_000)
    results = from_javascript(page.evaluate("window.results"))
    page.close()
    return results


def from_javascript(results):
    if any("error" in result for result in results):
        return results
    probabilities = [result["probabilities"] for result in results]
    return Outcome(
        [result["label"] for result in results],
        [result["scores"] for result in results],
        None if probabilities[0] is None else probabilities,
    )


def run_sqlite(model, X, dtype=None):
    """Predict rows by SQLite, the table in the order of its rows."""
    frame = as_frame(model, X)
    database = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in [KEY, *frame.columns])
    database.execute(f"CREATE TABLE rows ({names})")
    marks = ", ".join("?" * (len(frame.columns) + 1))
    database.executemany(f"INSERT INTO rows VALUES ({marks})", [[i, *row] for i, row in enumerate(cells(frame))])
    try:
        found = database.execute(to_sql(model, dtype, dialect="sqlite", key=KEY)).fetchall()
    except sqlite3.OperationalError as error:
        if "no such function" in str(error):
            pytest.skip(f"this SQLite is without mathematical functions ({error})")
        raise
    finally:
        database.close()
    return from_rows(model, found)


def run_duckdb(model, X, dtype=None):
    """Predict rows by DuckDB, over a data frame as it is."""
    duckdb = pytest.importorskip("duckdb")
    frame = as_frame(model, X)
    frame.insert(0, KEY, np.arange(len(frame)))
    with duckdb.connect() as database:
        database.register("rows", frame)
        return from_rows(model, database.execute(to_sql(model, dtype, key=KEY)).fetchall())


@functools.cache
def postgresql():
    """The command that asks a new PostgreSQL server, which runs until this process ends.

    It listens only on a socket in its own temporary folder, so that no port can be taken.
    """
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))  # Debian's
    initdb = shutil.which("initdb") or (folders and shutil.which("initdb", path=folders[-1]))
    if not initdb or os.name != "posix":
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    psql, programs = needed("psql"), Path(initdb).resolve().parent
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    owner = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to be run by root
        shutil.chown(folder, "nobody")
        owner = {"user": "nobody", "extra_groups": []}
    run = functools.partial(subprocess.run, check=True, cwd=folder, stdout=subprocess.DEVNULL, **owner)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    run([programs / "initdb", "-D", "data", "-U", "tests", "-A", "trust", "--encoding=UTF8", "--no-locale", "-N"])
    run([programs / "pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start"])
    atexit.register(run, [programs / "pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop"])
    return [psql, "-h", str(folder), "-U", "tests", "-d", "postgres", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]


def run_postgresql(model, X, dtype=None):
    """Predict rows by PostgreSQL, from a table whose columns have the types of the cells."""
    command, frame = postgresql(), as_frame(model, X)
    rows = [[i, *row] for i, row in enumerate(cells(frame))]
    columns = zip([KEY, *frame.columns], zip(*rows, strict=True), strict=True)
    names = ", ".join('"{}" {}'.format(name.replace('"', '""'), postgresql_type(column)) for name, column in columns)
    lines = ["\t".join(map(postgresql_cell, row)) for row in rows]
    query = to_sql(model, dtype, dialect="postgresql", key=KEY)
    given = [f"CREATE TEMPORARY TABLE rows ({names});", "COPY rows FROM STDIN;", *lines, "\\."]
    given.append(f"SELECT row_to_json(result) FROM (\n{query}) AS result;\n")
    done = subprocess.run(command, input="\n".join(given), capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return from_rows(model, [list(json.loads(line).values()) for line in done.stdout.split("\n")[:-1]])


def postgresql_type(column):
    kinds = {type(value) for value in column} - {type(None)}
    if kinds <= {bool}:
        return "boolean"
    return "double precision" if kinds <= {bool, int, float} else "text"


def postgresql_cell(value):
    escapes = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
    return "\\N" if value is None else str(value).translate(str.maketrans(escapes))


def as_frame(model, X):
    if isinstance(X, pd.DataFrame):
        return X.rename(columns=str)
    return pd.DataFrame(X, columns=list(Model.of(model).inputs.names))


def from_rows(model, found):
    found = sorted(found)
    n = len(classes_of(model))
    assert [row[0] for row in found] == list(range(len(found)))
    has_probabilities = len(found[0]) > n + 2
    return Outcome(
        [row[1] for row in found],
        [row[2 : n + 2] for row in found],
        [row[n + 2 :] for row in found] if has_probabilities else None,
    )
