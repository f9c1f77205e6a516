"""The report of `polyplane train` about a table and its model."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from polyplane.cli._common import INTERRUPTED, Table, listed, note, present, show_number
from polyplane.cli._data import loaded
from polyplane.cli._errors import Error
from polyplane.cli._learners import TABLE
from polyplane.cli._report import error_content, error_facts, next_steps, tested

if TYPE_CHECKING:
    from polyplane.cli._table_source import TableFacts
    from polyplane.cli._train_options import TrainOptions

#: Maximum number of classes, columns or levels in a line; --json lists all of them.
SHOWN = 8
#: Maximum number of preparations shown with their log-losses.
BEST = 4


class TableReport:
    """Reports the data, the model and the errors: immediately on a terminal, otherwise at the end.

    Parameters
    ----------
    options : TrainOptions
        The options of the command line.
    """

    def __init__(self, options: TrainOptions) -> None:
        self.options = options
        self.is_live = sys.stdout.isatty() and not options.as_json
        self.seconds, self.interrupted = 0.0, False
        self.cv_errors: list[Error] = []
        self.test_error: Error | None = None
        self._held: list[Table] = []
        self._content: dict[str, Any] = {}
        self._trained: dict[str, Any] = {}

    def show_read(self, facts: TableFacts) -> None:
        """Report the table: rows, label, classes, and columns that are not features."""
        counts = facts.class_counts
        counted = [show_number(label) + (f" ({n:,})" if n else "") for label, n in counts.items()]
        self._content |= {
            "data": self.options.data,
            "rows": facts.n_rows,
            "columns": facts.n_columns,
            "label": facts.label,
            "id": facts.id,
            "index": list(facts.index_columns),
            "unlabelled_rows": facts.n_unlabelled,
            "classes": list(counts),
            "class_counts": list(counts.values()),
            "decimal": facts.decimal,
            "read_seconds": round(facts.seconds, 3),
        }
        shown = {
            "data": self.options.data,
            "rows": facts.n_rows,
            "columns": facts.n_columns,
            "label": facts.label,
            "classes": _listed(counted),
            "id": facts.id,
            "index": _listed(f"{name!r} is ignored" for name in facts.index_columns),
            "rows without a label": facts.n_unlabelled or None,
            "decimal sign": "comma" if facts.decimal == "," else None,
        }
        self._say(_facts("Read", shown))

    def show_trained(self, model: Any) -> None:
        """Report the columns by kind, the dropped columns, and the selected preparation with its reason."""
        encoding = model.table_model_.encoding
        kinds: dict[str, list[str]] = {}
        for column in encoding.columns:
            kinds.setdefault(column.kind, []).append(column.name)
        with_gaps = [column.name for column in encoding.columns if column.has_gaps]
        rows = [(kind, len(names), _listed(names)) for kind, names in kinds.items()]
        rows += [("with missing values", len(with_gaps), _listed(with_gaps))] if with_gaps else []
        self._say(Table("Columns", ("kind", "columns", "names"), rows))
        if encoding.dropped:
            self._say(Table("Dropped", ("column", "reason"), list(encoding.dropped.items())))
        planes = [member.planes for member in model.members_]
        self._content |= {
            "model": self.options.out,
            "learner": TABLE,
            "kinds": {column.name: column.kind for column in encoding.columns},
            "gaps": with_gaps,
            "dropped": dict(encoding.dropped),
            "preparation": model.preparation_,
            "choice": model.choice_,
            "machines": len(planes),
            "planes": sum(each.n_planes for each in planes),
            "steps": model.n_iter_,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
        }
        per_class = sorted({each.n_planes // each.n_classes for each in planes})
        self._trained = {
            "model": self.options.out,
            "learner": TABLE,
            "preparation": _preparation(model),
            "held-out log-loss": _why(model),
            "members": len(planes),
            "planes per class": " and ".join(map(str, per_class)),
            "parts" if self.options.stream else "passes": model.n_iter_,
            "columns encoded from": self._first_rows(model),
            "seconds": round(self.seconds, 3),
        }

    def _first_rows(self, model: Any) -> str | None:
        rows = getattr(model, "encoder_rows_", None) if self.options.stream else None
        return None if rows is None else f"the first {rows:,} rows"

    def finish(self) -> None:
        """Report the errors, and suggest next steps."""
        self._content |= error_content(self.cv_errors, self.test_error)
        self._trained |= error_facts(self.cv_errors, self.test_error)
        self._say(_facts("Trained", self._trained))
        if self.options.as_json or self._held:
            present(self._content, self._held, self.options.as_json)
        if self.is_live:
            typer.echo(next_steps(self.options))
        if self.interrupted:
            raise typer.Exit(INTERRUPTED)

    def _say(self, table: Table) -> None:
        if self.is_live:
            present({}, [table], as_json=False)
        else:
            self._held.append(table)


def keep_and_test(model: Any, facts: TableFacts, report: TableReport) -> None:
    """Write the model, test it, and report."""
    from polyplane.loading import save

    options = report.options
    save(model, options.out, metadata=facts.metadata)
    if report.interrupted:
        note(f"Interrupted: {options.out} contains the model trained on the batches read so far.")
    report.show_trained(model)
    if options.test is not None:
        report.test_error = tested(loaded(model, facts.metadata), options)
    report.finish()


def _facts(title: str, facts: dict[str, Any]) -> Table:
    return Table(title, (), [(name, value) for name, value in facts.items() if value not in (None, "")])


def _listed(names: Iterable[str]) -> str:
    return listed(names, SHOWN)


def _preparation(model: Any) -> str:
    """Describe the selected preparations, and the number of members with each."""
    if not model.choice_:
        return f"{model.preparation_[0]}, as given"
    counts = Counter(model.preparation_)
    return "; ".join(f"{name} ({n} member{'s' if n > 1 else ''})" for name, n in counts.items())


def _why(model: Any) -> str | None:
    """List the held-out log-losses of the preparations."""
    losses = list(model.choice_.items())[:BEST]
    return "; ".join(f"{name} {loss:.4f}" for name, loss in losses) or None
