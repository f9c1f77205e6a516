"""`polyplane explain`: the planes of a model as rules, and the reasons for a prediction."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyplane.cli._common import AsJson, Table, UserError, command, did_you_mean, note, present
from polyplane.cli._data import (
    DATA_HELP,
    Format,
    Label,
    LoadedModel,
    ModelFile,
    ZeroBased,
    class_indices,
    load_model,
    reading_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polyplane.io import Rows

#: Rules are checked on the first rows of a file, up to this many.
MOST_ROWS = 1 << 16

MaybeData = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", show_default=False, help=f"{DATA_HELP} Rules are checked on its first {MOST_ROWS:,} rows."
    ),
]
Row = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Explain the predicted class of row N of DATA (from 0), and what would change it."
    ),
]
Top = Annotated[int, typer.Option(min=1, metavar="F", help="Features to show of each plane or row.")]
Tolerance = Annotated[
    float,
    typer.Option(min=0, max=1, help="Share of the rows whose class may change by rounding and omitting terms."),
]
Target = Annotated[
    str | None, typer.Option(metavar="LABEL", help="With --row: the class to change to. Default: the nearest.")
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(metavar="FEATURE", help="With --row: a feature not to change; may be given several times."),
]
Html = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write a page about the model and labelled DATA, to open in any browser."),
]


@command(
    "polyplane explain model.safetensors",
    "polyplane explain model.safetensors pima.csv --tolerance 0.02",
    "polyplane explain model.safetensors pima.csv --row 7 --freeze age --freeze pregnancies",
    "polyplane explain model.safetensors test.csv --html report.html",
)
def explain(
    model: ModelFile,
    data: MaybeData = None,
    row: Row = None,
    top: Top = 8,
    tolerance: Tolerance = 0.0,
    target: Target = None,
    freeze: Freeze = None,
    html: Html = None,
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    as_json: AsJson = False,
) -> None:
    """Show the planes of a model as rules, in the units of the data.

    With DATA, numbers are rounded and small terms omitted as far as the predictions stay the same, and the share of the
    rows that each plane decides is shown.
    """
    if data is None and (row is not None or html is not None):
        raise UserError(f"{'--row' if html is None else '--html'} needs DATA, the rows to explain.")
    if row is None and (target is not None or freeze):
        raise UserError(f"{'--target' if target is not None else '--freeze'} needs --row.")
    if row is not None and html is not None:
        raise UserError("--row and --html cannot be combined: the page explains rows of its own choice.")
    loaded = load_model(model)
    if data is None:
        explanation = _of_model(loaded, None, tolerance)
    else:
        parts = loaded.batches(data, reading_options(format, label, zero_based), MOST_ROWS, labels=html is not None)
        rows = _first_rows(parts, data)
        if html is not None:
            _write_page(loaded, rows, data, html, as_json)
            return
        x = None if row is None else _row(parts, rows, row, data)
        explanation = _of_model(loaded, rows, tolerance) if x is None else _of_row(loaded, rows, x, target, freeze)
    if as_json:
        present({"model": model, "data": data, "row": row, **explanation.to_dict()}, [], as_json)
    else:
        typer.echo(explanation.to_text(top))


def _of_model(loaded: LoadedModel, rows: Rows | None, tolerance: float) -> Any:
    from polyplane.inspection import explain_model

    X, names = None if rows is None else rows.X, loaded.feature_names(rows)
    return explain_model(loaded.model, X, tolerance=tolerance, feature_names=names)


def _of_row(loaded: LoadedModel, rows: Rows, x: Any, target: str | None, freeze: list[str] | None) -> Any:
    from polyplane.inspection import explain_row

    names = loaded.feature_names(rows)
    for name in freeze or ():
        if name not in names:
            raise UserError(f"--freeze: {name!r} is not one of the features.{did_you_mean(name, names)}")
    labels = {str(label): label for label in loaded.model.classes_.tolist()}
    if target is not None and target not in labels:
        raise UserError(f"--target: {target!r} is not one of the labels {', '.join(labels)}.")
    goal = None if target is None else labels[target]
    return explain_row(loaded.model, x, X=rows.X, target=goal, frozen=freeze or None, feature_names=names)


def _write_page(loaded: LoadedModel, rows: Rows, data: str, html: str, as_json: bool) -> None:
    from polyplane.inspection import model_report

    classes = loaded.model.classes_
    y = classes[class_indices(rows, classes, data)]
    page = model_report(loaded.model, rows.X, y, html, feature_names=loaded.feature_names(rows))
    facts = {"data": data, "rows": int(rows.X.shape[0]), "page": str(page)}
    present(facts, [Table("Page", (), list(facts.items()))], as_json)


def _first_rows(parts: Iterable[Rows], data: str) -> Rows:
    """The rows to explain the model on; a longer file is cut, with a note."""
    iterator = iter(parts)
    first = next(iterator)
    if next(iterator, None) is not None:
        note(f"{data} is long: only its first {first.X.shape[0]:,} rows are used.")
    return first


def _row(parts: Iterable[Rows], first: Rows, row: int, data: str) -> Any:
    """One of the first rows, or of those beyond them."""
    seen = first.X.shape[0]
    if row < seen:
        return first.X[[row]]
    if data == "-":
        raise UserError(f"--row {row}: only the first {MOST_ROWS:,} rows of standard input can be explained.")
    for part in islice(parts, 1, None):
        if row < seen + part.X.shape[0]:
            return part.X[[row - seen]]
        seen += part.X.shape[0]
    raise UserError(f"--row {row}: {data} has {seen} rows, numbered from 0 to {seen - 1}.")
