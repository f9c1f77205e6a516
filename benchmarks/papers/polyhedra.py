"""What the experiments of the two papers on polyhedra share: data, nested cross-validation, tables and pictures."""

from __future__ import annotations

import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from benchmarks.data.synthetic import make_polyceptron_1, make_polyceptron_2
from benchmarks.harness.experiment import Figure, Row, Table, printed, repeated
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from polyplane.datasets import load_dataset

#: Columns of Adult that hold codes of categories.
ADULT_CATEGORICAL = [1, 3, 5, 6, 7, 8, 9, 13]
#: The paper's figures and ours, in colours that the colour-blind tell apart (Okabe and Ito).
PAPER_COLOUR, OUR_COLOUR = "#D55E00", "#0072B2"
#: Both papers repeat their cross-validations so often.
REPETITIONS = 10
TITLES = {
    "ionosphere": "Ionosphere",
    "heart": "Heart",
    "ilpd": "ILPD",
    "pima": "Pima",
    "adult": "Adult",
    "dataset_1": "Dataset 1",
    "dataset_2": "Dataset 2",
    "breast_cancer_wisconsin": "Breast Cancer",
}


def load(name: str) -> tuple[Any, np.ndarray]:
    """A set by name: those of the papers, Adult one-hot in CSR, Breast Cancer without its incomplete rows."""
    if name == "dataset_1":
        return make_polyceptron_1(random_state=0)
    if name == "dataset_2":
        return make_polyceptron_2(random_state=0)
    bunch = load_dataset(name)
    X, y = bunch.data.astype(np.float64), bunch.target
    if name == "breast_cancer_wisconsin":
        complete = np.isfinite(X).all(axis=1)
        return X[complete], y[complete]
    if name == "adult":
        numeric = [j for j in range(X.shape[1]) if j not in ADULT_CATEGORICAL]
        codes = OneHotEncoder().fit_transform(X[:, ADULT_CATEGORICAL])
        return sparse.csr_matrix(sparse.hstack([X[:, numeric], codes])), y
    return X, y


def prepared(X: Any, train: np.ndarray, test: np.ndarray, scaler: Any = StandardScaler) -> tuple[Any, Any]:
    """The training and the test rows; dense ones imputed and standardised by what the training rows say."""
    if sparse.issparse(X):
        return X[train], X[test]
    steps = make_pipeline(SimpleImputer(strategy="median"), scaler()).fit(X[train])
    return steps.transform(X[train]), steps.transform(X[test])


def nested_cv(
    make: Callable[..., Any],
    grid: list[dict[str, Any]],
    X: Any,
    y: np.ndarray,
    repeats: int,
    inner_folds: int,
    inner_rows: int | None = None,
    outer_rows: int | None = None,
    seed: int = 0,
    scaler: Any = StandardScaler,
) -> dict[str, Any]:
    """Repeated 10-fold cross-validation; within each training part an inner one chooses from the grid.

    The parameters are chosen one after the other, in the order of the grid, each by the mean inner accuracy over all
    settings that agree with what is chosen already. On a few hundred rows the single best of many settings is mostly
    the luckiest; means over settings are less noisy. The choice may see `inner_rows` of the training part only, and the
    model `outer_rows`.
    """
    accuracy, seconds, sizes, chosen = [], [], [], Counter()
    outer = RepeatedStratifiedKFold(n_splits=10, n_repeats=repeats, random_state=seed)
    for train, test in outer.split(np.zeros(len(y)), y):
        best = _choose(make, grid, X, y, _part(train, y, inner_rows, seed), inner_folds, seed, scaler)
        train = _part(train, y, outer_rows, seed)
        X_train, X_test = prepared(X, train, test, scaler)
        began = time.process_time()
        model = fitted(make(**best), X_train, y[train])
        seconds.append(time.process_time() - began)
        accuracy.append(100 * float(np.mean(model.predict(X_test) == y[test])))
        sizes.append(getattr(model, "n_splits_", np.nan))
        chosen[json.dumps(best, default=str)] += 1
    return {
        **summary(np.mean(np.reshape(accuracy, (repeats, 10)), axis=1)),
        "median_fit_seconds": round(float(np.median(seconds)), 4),
        "clock": "processor",
        **({} if np.isnan(sizes).any() else {"splits": round(float(np.mean(sizes)), 2)}),
        "chosen": dict(chosen.most_common(5)),
        "protocol": {
            "outer": f"{repeats} x 10-fold, stratified, seed {seed}"
            + (f", trained on {outer_rows} of the rows" if outer_rows else ""),
            "inner": _in_words(grid, inner_folds, inner_rows),
            "choice": "each parameter in turn, by the mean over the settings left",
            "grid": {name: sorted({setting[name] for setting in grid}, key=str) for name in grid[0]},
        },
    }


NOT_YET = "Not measured yet; `make reproduce` measures it."


def summary(by_repeat: np.ndarray) -> dict[str, Any]:
    """Mean accuracy and its deviation over the repetitions."""
    return {
        "accuracy": round(float(np.mean(by_repeat)), 2),
        "std_over_repeats": round(float(np.std(by_repeat, ddof=1)), 2) if len(by_repeat) > 1 else None,
        "accuracy_by_repeat": [round(float(a), 2) for a in by_repeat],
    }


def _in_words(grid, inner_folds, inner_rows):
    if len(grid) == 1:
        return "nothing to choose"
    return f"{inner_folds}-fold, stratified" + (f", on {inner_rows} of the rows" if inner_rows else "")


