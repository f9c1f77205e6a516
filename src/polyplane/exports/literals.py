"""Literals, identifiers and comments in C, JavaScript and SQL, with any characters escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from polyplane._plain import visible

#: Maximum length in bytes of a string literal that every C99 compiler supports.
_LONGEST_C = 4095


@cache
def runtime(file: str) -> str:
    """Return the text of a file of the folder `runtime`."""
    return (files("polyplane.exports") / "runtime" / file).read_text(encoding="utf-8")


def selected(file: str, facts: Collection[str]) -> str:
    """Return the lines of a file of the folder `runtime` that are used, without the comment at its start.

    Lines between the comments ``@ if NAMES`` and ``@ end`` are used if one of the names is among the facts; between
    ``@ else`` and ``@ end``, if none is.
    """
    lines, levels = [], [True]
    for line in runtime(file).partition("\n\n")[2].splitlines(keepends=True):
        found = re.fullmatch(r"/\* @ (if|else|end)([\w ]*) \*/\n", line)
        if found is None:
            lines += [line] if all(levels) else []
        elif found[1] == "if":
            levels.append(any(name in facts for name in found[2].split()))
        elif found[1] == "else":
            levels[-1] = not levels[-1]
        else:
            levels.pop()
    return "".join(lines)


@cache
def sections(file: str) -> dict[str, str]:
    """Return the parts of a file of the folder `runtime`, each after a line with a comment ``-- @ name``."""
    _, *parts = re.split(r"^-- @ ([\w ]+)\n", runtime(file), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def is_unicode(text: str) -> bool:
    """Whether a string has no lone surrogates, which cannot be encoded."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def check_text(text: str, language: str, *, nul: bool = False) -> str:
    """Return the string; raise an error for lone surrogates and, unless `nul`, for NUL characters."""
    if not is_unicode(text):
        raise ValueError(f"{text!r} is not valid Unicode, which {language} requires: rename it.")
    if "\0" in text and not nul:
        raise ValueError(f"{text!r} contains a NUL character, which {language} does not support: rename it.")
    return text


def check_c_identifier(name: str) -> None:
    """Raise an error if a name is not a C identifier."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"name={name!r} must be a C identifier: letters, digits and underscores.")


def c_string(text: str) -> str:
    """Return a C string literal in UTF-8; all except printable ASCII is escaped, as three octal digits."""
    content = check_text(text, "C").encode()
    if len(content) > _LONGEST_C:
        raise ValueError(f"{text[:20]!r}... has {len(content)} bytes; C99 supports strings of up to {_LONGEST_C}.")
    # "?" is escaped because of trigraphs.
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in content) + '"'


def c_comment(text: str) -> str:
    """Return a string for use in a C comment, on one line; it cannot end the comment."""
    return _within_comment(json.dumps(visible(text)))


def _within_comment(plain: str) -> str:
    return plain.replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?")


def c_names(texts: Iterable[str]) -> list[str]:
    """Return distinct C identifiers in lower case; characters that are not allowed become underscores."""
    # Words that are not identifiers in C or C++, or are macros of common compilers.
    words = runtime("c_words.txt").split()
    used, result = set[str](), []
    for text in texts:
        name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:40].lower()
        if not name or not name[0].isalpha() or name in words:
            name = f"column_{name}".rstrip("_")
        free, n = name, 1
        while free in used:
            n += 1
            free = f"{name}_{n}"
        used.add(free)
        result.append(free)
    return result


def js_value(value: Any) -> str:
    """Return plain data in JavaScript, safe in a script element of a page; keys must be identifiers."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {js_value(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(js_value, value))}]"
    if isinstance(value, str):
        check_text(value, "JavaScript", nul=True)
    if isinstance(value, float):
        return number(value) if np.isfinite(value) else "-Infinity" if value < 0 else "Infinity"
    if isinstance(value, int) and abs(value) > 2**53:
        raise ValueError(f"The label {value} is beyond 2^53, the largest exact integer of JavaScript: rename it.")
    return json.dumps(value, ensure_ascii=True).replace("<", "\\u003c").replace("\x7f", "\\u007f")


def sql_name(text: str, dialect: str) -> str:
    """Return the quoted name of a column or a table in SQL."""
    if not text and dialect != "sqlite":
        raise ValueError(f"{dialect} does not support columns without a name: rename the column.")
    quoted = check_text(text, "SQL").replace('"', '""')
    return f'"{quoted}"'


def sql_string(text: str) -> str:
    """Return a SQL string literal."""
    quoted = check_text(text, "SQL").replace("'", "''")
    return f"'{quoted}'"


def sql_comment(text: str) -> str:
    """Return a comment in SQL; it cannot be ended by its text.

    DuckDB takes quotes in a comment for the beginning of a string, and then replaces no-break spaces in strings.
    """
    typographic = {ord("'"): "\N{RIGHT SINGLE QUOTATION MARK}", ord('"'): "\N{RIGHT DOUBLE QUOTATION MARK}"}
    return f"/* {_within_comment(visible(text).translate(typographic))} */"


def wrapped(literals: Iterable[str], indent: str, width: int = 112) -> str:
    """Return literals, each followed by a comma, in lines of at most `width` characters."""
    lines, line = [], indent[1:]
    for literal in literals:
        if len(line) + len(literal) + 2 > width and line.strip():
            lines.append(line)
            line = indent[1:]
        line += f" {literal},"
    return "\n".join([*lines, line])


def number(value: Any, dtype: str = "float64") -> str:
    """Return a number with enough digits to restore the same value of the dtype."""
    text = str(np.float32(value)) if dtype == "float32" else repr(float(value))
    return text.removesuffix(".0") if text.endswith(".0") else text


def real(value: Any, dtype: str = "float64") -> str:
    """Return a number with a decimal point or exponent, so that C and SQL do not read an integer."""
    text = number(value, dtype)
    return text if any(c in text for c in ".e") else f"{text}.0"


def label_value(label: Any) -> Any:
    """Return a label as a Python boolean, integer, float or string."""
    return label if isinstance(label, bool | int | float | str) else str(label)
