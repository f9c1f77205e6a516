"""`TableClassifier` beside other classifiers at their defaults, on many tables: errors, ranks, log-losses, times.

    python -m benchmarks.peers.table_classifier                        # all tables, all models, five folds
    python -m benchmarks.peers.table_classifier --other                # the tables that no default was chosen on
    python -m benchmarks.peers.table_classifier --models TableClassifier SVC --tables heart pima
    python -m benchmarks.peers.table_classifier --large                # adult and covtype, whole training and test rows
    python -m benchmarks.peers.table_classifier --shapes               # XOR, rings and shells; unscaled beside scaled
    python -m benchmarks.peers.table_classifier --show                 # what was measured so far, nothing else

`TableClassifier` and EBM get the raw frame, with text and gaps; the others get it imputed, one-hot encoded and
standardised. A table and a model are measured once, and the run resumes where it stopped. Seconds are those of the
processor, on one thread: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1. Needs POLYPLANE_DATA; LightGBM, CatBoost and
EBM need ``pip install lightgbm catboost interpret-core``, and are left out where they are not installed.

Tried, and no better: label smoothing, a second-moment decay of 0.95, the cosine-log schedule and learnable feature
scales of RealMLP (Holzmueller et al., arXiv 2407.04491), other starts, and students of the committee.
"""

import argparse
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np
import pandas as pd
from benchmarks.data.tables import OTHER_TABLES, TABLES, adult_rows, covtype_rows, encoded
from benchmarks.harness.results import Results
from sklearn.datasets import load_breast_cancer, load_wine, make_gaussian_quantiles
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from polyplane import TableClassifier

FOLDS = StratifiedKFold(5, shuffle=True, random_state=1)
#: The least probability that is told from 0 in a log-loss.
LEAST = 1e-7


def lightgbm():
    from lightgbm import LGBMClassifier

    return encoded(LGBMClassifier(random_state=0, n_jobs=1, verbose=-1))


def catboost():
    from catboost import CatBoostClassifier

    return encoded(CatBoostClassifier(random_seed=0, thread_count=1, verbose=0, allow_writing_files=False))


def boosting_machine():
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=0, n_jobs=1)


#: Models by name, and the package of each.
MODELS = {
    "TableClassifier": (lambda: TableClassifier(random_state=0), "polyplane"),
    "TableClassifier(1)": (lambda: TableClassifier(1, random_state=0), "polyplane"),
    "LogisticRegression": (lambda: encoded(LogisticRegression(max_iter=1000)), "scikit-learn"),
    "SVC": (lambda: encoded(SVC()), "scikit-learn"),
    "RandomForest": (lambda: encoded(RandomForestClassifier(random_state=0)), "scikit-learn"),
    "HistGB": (lambda: encoded(HistGradientBoostingClassifier(random_state=0)), "scikit-learn"),
    "MLP": (lambda: encoded(MLPClassifier(random_state=0)), "scikit-learn"),
    "LightGBM": (lightgbm, "lightgbm"),
    "CatBoost": (catboost, "catboost"),
    "EBM": (boosting_machine, "interpret-core"),
}
MODULES = {"interpret-core": "interpret", "scikit-learn": "sklearn"}


def is_installed(name):
    package = MODELS[name][1]
    return find_spec(MODULES.get(package, package)) is not None


def log_loss(model, probability, y, classes):
    """The mean log-loss over all classes of a table; a model need not have seen all of them."""
    P = np.full((len(y), len(classes)), LEAST)
    P[:, np.searchsorted(classes, np.asarray(model.classes_).astype(str))] = np.clip(probability, LEAST, 1)
    own = P[np.arange(len(y)), np.searchsorted(classes, y)] / P.sum(axis=1)
    return float(-np.log(own).mean())


def fit_and_judge(model, train, test, classes):
    """Error in per cent, log-loss, and seconds to fit and to predict labels."""
    began = time.process_time()
    model.fit(*train)
    fitted = time.process_time()
    answers = np.asarray(model.predict(test[0])).ravel().astype(str)
    predicted = time.process_time()
    row = {"error": 100 * float((answers != test[1]).mean()), "fit": fitted - began, "predict": predicted - fitted}
    if hasattr(model, "predict_proba"):
        row["loss"] = log_loss(model, model.predict_proba(test[0]), test[1], classes)
    return {key: round(value, 5) for key, value in row.items()}


def measure(table, name):
    """The figures of each fold, as lists."""
    make, package = MODELS[name]
    X, y = (TABLES | OTHER_TABLES)[table]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = [
            fit_and_judge(make(), (X.iloc[train], y[train]), (X.iloc[test], y[test]), np.unique(y))
            for train, test in FOLDS.split(X, y)
        ]
    return {key: [fold[key] for fold in folds] for key in folds[0]} | {"version": f"{package} {_version(package)}"}


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:  # run from the sources
        return "from source"


