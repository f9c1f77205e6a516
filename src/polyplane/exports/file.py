"""`export`: export of a model to a file for other programs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from polyplane.exports.c import to_c
from polyplane.exports.javascript import to_javascript
from polyplane.exports.json_text import to_json
from polyplane.exports.sql import to_sql
from polyplane.files import replace_file

#: The formats, and the options of each.
FORMATS: dict[str, tuple[str, ...]] = {
    "onnx": ("dtype", "opset"),
    "json": (),
    "c": ("dtype", "name"),
    "js": ("dtype",),
    "sql": ("dtype", "dialect", "table", "key"),
}


def export(
    model: Any,
    path: str | os.PathLike[str],
    to: str | None = None,
    *,
    dtype: str | None = None,
    opset: int | None = None,
    name: str | None = None,
    dialect: str | None = None,
    table: str | None = None,
    key: str | Sequence[str] | None = None,
) -> None:
    """Export a fitted model to C, JavaScript, SQL, ONNX or JSON.

    Parameters
    ----------
    model : estimator, Pipeline or Model
        A fitted estimator of Polyplane, a pipeline of scalers, as `save` takes it, that ends in one, or a model. The
        exports of a `TableClassifier` take raw table columns.
    path : str or path-like
        The file to write. It is written atomically.
    to : {"c", "js", "sql", "onnx", "json"} or None, default=None
        The format. None: given by the suffix of `path`.
    dtype : str or None, default=None
        Data type of the weights: "float32" or "float64"; in C also "int8". For ONNX, the data type of the input. None:
        the data type of the planes; weights of tables are float32.
    opset : int or None, default=None
        ONNX: version of the operator set.
    name : str or None, default=None
        C: prefix of all names. None: the stem of the file name.
    dialect : {"sqlite", "duckdb", "postgresql"} or None, default=None
        SQL: the database. None: DuckDB.
    table : str or None, default=None
        SQL: the table to read the rows from. None: "rows".
    key : str, sequence of str or None, default=None
        SQL: columns of the table to keep in the result, to identify its rows.

    See Also
    --------
    save : Save a model for use with Polyplane.
    polyplane.exports.to_c, polyplane.exports.to_javascript, polyplane.exports.to_sql : Return the code as a string.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = polyplane.PegasosSVC(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.c"
    ...     polyplane.export(model, path, dtype="float32")
    ...     print(path.read_text().splitlines()[1])  # doctest: +ELLIPSIS
     * A PegasosSVC as C99, written by polyplane ...
    """
    given = {"dtype": dtype, "opset": opset, "name": name, "dialect": dialect, "table": table, "key": key}
    content = exported(model, to or format_of(path), PurePath(path).stem, given)
    with replace_file(path) as file:
        file.write(content)


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format for the suffix of a file."""
    suffix = PurePath(path).suffix.lower().removeprefix(".")
    known = {**{name: name for name in FORMATS}, "mjs": "js"}
    if suffix not in known:
        raise ValueError(
            f"The format is unknown: set to= to one of {', '.join(FORMATS)}, or use a matching suffix: model.c."
        )
    return known[suffix]


def check_options(to: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are not None; an option that the format does not have is an error."""
    if to not in FORMATS:
        raise ValueError(f"to={to!r} must be one of {', '.join(FORMATS)}.")
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in FORMATS[to]:
            owners = ", ".join(name for name, own in FORMATS.items() if option in own)
            raise ValueError(f"{option} is an option of {owners}, not of {to}.")
    return given


def exported(model: Any, to: str, stem: str, options: dict[str, Any]) -> bytes:
    """Return the content of the exported file."""
    given = check_options(to, options)
    if to == "onnx":
        from polyplane.exports.onnx import to_onnx

        content: bytes = to_onnx(model, **given).SerializeToString()
        return content
    if to == "c":
        name = re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_")  # an identifier from the name of the file
        given = {"name": name if name[:1].isalpha() else f"model_{name}".rstrip("_"), **given}
    write: Any = {"c": to_c, "js": to_javascript, "sql": to_sql, "json": to_json}[to]
    text = write(model, **given)
    return (text if text.endswith("\n") else f"{text}\n").encode()
