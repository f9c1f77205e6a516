"""`polyplane export`: export a model for other programs."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from polyplane.cli.common import AsJson, Table, UserError, command, present, refuse_overwriting
from polyplane.cli.data import ModelFile, load_model

Kind = Literal["onnx", "json", "c", "js", "sql"]
To = Annotated[Kind | None, typer.Option("--to", help="Output format. Default: given by the file extension.")]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File to write to; - for standard output.")]
Numbers = Annotated[
    Literal["float32", "float64", "int8"] | None,
    typer.Option(
        "--dtype",
        help="Type of the weights (int8 in C only); ONNX: type of the input. Default: the type of the model's weights.",
    ),
]
Opset = Annotated[int | None, typer.Option(help="ONNX: operator set version, from 13 to 21. Default: 18.")]
Name = Annotated[str | None, typer.Option(help="C: prefix of all names. Default: the file name.", show_default=False)]
Dialect = Annotated[
    Literal["sqlite", "duckdb", "postgresql"] | None,
    typer.Option(help="SQL: database. Default: duckdb.", show_default=False),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table", metavar="NAME", help="SQL: table to read the rows from. Default: rows.", show_default=False
    ),
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="SQL: column to keep in the result; can be repeated.",
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
    """Export a model to C, JavaScript, SQL, ONNX or readable JSON.

    C, JavaScript and SQL exports are single files without dependencies, and ONNX is a graph; all compute the same
    labels, scores and (if available) probabilities as `polyplane predict`. The JSON lists the planes of each class,
    with weights by feature name.

    The output file is written atomically: it appears only when it is complete.
    """
    from pathlib import PurePath

    from polyplane.exports.file import check_options, exported

    refuse_overwriting(out, model)
    kind = to or _kind(out)
    options = {"dtype": dtype, "opset": opset, "name": name, "dialect": dialect, "table": table, "key": key or None}
    check_options(kind, options)
    if kind == "onnx" and out == "-" and sys.stdout.isatty():
        raise UserError("--to onnx writes binary data: specify a file with -o FILE, or pipe the output.")
    content = exported(load_model(model).estimator, kind, "model" if out == "-" else PurePath(out).stem, options)
    if out == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    from polyplane.files import replace_file

    with replace_file(out) as file:
        file.write(content)
    facts = {"model": model, "out": out, "to": kind, "size": len(content)}
    present(facts, [Table("Exported", (), list(facts.items()))], as_json)


def _kind(out: str) -> str:
    """Return the format for a file extension."""
    from polyplane.exports.file import FORMATS, format_of

    try:
        return format_of(out)
    except ValueError:
        names = ", ".join(FORMATS)
        raise UserError(
            f"The format is unknown: use --to with one of {names}, or a matching file extension, as in -o model.c."
        ) from None
