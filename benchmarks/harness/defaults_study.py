"""Defaults compared with neighbouring values, on held-out parts of training rows.

For each default that was chosen where test rows could be seen, or whose choice was not recorded, the present value is
compared with one to three others. The rows are training rows that are tested on nowhere else: not in the tables of the
papers (`benchmarks.papers`), and not in the comparisons over public tables (`benchmarks.data.tables`). Each set is
split at random twice, 70 % to train on, with features standardised, and 30 % to measure the error on. Learners of two
classes get the first half of the classes against the rest; the two slowest learn from 400 rows of each training part.

``python -m benchmarks.harness.defaults_study`` resumes where it stopped, and prints how each value compares with the
default: the mean over the sets of the differences in error, with its standard error. `LEARNER ...` measures only these.
Needs POLYPLANE_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from benchmarks.data.tables import Table, csv_rows, encoded, friedman, made, npz_rows
from benchmarks.harness.results import CURRENT, KeptFigures
from benchmarks.harness.versions import BACK_OFF
from sklearn.base import ClassifierMixin
from sklearn.datasets import make_classification, make_gaussian_quantiles, make_hastie_10_2, make_moons
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import type_of_target

import polyplane
from polyplane.datasets import make_checkerboard

SPLITS = range(2)
SEED = 11


def _classes(n_classes: int) -> Table:
    return made(make_classification(1000, 20, n_informative=6, n_classes=n_classes, flip_y=0.05, random_state=SEED))


def _noisy_line() -> Table:
    """Two classes on either side of a plane, and every seventh label wrong: one plane is right."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(1000, 20))
    return made((X, (X @ np.linspace(-1, 1, 20) > 0) ^ (rng.random(1000) < 1 / 7)))


def _board() -> Table:
    return made(make_checkerboard(2000, (4, 4), random_state=SEED))


def _moons() -> Table:
    return made(make_moons(800, noise=0.3, random_state=SEED))


def _quantiles() -> Table:
    return made(make_gaussian_quantiles(n_samples=1000, n_features=6, n_classes=3, random_state=SEED))


def _hastie() -> Table:
    return made(make_hastie_10_2(1000, random_state=SEED))


#: Training rows of real sets: how many, and where they begin in a random order, beside `benchmarks.data.tables`.
_REAL = {
    "letter": [(2000, 9000), (700, 11_000)],
    "usps": [(1000, 5000)],
    "ijcnn1": [(2000, 25_000), (500, 30_000)],
    "covtype": [(1500, 110_000), (400, 120_000)],
    "mnist": [(1000, 10_000)],
    "poker": [(2000, 12_000)],
    "w8a": [(2000, 5000)],
}
SETS: dict[str, Callable[[], Table]] = {
    **{f"{name}-{n}": partial(npz_rows, name, n, first) for name, parts in _REAL.items() for n, first in parts},
    "board": _board,
    "moons": _moons,
    "quantiles": _quantiles,
    "hastie": _hastie,
    "classes-3": partial(_classes, 3),
    "friedman": partial(friedman, 1000, SEED),
    "noisy line": _noisy_line,
}
#: With columns of text, for what is done about these; none of them is tested on elsewhere with `TableClassifier`.
MIXED: dict[str, Callable[[], Table]] = {
    "adult-2000": partial(csv_rows, "adult.train", 2000, 12_000),
    "adult-500": partial(csv_rows, "adult.train", 500, 25_000),
    **{name: SETS[name] for name in ("letter-700", "ijcnn1-500", "covtype-400", "classes-3")},
}


class Study(NamedTuple):
    """What is compared for a learner."""

    values: dict[str, list[Any]]
    sets: dict[str, Callable[[], Table]] = SETS
    two_classes: bool = False
    most_rows: int | None = None
    uses: tuple[str, ...] = ()  # methods whose versions count besides that of the learner


STUDIES = {
    "AdaptiveMultiHyperplaneClassifier": Study(
        {"alpha": [1e-6, 1e-4, 1e-3], "average_fraction": [0.0, 0.1, 0.5], "max_iter": [15, 30, 120]}
    ),
    "PegasosSVC": Study({"max_iter": [30, 300], "backoff": [0, 127], "average": [False]}, uses=(BACK_OFF,)),
    "PolyhedralMixtureClassifier": Study({"n_init": [3, 10], "max_iter": [50, 1000]}, two_classes=True),
    "PolyceptronClassifier": Study(
        {"pocket": [False], "n_init": [3, 10], "max_iter": [100, 300, 3000]}, two_classes=True
    ),
    "MultiHyperplaneClassifier": Study(
        {
            "scale": [1.0, 5.0, 10.0],
            "noise": [0.0, 0.1, 0.4],
            "loss": ["hinge"],
            "alpha": [1e-5, 1e-4, 1e-3],
            "batch_size": [64, 128],
            "backoff": [0, 7],
        }
    ),
    "ConvexPolytopeClassifier": Study(
        {"average": [False], "backoff": [0, 7, 127], "max_iter": [30, 300], "enclosed": ["each"]}, uses=(BACK_OFF,)
    ),
    "SuccessiveLPClassifier": Study(
        {"radius": [0.02, 0.1, 0.2], "max_iter": [20, 100], "n_init": [3]}, two_classes=True, most_rows=400
    ),
    "WorstCasePolytopeClassifier": Study(
        {"alpha": [0.001, 0.1], "n_planes": [4, 48], "max_iter": [30, 300], "average": [False]},
        two_classes=True,
        most_rows=400,
    ),
    "TableClassifier": Study(
        {"n_estimators": [3, 9], "max_iter": [20, 120], "min_rows": [2, 20], "max_levels": [10, 200]}, MIXED
    ),
}


