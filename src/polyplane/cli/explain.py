"""`polyplane explain`: the planes of a model as rules, and the reasons for a prediction."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from polyplane.cli.common import AsJson, Table, UserError, command, did_you_mean, note, present, refuse_overwriting
from polyplane.cli.data import (
    DATA_HELP,
    Encoding,
    Format,
    Label,
    LoadedModel,
    ModelFile,
    Part,
    Parts,
    ZeroBased,
    load_model,
    reading_options,
)

#: Maximum number of rows on which rules are checked.
MOST_ROWS = 1 << 16

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
    from polyplane.explain import explain_model

    refuse_overwriting(html, model, data)
    loaded, options = load_model(model), reading_options(format, label, zero_based, encoding)
    if loaded.is_table and tolerance:
        raise UserError(
            "--tolerance applies to the rules of numeric models only; a table model is explained by its columns."
        )
    parts = None if data is None else loaded.batches(data, options, MOST_ROWS, labels=html is not None)
    rows = None if parts is None else _first_rows(parts, str(data))
    if html is not None and rows is not None:
        _write_page(loaded, rows, str(data), html, title, as_json)
        return
    if row is not None and parts is not None and rows is not None:
        part, index = _part_with(parts, rows, row, str(data))
        explanation: Any = _explain_row(loaded, rows, part, index, target, freeze)
    else:
        X, names = None if rows is None else rows.X, loaded.feature_names(rows)
        explanation = explain_model(loaded.estimator, X, tolerance=tolerance, feature_names=names)
    if as_json:
        present({"model": model, "data": data, "row": row, **explanation.to_dict()}, [], as_json)
    else:
        typer.echo(explanation.to_text(top))


def _explain_row(
    loaded: LoadedModel, rows: Part, part: Part, index: int, target: str | None, freeze: list[str] | None
) -> Any:
    """Explain the row of a batch; the first rows give the typical values of features."""
    from polyplane.explain import explain_row

    model, names = loaded.model, loaded.feature_names(rows)
    known = names or [column.name for column in loaded.inputs.columns]
    for name in freeze or ():
        if name not in known:
            raise UserError(f"--freeze: unknown feature {name!r}.{did_you_mean(name, known)}")
    labels = {str(label): label for label in model.classes.tolist()}
    if target is not None and target not in labels:
        raise UserError(f"--target: unknown label {target!r}; expected one of {', '.join(labels)}.")
    aims: dict[str, Any] = {"target": None if target is None else labels[target], "frozen": freeze or None}
    if not loaded.is_table:
        return explain_row(loaded.estimator, part.X[[index]], X=rows.X, feature_names=names, **aims)
    c = -1 if part.truth is None else int(part.truth[index])
    truth = None if c < 0 else model.classes.tolist()[c]
    return explain_row(loaded.estimator, part.X.slice(index, 1), true_label=truth, **aims)


def _write_page(loaded: LoadedModel, rows: Part, data: str, html: str, title: str | None, as_json: bool) -> None:
    from polyplane.explain import model_report

    rows = rows.labelled(data)
    y, names = loaded.model.classes[rows.truth], loaded.feature_names(rows)
    page = model_report(loaded.estimator, rows.X, y, html, title=title, feature_names=names)
    facts = {"data": data, "rows": rows.n_rows, "page": str(page)}
    present(facts, [Table("Page", (), list(facts.items()))], as_json)


def _first_rows(parts: Parts, data: str) -> Part:
    """Return the rows for the explanation of the model; the rest of a longer file is ignored, with a note."""
    iterator = iter(parts)
    first = next(iterator)
    if next(iterator, None) is not None:
        note(f"{data}: only the first {first.n_rows:,} rows are used.")
    return first


def _part_with(parts: Parts, first: Part, row: int, data: str) -> tuple[Part, int]:
    """Return the batch of a file that contains a row, and the index of the row in it."""
    seen = first.n_rows
    if row < seen:
        return first, row
    if data == "-":
        raise UserError(f"--row {row}: only the first {MOST_ROWS:,} rows of standard input can be explained.")
    for part in islice(parts, 1, None):
        if row < seen + part.n_rows:
            return part, row - seen
        seen += part.n_rows
    raise UserError(f"--row {row}: {data} has {seen} rows, numbered from 0 to {seen - 1}.")
