"""`polyplane export`: a model for other programs."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from polyplane.cli._common import AsJson, Table, UserError, command, present
from polyplane.cli._data import ModelFile, load_model

Kind = Literal["onnx", "json", "c", "js", "sql"]
To = Annotated[Kind | None, typer.Option("--to", help="The format. Default: by the extension of the file.")]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; - is standard output.")]
Numbers = Annotated[
    Literal["float32", "float64", "int8"] | None,
    typer.Option(
        "--dtype",
        help="What weights are rounded to, int8 in C only; ONNX: the type of the rows. Default: that of the planes.",
    ),
]
Opset = Annotated[int | None, typer.Option(help="ONNX: the version of the operator set, from 13 to 21. Default: 18.")]
Name = Annotated[
    str | None, typer.Option(help="C: what all names begin with. Default: the name of the file.", show_default=False)
]
Dialect = Annotated[
    Literal["sqlite", "duckdb", "postgresql"] | None,
    typer.Option(help="SQL: the database. Default: duckdb.", show_default=False),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="SQL: the table with the rows. Default: rows.", show_default=False),
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="SQL: a column that is part of the result; may be given again.",
        show_default=False,
    ),
]


@command(
    "polyplane export model.safetensors -o model.onnx --dtype float32",
    "polyplane export model.safetensors -o model.c --dtype int8",
    "polyplane export model.safetensors -o model.sql --dialect sqlite --table customers --key id",
    "polyplane export model.safetensors --to json | jq '.classes[].label'",
)
def export(
    model: ModelFile,
    to: To = None,
    out: Out = "-",
    dtype: Numbers = None,
    opset: Opset = None,
    name: Name = None,
    dialect: Dialect = None,
    table: TableName = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Write a model as C, JavaScript or SQL, as ONNX for onnxruntime and other runtimes, or as readable JSON.

    C, JavaScript and SQL are one file without dependencies, and ONNX is a graph; they give the label, the scores, and
    probabilities where the model has them, equal to those of `polyplane predict`. The JSON names the planes of each
    class, with the weights of features by name.

    A file appears when all of it is written, and not before.
    """
    from pathlib import PurePath

    from polyplane.io._export import check_options, exported

    kind = to or _kind(out)
    options = {"dtype": dtype, "opset": opset, "name": name, "dialect": dialect, "table": table, "key": key or None}
    check_options(kind, options)
    if kind == "onnx" and out == "-" and sys.stdout.isatty():
        raise UserError("--to onnx writes binary data: give a file with -o FILE, or send it through a pipe.")
    content = exported(load_model(model).model, kind, "model" if out == "-" else PurePath(out).stem, options)
    if out == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    from polyplane._files import replace_file

    with replace_file(out) as file:
        file.write(content)
    facts = {"model": model, "out": out, "to": kind, "size": len(content)}
    present(facts, [Table("Exported", (), list(facts.items()))], as_json)


def _kind(out: str) -> str:
    """The format of the file's extension."""
    from polyplane.io._export import FORMATS, format_of

    try:
        return format_of(out)
    except ValueError:
        names = ", ".join(FORMATS)
        raise UserError(
            f"Choose a format: --to one of {names}, or a file with such an extension, as in -o model.c."
        ) from None
