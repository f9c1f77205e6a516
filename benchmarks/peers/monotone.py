"""Monotone columns: errors with and without constraints, beside LightGBM and XGBoost, and a search for violations.

adult has its own test rows; pima is split in four folds, five times. On adult, the probability of a high income must
grow with education, capital gains and capital losses; on pima, that of diabetes with glucose, body mass, pedigree and
age. All models of `TableClassifier` have one member with four planes per class over bins. Violations
are searched among a million pairs of rows that differ in one column, for 2, 3 and 10 classes. Needs POLYPLANE_DATA, and
LightGBM and XGBoost.

    python -m benchmarks.peers.monotone
"""

import json
import time
import warnings
from pathlib import Path

import numpy as np
from benchmarks.peers.scorecard import adult, pima

from polyplane import MultiHyperplaneClassifier, TableClassifier

RESULTS = Path(__file__).parent / "results" / "monotone.json"
N_PAIRS = 1_000_000
INCREASING = {
    "adult": ("education-num", "education_num", "educational-num", "capital-gain", "capital_gain", "capital-loss",
              "capital_loss"),
    "pima": ("glucose", "plas", "plasma_glucose", "bmi", "mass", "body_mass", "pedigree", "pedi", "age"),
}  # fmt: skip


def numeric(X):
    """The columns as numbers: levels as codes, which the peers take as categories."""
    return X.apply(lambda column: column.astype("category").cat.codes if column.dtype.kind not in "iuf" else column)


def table(constraints, names):
    given = {name: 1 for name, sign in zip(names, constraints, strict=True) if sign} or None
    return TableClassifier(1, preparation="bins", n_planes=4, monotonic_cst=given, random_state=0)


def lightgbm(constraints, names):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(monotone_constraints=constraints, n_jobs=1, verbose=-1, random_state=0)


def xgboost(constraints, names):
    from xgboost import XGBClassifier

    return XGBClassifier(monotone_constraints=tuple(constraints), n_jobs=1, random_state=0)


def errors(name, parts):
    found = {}
    for make in (table, lightgbm, xgboost):
        for is_free in (True, False):
            figures = []
            for X, y, X_test, y_test in parts:
                constraints = [0 if is_free else int(str(column).lower() in INCREASING[name]) for column in X.columns]
                model, rows = make(constraints, list(X.columns)), (X, X_test)
                if make is not table:
                    rows = numeric(X), numeric(X_test)
                began = time.process_time()
                model.fit(rows[0], np.asarray(y))
                seconds = time.process_time() - began
                figures.append([100 * np.mean(model.predict(rows[1]) != np.asarray(y_test)), seconds])
            error, seconds = np.mean(figures, axis=0).round(2).tolist()
            found[f"{make.__name__}, {'free' if is_free else 'monotone'}"] = {"error": error, "seconds": seconds}
            print(name, make.__name__, is_free, error, seconds, sum(constraints), flush=True)
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
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