def rows_of(load: Callable[[], Table], two_classes: bool) -> Table:
    """A set, with two classes where asked for."""
    X, y = load()
    if two_classes and type_of_target(y) == "multiclass":
        labels = np.unique(y)
        y = np.searchsorted(labels, y) < len(labels) / 2
    return X, y


def machine_for(learner: Callable[..., ClassifierMixin], seed: int, settings: dict[str, Any]) -> Any:
    """The learner behind what it needs to read a table."""
    machine = learner(random_state=seed, **settings)
    return machine if learner is polyplane.TableClassifier else encoded(machine)


def held_out_errors(
    learner: Callable[..., ClassifierMixin],
    sets: dict[str, Callable[[], Table]],
    two_classes: bool,
    most_rows: int | None,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Error in % on the held-out part of each split of each set, and processor seconds of all fits."""
    errors, took = {}, 0.0
    for name, load in sets.items():
        X, y = rows_of(load, two_classes)
        errors[name] = []
        for split in SPLITS:
            train, held_out = train_test_split(
                np.arange(len(y)), test_size=0.3, random_state=split, stratify=_strata(y)
            )
            machine, began = machine_for(learner, split, settings), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                machine.fit(X.iloc[train[:most_rows]], y[train[:most_rows]])
            took += time.process_time() - began
            errors[name].append(round(100 * (1 - machine.score(X.iloc[held_out], y[held_out])), 3))
    return {"errors": errors, "fit_seconds": round(took, 2)}


def compiled(learner: Callable[..., ClassifierMixin], study: Study) -> None:
    """Fit once, so that no figure has the time of compiling."""
    X, y = rows_of(next(iter(study.sets.values())), study.two_classes)
    machine_for(learner, 0, {}).fit(X[:200], y[:200])


def _strata(y: np.ndarray) -> np.ndarray | None:
    return y if np.unique(y, return_counts=True)[1].min() > 1 else None


def measure(results: KeptFigures, learners: list[str] | None = None) -> None:
    """Each learner as it is, and with each other value of each parameter."""
    for name in learners or STUDIES:
        study = STUDIES[name]
        errors = partial(held_out_errors, getattr(polyplane, name), study.sets, study.two_classes, study.most_rows)
        results.first(partial(compiled, getattr(polyplane, name), study))
        uses = (name, *study.uses, "make_checkerboard")
        results.get(name, partial(errors, {}), uses)
        for parameter, values in study.values.items():
            for value in values:
                results.get(f"{name}: {parameter}={value!r}", partial(errors, {parameter: value}), uses)


class Comparison(NamedTuple):
    """A value beside the default: the mean difference in error over the sets, in points, and its standard error."""

    value: Any
    difference: float
    deviation: float
    n_sets: int
    times: float

    @property
    def verdict(self) -> str:
        """Whether it is better or worse by more than two standard errors."""
        if abs(self.difference) <= 2 * self.deviation:
            return "no different"
        return "better" if self.difference < 0 else "worse"

    def __str__(self) -> str:
        return f"`{self.value!r}` {self.difference:+.2f} ± {self.deviation:.2f} ({self.times:.1f} x time)"


@cache
def kept() -> KeptFigures:
    """The study as committed: nothing is measured."""
    results = KeptFigures(__file__, only=None)
    measure(results)
    return results


def comparisons(name: str, parameter: str) -> list[Comparison]:
    """The values that were compared with a default, where their figures are current."""
    return list(_comparisons(name, parameter)) if parameter in STUDIES.get(name, Study({})).values else []


def _comparisons(name: str, parameter: str) -> Iterator[Comparison]:
    results = kept()
    for value in STUDIES[name].values[parameter]:
        other = f"{name}: {parameter}={value!r}"
        if {results.state(name), results.state(other)} == {CURRENT}:
            base, figure = results.figures[name], results.figures[other]
            differences = [np.mean(figure["errors"][s]) - np.mean(base["errors"][s]) for s in base["errors"]]
            deviation = float(np.std(differences, ddof=1) / np.sqrt(len(differences)))
            times = figure["fit_seconds"] / base["fit_seconds"]
            yield Comparison(value, float(np.mean(differences)), deviation, len(differences), times)


def main() -> None:
    """Measure what is not current, and print the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("learners", nargs="*", metavar="LEARNER", help=f"any of {', '.join(STUDIES)}; all by default")
    given = parser.parse_args()
    measure(KeptFigures(__file__), given.learners)
    for name in given.learners or STUDIES:
        for parameter in STUDIES[name].values:
            for found in comparisons(name, parameter):
                print(f"{name}: {parameter} {found}: {found.verdict}")


if __name__ == "__main__":
    main()
