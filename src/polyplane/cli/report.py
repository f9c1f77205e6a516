"""The report of `polyplane train`: the data, the model, and its errors with their confidence intervals."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from polyplane._plain import visible
from polyplane.cli.common import INTERRUPTED, Table, UserError, listed, present, show_number
from polyplane.cli.data import LoadedModel, name_of

if TYPE_CHECKING:
    import numpy as np

    from polyplane.cli.rows import DataFacts
    from polyplane.cli.train import TrainOptions
    from polyplane.cli.training import Outcome
    from polyplane.explain.confusion import ConfusionMatrix

#: Maximum number of classes, columns or levels in a line, of preparations shown with their log-losses, and of search
#: settings; --json lists all of them.
SHOWN_NAMES, SHOWN_LOSSES, SHOWN_SETTINGS = 8, 4, 10
#: Two-sided 95 % of a normal distribution, and the name of the interval in reports.
_Z, INTERVAL = 1.959964, "95 % confidence interval"


class Error(NamedTuple):
    """The number of misclassified rows, and the size of the most frequent class as a baseline.

    Parameters
    ----------
    n_wrong, n_rows : int
        Number of misclassified rows, and of all rows.
    majority : label
        The most frequent class.
    n_majority : int
        Number of its rows.
    """

    n_wrong: int
    n_rows: int
    majority: Any = None
    n_majority: int = 0

    @classmethod
    def of_labels(cls, predicted: np.ndarray, truth: np.ndarray, majority: Any) -> Error:
        """Count the errors of predictions."""
        return cls(int((predicted != truth).sum()), len(truth), majority, int((truth == majority).sum()))

    @classmethod
    def of_matrix(cls, matrix: ConfusionMatrix) -> Error:
        """Count the errors in a confusion matrix."""
        import numpy as np

        majority = int(matrix.support.argmax())
        n_right, label = int(np.trace(matrix.counts)), matrix.classes.tolist()[majority]
        return cls(matrix.n_rows - n_right, matrix.n_rows, label, int(matrix.support[majority]))

    @classmethod
    def pooled(cls, errors: Iterable[Error]) -> Error:
        """Combine the errors of several sets of rows with the same most frequent class."""
        found = list(errors)
        wrong, rows = sum(error.n_wrong for error in found), sum(error.n_rows for error in found)
        return cls(wrong, rows, found[0].majority, sum(error.n_majority for error in found))

    @property
    def percent(self) -> float:
        """The percentage of misclassified rows."""
        return 100 * self.n_wrong / self.n_rows

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval (Wilson, 1927) of `percent`."""
        share, spread = self.n_wrong / self.n_rows, _Z**2 / self.n_rows
        middle = (share + spread / 2) / (1 + spread)
        half = (spread * (share * (1 - share) + spread / 4)) ** 0.5 / (1 + spread)
        return max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half))

    @property
    def baseline_percent(self) -> float:
        """The error of always predicting the most frequent class, as a percentage."""
        return 100 * (1 - self.n_majority / self.n_rows)

    def content(self, of: str = "") -> dict[str, Any]:
        """Return the figures for --json."""
        return {f"{of}error_percent": self.percent, f"{of}error_interval_percent": self.interval}

    @property
    def shown(self) -> dict[str, str]:
        """The interval and the baseline as text."""
        low, high = self.interval
        baseline = f"{self.baseline_percent:.4g} (always {self.majority})"
        return {INTERVAL: f"{low:.4g} to {high:.4g}", "baseline error %": baseline}

    def __str__(self) -> str:
        return f"{self.percent:.4g} ({INTERVAL} {self.shown[INTERVAL]})"


def tested(model: LoadedModel, options: TrainOptions) -> Error:
    """Return the error on the rows of ``--test``."""
    from polyplane.cli.evaluate import confusion_matrix

    assert options.test is not None
    reading = {} if options.encoding is None else {"encoding": options.encoding}
    try:
        return Error.of_matrix(confusion_matrix(model, options.test, reading, options.threads))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; {options.out} has been written, but not evaluated on the test data."
        ) from None
    except (UserError, ValueError, OSError) as error:
        raise UserError(f"{options.out} has been written, but evaluation on the test data failed: {error}") from error


