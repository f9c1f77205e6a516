"""The page of a report as HTML markup; all text from data is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from string import Template

from polyplane.explain.text import escape

#: The scripts of a page, in order, and those of the section "Try it".
SCRIPTS, LIVE_SCRIPTS = ("parts.js", "rows.js"), ("reasons.js", "live.js")


class Markup:
    """A page, built element by element."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def __str__(self) -> str:
        return "\n".join(self._parts)

    def add(self, tag: str, text: str, css_class: str = "") -> None:
        """Add an element with text."""
        self._parts.append(f"<{tag}{_class(css_class)}>{escape(text)}</{tag}>")

    @contextmanager
    def group(self, css_class: str) -> Iterator[None]:
        """Group the elements added in this context in one block."""
        self._parts.append(f"<div{_class(css_class)}>")
        yield
        self._parts.append("</div>")

    @contextmanager
    def folded(self, title: str) -> Iterator[None]:
        """Hide the elements added in this context until they are unfolded."""
        self._parts.append(f"<details><summary>{escape(title)}</summary>")
        yield
        self._parts.append("</details>")

    def block(self, name: str, css_class: str) -> None:
        """Add an empty block that a script fills."""
        self._parts.append(f'<div id="{name}"{_class(css_class)}></div>')

    def figure(self, drawing: str, caption: str) -> None:
        """Add a drawing, which is markup, with its caption."""
        self._parts.append(f"<figure><figcaption>{escape(caption)}</figcaption>{drawing}</figure>")

    def legend(self, names: Sequence[tuple[str, str]]) -> None:
        """Add a legend of names and colours."""
        items = "".join(f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in names)
        self._parts.append(f'<p class="legend">{items}</p>')

    def picker(self, reference: str) -> None:
        """Add the section in which a script explains one row at a time; `reference` describes the reference row."""
        self.add("h2", "Rows explained")
        self.add("p", reference, "quiet")
        self._parts.append(_page_file("picker.html"))

    def live(self, note: str, has_inputs: bool) -> None:
        """Add the section in which the values of a row can be changed."""
        self.add("h2", "Try it")
        self.add("p", note, "quiet")
        if has_inputs:
            self._parts.append(_page_file("live.html"))

    def table(
        self,
        title: str,
        heads: Sequence[str],
        rows: Sequence[Sequence[str]],
        css_classes: Sequence[Sequence[str]] | None = None,
        *,
        rule_column: int | None = None,
        links: Sequence[int | None] | None = None,
        bars: Sequence[float] | None = None,
    ) -> None:
        """Add a table; the first column contains names, the `rule_column` long text.

        `css_classes` are the classes of the cells; `links` are the positions in the picker to which the names link;
        `bars` are numbers that are drawn as bars, in another column.
        """
        self._parts.append(f'<div class="scroll"><table{_class("bars" if bars else "")}>')
        if title:
            self._parts.append(f"<caption>{escape(title)}</caption>")
        of_column = {0: "name", rule_column: "rule"}
        cells = "".join(f'<th scope="col"{_class(of_column.get(j, ""))}>{escape(h)}</th>' for j, h in enumerate(heads))
        cells += '<th class="track"></th>' if bars else ""
        self._parts.append(f"<thead><tr>{cells}</tr></thead><tbody>")
        for i, row in enumerate(rows):
            line = []
            for j, text in enumerate(row):
                css_class = (css_classes[i][j] if css_classes else "") or of_column.get(j, "")
                inner = escape(text)
                if j == 0 and links and links[i] is not None:
                    inner = f'<a href="#why" data-row="{links[i]}">{inner}</a>'
                line.append(f"<td{_class(css_class)}>{inner}</td>")
            if bars:
                width = 100 * bars[i] / (max(bars) or 1.0)
                line.append(f'<td class="track"><span class="bar" style="width:{width:.1f}%"></span></td>')
            self._parts.append(f"<tr>{''.join(line)}</tr>")
        self._parts.append("</tbody></table></div>")


def assemble(body: Markup, title: str, data: str, model: str = "") -> str:
    """Assemble the whole page.

    Its content security policy forbids all external resources and all scripts other than its own.

    Parameters
    ----------
    body : Markup
        Body of the page.
    title : str
        Title of the window.
    data : str
        JSON for the script.
    model : str
        Script of the model, which must not contain a closing tag; empty if there is none.
    """
    scripts = [model] if model else []
    scripts.append("\n".join([*map(_page_file, SCRIPTS), live_scripts() if model else ""]))
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return Template(_page_file("page.html")).substitute(
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}",
        title=escape(title),
        style=_page_file("style.css"),
        body=body,
        # Escaped, so that JSON cannot close its script element.
        data=data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def live_scripts() -> str:
    """Return the scripts of the section "Try it"."""
    return "\n".join(map(_page_file, LIVE_SCRIPTS))


def _page_file(name: str) -> str:
    return (files("polyplane.explain") / "page" / name).read_text(encoding="utf-8")


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
