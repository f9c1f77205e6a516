"""Public names of packages: imported on first use, and shown by `help` with annotations as they are written."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def names_in_stub(package: str, file: str) -> dict[str, str]:
    """Return the module of each public name of a package, relative to it, as listed by the stub beside its file."""
    homes: dict[str, str] = {}
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [alias.asname for alias in node.names if alias.asname is not None]
            homes |= dict.fromkeys(names, node.module.removeprefix(f"{package}."))
    return homes


def imported_on_use(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package: `homes` are the modules of its names, relative to it.

    The command line starts quickly, and prediction imports nothing but NumPy.
    """

    def find(name: str) -> Any:
        if name not in homes:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=sys.modules[package])  # Python suggests a similar name
        value = unquoted(getattr(import_module(f"{package}.{homes[name]}"), name))
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes)


class _Annotation(str):
    """An annotation that is represented without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


def unquoted(value: Any) -> Any:
    """Let `help` show the annotations of a function, or of the methods of a class, without quotation marks."""
    owners = [each for each in getattr(value, "__mro__", ()) if each.__module__.startswith("polyplane.")]
    members = [member for owner in owners for member in vars(owner).values()]
    for member in members or [value]:
        function = next((getattr(member, name) for name in ("__func__", "fget", "fn") if hasattr(member, name)), member)
        notes = getattr(function, "__annotations__", None)
        if callable(function) and isinstance(notes, dict):
            notes.update({name: _Annotation(note) for name, note in notes.items() if type(note) is str})
    return value
