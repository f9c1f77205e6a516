"""What `polyplane train` reports: errors, and what was done."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from polyplane.cli._common import Table, UserError, present
from polyplane.cli._data import LoadedModel
from polyplane.cli._learners import name_of, set_known
from polyplane.cli._train_options import TrainOptions
from polyplane.cli._training import TrainedModel, scaling_of

if TYPE_CHECKING:
    from polyplane.io import Rows


#: Settings of a search that are shown; --json has them all.
SHOWN = 10


def cross_validate(options: TrainOptions, model: Any, rows: Rows) -> list[float]:
    """The error of each fold, in per cent; each is scaled by its own training rows, or as the model to go on with."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    from polyplane.engine.run import Limits

    assert options.cv is not None
    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    if fewest < options.cv:
        raise UserError(f"--cv {options.cv}: a class has only {fewest} rows, fewer than folds.")
    errors = []
    folds = StratifiedKFold(options.cv, shuffle=True, random_state=options.seed)
    for train_rows, test_rows in folds.split(rows.lines, rows.y):
        X, fold = rows.X[train_rows], clone(model)
        set_known(fold, warm_start=False)
        scaling = model._scaling or scaling_of(X, options.scaling)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say was said of all rows
            fold._fit(X, rows.y[train_rows], None, Limits(options.time_limit), scaling)
        predicted = fold.classes_[fold.planes_.predict(rows.X[test_rows])]
        errors.append(100 * float((predicted != rows.y[test_rows]).mean()))
    return errors


def test_error(trained: TrainedModel, options: TrainOptions) -> float:
    """The error on the rows of ``--test``, in per cent."""
    from polyplane.cli.evaluate import confusion_matrix

    assert options.test is not None
    try:
        matrix = confusion_matrix(LoadedModel(trained.model, trained.facts), options.test, {}, options.threads)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {options.out} is written, but not tested.") from None
    except (UserError, ValueError, OSError) as error:
        raise UserError(f"{options.out} is written, but could not be tested: {error}") from error
    return 100 * (1 - matrix.accuracy)


def report(trained: TrainedModel, options: TrainOptions, extra: dict[str, Any]) -> None:
    """Say what was done."""
    planes = trained.model.planes_
    content: dict[str, Any] = {
        "model": options.out,
        "learner": name_of(trained.model),
        "rows": trained.n_rows,
        "features": planes.n_features,
        "classes": trained.model.classes_,
        "planes": planes.n_planes,
        "steps": trained.model.n_iter_,
        "seconds": round(trained.seconds, 3),
        "interrupted": trained.interrupted,
        **extra,
    }
    shown = {**content, "classes": planes.n_classes}
    if "tuned" in extra:
        shown |= _about_tuning(shown.pop("tuned"))
    if "cv_error_percent" in extra:
        import numpy as np

        errors = extra["cv_error_percent"]
        shown["cv_error_percent"] = f"{np.mean(errors):.4g} +- {np.std(errors):.2g}"
    rows = [(name.replace("_percent", " %").replace("_", " "), value) for name, value in shown.items()]
    tables = [Table("Trained", (), rows)]
    if "tuned" in extra:
        tables.insert(0, _tried(extra["tuned"]["tried"]))
    present(content, tables, options.as_json)


def _about_tuning(tuned: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a search in a few lines."""
    return {
        "scaling": tuned["scaling"],
        "tuned": " ".join(f"{name}={value}" for name, value in tuned["settings"].items()),
        "tuned_error_percent": f"{tuned['error']:.4g} +- {tuned['standard_error']:.2g}",
        "settings_tried": tuned["n_tried"],
    }


def _tried(tried: list[dict[str, Any]]) -> Table:
    """The best of the settings that were tried."""
    title = f"The best of {len(tried)} settings, by cross-validation"
    columns = [name.replace("standard_error", "+-").replace("error", "error %") for name in tried[0]]
    return Table(title, columns, [list(row.values()) for row in tried[:SHOWN]])