def _part(train, y, n_rows, seed):
    """A stratified part of the training rows, where fewer are enough to choose by."""
    if n_rows is None or n_rows >= len(train):
        return train
    return train_test_split(train, train_size=n_rows, stratify=y[train], random_state=seed)[0]


def _choose(make, grid, X, y, train, inner_folds, seed, scaler):
    """The setting that the inner cross-validation likes best, parameter by parameter; of equals the first."""
    if len(grid) == 1:
        return grid[0]
    folds = list(StratifiedKFold(inner_folds, shuffle=True, random_state=seed).split(train, y[train]))
    right = np.zeros(len(grid))
    for fit, check in folds:
        X_fit, X_check = prepared(X, train[fit], train[check], scaler)
        for i, setting in enumerate(grid):
            model = fitted(make(**setting), X_fit, y[train[fit]])
            right[i] += np.sum(model.predict(X_check) == y[train[check]])
    left = np.ones(len(grid), dtype=bool)
    for name in grid[0]:
        values = list(dict.fromkeys(setting[name] for setting in grid))
        has = np.array([[setting[name] == value for setting in grid] for value in values]) & left
        left = has[int(np.argmax([right[agree].mean() for agree in has]))]
    return grid[int(left.argmax())]


def fitted(model: Any, X: Any, y: np.ndarray) -> Any:
    """The model after `fit`, without warnings of few iterations and of unscaled features."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y)


# Tables and pictures from figures named "SET, METHOD".


def accuracy_figure(figures: Mapping[str, Any], name: str, method: str) -> Figure | None:
    """Our accuracy of a cell, if it was measured."""
    found = figures.get(f"{name}, {method}")
    return None if found is None else repeated(found["accuracy"], found["accuracy_by_repeat"])


def accuracy_tables(
    figures: Mapping[str, Any],
    paper: Mapping[str, Mapping[str, list[float]]],
    sets: Iterable[str],
    methods: Mapping[str, str],
    why: Mapping[str, str],
    kind_of: Callable[[str, str], str],
) -> list[Table]:
    """One table of accuracies per set; `methods` maps names to titles, `why` has words on cells, `kind_of` classes."""
    tables = []
    for name in sets:
        rows = [
            Row(
                title,
                printed(paper[name][method], REPETITIONS) if method in paper[name] else None,
                accuracy_figure(figures, name, method),
                _remark(figures.get(f"{name}, {method}"), why.get(f"{name}, {method}", "")),
                f"{name}, {method}",
                kind_of(name, method) if method in paper[name] else "beyond",
            )
            for method, title in methods.items()
        ]
        tables.append(Table(f"{TITLES[name]}: accuracy in %", rows, better="higher"))
    return tables


def _remark(found, why):
    """The words on a cell, after its repetitions and the folds of its choice where these are fewer than ten."""
    if found is None:
        return why or NOT_YET
    repeats = len(found["accuracy_by_repeat"])
    told = [] if repeats == 10 else ["One repetition." if repeats == 1 else f"{repeats} repetitions."]
    inner = found["protocol"]["inner"]
    inner = inner.replace(", stratified", " cross-validation")
    told += [] if inner.startswith(("10-fold", "nothing")) else [f"Settings chosen by {inner}."]
    return " ".join([*told, *([why] if why else [])])


def time_table(
    figures: Mapping[str, Any],
    paper: Mapping[str, Mapping[str, float]],
    sets: Iterable[str],
    methods: Mapping[str, str],
    note: str,
) -> Table:
    """Seconds of one fit: a description, since the machines differ."""
    rows = []
    for name in sets:
        for method in paper[name]:
            found = figures.get(f"{name}, {method}")
            ours = None if found is None else Figure(found["median_fit_seconds"])
            label, told = f"{TITLES[name]}, {methods[method]}", "" if found else NOT_YET
            rows.append(Row(label, Figure(paper[name][method]), ours, told, f"{name}, {method}"))
    return Table("Seconds to train once", rows, better=None, digits=3, note=note, kind="time")


def dot_plot(figure: Any, tables: Iterable[Table], columns: int) -> None:
    """Draw each table as a panel: methods from top to bottom, the paper's figures and ours as dots with deviations."""
    tables = list(tables)
    axes = figure.subplots(-(-len(tables) // columns), columns, sharey=True, squeeze=False).ravel()
    for axis in axes[len(tables) :]:
        axis.set_visible(False)
    for axis, table in zip(axes, tables, strict=False):
        for shift, colour, marker, label in ((-0.17, PAPER_COLOUR, "D", "paper"), (0.17, OUR_COLOUR, "o", "ours")):
            cells = [(i, row.paper if label == "paper" else row.ours) for i, row in enumerate(table.rows)]
            cells = [(i, cell) for i, cell in cells if cell is not None]
            axis.errorbar(
                [cell.value for _, cell in cells],
                [i + shift for i, _ in cells],
                xerr=[cell.std or 0.0 for _, cell in cells],
                fmt=marker,
                color=colour,
                label=label,
                capsize=3,
                markersize=7,
            )
        axis.set_title(table.title.split(":")[0], fontsize=15)
        axis.set_yticks(range(len(table.rows)), [row.label for row in table.rows])
        axis.tick_params(labelsize=13)
        axis.grid(color="0.9")
        axis.set_axisbelow(True)
    axes[0].set_ylim(len(tables[0].rows) - 0.5, -0.5)
    axes[0].legend(fontsize=13)
    figure.supxlabel("accuracy in %, mean and deviation over repetitions", fontsize=14)
