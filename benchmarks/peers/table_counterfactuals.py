"""Counterfactuals of a table model beside those of DiCE, on adult.

Run ``python -m benchmarks.peers.table_counterfactuals``; needs POLYPLANE_DATA and ``pip install dice-ml``. The model is
``TableClassifier(random_state=0)`` on all training rows; `age` and `sex` are frozen. A thousand test rows get a
counterfactual each, which are checked here without the help of the library's geometry: by the raw table, and by trying
out single columns. DiCE gets some of the rows without gaps, with the same model behind its scikit-learn interface.
"""

import os
import time
import warnings
from contextlib import redirect_stderr
from importlib.metadata import version
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.harness.results import Results

from polyplane import TableClassifier
from polyplane.explain.geometry import table_counterfactual

N_ROWS, N_PEER_ROWS, SEED = 1000, 20, 0
FROZEN = ["age", "sex"]
LABEL = "income"
#: Levels of fewer training rows are not told from each other.
RARE = 5
#: Values of a column with many that are tried out, besides all that some training row has.
TRIED = 4000
#: Rows with one changed column whose change is compared with all others of one column.
N_COMPARED = 100


def adult(part):
    """Rows without the label, and whether the income is high."""
    frame = pd.read_csv(Path(os.environ["POLYPLANE_DATA"]) / f"adult.{part}.csv.xz")
    return frame.drop(columns=LABEL), (frame[LABEL] == ">50K").astype(int)


class Values:
    """What the columns of the training rows can be, read from the raw table alone."""

    def __init__(self, train):
        self.train = train
        self.numbers = [name for name in train if pd.api.types.is_numeric_dtype(train[name])]
        self.levels = {
            name: set(counts[counts >= RARE].index)
            for name in train
            if name not in self.numbers
            for counts in [train[name].value_counts()]
        }

    def spread(self, name):
        """The interquartile range, or the standard deviation where that is 0."""
        first, third = self.train[name].quantile([0.25, 0.75])
        return float(third - first) or float(self.train[name].std(ddof=0))

    def is_allowed(self, name, after):
        """Whether a column may become this."""
        if name not in self.numbers:
            return after in self.levels[name]
        return isinstance(after, int) and self.train[name].min() <= after <= self.train[name].max()

    def distance(self, changes):
        """The sum of changes: numbers in units of their spread, switched levels 1 each."""
        return sum(abs(b - a) / self.spread(c) if c in self.numbers else 1 for c, (a, b) in changes.items())

    def single_changes(self, row):
        """The row with one column changed, in all ways, and the distances."""
        changed, distances = [], []
        for name in row.index.difference(FROZEN):
            if pd.isna(row[name]):
                continue
            values = self._tried(name) if name in self.numbers else np.array(sorted(self.levels[name]), dtype=object)
            values = values[values != row[name]]
            copies = pd.DataFrame([row] * len(values))
            copies[name] = values
            changed.append(copies)
            is_number = name in self.numbers
            distances.append(np.abs(values - row[name]) / self.spread(name) if is_number else np.ones(len(values)))
        frame = pd.concat(changed, ignore_index=True)
        return frame.astype(self.train.dtypes.to_dict()), np.concatenate(distances).astype(float)

    def _tried(self, name):
        low, high = int(self.train[name].min()), int(self.train[name].max())
        grid = np.linspace(low, high, min(TRIED, high - low + 1)).round().astype(int)
        seen = self.train[name].unique()
        return np.union1d(grid, seen if len(seen) <= TRIED else seen[:TRIED])


def is_feasible(found, row, values, model, before):
    """Whether the changes, made in the raw table, are allowed and lead to the other class."""
    changed = row.copy()
    for name, (was, after) in found.changes.items():
        if name in FROZEN or was != row[name] or after == was or not values.is_allowed(name, after):
            return False
        changed[name] = after
    frame = changed.to_frame().T.astype(values.train.dtypes.to_dict())
    distance_is_right = np.isclose(values.distance(found.changes), found.distance)
    same_row = np.allclose(model.model_.encode(frame)[0], found.z)
    return bool(distance_is_right and same_row and model.predict(frame)[0] == 1 - before == found.target)


def counterfactuals(model, X):
    """Counterfactuals of all rows, and the seconds of each."""
    found, seconds = [], []
    for z in model.model_.encode(X):
        began = time.perf_counter()
        found.append(table_counterfactual(model.model_, z, frozen=FROZEN))
        seconds.append(time.perf_counter() - began)
    return found, np.array(seconds)


