"""What the readers of text share: labels, and words for what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.io._rows import Layout, MixedLabelsError, settle_labels, wants_text


def labels_of(name: str, text: np.ndarray, out: Any, n_rows: int, layout: Layout) -> np.ndarray | None:
    """The labels of a block, from their numbers or their spans."""
    if layout.labels == "ignore":
        return None
    labels, spans, lines = out.labels[:n_rows], out.spans[:n_rows], out.lines[:n_rows]
    missing = spans[:, 0] == spans[:, 1]
    if missing.any():
        raise ValueError(f"{name}, line {lines[missing.argmax()]}: the row has no label.")
    no_number = np.isnan(labels)
    if wants_text(layout, bool(no_number.any())):
        raw = text.tobytes()
        cells = [raw[start:stop].decode(errors="replace").replace('""', '"') for start, stop in spans.tolist()]
        return np.array(cells, dtype=object).astype(str)
    if no_number.any():
        row = int(no_number.argmax())
        raise MixedLabelsError(
            f"{name}, line {lines[row]}: the label {shown(text, int(spans[row, 0]))} is not a number, as the labels "
            "before it or those of the model are."
        )
    return settle_labels(labels.copy(), layout)


def not_a_number(found: str) -> str:
    """What is wrong with a value that is none."""
    bare = found.strip("'").lower().lstrip("+-")
    if bare in ("nan", "inf", "infinity", "na", "null", "none", "?"):
        return f"the value {found} is missing or infinite, and planes need numbers: fill or drop such rows first"
    return f"expected a number, found {found}"


def shown(text: np.ndarray, position: int) -> str:
    """The word at a position, as in the file."""
    word = bytes(text[position : position + 40]).split(b"\n")[0].split()
    return repr(word[0].decode(errors="replace")[:30]) if word else "nothing"
