"""`polyplane explain`: the planes of a model as rules, and why a row is given its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyplane.cli._common import AsJson, UserError, command, did_you_mean, note, present
from polyplane.cli._data import DATA_HELP, Format, Known, Label, ModelFile, ZeroBased, open_model, options

if TYPE_CHECKING:
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
    typer.Option(min=0, metavar="N", help="Say why row N of DATA (from 0) gets its class, and what flips it."),
]
Top = Annotated[int, typer.Option(min=1, metavar="F", help="Features told of each plane or row.")]
Tolerance = Annotated[
    float,
    typer.Option(min=0, max=1, help="Share of the rows whose class may change by rounding and leaving out terms."),
]
Target = Annotated[
    str | None, typer.Option(metavar="LABEL", help="With --row: the class to flip to. Default: the nearest.")
]
Freeze = Annotated[
    list[str] | None, typer.Option(metavar="FEATURE", help="With --row: a feature that must stay; may be given again.")
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
    """Tell the planes of a model as rules, in the units of the data.

    With DATA, numbers have the fewest digits that keep the predictions, small terms are left out where predictions
    stay, and each plane has its share of the rows.
    """
    if data is None and (row is not None or html is not None):
        raise UserError(f"{'--row' if html is None else '--html'} needs DATA: the rows that it is about.")
    if row is None and (target is not None or freeze):
        raise UserError(f"{'--target' if target is not None else '--freeze'} goes with --row.")
    if row is not None and html is not None:
        raise UserError("--row and --html do not go together: the page explains rows of its own choice.")
    known = open_model(model)
    said = options(format, label, zero_based)
    if html is not None:
        _page(known, str(data), said, html, as_json)
        return
    rows = None if data is None else _first_rows(known, data, said)
    if row is not None and rows is not None:
        explanation = _of_row(known, str(data), said, rows, row, target, freeze)
    else:
        from polyplane.inspection import explain_model

        names = _names(known, rows)
        X = None if rows is None else rows.X
        explanation = explain_model(known.model, X, tolerance=tolerance, feature_names=names)
    if as_json:
        present({"model": model, "data": data, "row": row, **explanation.to_dict()}, [], as_json)
    else:
        typer.echo(explanation.to_text(top))


def _of_row(
    known: Known, data: str, said: dict[str, Any], rows: Rows, row: int, target: str | None, freeze: list[str] | None
) -> Any:
    from polyplane.inspection import explain_row

    names = _names(known, rows)
    for name in freeze or ():
        if names is not None and name not in names:
            raise UserError(f"--freeze: {name!r} is not one of the features.{did_you_mean(name, names)}")
    labels = {str(one): one for one in known.model.classes_.tolist()}
    if target is not None and target not in labels:
        raise UserError(f"--target: {target!r} is not one of the labels {', '.join(labels)}.")
    goal = None if target is None else labels[target]
    x = rows.X[[row]] if row < rows.X.shape[0] else _row(known, data, said, row)
    return explain_row(known.model, x, X=rows.X, target=goal, frozen=freeze or None, feature_names=names)


def _page(known: Known, data: str, said: dict[str, Any], html: str, as_json: bool) -> None:
    from polyplane.cli._common import Table
    from polyplane.cli._data import codes
    from polyplane.inspection import model_report

    rows = _first_rows(known, data, said, labels=True)
    y = known.model.classes_[codes(rows, known.model.classes_, data)]
    page = model_report(known.model, rows.X, y, html, feature_names=_names(known, rows))
    facts = {"data": data, "rows": int(rows.X.shape[0]), "page": str(page)}
    present(facts, [Table("Page", (), list(facts.items()))], as_json)


def _first_rows(known: Known, data: str, said: dict[str, Any], labels: bool = False) -> Rows:
    """The rows to look at; a longer file is cut, with a note."""
    parts = _parts(known, data, said, MOST_ROWS, labels)
    first = next(parts)
    if next(parts, None) is not None:
        note(f"{data} is long: only its first {first.X.shape[0]:,} rows are looked at.")
    return first


def _row(known: Known, data: str, said: dict[str, Any], row: int) -> Any:
    """A row beyond the first ones."""
    if data == "-":
        raise UserError(f"--row {row}: only the first {MOST_ROWS:,} rows of standard input can be asked for.")
    seen = 0
    for part in _parts(known, data, said, MOST_ROWS, labels=False):
        if row < seen + part.X.shape[0]:
            return part.X[[row - seen]]
        seen += part.X.shape[0]
    raise UserError(f"--row {row}: {data} has {seen} rows, numbered from 0 to {seen - 1}.")


def _parts(known: Known, data: str, said: dict[str, Any], n_rows: int, labels: bool) -> Any:
    from polyplane.io import batches

    expected = {**known.expectations(), "part": "test"} | ({} if labels else {"labels": "ignore"})
    return iter(batches(data, n_rows, **{**expected, **said}))


def _names(known: Known, rows: Rows | None) -> list[str] | None:
    """Names of the features: those of the training, those of the file, or svmlight's own numbers."""
    seen = getattr(known.model, "feature_names_in_", None)
    if seen is not None:
        return [str(name) for name in seen]
    if rows is not None and rows.feature_names is not None:
        return list(rows.feature_names)
    one_based = known.metadata.get("zero_based") is False
    return [f"feature {j + one_based}" for j in range(known.model.n_features_in_)]
