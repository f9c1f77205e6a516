"""`polyplane evaluate`: the errors of a model on labelled rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from polyplane.cli.common import AsJson, PrintedTable, UserError, command, option, present
from polyplane.cli.data import DataPath, FileOptions, LoadedModel, ModelPath, PredictingThreads, load_model
from polyplane.cli.report import error_content, error_shown, facts_table

if TYPE_CHECKING:
    import numpy as np

#: Maximum number of classes of a confusion matrix in the text output; --json always includes it.
MOST_CLASSES = 30


@command(
    "polyplane evaluate model.safetensors a9a.t",
    "polyplane evaluate model.safetensors test.csv --label income --positive '>50K' --threshold 0.3",
    "polyplane evaluate model.safetensors test.csv --eps 0.1 --norm inf",
    "xzcat test.svm.xz | polyplane evaluate model.safetensors - --json",
)
def evaluate(
    model: ModelPath,
    data: DataPath,
    reading: FileOptions,
    positive: Annotated[str | None, option("LABEL")] = None,
    threshold: Annotated[float | None, option("NUMBER")] = None,
    eps: Annotated[float | None, option("SIZE", min=0)] = None,
    norm: Annotated[str, option("NORM")] = "inf",
    threads: PredictingThreads = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on labelled data: accuracy, AUC, log-loss, Brier score, and the confusion matrix.

    Precision, recall and F1 are those of each class. The AUC of more than two classes is the mean over the classes, one
    against the others. Log-loss and Brier score need probabilities.

    Rows are read in batches, so files can be larger than memory. Labels unknown to the model are an error.

    Parameters
    ----------
    positive : str or None
        Two classes: the positive class. Default: the second one.
    threshold : float or None
        Two classes: predict the positive class if its probability (its score, if the model has no probabilities) is at
        least this number. Default: predict the class with the larger score.
    eps : float or None
        Also print the robust error: the share of rows that are misclassified, or may be after a change of at most this
        size, in the units of a matrix; of tables, each number in units of its interquartile range.
    norm : str
        The norm of the change: 1, 2, or inf, the largest change of a column.
    """
    import numpy as np

    from polyplane.explain.confusion import ConfusionMatrix

    loaded = load_model(model)
    index = _positive(loaded, positive, threshold)
    metric = "proba" if loaded.model.has_probabilities else "score"
    more = {} if eps is None else {"certain": _certain(loaded, eps, norm)}
    truth, predicted, scores, *certain = outcomes(loaded, data, reading.given, threads, [metric], more)
    robust = [float(1.0 - np.mean((truth == predicted) & each)) for each in certain]
    if threshold is not None and index is not None:
        own = scores[:, index] if metric == "proba" else scores[:, index] - scores[:, 1 - index]
        predicted = np.where(own >= threshold, index, 1 - index)
    matrix = ConfusionMatrix.of(loaded.model.classes, truth, predicted)
    labels = matrix.classes.tolist()
    by_class = {"label": labels, **matrix.by_class}
    rows = list(zip(*by_class.values(), strict=True))
    facts: dict[str, Any] = {"accuracy": matrix.accuracy, **_quality(truth, scores, metric)}
    if robust:
        facts |= {"eps": eps, "norm": norm, "robust_error": robust[0]}
    if index is not None:
        facts |= {"positive": labels[index], "threshold": threshold}
    content = {"model": model, "data": data, "rows": matrix.n_rows, **facts, **error_content(matrix)}
    content["baseline_error_percent"] = matrix.baseline_percent
    content["classes"] = [dict(zip(by_class, row, strict=True)) for row in rows]
    shown = {"rows": matrix.n_rows, **facts, "error %": round(matrix.error_percent, 4), **error_shown(matrix)}
    tables = [facts_table("Evaluation", shown), PrintedTable("By class", list(by_class), rows)]
    if len(labels) <= MOST_CLASSES:
        counts = [[label, *own] for label, own in zip(labels, matrix.counts.tolist(), strict=True)]
        title = "Confusion matrix: true class by row, predicted class by column"
        tables.append(PrintedTable(title, ["true / predicted", *map(str, labels)], counts))
    present({**content, "confusion": matrix.counts}, tables, as_json)


def outcomes(
    loaded: LoadedModel,
    data: str,
    given: dict[str, Any],
    threads: int | None = None,
    wanted: Collection[str] = (),
    more: Mapping[str, Callable[[Any], np.ndarray]] | None = None,
) -> tuple[np.ndarray, ...]:
    """Return the true and the predicted classes of the labelled rows of a file, and other metrics of them."""
    import numpy as np

    found = []
    with loaded.predicting(threads):
        for part in loaded.batches(data, given):
            rows = part.labelled(data)
            if rows.n_rows and rows.truth is not None:
                predicted, metrics = loaded.outcome(rows, wanted, more)
                found.append((rows.truth, predicted, *metrics.values()))
    if not found:
        raise UserError(f"{data}: no row has a label.")
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))


def _certain(loaded: LoadedModel, eps: float, norm: str) -> Callable[[Any], np.ndarray]:
    """Return a function of encoded rows: whether no change of this size leads to another class."""
    from polyplane.explain.robustness import Certificate

    try:
        certificate = Certificate(loaded.model, norm)
    except TypeError as error:
        raise UserError(str(error)) from None
    return lambda Z: certificate.is_certain(Z, eps)


def _positive(loaded: LoadedModel, positive: str | None, threshold: float | None) -> int | None:
    """Return the index of the positive class; None if there are more than two."""
    n_classes = loaded.model.n_classes
    if n_classes != 2:
        for name, value in {"positive": positive, "threshold": threshold}.items():
            if value is not None:
                raise UserError(f"--{name} applies to models of two classes, and this one has {n_classes}.")
        return None
    index = loaded.class_index("positive", positive)
    if threshold is not None and loaded.model.has_probabilities and not 0 <= threshold <= 1:
        raise UserError(f"--threshold {threshold:g}: expected a probability from 0 to 1.")
    if threshold is not None and threshold != threshold:
        raise UserError("--threshold nan: expected a number.")
    return 1 if index is None else index


def _quality(truth: np.ndarray, scores: np.ndarray, metric: str) -> dict[str, float | None]:
    """Compute the metrics of scikit-learn that need scores or probabilities; None if they are not defined."""
    import numpy as np
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    classes = np.arange(scores.shape[1])
    scores = scores.astype(np.float64)
    found: dict[str, float | None] = dict.fromkeys(("auc", "log_loss", "brier"))
    if len(np.unique(truth)) == len(classes) == 2:
        found["auc"] = float(roc_auc_score(truth, scores[:, 1] - scores[:, 0]))
    elif len(np.unique(truth)) == len(classes):
        found["auc"] = float(np.mean([roc_auc_score(truth == c, scores[:, c]) for c in classes]))
    if metric == "proba":
        found["log_loss"] = float(log_loss(truth, scores, labels=classes))
        found["brier"] = float(brier_score_loss(truth, scores, labels=classes))
    return found
