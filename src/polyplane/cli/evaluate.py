"""`polyplane evaluate`: the error of a model on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyplane.cli.common import AsJson, Table, UserError, command, present
from polyplane.cli.data import (
    DataFile,
    Encoding,
    Format,
    Label,
    LoadedModel,
    ModelFile,
    ZeroBased,
    load_model,
    reading_options,
)
from polyplane.cli.report import Error

if TYPE_CHECKING:
    from polyplane.explain.confusion import ConfusionMatrix

#: Maximum number of classes of a confusion matrix in the text output; --json always includes it.
MOST_CLASSES = 30


@command(
    "polyplane evaluate model.safetensors a9a.t",
    "polyplane evaluate model.safetensors test.csv --label income",
    "xzcat test.svm.xz | polyplane evaluate model.safetensors - --json",
)
def evaluate(
    model: ModelFile,
    data: DataFile,
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    encoding: Encoding = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads for prediction.")] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on labelled data: accuracy, precision and recall of each class, and the confusion matrix.

    Rows are read in batches, so files can be larger than memory. Labels unknown to the model are an error.
    """
    matrix = confusion_matrix(load_model(model), data, reading_options(format, label, zero_based, encoding), threads)
    by_class, error = _by_class(matrix), Error.of_matrix(matrix)
    content = {
        "model": model,
        "data": data,
        "rows": matrix.n_rows,
        "accuracy": matrix.accuracy,
        "error_percent": error.percent,
        "error_interval_percent": error.interval,
        "baseline_error_percent": error.baseline_percent,
        "classes": by_class,
        "confusion": matrix.counts,
    }
    present(content, _tables(matrix, by_class), as_json)


def confusion_matrix(
    loaded: LoadedModel, data: str, options: dict[str, Any], threads: int | None = None
) -> ConfusionMatrix:
    """Compute the confusion matrix of a model on the rows of a file."""
    from polyplane.explain.confusion import ConfusionMatrix

    classes = loaded.model.classes
    matrix = ConfusionMatrix.of(classes, [], [])
    with loaded.predicting(threads):
        for part in loaded.batches(data, options):
            rows = part.labelled(data)
            if rows.n_rows:
                matrix += ConfusionMatrix.of(classes, rows.truth, loaded.predict(rows))
    if not matrix.n_rows:
        raise UserError(f"{data}: no row has a label.")
    return matrix


def _by_class(matrix: ConfusionMatrix) -> list[dict[str, Any]]:
    columns = {
        "label": matrix.classes,
        "rows": matrix.support,
        "precision": matrix.precision,
        "recall": matrix.recall,
        "f1": matrix.f1,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _tables(matrix: ConfusionMatrix, by_class: list[dict[str, Any]]) -> list[Table]:
    error = Error.of_matrix(matrix)
    facts: list[tuple[str, Any]] = [
        ("rows", matrix.n_rows),
        ("accuracy", matrix.accuracy),
        ("error %", round(error.percent, 4)),
    ]
    facts += [(error.interval_name, error.shown_interval), ("baseline error %", error.shown_baseline)]
    tables = [
        Table("Evaluation", (), facts),
        Table("By class", list(by_class[0]), [list(row.values()) for row in by_class]),
    ]
    if len(by_class) <= MOST_CLASSES:
        labels = matrix.classes.tolist()
        rows = [[label, *counts] for label, counts in zip(labels, matrix.counts.tolist(), strict=True)]
        title = "Confusion matrix: true class by row, predicted class by column"
        tables.append(Table(title, ["true / predicted", *map(str, labels)], rows))
    return tables
