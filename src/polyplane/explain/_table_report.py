"""Report about a `TableClassifier`: importance and effects of its columns, and explanations of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane._plain import visible
from polyplane.explain._explain_table import explain_table
from polyplane.explain._explain_table_row import explain_table_row
from polyplane.explain._markup import Markup
from polyplane.explain._report_body import PageContent, Predictions, encoded_labels
from polyplane.explain._report_live import live_table
from polyplane.explain._report_rows import as_text, flip_title, named_row
from polyplane.explain._svg import COLOURS, draw_effect
from polyplane.explain._table_explanation import TableExplanation
from polyplane.explain._table_row_explanation import TableRowExplanation
from polyplane.explain._table_values import shown
from polyplane.explain.rules import number
from polyplane.inputs.frames import read_table
from polyplane.tables.classifier import TableClassifier

#: Number of columns of a row, and of effects before folding.
SHOWN_COLUMNS, SHOWN_EFFECTS = 12, 6
REFERENCE = (
    "Each row is compared with the reference row: the median of each column of numbers or dates, and "
    "the most frequent level of each other column, in the training rows."
)


def table_page(estimator: TableClassifier, X: Any, y: Any, n_rows: int) -> PageContent:
    """Return the content of the report about a `TableClassifier`."""
    model = estimator.table_model_
    table = read_table(X, model.encoding.gaps)
    truth = encoded_labels(y, table.n_rows, estimator.classes_)
    probabilities = model.probabilities(model.class_scores(model.encode(X, type(estimator).__name__)))
    predicted = probabilities.argmax(axis=1)
    labels = estimator.classes_.tolist()
    sureness = probabilities.max(axis=1)
    predictions = Predictions(labels, truth, predicted, sureness, "probability", probabilities)
    told = explain_table(estimator, X)
    chosen = predictions.choose(_typical(predicted, sureness, len(labels)), n_rows)
    explained = [explain_table_row(estimator, table.take(np.array([i])), true_label=labels[truth[i]]) for i in chosen]
    rows = [_row(predictions, i, why) for i, why in zip(chosen, explained, strict=True)]
    words = {"one": "column", "many": "columns", "share": "contribution to the log-odds", "head": "log-odds"}
    data = {"rows": rows, "image_shape": None, "planes": None, "words": {**words, "decimals": 2}}
    rare = np.argsort(np.bincount(truth, minlength=len(labels)), kind="stable").tolist()
    live = live_table(estimator, told.by_importance(), explained, [as_text(label) for label in labels])
    return PageContent(
        predictions, _about(told), lambda page: _columns(page, told, rare), chosen, data, REFERENCE, live
    )


def _typical(predicted: np.ndarray, sureness: np.ndarray, n_classes: int) -> list[int]:
    """Return rows of median probability of each predicted class, alternating between the classes."""
    by_class = []
    for c in range(n_classes):
        rows = np.flatnonzero(predicted == c)
        rows = rows[np.argsort(sureness[rows], kind="stable")]
        middle = max(0, len(rows) // 2 - 1)
        by_class.append(rows[middle : middle + 3].tolist())
    return [i for place in range(3) for rows in by_class for i in rows[place : place + 1]]


def _about(told: TableExplanation) -> str:
    members = f"committee of {told.machines} members" if told.machines > 1 else "one member"
    classes = ", ".join(map(str, told.classes)) if len(told.classes) <= 10 else str(len(told.classes))
    return (
        f"{told.learner}: {members} over {len(told.columns)} columns; classes: {classes}. Contributions are in "
        "log-odds, the logarithm of the ratio of two probabilities: +0.7 doubles this ratio, -0.7 halves it."
    )


def _columns(page: Markup, told: TableExplanation, rare: list[int]) -> None:
    page.add("h2", "Importance of the columns")
    page.add("p", told.meaning(), "quiet")
    order = told.by_importance()
    page.bars(["column", "importance"], [(told.columns[j], float(told.importance[j])) for j in order])
    if told.dropped:
        names = "; ".join(f"{name}: {reason}" for name, reason in told.dropped.items())
        page.add("p", f"Columns not used: {names}.", "quiet")
    page.add("h2", "Effects of the values")
    page.add("p", _about_effects(told, rare), "quiet")
    shown_first, others = order[:SHOWN_EFFECTS], order[SHOWN_EFFECTS:]
    _effects(page, told, shown_first, rare)
    if others:
        with page.folded(f"The other {len(others)} columns" if len(others) > 1 else "The other column"):
            _effects(page, told, others, rare)
    if told.planes:
        with page.folded(f"The {len(told.planes)} planes"):
            for line in told.plane_lines(8):
                page.add("p", line)


def _about_effects(told: TableExplanation, rare: list[int]) -> str:
    band = "" if told.is_additive or len(told.classes) > 2 else " Bands and lines contain the middle 80 % of the rows."
    rows = " Numbers in brackets are counts of training rows." if any(e.counts for e in told.effects) else ""
    if len(told.classes) == 2:
        what = f"positive values (above 0, or to the right) increase the probability of class {told.classes[rare[0]]}"
    else:
        what = "each class is compared with the mean of the other classes"
    return (
        f"Effects on the log-odds: {what}. {told.about_effects(brackets=False)} The open circle is the reference "
        f"value: the median or the most frequent level.{rows}{band}"
    )


def _effects(page: Markup, told: TableExplanation, columns: list[int], rare: list[int]) -> None:
    """Add drawings of effects: on the rarer of two classes, otherwise on the most frequent classes."""
    if len(told.classes) == 2:
        classes, sides = [rare[0]], (str(told.classes[rare[0]]), str(told.classes[rare[1]]))
    else:
        classes, sides = sorted(rare[::-1][: len(COLOURS)]), None
        page.legend([(str(told.classes[c]), COLOURS[place]) for place, c in enumerate(classes)])
    with page.group("effects"):
        for j in columns:
            for effect in told.of_column(told.columns[j]):
                page.figure(draw_effect(effect, classes, sides), effect.name)


def _row(predictions: Predictions, i: int, why: TableRowExplanation) -> dict[str, Any]:
    """Return the data of a row for the script of the page."""
    large, small = why.told(SHOWN_COLUMNS)
    times = number(float(np.exp(min(why.difference, 50.0))), 2)
    quoted = f"\N{LEFT DOUBLE QUOTATION MARK}{as_text(why.rival)}\N{RIGHT DOUBLE QUOTATION MARK}"
    return {
        **named_row(predictions, i),
        "lead": (
            f"Its probability is {why.probability:.3f}, {times} times that of class {quoted} (log-odds "
            f"{why.difference:.2f})."
        ),
        "base": why.base,
        "shares": [
            {
                "name": visible(why.columns[j].name),
                "value": visible(shown(why.columns[j], why.values[j])),
                "reference": visible(shown(why.columns[j], why.reference[j])),
                "share": why.contributions[j],
            }
            for j in large
        ],
        "n_others": len(small),
        "others": float(why.contributions[small].sum()) if small else 0.0,
        "image": None,
        "flip": _flip(why),
        "no_flip": "No change within the range of the training rows that leads to another class was found.",
    }


def _flip(why: TableRowExplanation) -> dict[str, Any] | None:
    if why.flip is None:
        return None
    columns = dict(zip(why.column_names, why.columns, strict=True))
    changes = [
        {"name": visible(name), "from": visible(shown(columns[name], old)), "to": visible(shown(columns[name], new))}
        for name, (old, new) in why.flip.changes.items()
    ]
    title = flip_title("The smallest change" if why.flip.proven else "A small change", why.flip.label)
    return {"title": title, "changes": changes, "n_others": 0}
