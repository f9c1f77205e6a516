"""`polyplane predict`: labels for rows, from files or through pipes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from polyplane._plain import visible, visible_json
from polyplane.cli._common import Table, UserError, command, present
from polyplane.cli._data import DataFile, Format, Label, ModelFile, ZeroBased, load_model, reading_options

if TYPE_CHECKING:
    import numpy as np

Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; - is standard output.")]
Scores = Annotated[bool, typer.Option("--scores", help="Add the score of each class.")]
Probabilities = Annotated[
    bool, typer.Option("--proba", help="Add the probability of each class, where a model has them.")
]
Winners = Annotated[bool, typer.Option("--winners", help="Add the number of the plane with the highest score.")]
Lines = Annotated[bool, typer.Option("--json", help="Write one JSON object per row.")]


@command(
    "polyplane predict model.safetensors a9a.t -o labels.txt",
    "polyplane predict model.safetensors test.csv --scores > scores.tsv",
    "zcat rows.svm.gz | polyplane predict model.safetensors - | sort | uniq -c",
)
def predict(
    model: ModelFile,
    data: DataFile,
    out: Out = "-",
    scores: Scores = False,
    proba: Probabilities = False,
    winners: Winners = False,
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads to predict with.")] = None,
    as_json: Lines = False,
) -> None:
    """Write the label of each row, one per line; with scores and the like, tab-separated columns under a header.

    Rows are read and written in parts, so that files may be larger than memory. A file appears when all of it is
    written, and not before. Labels in the data are not needed, and ignored.
    """
    loaded = load_model(model)
    if proba and not hasattr(loaded.model, "predict_proba"):
        raise UserError("--proba: this model has no probabilities; --scores gives its scores.")
    if winners and not hasattr(loaded.model.planes_, "winners"):
        raise UserError("--winners: this model is a committee, each machine of which has a best plane of its own.")
    parts = loaded.batches(data, reading_options(format, label, zero_based), labels=False)
    wanted = {"score": scores, "proba": proba, "winner": winners}
    style = _JsonLines if as_json else _Columns if any(wanted.values()) else _Labels
    began, n_rows = time.perf_counter(), 0
    with _output(out) as file, loaded.predicting(threads):
        writer = style(loaded.model, wanted)
        file.write(writer.header())
        for part in parts:
            file.write(writer.rows(part.X))
            n_rows += part.X.shape[0]
    if out != "-":
        seconds = time.perf_counter() - began
        facts = {"data": data, "out": out, "rows": n_rows, "seconds": round(seconds, 3)}
        present(facts, [Table("Predicted", (), list(facts.items()))], as_json)


@contextmanager
def _output(out: str) -> Iterator[BinaryIO]:
    """Standard output, or a file that is there when all is written."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from polyplane._files import replace_file

    with replace_file(out) as file:
        yield file


def _one_line_each(labels: list[str]) -> list[str]:
    """Labels without characters that break a line or a column; those that differ stay different."""
    shown = [visible(label) for label in labels]
    if len(set(shown)) == len(set(labels)):
        return shown
    return [visible(label.replace("\\", "\\\\")) for label in labels]


class _Labels:
    """Labels only."""

    def __init__(self, model: Any, wanted: dict[str, bool]) -> None:
        import numpy as np

        self.model = model
        self.wanted = [name for name, is_wanted in wanted.items() if is_wanted]
        self.names = _one_line_each([str(label) for label in model.classes_.tolist()])
        self.lines = np.array([f"{name}\n".encode() for name in self.names], dtype=object)

    def header(self) -> bytes:
        """What comes before the rows."""
        return b""

    def rows(self, X: Any) -> bytes:
        """The text of some rows."""
        return b"".join(self.lines[self.model.planes_.predict(X)].tolist())

    def columns(self, X: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The class of each row, and what else is wanted."""
        model = self.model
        figures: dict[str, Callable[[], np.ndarray]] = {
            "score": lambda: model.planes_.class_scores(X),
            "proba": lambda: model.predict_proba(X),
            "winner": lambda: model.planes_.winners(X)[:, None],
        }
        return model.planes_.predict(X), {name: figures[name]() for name in self.wanted}


class _Columns(_Labels):
    """Tab-separated columns."""

    def header(self) -> bytes:
        names = ["label"]
        for name in self.wanted:
            names += ["winner"] if name == "winner" else [f"{name}:{label}" for label in self.names]
        return ("\t".join(names) + "\n").encode()

    def rows(self, X: Any) -> bytes:
        found, figures = self.columns(X)
        cells = [[self.names[c] for c in found.tolist()]]
        for figure in figures.values():
            cells += [[repr(value) for value in column.tolist()] for column in figure.T]
        return "".join("\t".join(row) + "\n" for row in zip(*cells, strict=True)).encode()


class _JsonLines(_Labels):
    """A JSON object for each row."""

    def rows(self, X: Any) -> bytes:
        found, figures = self.columns(X)
        labels = self.model.classes_.tolist()
        lines = []
        for i, c in enumerate(found.tolist()):
            row: dict[str, Any] = {"label": labels[c]}
            for name, figure in figures.items():
                values = figure[i].tolist()
                row[name] = values[0] if name == "winner" else dict(zip(map(str, labels), values, strict=True))
            lines.append(visible_json(json.dumps(row, ensure_ascii=False)) + "\n")
        return "".join(lines).encode()
