"""What `polyplane train` tells: errors, and what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyplane.cli._common import Table, UserError, present
from polyplane.cli._data import Known
from polyplane.cli._fitting import Fitted, Plan, fit_rows
from polyplane.cli._learners import name_of
from polyplane.cli._order import Order

if TYPE_CHECKING:
    from polyplane.io import Rows


def cross_validate(k: int, model: Any, rows: Rows, plan: Plan, seed: int) -> list[float]:
    """The error of each fold, in per cent; each scales by its own training rows."""
    import numpy as np
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    fewest = int(np.unique(rows.y, return_counts=True)[1].min())
    if fewest < k:
        raise UserError(f"--cv {k}: a class has only {fewest} rows, fewer than folds.")
    errors = []
    for train_rows, test_rows in StratifiedKFold(k, shuffle=True, random_state=seed).split(rows.lines, rows.y):
        part = rows._replace(X=rows.X[train_rows], y=rows.y[train_rows], lines=rows.lines[train_rows])
        fitted = fit_rows(clone(model).set_params(warm_start=False), part, plan)
        if fitted.interrupted:
            raise KeyboardInterrupt
        wrong = fitted.model.planes_.predict(rows.X[test_rows])
        errors.append(100 * float((fitted.model.classes_[wrong] != rows.y[test_rows]).mean()))
    return errors


def test_error(fitted: Fitted, order: Order) -> float:
    """The error on the rows of ``--test``, in per cent."""
    from polyplane.cli.evaluate import test

    assert order.test is not None
    try:
        found = test(Known(fitted.model, fitted.facts), order.test, {})
    except (UserError, ValueError, OSError) as error:
        raise UserError(f"{order.out} is written, but could not be tested: {error}") from error
    return 100 * (1 - found.accuracy)


def tell(order: Order, fitted: Fitted, extra: dict[str, Any]) -> None:
    """Report what was done."""
    planes = fitted.model.planes_
    content: dict[str, Any] = {
        "model": order.out,
        "learner": name_of(fitted.model),
        "rows": fitted.n_rows,
        "features": planes.n_features,
        "classes": fitted.model.classes_,
        "planes": planes.n_planes,
        "steps": fitted.model.n_iter_,
        "seconds": round(fitted.seconds, 3),
        "interrupted": fitted.interrupted,
        **extra,
    }
    facts = {**content, "classes": planes.n_classes}
    if "tuned" in extra:
        tuned = extra["tuned"]
        facts["tuned"] = " ".join(f"{name}={value}" for name, value in tuned["settings"].items())
    if "cv_error_percent" in extra:
        import numpy as np

        errors = extra["cv_error_percent"]
        facts["cv_error_percent"] = f"{np.mean(errors):.4g} +- {np.std(errors):.2g}"
    rows = [(name.replace("_percent", " %").replace("_", " "), value) for name, value in facts.items()]
    present(content, [Table("Trained", (), list(rows))], order.as_json)
