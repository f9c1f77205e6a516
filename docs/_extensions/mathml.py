"""Formulas as MathML, which browsers draw by themselves: the pages need neither a network nor a script."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _display(translator: Any, node: nodes.math_block) -> None:
    number = get_node_equation_number(translator, node) if node["number"] else None
    label = f'<span class="eqno">({number})</span>' if number else ""
    translator.body.append(f'<div class="formula">{label}{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def _none(translator: Any, node: nodes.Element) -> None:
    """Nothing is left to close."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; conf.py chooses it."""
    app.add_html_math_renderer("mathml", (_inline, _none), (_display, _none))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
