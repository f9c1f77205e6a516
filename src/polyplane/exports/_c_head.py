"""The start of a C file: the usage comment and the declarations."""

from __future__ import annotations

from polyplane._version import __version__
from polyplane.exports import _c_parts as parts
from polyplane.exports._c_tables import POINTER, SIZES, Tables, label_literals
from polyplane.exports._program import Input, Program
from polyplane.exports._text import c_comment, c_comment_string


def signature(program: Program) -> str:
    """Return the signature of the predict function."""
    rows = "const struct PREFIX_row *row" if program.of_table else "const REAL *x"
    third = ", REAL *probabilities" if program.temperature is not None else ""
    return f"int PREFIX_predict({rows}, REAL *scores{third})"


def declarations(program: Program, fields: list[str]) -> str:
    """Return the declarations for other files: the type of rows, the labels and the predict function."""
    if program.of_table:
        pairs = zip(program.inputs, fields, strict=True)
        types = {"category": "const char *", "date": "const char *"}
        lines = [(f"{types.get(item.kind, 'double ')}{field};", item) for item, field in pairs]
        width = max(len(line) for line, _ in lines)
        rows = (f"    {line:<{width}} /* {c_comment(item.name)}: {_expected(item)} */\n" for line, item in lines)
        given = "\nstruct PREFIX_row {\n" + "".join(rows) + "};\n"
    else:
        given = f"#define NAME_FEATURES {program.n_columns}\n"
    kind, _ = label_literals(program.classes)
    head, tail = parts.DECLARATIONS.split("GIVEN")
    tail = tail.replace("LABELS", f"{kind}PREFIX_labels[NAME_CLASSES]").replace("SIGNATURE", signature(program))
    return head + given + tail


def about(program: Program, fields: list[str], tables: Tables) -> str:
    """Return the comment at the top of the file: usage and memory requirements."""
    sums = SIZES["float" if program.dtype == "int8" else "double"]
    stack = program.n_planes * sums + len(program.classes) * SIZES["double"]
    what = "row of the table" if program.of_table else "row of features"
    wanted = ", NULL" if program.temperature is not None else ""
    shown = ", ".join(c_comment(item.name) for item in program.inputs[:20])
    more = f", and {len(program.inputs) - 20} more" if len(program.inputs) > 20 else ""
    lines = [
        f"A {program.learner} as C99, written by polyplane {__version__}.",
        "",
        f"PREFIX_predict takes a {what} and returns the index of the predicted class in PREFIX_labels, or -1 for",
        "an invalid value (an infinite number, a text that is not a date). It writes the scores"
        + (" and the probabilities" if wanted else ""),
        "of the classes to arrays of NAME_CLASSES numbers, unless these are NULL. It is thread-safe.",
        "",
        f"    {_example(program, fields)}",
        f"    int winner = PREFIX_predict({'&' if program.of_table else ''}row, NULL{wanted});",
        "",
        "Other files define NAME_DECLARATIONS and include this file, as a header. Compile with -O3 for speed, but",
        "without -ffast-math, which ignores NAN; link with -lm.",
        "",
        *([f"Features: {shown}{more}."] if not program.of_table else []),
        f"Memory: {tables.n_bytes} bytes of constant tables ({program.dtype}), {tables.n_text} of texts",
        f"with pointers of {8 * POINTER} bits, about {stack} bytes of stack. Nothing is allocated.",
    ]
    return "/*\n" + "".join(f" * {line}".rstrip() + "\n" for line in lines) + " */\n"


def _example(program: Program, fields: list[str]) -> str:
    if not program.of_table:
        return "REAL row[NAME_FEATURES] = {...};"
    values = []
    for item, field in list(zip(program.inputs, fields, strict=True))[:3]:
        text = item.levels[0] if item.levels else "2024-05-31"
        given = c_comment_string(text) if item.kind in ("category", "date") else str(item.values[0].neutral)
        values.append(f".{field} = {given}")
    more = ", ..." if len(fields) > len(values) else ""
    return f"struct PREFIX_row row = {{{', '.join(values)}{more}}};"


def _expected(item: Input) -> str:
    match item.kind:
        case "category":
            return f"a string, {len(item.levels)} of which are known; NULL if missing"
        case "date":
            return "a date like 2024-05-31 or 2024-05-31 17:30; NULL if missing"
        case "boolean":
            return "1 or 0; NAN if missing"
    return "a number; NAN if missing"
