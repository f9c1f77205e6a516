"""`polyplane explain` for table models, in terms of the columns of the table."""

from __future__ import annotations

from typing import Any, NamedTuple

from polyplane.cli._common import UserError
from polyplane.cli._explaining import MOST_ROWS, Page, check_frozen, class_of, first_rows, part_with
from polyplane.cli._table_data import LoadedTable, TableParts


class TableRequest(NamedTuple):
    """The options of the command line."""

    data: str | None
    reading: dict[str, Any]
    row: int | None
    target: str | None
    freeze: list[str] | None
    tolerance: float
    html: str | None
    title: str | None


def explain_table(loaded: LoadedTable, request: TableRequest) -> Any:
    """Explain a model or a row, or write the HTML report."""
    from polyplane.explain import explain_model

    if request.tolerance:
        raise UserError(
            "--tolerance applies to the rules of numeric models only; a table model is explained by its columns."
        )
    if request.data is None:
        return explain_model(loaded.model)
    parts = loaded.batches(request.data, request.reading, MOST_ROWS, labels=request.html is not None)
    rows = first_rows(parts, request.data)
    if request.html is not None:
        return _page(loaded, rows, request.data, request.html, request.title)
    if request.row is not None:
        return _of_row(loaded, parts, rows, request)
    return explain_model(loaded.model, rows.X)


def _of_row(loaded: LoadedTable, parts: TableParts, first: Any, request: TableRequest) -> Any:
    from polyplane.explain import explain_row

    assert request.row is not None
    assert request.data is not None
    check_frozen(request.freeze, [column.name for column in loaded.model.table_model_.encoding.columns])
    part, place = part_with(parts, first, request.row, request.data)
    c = -1 if part.truth is None else int(part.truth[place])
    aims: dict[str, Any] = {
        "target": class_of(request.target, loaded.model),
        "true_label": None if c < 0 else loaded.model.classes_.tolist()[c],
        "frozen": request.freeze or None,
    }
    return explain_row(loaded.model, part.X.slice(place, 1), **aims)


def _page(loaded: LoadedTable, rows: Any, data: str, html: str, title: str | None) -> Page:
    from polyplane.explain import model_report

    truth, labelled = loaded.labelled(rows, data)
    page = model_report(loaded.model, labelled.X, loaded.model.classes_[truth], html, title=title)
    return Page(data, labelled.n_rows, str(page))
