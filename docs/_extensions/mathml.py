"""Formulas as MathML, which browsers draw by themselves: the pages need neither a network nor a script."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.util.math import get_node_equation_number

logger = getLogger(__name__)


def _mathml(node: nodes.Element, display: str) -> str:
    """A formula; a command that the converter does not know would stand there as it is."""
    found = convert(node.astext(), display=display)
    if "\\" in found:
        logger.warning("unknown command in the formula %s", node.astext(), location=node)
    return found


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _display(translator: Any, node: nodes.math_block) -> None:
    number = get_node_equation_number(translator, node) if node["number"] else None
    label = f'<span class="eqno">({number})</span>' if number else ""
    translator.body.append(f'<div class="formula">{label}{_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def _none(translator: Any, node: nodes.Element) -> None:
    """Nothing is left to close."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer; conf.py chooses it."""
    app.add_html_math_renderer("mathml", (_inline, _none), (_display, _none))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