def measure_large(name):
    """Error, area under the ROC curve and seconds of the clock on two threads, on all rows."""
    (X, y), (X_test, y_test) = {"adult": adult_rows, "covtype-50k": covtype_rows}[name]()
    began = time.perf_counter()
    model = TableClassifier(random_state=0, n_jobs=2).fit(X, y)
    fitted = time.perf_counter()
    probability = model.predict_proba(X_test)
    row = {"error": 100 * float((model.classes_[probability.argmax(axis=1)] != y_test).mean())}
    if len(model.classes_) == 2:
        row["auc"] = roc_auc_score(y_test == model.classes_[1], probability[:, 1])
    row |= {"fit": fitted - began, "predict": time.perf_counter() - fitted}
    return {key: round(value, 4) for key, value in row.items()}


def xor(rng):
    """Two columns whose signs decide, and twenty irrelevant ones."""
    X = rng.normal(size=(5000, 22))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def rings(rng):
    """Five thousand points of the plane; rings around the centre alternate."""
    X = rng.normal(size=(5000, 2))
    return X, (np.floor(2 * np.linalg.norm(X, axis=1)) % 2).astype(int)


def shells(rng):
    """Three nested shells in five dimensions."""
    return make_gaussian_quantiles(n_samples=5000, n_features=5, n_classes=3, random_state=int(rng.integers(1000)))


SHAPES = {"xor": xor, "rings": rings, "shells": shells}
LOADERS = {"wine": load_wine, "breast cancer": load_breast_cancer, "heart": lambda **_: _numbers(TABLES["heart"]())}


def _numbers(table):
    return table[0].to_numpy(float), table[1]


def measure_shape(shape):
    """Mean error over five draws of 1,000 training rows, tested on 4,000 others."""
    errors = {name: [] for name in ("TableClassifier", "LogisticRegression", "SVC", "RandomForest", "HistGB", "MLP")}
    for seed in range(5):
        X, y = SHAPES[shape](np.random.default_rng(seed))
        frame = pd.DataFrame(X).rename(columns=str)
        for name in errors:
            model = MODELS[name][0]().fit(frame[:1000], y[:1000])
            errors[name].append(100 * float((model.predict(frame[1000:]) != y[1000:]).mean()))
    return {name: round(float(np.mean(each)), 2) for name, each in errors.items()}


def measure_units(name):
    """Error in five folds, five times, as the columns come and standardised."""
    X, y = LOADERS[name](return_X_y=True)
    cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0)
    forms = {"raw": X, "standardised": StandardScaler().fit_transform(X)}
    models = {form: cross_val_score(TableClassifier(random_state=0), rows, y, cv=cv) for form, rows in forms.items()}
    return {form: round(100 * (1 - float(scores.mean())), 2) for form, scores in models.items()}


def frame_of(results, tables):
    """One row for each table and model, the means over the folds."""
    rows = []
    for key, figures in results.figures.items():
        table, _, name = key.partition(": ")
        if table in tables and name in MODELS:
            means = {field: np.mean(values) for field, values in figures.items() if isinstance(values, list)}
            rows.append({"table": table, "model": name, **means})
    return pd.DataFrame(rows)


def show(results, tables):
    """Errors of each table, and the means over the tables on which all models have been measured."""
    frame = frame_of(results, tables)
    if frame.empty:
        return
    models = [name for name in MODELS if name in set(frame["model"])]
    errors = frame.pivot_table(index="table", columns="model", values="error", sort=False)[models]
    print(errors.round(2).to_string())
    complete = errors.dropna()
    means = frame[frame["table"].isin(complete.index)].groupby("model")[["error", "loss", "fit", "predict"]].mean()
    ranked = complete.drop(columns="TableClassifier(1)", errors="ignore")  # one of ours competes
    means["rank"] = ranked.rank(axis=1).mean()
    print(f"\n{len(complete)} tables")
    print(means.sort_values("rank")[["rank", "error", "loss", "fit", "predict"]].round(4).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", action="store_true", help="the tables that no default was chosen on")
    parser.add_argument("--large", action="store_true", help="adult and covtype")
    parser.add_argument("--shapes", action="store_true", help="XOR, rings and shells; unscaled beside scaled")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--models", nargs="*", default=[name for name in MODELS if is_installed(name)])
    parser.add_argument("--tables", nargs="*")
    options = parser.parse_args()
    results = Results(__file__, folds=5, fold_seed=1, random_state=0, least_probability=LEAST)
    if options.shapes:
        for name in SHAPES:
            print(name, results.get(f"shape: {name}", lambda name=name: measure_shape(name)))
        for name in LOADERS:
            print(name, results.get(f"units: {name}", lambda name=name: measure_units(name)))
        return
    if options.large:
        for name in ("adult", "covtype-50k"):
            print(name, results.get(f"large: {name}", lambda name=name: measure_large(name)))
        return
    tables = list(OTHER_TABLES if options.other else TABLES) if options.tables is None else options.tables
    for table in () if options.show else tables:
        for name in options.models:
            results.get(f"{table}: {name}", lambda table=table, name=name: measure(table, name))
    show(results, tables)


if __name__ == "__main__":
    main()
