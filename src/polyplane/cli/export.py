"""`polyplane export`: export a model for other programs."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Annotated, Literal

from polyplane.cli.common import AsJson, UserError, command, option, output, present_facts, refuse_overwriting
from polyplane.cli.data import ModelPath, load_model

Kind = Literal["onnx", "json", "c", "js", "sql"]
NumberType = Literal["float32", "float64", "int8"]
Database = Literal["sqlite", "duckdb", "postgresql"]


@command(
    "polyplane export model.safetensors -o model.onnx --dtype float32",
    "polyplane export model.safetensors -o model.c --dtype int8",
    "polyplane export model.safetensors -o model.sql --dialect sqlite --table customers --key id",
    "polyplane export model.safetensors --to json | jq '.classes[].label'",
)
def export(
    model: ModelPath,
    to: Annotated[Kind | None, option()] = None,
    out: Annotated[str, option("FILE", "--out", "-o")] = "-",
    dtype: Annotated[NumberType | None, option()] = None,
    opset: Annotated[int | None, option()] = None,
    name: Annotated[str | None, option()] = None,
    dialect: Annotated[Database | None, option()] = None,
    table: Annotated[str | None, option("NAME")] = None,
    key: Annotated[list[str] | None, option("COLUMN")] = None,
    as_json: AsJson = False,
) -> None:
    """Export a model to C, JavaScript, SQL, ONNX or readable JSON.

    C, JavaScript and SQL exports are single files without dependencies, and ONNX is a graph; all compute the same
    labels, scores and (if available) probabilities as `polyplane predict`. The JSON lists the planes of each class,
    with weights by feature name.

    The output file is written atomically: it appears only when it is complete.

    Parameters
    ----------
    to : str or None
        Output format. Default: given by the file extension.
    out : str
        File to write to; - for standard output.
    dtype : str or None
        Type of the weights (int8 in C only); ONNX: type of the input. Default: the type of the model's weights.
    opset : int or None
        ONNX: operator set version, from 13 to 21. Default: 18.
    name : str or None
        C: prefix of all names. Default: the file name.
    dialect : str or None
        SQL: database. Default: duckdb.
    table : str or None
        SQL: table to read the rows from. Default: rows.
    key : list of str or None
        SQL: column to keep in the result; can be repeated.
    """
    from polyplane.exports.file import check_options, exported

    refuse_overwriting(out, model)
    kind = to or _kind(out)
    options = {"dtype": dtype, "opset": opset, "name": name, "dialect": dialect, "table": table, "key": key or None}
    check_options(kind, options)
    if kind == "onnx" and out == "-" and sys.stdout.isatty():
        raise UserError("--to onnx writes binary data: specify a file with -o FILE, or pipe the output.")
    content = exported(load_model(model).estimator, kind, "model" if out == "-" else PurePath(out).stem, options)
    with output(out) as file:
        file.write(content)
    if out != "-":
        facts = {"model": model, "out": out, "to": kind, "size": len(content)}
        present_facts("Exported", facts, as_json)


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
