"""`polyplane explain`: the planes of a model as rules, and the reasons for a prediction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any

import typer

from polyplane._plain import did_you_mean
from polyplane.cli.common import AsJson, UserError, command, note, option, present, present_facts, refuse_overwriting
from polyplane.cli.data import DATA_HELP, FileOptions, FileRows, LoadedModel, ModelPath, load_model

#: Maximum number of rows on which rules are checked.
MOST_ROWS = 1 << 16

OptionalDataPath = Annotated[
    str | None, typer.Argument(metavar="DATA", help=f"{DATA_HELP} Rules are checked on the first {MOST_ROWS:,} rows.")
]


@command(
    "polyplane explain model.safetensors",
    "polyplane explain model.safetensors pima.csv --tolerance 0.02",
    "polyplane explain model.safetensors pima.csv --row 7 --freeze age --freeze pregnancies",
    "polyplane explain model.safetensors test.csv --html report.html --title 'Loans of 2026'",
)
def explain(
    model: ModelPath,
    reading: FileOptions,
    data: OptionalDataPath = None,
    row: Annotated[int | None, option("N", min=0)] = None,
    top: Annotated[int, option("N", min=1)] = 8,
    tolerance: Annotated[float, option(min=0, max=1)] = 0.0,
    target: Annotated[str | None, option("LABEL")] = None,
    freeze: Annotated[list[str] | None, option("FEATURE")] = None,
    html: Annotated[str | None, option("FILE")] = None,
    title: Annotated[str | None, option("TEXT")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain a model or a single prediction, in the units of the data.

    The planes of a model are shown as rules; a table model is explained by the importance and effects of its columns.
    With DATA, weights are rounded and small terms omitted as long as predictions do not change, and the fraction of
    rows decided by each plane is shown.

    Parameters
    ----------
    row : int or None
        Explain the prediction for row N of DATA (0 is the first), and find the smallest change that alters it.
    top : int
        Number of features to show for each plane or row.
    tolerance : float
        Fraction of rows whose prediction may change when terms are rounded or omitted.
    target : str or None
        With --row: the class to change to. Default: the one that needs the smallest change.
    freeze : list of str or None
        With --row: a feature that must not change; can be repeated.
    html : str or None
        Write an HTML report about the model and labelled DATA.
    title : str or None
        With --html: the title of the report.
    """
    if data is None and (row is not None or html is not None):
        raise UserError(f"{'--row' if html is None else '--html'} requires DATA, the rows to explain.")
    if row is None and (target is not None or freeze):
        raise UserError(f"{'--target' if target is not None else '--freeze'} requires --row.")
    if title is not None and html is None:
        raise UserError("--title requires --html.")
    if row is not None and html is not None:
        raise UserError("--row and --html cannot be combined: the report selects its own rows to explain.")
    from polyplane.explain import explain_model, model_report

    refuse_overwriting(html, model, data)
    loaded = load_model(model)
    if loaded.is_table and tolerance:
        raise UserError(
            "--tolerance applies to the rules of numeric models only; a table model is explained by its columns."
        )
    parts = None if data is None else loaded.batches(data, reading.given, MOST_ROWS, labels=html is not None)
    first = None if parts is None else next(parts)
    following = None if parts is None else next(parts, None)
    if first is not None and following is not None:
        note(f"{data}: only the first {first.n_rows:,} rows are used.")
    if html is not None and first is not None:
        rows = first.labelled(str(data))
        y, names = loaded.model.classes[rows.truth], loaded.feature_names(rows)
        page = model_report(loaded.estimator, rows.X, y, html, title=title, feature_names=names)
        present_facts("Page", {"data": data, "rows": rows.n_rows, "page": str(page)}, as_json)
        return
    if row is not None and parts is not None and first is not None:
        part, index = _part_with([each for each in (first, following) if each is not None], parts, row, str(data))
        explanation: Any = _explain_row(loaded, first, part, index, target, freeze)
    else:
        X, names = None if first is None else first.X, loaded.feature_names(first)
        explanation = explain_model(loaded.estimator, X, tolerance=tolerance, feature_names=names)
    if as_json:
        present({"model": model, "data": data, "row": row, **explanation.to_dict()}, [], as_json)
    else:
        typer.echo(explanation.to_text(top))


def _explain_row(
    loaded: LoadedModel, rows: FileRows, part: FileRows, index: int, target: str | None, freeze: list[str] | None
) -> Any:
    """Explain the row of a batch; the first rows give the typical values of features."""
    from polyplane.explain import explain_row

    model, names = loaded.model, loaded.feature_names(rows)
    known = names or [column.name for column in loaded.inputs.columns]
    for name in freeze or ():
        if name not in known:
            raise UserError(f"--freeze: unknown feature {name!r}.{did_you_mean(name, known)}")
    labels, aim = model.classes.tolist(), loaded.class_index("target", target)
    aims: dict[str, Any] = {"target": None if aim is None else labels[aim], "frozen": freeze or None}
    if not loaded.is_table:
        return explain_row(loaded.estimator, part.X[[index]], X=rows.X, feature_names=names, **aims)
    c = -1 if part.truth is None else int(part.truth[index])
    truth = None if c < 0 else labels[c]
    return explain_row(loaded.estimator, part.X.slice(index, 1), true_label=truth, **aims)


def _part_with(begun: list[FileRows], parts: Iterator[FileRows], row: int, data: str) -> tuple[FileRows, int]:
    """Return the batch of a file that contains a row, and the index of the row in it."""
    for part in chain(begun, parts):
        if row < part.first + part.n_rows:
            return part, row - part.first
    n_rows = part.first + part.n_rows
    raise UserError(f"--row {row}: {data} has {n_rows} rows, numbered from 0 to {n_rows - 1}.")