def measure_ours(model, values, X):
    """A thousand rows: whether changes are feasible, how many columns they take, and whether fewer or less would do."""
    found, seconds = counterfactuals(model, X)
    predicted = model.predict(X)
    sizes = np.array([0 if one is None else len(one.changes) for one in found])
    feasible = [
        one is not None and is_feasible(one, row, values, model, before)
        for one, (_, row), before in zip(found, X.iterrows(), predicted, strict=True)
    ]
    fewer, less, n_compared = 0, 0, 0
    for i in np.flatnonzero((sizes > 1) | ((sizes == 1) & (np.cumsum(sizes == 1) <= N_COMPARED))):
        changed, distances = values.single_changes(X.iloc[i])
        reached = distances[model.predict(changed) != predicted[i]]
        if sizes[i] > 1:
            fewer += len(reached) > 0
        else:
            n_compared += 1
            less += bool((reached < found[i].distance - 1e-9).any())
    return {
        "rows": len(found), "found": int((sizes > 0).sum()), "feasible": int(np.sum(feasible)),
        "proven": sum(one is not None and one.proven for one in found),
        "columns": {str(size): int((sizes == size).sum()) for size in np.unique(sizes)},
        "median_columns": float(np.median(sizes)),
        "median_distance": float(np.median([one.distance for one in found if one])),
        "improvable_by_fewer_columns": int(fewer), "with_several_columns": int((sizes > 1).sum()),
        "improvable_by_less_change_of_one_column": int(less), "compared": n_compared,
        "mean_ms": round(1e3 * float(seconds.mean()), 2), "median_ms": round(1e3 * float(np.median(seconds)), 2),
        "longest_ms": round(1e3 * float(seconds.max()), 2),
    }  # fmt: skip


def explainers(model, values, y):
    """DiCE's two methods."""
    import dice_ml

    known = values.train.notna().all(axis=1)
    frame = values.train[known].assign(**{LABEL: y[known]})
    data = dice_ml.Data(dataframe=frame, continuous_features=values.numbers, outcome_name=LABEL)
    peer = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    return {method: dice_ml.Dice(data, peer, method=method) for method in ("random", "genetic")}


def of_dice(explainer, method, X, free):
    """One counterfactual as a raw row, or None; and the seconds."""
    options = {"random_seed": SEED} if method == "random" else {}
    began = time.perf_counter()
    with warnings.catch_warnings(), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        try:
            answer = explainer.generate_counterfactuals(
                X, total_CFs=1, desired_class="opposite", features_to_vary=free, verbose=False, **options
            )
            rows = answer.cf_examples_list[0].final_cfs_df
        except Exception as error:  # DiCE raises this where it finds nothing
            print(method, error)
            rows = None
    return (None if rows is None or not len(rows) else rows.iloc[0]), time.perf_counter() - began


def measure_peers(model, values, y, X, rows):
    """Rows by both methods of DiCE, in turns with some of ours of all rows."""
    np.random.seed(SEED)  # noqa: NPY002 (the genetic method draws from the global generator)
    found = explainers(model, values, y)
    free = [name for name in X if name not in FROZEN]
    seconds = {"ours": [], **{method: [] for method in found}}
    columns = {method: [] for method in found}
    for i in range(len(X)):
        row, before = X.iloc[[i]], int(model.predict(X.iloc[[i]])[0])
        for method, explainer in found.items():
            other, spent = of_dice(explainer, method, row, free)
            seconds[method].append(spent)
            if other is not None:
                changed = other[list(X)].to_frame().T.astype(values.train.dtypes.to_dict())
                if model.predict(changed)[0] != before and (changed[FROZEN].iloc[0] == row[FROZEN].iloc[0]).all():
                    columns[method].append(int((changed.iloc[0] != row.iloc[0]).sum()))
        seconds["ours"] += counterfactuals(model, rows.iloc[i :: len(X)])[1].tolist()
    ours = float(np.mean(seconds["ours"]))
    figures = {"rows": len(X), "rows_ours": len(rows), "ours_mean_ms": round(1e3 * ours, 2)}
    for method in found:
        mean = float(np.mean(seconds[method]))
        figures[method] = {
            "valid": len(columns[method]),
            "median_columns": float(np.median(columns[method])) if columns[method] else None,
            "mean_ms": round(1e3 * mean, 1),
            "times_slower": round(mean / ours, 1),
        }
    return figures


if __name__ == "__main__":
    results = Results(
        __file__, rows=N_ROWS, peer_rows=N_PEER_ROWS, seed=SEED, frozen=FROZEN, tried=TRIED,
        versions={package: version(package) for package in ("dice-ml", "pandas")},
    )  # fmt: skip
    # Times of different runs do not compare: measure anew each time.
    results.figures.clear()
    (X, y), (X_test, _) = adult("train"), adult("test")
    model, values = TableClassifier(random_state=0).fit(X, y), Values(X)
    rows = np.random.default_rng(SEED).choice(len(X_test), N_ROWS, replace=False)
    chosen = X_test.iloc[rows]
    print(results.get("ours", lambda: measure_ours(model, values, chosen)))
    known = chosen[chosen.notna().all(axis=1)].iloc[:N_PEER_ROWS]
    print(results.get("dice", lambda: measure_peers(model, values, y, known, chosen)))
