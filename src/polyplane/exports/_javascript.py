"""Export to JavaScript: an ES module, or a script for a web page."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from polyplane._version import __version__
from polyplane.exports import _javascript_parts as parts
from polyplane.exports._program import Input, Program
from polyplane.exports._text import js_value, label_value, number, wrapped


def write_javascript(program: Program, name: str | None) -> str:
    """Return the text of a module or, if a name is given, of a script that defines an object of this name."""
    if name is not None and not re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", name):
        raise ValueError(f"name={name!r} must be a JavaScript identifier: letters, digits and underscores.")
    kinds = {item.kind for item in program.inputs}
    text = [
        parts.HEAD.format(learner=program.learner, version=__version__),
        "" if name is None else parts.STRICT.replace("NAME", name),
        _constant("const classes", [label_value(label) for label in program.classes.tolist()]),
        _columns("const columns", program.inputs),
        _constant("const missingTexts", list(program.missing_texts)),
        _constant("const members", [list(edges) for edges in program.members]),
        f"const temperature = {'null' if program.temperature is None else number(program.temperature)};\n",
        _array("const intercept", program.intercept, "float64"),
        _array("const weights", np.concatenate([row.values for row in program.weights]), program.dtype),
        *([] if program.is_uniform else _ranges(program)),
        *([_terms(program), _features(program)] if program.of_table or program.is_scaled else []),
        parts.NUMBER,
        *(parts.KINDS[kind] for kind in ("category", "boolean", "date") if kind in kinds),
        parts.READ.replace("KINDS", ", ".join(sorted(kinds))),
        parts.ADD_UNIFORM if program.is_uniform else parts.ADD_RANGES,
        parts.ADD_CELLS if program.of_table else parts.ADD_SCALED if program.is_scaled else parts.ADD_NUMBERS,
        parts.SOFT if program.is_soft else parts.HARD,
        parts.PREDICT,
        parts.MODULE if name is None else parts.SCRIPT,
    ]
    return "".join(text)


def _constant(name: str, value: Any) -> str:
    return f"{name} = {_value(value)};\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return js_value(value)


def _columns(name: str, inputs: tuple[Input, ...]) -> str:
    return f"{name} = [\n" + "".join(f"  {{{_column(item)}}},\n" for item in inputs) + "];\n"


def _column(item: Input) -> str:
    entries: dict[str, Any] = {"name": item.name, "position": item.position, "kind": item.kind}
    if item.kind == "number" and item.decimal != ".":
        entries["decimal"] = item.decimal
    if item.kind == "category":
        entries |= {"levels": list(item.levels), "first": item.first, "other": item.other}
    if item.may_be_missing:
        entries["missing"] = item.missing
    text = ", ".join(f"{key}: {_value(value)}" for key, value in entries.items())
    if not item.values:
        return text
    values = ", ".join(
        f"{{part: {json.dumps(value.part)}, "
        + ("" if value.neutral is None else f"neutral: {number(value.neutral)}, ")
        + f"terms: [{value.terms.start}, {value.terms.stop}]}}"
        for value in item.values
    )
    return f"{text}, values: [{values}]"


def _array(name: str, values: Any, dtype: str) -> str:
    kind = {"float32": "Float32Array", "float64": "Float64Array"}[dtype]
    content = wrapped((number(value, dtype) for value in values), "  ")
    return f"{name} = new {kind}([\n{content}\n]);\n"


def _ranges(program: Program) -> list[str]:
    """Return the offset of the weights of each feature, and the first plane they belong to."""
    offsets = np.cumsum([0, *(len(row.values) for row in program.weights)]).tolist()
    return [
        _constant("const offsets", offsets),
        _constant("const starts", [row.start for row in program.weights]),
    ]


def _terms(program: Program) -> str:
    lines = (
        f"  [{json.dumps(term.kind)}, {number(term.centre)}, {number(term.factor)}"
        + (f", {number(term.most)}" if term.kind in ("square", "limited") else "")
        + (f", {number(term.least)}" if term.kind == "limited" else "")
        + "],\n"
        for term in program.terms
    )
    return "const terms = [\n" + "".join(lines) + "];\n"


def _features(program: Program) -> str:
    kinds = {term.kind for term in program.terms}
    lines = (f"  {json.dumps(kind)}: {text},\n" for kind, text in parts.FEATURES.items() if kind in kinds)
    comment = "The features as functions of u = (x - centre) * factor."
    return f"\n// {comment}\nconst features = {{\n{''.join(lines)}}};\n"
