"""The fingerprint of a kept figure: a short text that changes when anything that the figure depends on changes.

It is made of the call that measures the figure, with its arguments; of the code of the functions in `benchmarks` that
the call reaches, and the constants that they read; and of the versions of the methods among them (`methods.toml`).
Comments, docstrings, formatting and the words of the report are not part of it.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from benchmarks.methods import VERSIONS
from sklearn.base import BaseEstimator

#: Fields of a syntax tree that are irrelevant, or differ between versions of Python.
SILENT = {"ctx", "type_comment", "kind", "type_params", "returns", "annotation"}


class Unknown:
    """Stands for a figure that has not been measured: each of its values is unknown, too."""

    def __getitem__(self, key: Any) -> Unknown:
        return self

    def get(self, key: Any, default: Any = None) -> Unknown:
        """An unknown value."""
        return self

    def __or__(self, other: Any) -> Unknown:
        return self

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True)
class Fingerprint:
    """What a figure depends on.

    Parameters
    ----------
    text : str
        Changes with the call, its arguments, the code that it reaches, and the methods' versions.
    methods : dict
        The versions of the methods that the call reaches, by name.
    """

    text: str
    methods: dict[str, int]


def fingerprint(measure: Callable[[], Any], settings: dict[str, Any]) -> Fingerprint:
    """The fingerprint of the figure that `measure` gives: a named function of `benchmarks`, or a partial of one."""
    reached = Reached()
    call = [reached.plain(settings), reached.plain(measure)]
    methods = {name: VERSIONS[name] for name in sorted(reached.methods)}
    text = json.dumps([call, reached.code, methods], sort_keys=True)
    return Fingerprint(_digest(text), methods)


class Reached:
    """The code and the methods that are reachable from values."""

    def __init__(self) -> None:
        self.code: dict[str, Any] = {}
        self.methods: set[str] = set()

    def plain(self, value: Any) -> Any:
        """The value as plain data for JSON; code that it refers to is added to `code`."""
        if isinstance(value, Unknown):
            return "?"
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, np.generic | np.ndarray):
            return value.tolist()
        if isinstance(value, PurePath):
            return value.name
        if isinstance(value, dict):
            return {str(key): self.plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple | range):
            return [self.plain(item) for item in value]
        if isinstance(value, set | frozenset):
            return sorted(map(str, value))
        if isinstance(value, partial):
            return [self.plain(part) for part in (value.func, value.args, value.keywords)]
        if isinstance(value, BaseEstimator):
            return [self.plain(type(value)), self.plain(value.get_params(deep=False))]
        inner = inspect.unwrap(value) if callable(value) else value
        return self._named(value) if inner is value else self.plain(inner)

    def _named(self, value: Any) -> str:
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if module is None or name is None:
            return type(value).__qualname__
        if module == "__main__":
            raise TypeError(f"{name} is defined in a script that runs as __main__: import its module by name.")
        full = f"{module}.{name}"
        if module.startswith("polyplane.") and name in VERSIONS:
            self.methods.add(name)
        if module.startswith("benchmarks.") and full not in self.code:
            if name == "<lambda>":
                raise TypeError(f"A lambda in {module} has no fingerprint: use a named function, or a partial of one.")
            self.code[full] = [_code(value), None]
            self.code[full][1] = self.plain([[f.__defaults__, f.__kwdefaults__] for f in _functions(value)])
            self._globals(value)
            self.plain(getattr(value, "__bases__", ()))
        return full

    def _globals(self, value: Any) -> None:
        """Add the global names that a function, or the methods of a class, use."""
        for function in _functions(value):
            names = set(_names(function.__code__))
            for name in sorted(names & function.__globals__.keys()):
                found = function.__globals__[name]
                if isinstance(found, ModuleType):
                    self._module(found, names)
                else:
                    self._constant(f"{function.__module__}.{name}", found)

    def _module(self, module: ModuleType, names: set[str]) -> None:
        if module.__name__.startswith("benchmarks."):
            for name in sorted(names & vars(module).keys()):
                self._constant(f"{module.__name__}.{name}", vars(module)[name])

    def _constant(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) or name in self.code:
            return
        if callable(value):
            self.plain(value)
            return
        self.code[name] = "..."  # it may refer to itself
        self.code[name] = _digest(json.dumps(self.plain(value), sort_keys=True))


def _functions(value: Any) -> Iterator[FunctionType]:
    if isinstance(value, FunctionType):
        yield value
    elif isinstance(value, type):
        for member in vars(value).values():
            function = inspect.unwrap(getattr(member, "fget", None) or getattr(member, "__func__", None) or member)
            if isinstance(function, FunctionType) and function.__module__ == value.__module__:
                yield function


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@cache
def _code(value: Any) -> str:
    """A digest of the syntax of a function or class, without docstrings and annotations."""
    return _digest(json.dumps(_syntax(ast.parse(textwrap.dedent(inspect.getsource(value))))))


def _syntax(node: Any) -> Any:
    if isinstance(node, ast.AST):
        fields = {name: item for name, item in ast.iter_fields(node) if name not in SILENT and item not in (None, [])}
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and _is_text(node.body[0]):
            fields["body"] = node.body[1:]
        return [type(node).__name__, {name: _syntax(item) for name, item in fields.items()}]
    if isinstance(node, list):
        return [_syntax(item) for item in node]
    return repr(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
