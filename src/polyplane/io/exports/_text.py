"""Names, texts and numbers as they are written in C, JavaScript and SQL, whatever characters they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from polyplane._plain import visible

#: The longest text that C99 lets a compiler refuse to go beyond.
_LONGEST_C = 4095
#: Words that cannot be names in C, in C++, or as macros of usual compilers.
_C_WORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm bool
true false and or not xor typeof class new delete this private public template operator unix linux errno
i386 mips near far interface"""


def check_text(text: str, language: str, *, nul: bool = False) -> str:
    """A text that a language can hold; a half of a character is refused, and unless `nul` is allowed, a NUL too."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!r} is not valid Unicode, which {language} needs: rename it.") from None
    if "\0" in text and not nul:
        raise ValueError(f"{text!r} has a NUL in it, which a text in {language} cannot hold: rename it.")
    return text


def c_string(text: str) -> str:
    """A text as a literal of C: UTF-8, all but plain ASCII as octal escapes, which end after three digits."""
    content = check_text(text, "C").encode()
    if len(content) > _LONGEST_C:
        raise ValueError(f"{text[:20]!r}... has {len(content)} bytes; C99 promises texts of {_LONGEST_C} only.")
    # "?" is escaped because of trigraphs.
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in content) + '"'


def c_comment(text: str) -> str:
    """A text within a comment of C, on one line, which it cannot end."""
    return _within_comment(json.dumps(visible(text)))


def c_comment_string(text: str) -> str:
    """A literal of C within a comment."""
    return _within_comment(c_string(text))


def _within_comment(plain: str) -> str:
    return plain.replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?")


def c_names(texts: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Identifiers of C for some names, all different and in lower case: other characters become underscores."""
    used, result = {*taken}, []
    for text in texts:
        name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:40].lower()
        if not name or not name[0].isalpha() or name in _C_WORDS.split():
            name = f"column_{name}".rstrip("_")
        free, n = name, 1
        while free in used:
            n += 1
            free = f"{name}_{n}"
        used.add(free)
        result.append(free)
    return result


def js_value(value: Any) -> str:
    """A text, number, boolean or list of them in JavaScript, safe within a page too."""
    if isinstance(value, str):
        check_text(value, "JavaScript", nul=True)
    if isinstance(value, int) and abs(value) > 2**53:
        raise ValueError(f"The label {value} is beyond 2^53, the integers of JavaScript: rename it.")
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c").replace("\x7f", "\\u007f")


def sql_name(text: str, dialect: str) -> str:
    """A name of a column or a table in SQL."""
    if not text and dialect != "sqlite":
        raise ValueError(f"A column without a name cannot be asked for in {dialect}: rename it.")
    quoted = check_text(text, "SQL").replace('"', '""')
    return f'"{quoted}"'


def sql_string(text: str) -> str:
    """A text as a literal of SQL."""
    quoted = check_text(text, "SQL").replace("'", "''")
    return f"'{quoted}'"


def sql_comment(text: str) -> str:
    """A text after --, on one line."""
    return visible(text)


def wrapped(literals: Iterable[str], indent: str, width: int = 112) -> str:
    """Literals with commas after them, in lines of some width."""
    lines, line = [], indent[1:]
    for literal in literals:
        if len(line) + len(literal) + 2 > width and line.strip():
            lines.append(line)
            line = indent[1:]
        line += f" {literal},"
    return "\n".join([*lines, line])


def number(value: Any, dtype: str = "float64") -> str:
    """A number with as many digits as its dtype needs to be read back the same."""
    text = str(np.float32(value)) if dtype == "float32" else repr(float(value))
    return text.removesuffix(".0") if text.endswith(".0") else text


def real(value: Any, dtype: str = "float64") -> str:
    """A number that C and SQL do not take for an integer."""
    text = number(value, dtype)
    return text if any(c in text for c in ".e") else f"{text}.0"


def label_value(label: Any) -> Any:
    """A label as a plain boolean, integer, float or text."""
    if isinstance(label, bool | int | float | str):
        return label
    return str(label)
