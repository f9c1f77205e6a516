"""The report of `polyplane train`."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from polyplane._plain import visible
from polyplane.cli._common import Table, UserError, present
from polyplane.cli._data import LoadedModel
from polyplane.cli._errors import Error
from polyplane.cli._learners import name_of, set_known
from polyplane.cli._table_data import LoadedTable
from polyplane.cli._train_options import TrainOptions
from polyplane.cli._training import TrainedModel, scaling_of

if TYPE_CHECKING:
    import numpy as np

    from polyplane.readers import Rows


#: Number of search settings to show; --json lists all of them.
SHOWN = 10


def cross_validate(options: TrainOptions, model: Any, rows: Rows) -> list[Error]:
    """Return the error of each fold; it is scaled by its own training rows, or like the model to resume."""
    from sklearn.base import clone

    from polyplane.engine.run import Limits

    errors, majority = [], most_frequent(rows.y)
    for train_rows, test_rows in stratified_folds(rows.y, options):
        X, fold = rows.X[train_rows], clone(model)
        set_known(fold, warm_start=False)
        scaling = model._scaling or scaling_of(X, options.scaling)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same warnings are shown for the fit on all rows
            fold._fit(X, rows.y[train_rows], None, Limits(options.time_limit), scaling)
        predicted = fold.classes_[fold.planes_.predict(rows.X[test_rows])]
        errors.append(Error.of_labels(predicted, rows.y[test_rows], majority))
    return errors


def most_frequent(y: np.ndarray) -> Any:
    """Return the most frequent label."""
    import numpy as np

    labels, counts = np.unique(y, return_counts=True)
    return labels.tolist()[counts.argmax()]


def stratified_folds(y: np.ndarray, options: TrainOptions) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the training rows and the test rows of each fold of ``--cv``."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    assert options.cv is not None
    fewest = int(np.unique(y, return_counts=True)[1].min())
    if fewest < options.cv:
        raise UserError(f"--cv {options.cv}: the smallest class has only {fewest} rows; use at most that many folds.")
    folds = StratifiedKFold(options.cv, shuffle=True, random_state=options.seed)
    yield from folds.split(np.empty(len(y)), y)


def tested(model: LoadedModel | LoadedTable, options: TrainOptions) -> Error:
    """Return the error on the rows of ``--test``."""
    from polyplane.cli.evaluate import confusion_matrix

    assert options.test is not None
    reading = {"encoding": options.reading["encoding"]} if "encoding" in options.reading else {}
    try:
        return Error.of_matrix(confusion_matrix(model, options.test, reading, options.threads))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; {options.out} has been written, but not evaluated on the test data."
        ) from None
    except (UserError, ValueError, OSError) as error:
        raise UserError(f"{options.out} has been written, but evaluation on the test data failed: {error}") from error


def error_content(folds: list[Error], test: Error | None) -> dict[str, Any]:
    """Return the cross-validation and test errors for the JSON output."""
    content: dict[str, Any] = {}
    if folds:
        content["cv_error_percent"] = [fold.percent for fold in folds]
        content["cv_error_interval_percent"] = Error.pooled(folds).interval
    if test is not None:
        content["test_error_percent"] = test.percent
        content["test_error_interval_percent"] = test.interval
    if folds or test is not None:
        content["baseline_error_percent"] = (test or Error.pooled(folds)).baseline_percent
    return content


def error_facts(folds: list[Error], test: Error | None) -> dict[str, str]:
    """Return the cross-validation and test errors as text."""
    facts = {}
    if folds:
        percents = [fold.percent for fold in folds]
        facts["cv error %"] = f"{Error.pooled(folds)}, folds {min(percents):.4g} to {max(percents):.4g}"
    if test is not None:
        facts["test error %"] = str(test)
    if folds or test is not None:
        facts["baseline error %"] = (test or Error.pooled(folds)).shown_baseline
    return facts


def next_steps(options: TrainOptions) -> str:
    """Suggest commands for the new model."""
    data, model = shlex.quote(options.test or options.data), shlex.quote(options.out)
    lines = [f"polyplane predict {model} {data}", f"polyplane explain {model} {data} --row 0"]
    if options.test is None and options.cv is None:
        lines.insert(0, "use --test FILE or --cv 5 to estimate the error")
    return "Next: " + "\n      ".join(map(visible, lines)) + "\n"


def report(
    trained: TrainedModel, options: TrainOptions, tuned: dict[str, Any] | None, folds: list[Error], test: Error | None
) -> None:
    """Print the report."""
    planes = trained.model.planes_
    content: dict[str, Any] = {
        "model": options.out,
        "learner": name_of(trained.model),
        "rows": trained.n_rows,
        "features": planes.n_features,
        "label": trained.facts.get("label"),
        "classes": trained.model.classes_,
        "planes": planes.n_planes,
        "steps": trained.model.n_iter_,
        "seconds": round(trained.seconds, 3),
        "interrupted": trained.interrupted,
    }
    shown = {**content, "classes": planes.n_classes} | ({} if tuned is None else _about_tuning(tuned))
    rows = [(name.replace("_percent", " %").replace("_", " "), value) for name, value in shown.items()]
    rows = [*((name, value) for name, value in rows if value is not None), *error_facts(folds, test).items()]
    tables = [Table("Trained", (), rows)]
    if tuned is not None:
        content["tuned"] = tuned
        tables.insert(0, _tried(tuned["tried"]))
    present({**content, **error_content(folds, test)}, tables, options.as_json)
    if sys.stdout.isatty() and not options.as_json:
        typer.echo(next_steps(options))


def _about_tuning(tuned: dict[str, Any]) -> dict[str, Any]:
    """Summarise the results of a search."""
    return {
        "scaling": tuned["scaling"],
        "tuned": " ".join(f"{name}={value}" for name, value in tuned["settings"].items()),
        "tuned_error_percent": f"{tuned['error']:.4g} +- {tuned['standard_error']:.2g}",
        "settings_tried": tuned["n_tried"],
    }


def _tried(tried: list[dict[str, Any]]) -> Table:
    """Return a table of the best settings of a search."""
    title = f"Best of {len(tried)} settings, by cross-validation error"
    columns = [name.replace("standard_error", "+-").replace("error", "error %") for name in tried[0]]
    return Table(title, columns, [list(row.values()) for row in tried[:SHOWN]])
