"""`polyplane explain`: the planes of a model as rules, and the reasons for a prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyplane.cli._common import AsJson, Table, UserError, command, present
from polyplane.cli._data import (
    DATA_HELP,
    Encoding,
    Format,
    Label,
    LoadedModel,
    ModelFile,
    ZeroBased,
    class_indices,
    load_model,
    reading_options,
)
from polyplane.cli._explain_table import TableRequest, explain_table
from polyplane.cli._explaining import MOST_ROWS, Page, check_frozen, class_of, first_rows, row_of
from polyplane.cli._table_data import LoadedTable

if TYPE_CHECKING:
    from polyplane.readers import Rows

MaybeData = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA", show_default=False, help=f"{DATA_HELP} Rules are checked on the first {MOST_ROWS:,} rows."
    ),
]
Row = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Explain the prediction for row N of DATA (0 is the first), and find the smallest change that alters it.",
    ),
]
Top = Annotated[int, typer.Option(min=1, metavar="N", help="Number of features to show for each plane or row.")]
Tolerance = Annotated[
    float,
    typer.Option(min=0, max=1, help="Fraction of rows whose prediction may change when terms are rounded or omitted."),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL", help="With --row: the class to change to. Default: the one that needs the smallest change."
    ),
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(metavar="FEATURE", help="With --row: a feature that must not change; can be repeated."),
]
Html = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write an HTML report about the model and labelled DATA."),
]
Title = Annotated[str | None, typer.Option(metavar="TEXT", help="With --html: the title of the report.")]


@command(
    "polyplane explain model.safetensors",
    "polyplane explain model.safetensors pima.csv --tolerance 0.02",
    "polyplane explain model.safetensors pima.csv --row 7 --freeze age --freeze pregnancies",
    "polyplane explain model.safetensors test.csv --html report.html --title 'Loans of 2026'",
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
    title: Title = None,
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Explain a model or a single prediction, in the units of the data.

    The planes of a model are shown as rules; a table model is explained by the importance and effects of its columns.
    With DATA, weights are rounded and small terms omitted as long as predictions do not change, and the fraction of
    rows decided by each plane is shown.
    """
    if data is None and (row is not None or html is not None):
        raise UserError(f"{'--row' if html is None else '--html'} requires DATA, the rows to explain.")
    if row is None and (target is not None or freeze):
        raise UserError(f"{'--target' if target is not None else '--freeze'} requires --row.")
    if title is not None and html is None:
        raise UserError("--title requires --html.")
    if row is not None and html is not None:
        raise UserError("--row and --html cannot be combined: the report selects its own rows to explain.")
    loaded, options = load_model(model), reading_options(format, label, zero_based, encoding)
    if isinstance(loaded, LoadedTable):
        request = TableRequest(data, options, row, target, freeze, tolerance, html, title)
        explanation = explain_table(loaded, request)
    elif data is None:
        explanation = _of_model(loaded, None, tolerance)
    else:
        parts = loaded.batches(data, options, MOST_ROWS, labels=html is not None)
        rows = first_rows(parts, data)
        if html is not None:
            explanation = _page(loaded, rows, data, html, title)
        elif row is not None:
            explanation = _of_row(loaded, rows, row_of(parts, rows, row, data), target, freeze)
        else:
            explanation = _of_model(loaded, rows, tolerance)
    if isinstance(explanation, Page):
        facts = explanation._asdict()
        present(facts, [Table("Page", (), list(facts.items()))], as_json)
    elif as_json:
        present({"model": model, "data": data, "row": row, **explanation.to_dict()}, [], as_json)
    else:
        typer.echo(explanation.to_text(top))


def _of_model(loaded: LoadedModel, rows: Rows | None, tolerance: float) -> Any:
    from polyplane.explain import explain_model

    X, names = None if rows is None else rows.X, loaded.feature_names(rows)
    return explain_model(loaded.model, X, tolerance=tolerance, feature_names=names)


def _of_row(loaded: LoadedModel, rows: Rows, x: Any, target: str | None, freeze: list[str] | None) -> Any:
    from polyplane.explain import explain_row

    names = loaded.feature_names(rows)
    check_frozen(freeze, names)
    goal = class_of(target, loaded.model)
    return explain_row(loaded.model, x, X=rows.X, target=goal, frozen=freeze or None, feature_names=names)


def _page(loaded: LoadedModel, rows: Rows, data: str, html: str, title: str | None) -> Page:
    from polyplane.explain import model_report

    classes = loaded.model.classes_
    y = classes[class_indices(rows, classes, data)]
    page = model_report(loaded.model, rows.X, y, html, title=title, feature_names=loaded.feature_names(rows))
    return Page(data, int(rows.X.shape[0]), str(page))
