"""`polyplane demo`: a comparison with SVMs, and a figure of a polytope."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from polyplane.cli.common import AsJson, PrintedTable, command, note, option, present
from polyplane.cli.data import SeedOption

if TYPE_CHECKING:
    import numpy as np

KERNEL = "SVC, RBF kernel"
#: A single polytope with six sides encloses one class.
ENCLOSED = {"n_planes": 6, "enclosed": "inside", "alpha": 1e-5, "min_entropy": 0.9}


class Task(NamedTuple):
    """A data set, split, and the parameters of `ConvexPolytopeClassifier` for it."""

    name: str
    parameters: dict[str, Any]
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@command("polyplane demo", "polyplane demo --out polytope.png --seed 7")
def demo(
    out: Annotated[Path, option()] = Path("polyplane-demo.png"),
    seed: SeedOption = 0,
    as_json: AsJson = False,
) -> None:
    """Compare Polyplane with LinearSVC and an RBF-kernel SVC on three data sets, and draw the learned polytope.

    The tables show the test error, the time to fit, the time to predict a million rows, how much faster than the
    RBF-kernel SVC this is, and the size of the model.

    Parameters
    ----------
    out : path
        Where to save the figure.
    """
    if not out.resolve().parent.is_dir():
        raise typer.BadParameter(f"No such folder: {out.resolve().parent}.", param_hint="--out")
    note("Comparing classifiers on three data sets; predict: seconds for a million rows.")
    _warm_up()
    found: dict[str, Any] = {}
    for task in _tasks(seed):
        found[task.name] = {name: _measure(model, task) for name, model in _classifiers(task, seed).items()}
        if not as_json:
            present({}, [_table(task, found[task.name])], as_json)
    message = _draw(task, out, seed)
    if as_json:
        present(found, [], as_json)
    else:
        typer.echo(message)


def _tasks(seed: int) -> Iterator[Task]:
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.model_selection import train_test_split

    digits, cancer, hexagon = load_digits(), load_breast_cancer(), _hexagon(20_000, seed)
    tasks: list[tuple[str, dict[str, Any], tuple[np.ndarray, np.ndarray]]] = [
        ("Handwritten digits: 64 pixels, 10 classes", {}, (digits.data, digits.target)),
        ("Breast cancer: 30 measurements, 2 classes", {}, (cancer.data, cancer.target)),
        ("Inside or outside of a hexagon: 2 features, 2 classes", ENCLOSED, hexagon),
    ]
    for name, parameters, (X, y) in tasks:
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        yield Task(name, parameters, X_train, y_train, X_test, y_test)


def _hexagon(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    X = np.random.default_rng(seed).uniform(-2.0, 2.0, size=(n_rows, 2))
    angles = np.pi / 3 * np.arange(6)
    inside = (X @ np.array([np.cos(angles), np.sin(angles)])).max(axis=1) < 1.2
    return X, np.where(inside, "inside", "outside")


def _classifiers(task: Task, seed: int) -> dict[str, Any]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, LinearSVC

    from polyplane import ConvexPolytopeClassifier, MultiHyperplaneClassifier

    classifiers = {
        "LinearSVC": LinearSVC(random_state=seed),
        KERNEL: SVC(),
        "Polyplane, multi-hyperplane": MultiHyperplaneClassifier(random_state=seed),
        "Polyplane, convex polytope": ConvexPolytopeClassifier(random_state=seed, **task.parameters),
    }
    return {name: make_pipeline(StandardScaler(), classifier) for name, classifier in classifiers.items()}


def _warm_up() -> None:
    """Compile the kernels and import slow modules, so that the measured times exclude this."""
    X, y = _hexagon(200, seed=0)
    for classifier in _classifiers(Task("", {}, X, y, X, y), seed=0).values():
        classifier.fit(X, y).predict(X)


def _measure(classifier: Any, task: Task) -> dict[str, float]:
    """Return the error in percent, seconds to fit and to predict a million rows, and the size in bytes."""
    import numpy as np

    began = time.perf_counter()
    classifier.fit(task.X, task.y)
    fitted = time.perf_counter()
    error = 100 * (1 - classifier.score(task.X_test, task.y_test))
    rows = np.tile(task.X_test, (20_000 // len(task.X_test) + 1, 1))
    scored = time.perf_counter()
    classifier.predict(rows)
    seconds = (time.perf_counter() - scored) / len(rows) * 1e6
    size = len(pickle.dumps(getattr(classifier[-1], "planes_", classifier[-1])))
    return {"error": error, "fit": fitted - began, "predict": seconds, "size": size}


def _table(task: Task, outcomes: dict[str, dict[str, float]]) -> PrintedTable:
    rows = []
    for name, found in outcomes.items():
        faster = outcomes[KERNEL]["predict"] / found["predict"]
        seconds = [round(found[key], 2) for key in ("error", "fit", "predict")]
        rows.append([name, *seconds, "" if name == KERNEL else f"{faster:,.0f} x", round(found["size"] / 1024, 1)])
    heads = ("classifier", "error %", "fit, s", "predict, s", "faster", "KB")
    return PrintedTable(f"{task.name}, {len(task.y):,} rows", heads, rows)


def _draw(task: Task, out: Path, seed: int) -> str:
    """Draw one polytope around the inner class; return a message for the user."""
    from polyplane import ConvexPolytopeClassifier

    classifier = ConvexPolytopeClassifier(random_state=seed, **task.parameters).fit(task.X, task.y)
    wrong = 100 * (1 - classifier.score(task.X_test, task.y_test))
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        from polyplane.explain import RegionsDisplay

        figure = Figure(figsize=(7.2, 7.2), dpi=150, layout="constrained")
        about: dict[str, Any] = {
            "title": f"Six planes find the hexagon: {wrong:.1f} % test error",
            "feature_names": ["$x_1$", "$x_2$"],
        }
        RegionsDisplay.from_estimator(classifier, task.X_test, task.y_test, ax=figure.subplots(), **about)
        FigureCanvasAgg(figure).print_figure(out)
    except ImportError:
        return 'To draw the polytope: pip install "polyplane[plot]"'
    except OSError as error:
        raise typer.BadParameter(f"Cannot write {out}: {error.strerror}.", param_hint="--out") from None
    return f"The learned polytope around the hexagon is drawn in {out}."