class Report:
    """Reports the data, the model and the errors: immediately on a terminal, otherwise at the end.

    Parameters
    ----------
    options : TrainOptions
        The options of the command line.
    """

    def __init__(self, options: TrainOptions) -> None:
        self.options = options
        self.is_live = sys.stdout.isatty() and not options.as_json
        self.tuned: dict[str, Any] | None = None
        self.cv_errors: list[Error] = []
        self.test_error: Error | None = None
        self._held: list[Table] = []
        self._content: dict[str, Any] = {}
        self._trained: dict[str, Any] = {}

    def show_read(self, facts: DataFacts) -> None:
        """Report a table: rows, label, classes, and columns that are not features."""
        counts, about = (
            facts.class_counts,
            {"data": self.options.data, "rows": facts.n_rows, "columns": facts.n_columns},
        )
        about |= {name: facts.metadata.get(name) for name in ("label", "id")}
        self._content |= {
            **about,
            "index": list(facts.index_columns),
            "unlabelled_rows": facts.n_unlabelled,
            "classes": list(counts),
            "class_counts": list(counts.values()),
            "decimal": facts.decimal,
            "read_seconds": round(facts.seconds, 3),
        }
        shown = {
            **about,
            "classes": _listed(show_number(label) + (f" ({n:,})" if n else "") for label, n in counts.items()),
            "index": _listed(f"{name!r} is ignored" for name in facts.index_columns),
            "rows without a label": facts.n_unlabelled or None,
            "decimal sign": "comma" if facts.decimal == "," else None,
        }
        self._show(facts_table("Read", shown))

    def show_trained(self, estimator: Any, facts: DataFacts, outcome: Outcome) -> None:
        """Report the planes of a model; of a table also its columns by kind and the selected preparation."""
        planes, stream = estimator.model_.planes, self.options.stream
        model = {"model": self.options.out, "learner": name_of(estimator)}
        ended = {"seconds": round(outcome.seconds, 3), "interrupted": outcome.interrupted}
        if estimator.model_.inputs.is_table:
            self._show_columns(estimator.model_.inputs)
            counts = (planes.indptr[1:] - planes.indptr[:-1]).reshape(planes.n_members, -1).sum(axis=1)
            about = {"preparation": estimator.preparation_, "choice": estimator.choice_}
            self._trained = {
                **model,
                "preparation": _preparation(estimator),
                "held-out log-loss": _held_out_losses(estimator),
                "members": planes.n_members,
                "planes per class": " and ".join(map(str, sorted({int(n) // planes.n_classes for n in counts}))),
                "parts" if stream else "passes": estimator.n_iter_,
                "columns encoded from": f"the first {estimator.encoder_rows_:,} rows" if stream else None,
                "seconds": ended["seconds"],
            }
            self._content |= {"members": planes.n_members}
        else:
            rows = int(estimator.history_["rows"][-1]) if stream else facts.n_rows
            about = {"rows": rows, "features": planes.n_features, "label": facts.metadata.get("label")}
            about["classes"] = estimator.classes_
            steps = {"classes": planes.n_classes, "planes": planes.n_planes, "steps": estimator.n_iter_}
            self._trained = {**model, **about, **steps, **ended}
        self._content |= {**model, **about, "planes": planes.n_planes, "steps": estimator.n_iter_, **ended}
        if self.tuned is not None:
            self._content["tuned"] = self.tuned
            self._trained |= _about_tuning(self.tuned)
            self._show(_settings(self.tuned["tried"]))

    def _show_columns(self, inputs: Any) -> None:
        kinds: dict[str, list[str]] = {}
        for column in inputs.columns:
            kinds.setdefault(column.kind, []).append(column.name)
        with_missing = [column.name for column in inputs.columns if column.has_gaps]
        rows = [(kind, len(names), _listed(names)) for kind, names in kinds.items()]
        rows += [("with missing values", len(with_missing), _listed(with_missing))] if with_missing else []
        self._show(Table("Columns", ("kind", "columns", "names"), rows))
        if inputs.dropped:
            self._show(Table("Dropped", ("column", "reason"), list(inputs.dropped.items())))
        self._content |= {
            "kinds": {column.name: column.kind for column in inputs.columns},
            "gaps": with_missing,
            "dropped": dict(inputs.dropped),
        }

    def finish(self, interrupted: bool) -> None:
        """Report the errors, and suggest next steps."""
        folds, test = self.cv_errors, self.test_error
        known = test or (Error.pooled(folds) if folds else None)
        if folds:
            pooled, percents = Error.pooled(folds), [fold.percent for fold in folds]
            self._content |= pooled.content("cv_") | {"cv_error_percent": percents}
            self._trained["cv error %"] = f"{pooled}, folds {min(percents):.4g} to {max(percents):.4g}"
        if test is not None:
            self._content |= test.content("test_")
            self._trained["test error %"] = str(test)
        if known is not None:
            self._content["baseline_error_percent"] = known.baseline_percent
            self._trained["baseline error %"] = known.shown["baseline error %"]
        self._show(facts_table("Trained", self._trained))
        if not self.is_live:
            present(self._content, self._held, self.options.as_json)
        else:
            typer.echo(self._next_steps())
        if interrupted:
            raise typer.Exit(INTERRUPTED)

    def _next_steps(self) -> str:
        """Suggest commands for the new model."""
        options = self.options
        data, model = shlex.quote(options.test or options.data), shlex.quote(options.out)
        lines = [f"polyplane predict {model} {data}", f"polyplane explain {model} {data} --row 0"]
        if options.test is None and options.cv is None:
            lines.insert(0, "use --test FILE or --cv 5 to estimate the error")
        return "Next: " + "\n      ".join(map(visible, lines)) + "\n"

    def _show(self, table: Table) -> None:
        if self.is_live:
            present({}, [table], as_json=False)
        else:
            self._held.append(table)


def facts_table(title: str, facts: dict[str, Any]) -> Table:
    """Return a table of names and values, without missing values."""
    rows = [(name.replace("_percent", " %").replace("_", " "), value) for name, value in facts.items()]
    return Table(title, (), [(name, value) for name, value in rows if value is not None and value != ""])


def _listed(names: Iterable[str]) -> str:
    return listed(names, SHOWN_NAMES)


def _preparation(estimator: Any) -> str:
    """Describe the selected preparations, and the number of members with each."""
    if estimator.preparation is not None:
        return f"{estimator.preparation_[0]}, as given"
    counts = Counter(estimator.preparation_)
    return "; ".join(f"{name} ({n} member{'s' if n > 1 else ''})" for name, n in counts.items())


def _held_out_losses(estimator: Any) -> str | None:
    """List the held-out log-losses of the preparations."""
    losses = list(estimator.choice_.items())[:SHOWN_LOSSES]
    return "; ".join(f"{name} {loss:.4f}" for name, loss in losses) or None


def _about_tuning(tuned: dict[str, Any]) -> dict[str, Any]:
    """Summarise the results of a search."""
    return {
        "scaling": tuned["scaling"],
        "tuned": " ".join(f"{name}={value}" for name, value in tuned["settings"].items()),
        "tuned_error_percent": f"{tuned['error']:.4g} +- {tuned['standard_error']:.2g}",
        "settings_tried": tuned["n_tried"],
    }


def _settings(tried: list[dict[str, Any]]) -> Table:
    """Return a table of the best settings of a search."""
    title = f"Best of {len(tried)} settings, by cross-validation error"
    columns = [name.replace("standard_error", "+-").replace("error", "error %") for name in tried[0]]
    return Table(title, columns, [list(row.values()) for row in tried[:SHOWN_SETTINGS]])
