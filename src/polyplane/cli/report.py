"""The report of `polyplane train`: the data, the model, and its errors with their confidence intervals."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from polyplane._plain import visible
from polyplane.cli.common import INTERRUPTED, PrintedTable, UserError, listed, present, show_number
from polyplane.cli.data import LoadedModel, name_of

if TYPE_CHECKING:
    from polyplane.cli.rows import DataFacts
    from polyplane.cli.train import TrainOptions
    from polyplane.cli.training import Outcome
    from polyplane.explain.confusion import ConfusionMatrix
    from polyplane.planes import PlaneSet

#: Maximum number of classes, columns or levels in a line, of preparations shown with their log-losses, and of search
#: settings; --json lists all of them.
SHOWN_NAMES, SHOWN_LOSSES, SHOWN_SETTINGS = 8, 4, 10
#: The name of the interval of an error.
INTERVAL = "95 % confidence interval"


def error_content(matrix: ConfusionMatrix, of: str = "") -> dict[str, Any]:
    """Return the error of a confusion matrix and its interval for --json."""
    return {f"{of}error_percent": matrix.error_percent, f"{of}error_interval_percent": matrix.interval_percent}


def error_shown(matrix: ConfusionMatrix) -> dict[str, str]:
    """Return the interval of the error and the baseline as text."""
    low, high = matrix.interval_percent
    baseline = f"{matrix.baseline_percent:.4g} (always {matrix.majority})"
    return {INTERVAL: f"{low:.4g} to {high:.4g}", "baseline error %": baseline}


def tested(model: LoadedModel, options: TrainOptions) -> ConfusionMatrix:
    """Return the confusion matrix of the rows of ``--test``."""
    from polyplane.cli.evaluate import outcomes
    from polyplane.explain.confusion import ConfusionMatrix

    assert options.test is not None
    reading = {name: own for name in ("encoding", "table") if (own := getattr(options, name)) is not None}
    try:
        return ConfusionMatrix.of(model.model.classes, *outcomes(model, options.test, reading, options.threads))
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
        self.cv_errors: list[ConfusionMatrix] = []
        self.test_error: ConfusionMatrix | None = None
        self._held: list[PrintedTable] = []
        self._content: dict[str, Any] = {}
        self._trained: dict[str, Any] = {}

    def show_read(self, facts: DataFacts) -> None:
        """Report a table: rows, label, classes, and columns that are not features."""
        counts = facts.class_counts
        about = {"data": self.options.data, "rows": facts.n_rows, "columns": facts.n_columns}
        about |= {name: facts.metadata.get(name) for name in ("label", "id")}
        self._content |= {
            **about,
            "index": list(facts.index_columns),
            "unlabelled_rows": facts.n_unlabelled,
            "classes": list(counts),
            "class_counts": list(counts.values()),
            "read_seconds": round(facts.seconds, 3),
        }
        shown = {
            **about,
            "classes": _listed(show_number(label) + (f" ({n:,})" if n else "") for label, n in counts.items()),
            "index": _listed(f"{name!r} is ignored" for name in facts.index_columns),
            "rows without a label": facts.n_unlabelled or None,
        }
        self._show(facts_table("Read", shown))

    def show_trained(self, estimator: Any, facts: DataFacts, outcome: Outcome, metadata: Mapping[str, Any]) -> None:
        """Report the planes of a model; of a table also its columns by kind and the selected preparation."""
        planes, stream = estimator.model_.planes, self.options.stream
        model = {"model": self.options.out, "learner": name_of(estimator)}
        ended = {"seconds": round(outcome.seconds, 3), "interrupted": outcome.interrupted}
        if estimator.model_.inputs.is_table:
            self._show_columns(estimator.model_.inputs)
            counts = (planes.indptr[1:] - planes.indptr[:-1]).reshape(planes.n_members, -1).sum(axis=1)
            about = {"preparation": estimator.preparation_, "choice": estimator.choice_}
            preparations = Counter(estimator.preparation_).items()
            chosen = "; ".join(f"{name} ({n} member{'s' if n > 1 else ''})" for name, n in preparations)
            losses = list(estimator.choice_.items())[:SHOWN_LOSSES]
            self._trained = {
                **model,
                "preparation": chosen if estimator.preparation is None else f"{estimator.preparation_[0]}, as given",
                "held-out log-loss": "; ".join(f"{name} {loss:.4f}" for name, loss in losses),
                "members": members_shown(member_weights(planes)),
                "planes per class": " and ".join(map(str, sorted({int(n) // planes.n_classes for n in counts}))),
                "parts" if stream else "passes": estimator.n_iter_,
                "columns encoded from": f"the first {estimator.encoder_rows_:,} rows" if stream else None,
                "seconds": ended["seconds"],
            }
            self._content |= {"members": planes.n_members, "member_weights": member_weights(planes)}
        else:
            rows = int(estimator.history_["rows"][-1]) if stream else facts.n_rows
            about = {"rows": rows, "features": planes.n_features, "label": facts.metadata.get("label")}
            about["scaling"] = metadata["scaling"]
            about["classes"] = estimator.classes_
            steps = {"classes": planes.n_classes, "planes": planes.n_planes, "steps": estimator.n_iter_}
            self._trained = {**model, **about, **steps, **ended}
        self._content |= {**model, **about, "planes": planes.n_planes, "steps": estimator.n_iter_, **ended}
        if self.tuned is not None:
            tuned, tried = self.tuned, self.tuned["tried"]
            self._content["tuned"] = tuned
            self._trained |= {
                "tuned": " ".join(f"{name}={value}" for name, value in tuned["settings"].items()),
                "tuned_error_percent": f"{tuned['error']:.4g} +- {tuned['standard_error']:.2g}",
                "settings_tried": tuned["n_tried"],
            }
            title = f"Best of {len(tried)} settings, by cross-validation error"
            columns = [name.replace("standard_error", "+-").replace("error", "error %") for name in tried[0]]
            self._show(PrintedTable(title, columns, [list(row.values()) for row in tried[:SHOWN_SETTINGS]]))

    def _show_columns(self, inputs: Any) -> None:
        kinds: dict[str, list[str]] = {}
        for column in inputs.columns:
            kinds.setdefault(column.kind, []).append(column.name)
        with_missing = [column.name for column in inputs.columns if column.has_gaps]
        rows = [(kind, len(names), _listed(names)) for kind, names in kinds.items()]
        rows += [("with missing values", len(with_missing), _listed(with_missing))] if with_missing else []
        self._show(PrintedTable("Columns", ("kind", "columns", "names"), rows))
        if inputs.dropped:
            self._show(PrintedTable("Dropped", ("column", "reason"), list(inputs.dropped.items())))
        if inputs.notes:
            self._show(PrintedTable("Notes", ("column", "note"), list(inputs.notes.items())))
        self._content |= {
            "kinds": {column.name: column.kind for column in inputs.columns},
            "gaps": with_missing,
            "dropped": dict(inputs.dropped),
            "notes": dict(inputs.notes),
        }

    def finish(self, interrupted: bool) -> None:
        """Report the errors, and suggest next steps."""
        percents = [fold.error_percent for fold in self.cv_errors]
        pooled = sum(self.cv_errors[1:], self.cv_errors[0]) if percents else None
        folds = f", folds {min(percents):.4g} to {max(percents):.4g}" if percents else ""
        for name, matrix, others in (("cv", pooled, folds), ("test", self.test_error, "")):
            if matrix is not None:
                shown = error_shown(matrix)
                text = f"{matrix.error_percent:.4g} ({INTERVAL} {shown[INTERVAL]}){others}"
                self._trained[f"{name} error %"] = text
                self._content |= error_content(matrix, f"{name}_")
        if percents:
            self._content["cv_error_percent"] = percents
        known = self.test_error or pooled
        if known is not None:
            self._content["baseline_error_percent"] = known.baseline_percent
            self._trained["baseline error %"] = error_shown(known)["baseline error %"]
        self._show(facts_table("Trained", self._trained))
        if not self.is_live:
            present(self._content, self._held, self.options.as_json)
        else:
            options = self.options
            data, model = shlex.quote(options.test or options.data), shlex.quote(options.out)
            lines = [f"polyplane predict {model} {data}", f"polyplane explain {model} {data} --row 0"]
            if options.test is None and options.cv is None:
                lines.insert(0, "use --test FILE or --cv 5 to estimate the error")
            typer.echo("Next: " + "\n      ".join(map(visible, lines)) + "\n")
        if interrupted:
            raise typer.Exit(INTERRUPTED)

    def _show(self, table: PrintedTable) -> None:
        if self.is_live:
            present({}, [table], as_json=False)
        else:
            self._held.append(table)


def facts_table(title: str, facts: dict[str, Any]) -> PrintedTable:
    """Return a table of names and values, without missing values and lists."""
    shown = {name: ("no", "yes")[value] if isinstance(value, bool) else value for name, value in facts.items()}
    rows = [(name.replace("_percent", " %").replace("_", " "), value) for name, value in shown.items()]
    return PrintedTable(title, (), [row for row in rows if row[1] != "" and not isinstance(row[1], list | dict | None)])


def member_weights(planes: PlaneSet) -> list[float]:
    """Return the weight of each distinct member of a committee, the largest first; equal members are one."""
    weights: dict[Any, float] = {}
    for member, weight in zip(planes.members, planes.member_weight.tolist(), strict=True):
        key = (member.coef.tobytes(), member.intercept.tobytes(), member.indptr.tobytes())
        weights[key] = weights.get(key, 0.0) + weight
    return sorted((round(weight, 6) for weight in weights.values()), reverse=True)


def members_shown(weights: list[float]) -> str:
    """Return the number of distinct members, and their weights unless all are equal."""
    text = str(len(weights))
    return f"{text}, with weights {', '.join(f'{w:.3g}' for w in weights)}" if weights[0] > weights[-1] else text


def _listed(names: Iterable[str]) -> str:
    return listed(names, SHOWN_NAMES)
