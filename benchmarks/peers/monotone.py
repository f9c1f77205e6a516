"""Monotone columns: errors with and without constraints, beside LightGBM and XGBoost, and a search for violations.

adult has its own test rows; pima is split in four folds, five times. On adult, the probability of a high income must
grow with education; in a second set of constraints also with capital gains and capital losses, with which it does not
grow in the data: the share of high incomes among the training rows is printed for ten ranges of both. On pima, the
probability of diabetes must grow with glucose, body mass, pedigree and age. All models of `TableClassifier` have one
member with four planes per class over bins; means of three seeds. Violations are searched among a million pairs of rows
that differ in one column, for 2, 3 and 10 classes. Needs POLYPLANE_DATA, and LightGBM and XGBoost.

    python -m benchmarks.peers.monotone
"""

import itertools
import json
import time
import warnings
from pathlib import Path

import numpy as np
from benchmarks.peers.scorecard import adult, pima

from polyplane import MultiHyperplaneClassifier, TableClassifier

RESULTS = Path(__file__).parent / "results" / "monotone.json"
N_PAIRS = 1_000_000
SEEDS = range(3)
EDUCATION, CAPITAL = ("education_num",), ("capital_gain", "capital_loss")
#: The columns that are monotone in each experiment.
INCREASING = {
    "pima": {"monotone": ("glucose", "mass", "pedigree", "age")},
    "adult": {"education": EDUCATION, "education and capital": EDUCATION + CAPITAL},
}


def numeric(X):
    """The columns as numbers: levels as codes, which the peers take as categories."""
    return X.apply(lambda column: column.astype("category").cat.codes if column.dtype.kind not in "iuf" else column)


def table(constraints, names, seed):
    given = {name: 1 for name, sign in zip(names, constraints, strict=True) if sign} or None
    return TableClassifier(1, preparation="bins", n_planes=4, monotonic_cst=given, random_state=seed)


def lightgbm(constraints, names, seed):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(monotone_constraints=constraints, n_jobs=1, verbose=-1, random_state=seed)


def xgboost(constraints, names, seed):
    from xgboost import XGBClassifier

    return XGBClassifier(monotone_constraints=tuple(constraints), n_jobs=1, random_state=seed)


def errors(name, parts):
    found = {}
    for make in (table, lightgbm, xgboost):
        for kind, columns in {"free": (), **INCREASING[name]}.items():
            figures = []
            for (X, y, X_test, y_test), seed in itertools.product(parts, SEEDS):
                constraints = [int(column in columns) for column in X.columns]
                if sum(constraints) != len(columns):
                    raise ValueError(f"{name} has the columns {list(X.columns)}, not all of {columns}.")
                model, rows = make(constraints, list(X.columns), seed), (X, X_test)
                if make is not table:
                    rows = numeric(X), numeric(X_test)
                began = time.process_time()
                model.fit(rows[0], np.asarray(y))
                seconds = time.process_time() - began
                figures.append([100 * np.mean(model.predict(rows[1]) != np.asarray(y_test)), seconds])
            error, seconds = np.mean(figures, axis=0).round(2).tolist()
            found[f"{make.__name__}, {kind}"] = {"error": error, "seconds": seconds}
            print(name, make.__name__, kind, error, seconds, flush=True)
    return found


def shares(X, y):
    """The share of rows of the second class, %, in ranges of a tenth of the positive values of the capital columns."""
    found = {}
    for column in CAPITAL:
        values = X[column].to_numpy()
        edges = np.unique(np.quantile(values[values > 0], np.arange(1, 10) / 10))
        part = np.where(values > 0, 1 + np.searchsorted(edges, values, side="right"), 0)
        found[column] = [round(100 * float(y[part == each].mean()), 1) for each in np.unique(part)]
        print(column, found[column], flush=True)
    return found


def violations(n_classes):
    """The number of pairs whose probabilities fall although a column grows, and the largest fall."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    score = 2 * np.sin(2 * X[:, 0]) - X[:, 0] + X[:, 1] ** 2 + X[:, 2] + rng.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    found = {}
    for name, constraints in {"free": None, "monotone": {0: {n_classes - 1: 1}}}.items():
        model = MultiHyperplaneClassifier(4, max_iter=15, monotonic_cst=constraints, random_state=0).fit(X, y)
        low = 2 * rng.normal(size=(N_PAIRS, X.shape[1]))
        high = low.copy()
        high[:, 0] += rng.exponential(size=N_PAIRS)
        fall = model.predict_proba(low)[:, -1] - model.predict_proba(high)[:, -1]
        found[name] = {"violations": int((fall > 1e-9).sum()), "largest": float(max(fall.max(), 0.0))}
    print(n_classes, found, flush=True)
    return found


def main():
    warnings.simplefilter("ignore")
    found = {"violations": {str(n): violations(n) for n in (2, 3, 10)}}
    for name, parts in {"pima": pima(), "adult": adult()}.items():
        found[name] = errors(name, parts)
        if name == "adult":
            found[name]["share of high incomes, %"] = shares(parts[0][0], np.asarray(parts[0][1]))
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
