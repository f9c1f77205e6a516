"""`polyplane export`: a model for other programs."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Annotated, Any, Literal

import typer

from polyplane.cli._common import AsJson, Table, UserError, command, present
from polyplane.cli._data import ModelFile, load_model

Kind = Literal["onnx", "json"]
To = Annotated[Kind | None, typer.Option("--to", help="The format. Default: by the extension of the file.")]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; - is standard output.")]
Rows = Annotated[
    Literal["float32", "float64"] | None,
    typer.Option("--dtype", help="ONNX: the type of the rows that the graph takes. Default: that of the planes."),
]
Opset = Annotated[int | None, typer.Option(help="ONNX: the version of the operator set, from 13 to 21. Default: 18.")]


@command(
    "polyplane export model.safetensors -o model.onnx --dtype float32",
    "polyplane export model.safetensors --to json | jq '.classes[].label'",
)
def export(
    model: ModelFile, to: To = None, out: Out = "-", dtype: Rows = None, opset: Opset = None, as_json: AsJson = False
) -> None:
    """Write a model as ONNX, for onnxruntime and other runtimes, or as readable JSON.

    The ONNX graph gives "label", "scores", and "probabilities" where the model has them, equal to those of
    `polyplane predict`. The JSON names the planes of each class, with the weights of features by name.

    A file appears when all of it is written, and not before.
    """
    kind = _kind(to, out)
    if kind == "json" and (dtype is not None or opset is not None):
        raise UserError("--dtype and --opset are for ONNX; JSON has the planes as they are.")
    if kind == "onnx" and out == "-" and sys.stdout.isatty():
        raise UserError("--to onnx writes binary data: give a file with -o FILE, or send it through a pipe.")
    estimator = load_model(model).model
    content = _onnx(estimator, dtype, opset) if kind == "onnx" else _json(estimator)
    if out == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    from polyplane._files import replace_file

    with replace_file(out) as file:
        file.write(content)
    facts = {"model": model, "out": out, "to": kind, "size": len(content)}
    present(facts, [Table("Exported", (), list(facts.items()))], as_json)


def _kind(to: Kind | None, out: str) -> Kind:
    """The format that is asked for, or that of the file's extension."""
    if to is not None:
        return to
    match PurePath(out).suffix.lower():
        case ".onnx":
            return "onnx"
        case ".json":
            return "json"
    raise UserError("Choose a format: --to onnx or --to json, or a file with such an extension, as in -o model.onnx.")


def _onnx(model: Any, dtype: str | None, opset: int | None) -> bytes:
    from polyplane.io.onnx import OPSET, to_onnx

    content: bytes = to_onnx(model, dtype, opset=OPSET if opset is None else opset).SerializeToString()
    return content


def _json(model: Any) -> bytes:
    from polyplane.io import to_json

    return f"{to_json(model)}\n".encode()
