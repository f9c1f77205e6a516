"""Scorecards of `TableClassifier` beside those of optbinning: AUC, Gini coefficient and Kolmogorov-Smirnov statistic.

optbinning bins each column optimally and fits a logistic regression to the weights of evidence (its defaults); ours is
``TableClassifier(n_estimators=1, n_planes=1, preparation="steps")``. adult has its own test rows; pima is split in four
folds, five times. Needs POLYPLANE_DATA, and optbinning.

    python -m benchmarks.peers.scorecard
"""

import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold

from polyplane import TableClassifier
from polyplane.datasets import load_dataset
from polyplane.explain.scorecards import gini_and_ks

RESULTS = Path(__file__).parent / "results" / "scorecard.json"
DATA = Path(os.environ.get("POLYPLANE_DATA", "."))


def adult():
    paths = [DATA / f"adult.{part}.csv.xz" for part in ("train", "test")]
    frames = [pd.read_csv(path, skipinitialspace=True, na_values="?") for path in paths]
    label = frames[0].columns[-1]
    parts = [(frame.drop(columns=label), frame[label].astype(str).str.contains(">50K").astype(int)) for frame in frames]
    return [(*parts[0], *parts[1])]


def pima():
    data = load_dataset("pima")
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    y = (data.target == np.unique(data.target)[1]).astype(int)
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=5, random_state=0).split(frame, y)
    return [(frame.iloc[fit], y[fit], frame.iloc[held], y[held]) for fit, held in folds]


def ours(X, y, X_test):
    model = TableClassifier(1, n_planes=1, preparation="steps", random_state=0).fit(X, np.asarray(y))
    return model.predict_proba(X_test)[:, 1]


def optbinning(X, y, X_test):
    from optbinning import BinningProcess
    from optbinning import Scorecard as OptimalScorecard

    texts = [name for name in X if X[name].dtype == object or X[name].dtype.kind not in "iuf"]
    process = BinningProcess(list(X.columns), categorical_variables=texts)
    card = OptimalScorecard(binning_process=process, estimator=LogisticRegression(max_iter=1000))
    return card.fit(X, np.asarray(y)).predict_proba(X_test)[:, 1]


def main():
    found = {}
    for name, parts in {"adult": adult(), "pima": pima()}.items():
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
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
