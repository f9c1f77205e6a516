"""`polyplane predict`: labels for the rows of a file or a pipe."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, BinaryIO

import typer

from polyplane._plain import visible, visible_json
from polyplane.cli.common import Table, UserError, command, present, refuse_overwriting
from polyplane.cli.data import (
    DataFile,
    Encoding,
    Format,
    Id,
    Label,
    LoadedModel,
    ModelFile,
    Part,
    ZeroBased,
    load_model,
    reading_options,
)

Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File to write to; - for standard output.")]
Scores = Annotated[bool, typer.Option("--scores", help="Add the score of each class.")]
Probabilities = Annotated[
    bool, typer.Option("--proba", help="Add the probability of each class, if the model provides them.")
]
Winners = Annotated[bool, typer.Option("--winners", help="Add the index of the plane with the highest score.")]
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
    encoding: Encoding = None,
    id: Id = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads for prediction.")] = None,
    as_json: Lines = False,
) -> None:
    """Predict the label of each row, one per line. With ids, scores or probabilities, write tab-separated columns.

    Table columns are matched by name: their order does not matter, and other columns, such as labels, are ignored.

    Rows are read and written in batches, so files can be larger than memory. The output file is written atomically: it
    appears only when it is complete.
    """
    refuse_overwriting(out, model, data)
    loaded = load_model(model)
    if proba and not loaded.model.has_probabilities:
        raise UserError("--proba: this model does not provide probabilities; use --scores for its scores.")
    if winners and loaded.model.planes.n_members > 1:
        raise UserError("--winners: this model is a committee, and each of its members has its own winning plane.")
    parts = loaded.batches(data, reading_options(format, label, zero_based, encoding, id), labels=False)
    wanted = [name for name, is_wanted in {"score": scores, "proba": proba, "winner": winners}.items() if is_wanted]
    began, n_rows, writer = time.perf_counter(), 0, None
    with _output(out) as file, loaded.predicting(threads):
        for part in parts:
            if writer is None:
                style = _JsonLines if as_json else _Columns if wanted or part.ids is not None else _Labels
                writer = style(loaded, wanted, None if part.ids is None else visible(str(part.id_name)))
                file.write(writer.header())
            file.write(writer.rows(part))
            n_rows += part.n_rows
    if out != "-":
        seconds = time.perf_counter() - began
        facts = {"data": data, "out": out, "rows": n_rows, "seconds": round(seconds, 3)}
        present(facts, [Table("Predicted", (), list(facts.items()))], as_json)


@contextmanager
def _output(out: str) -> Iterator[BinaryIO]:
    """Open standard output, or a file that appears when it is complete."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from polyplane.files import replace_file

    with replace_file(out) as file:
        yield file


def _one_line_each(labels: list[str]) -> list[str]:
    """Escape characters that would break a line or a column; distinct labels remain distinct."""
    shown = [visible(label) for label in labels]
    if len(set(shown)) == len(set(labels)):
        return shown
    return [visible(label.replace("\\", "\\\\")) for label in labels]


class _Labels:
    """Labels only."""

    def __init__(self, loaded: LoadedModel, wanted: list[str], id_name: str | None) -> None:
        import numpy as np

        self.loaded, self.wanted, self.id_name = loaded, wanted, id_name
        self.classes = loaded.model.classes.tolist()
        self.names = _one_line_each([str(label) for label in self.classes])
        self.lines = np.array([f"{name}\n".encode() for name in self.names], dtype=object)

    def header(self) -> bytes:
        """Return the header."""
        return b""

    def rows(self, part: Part) -> bytes:
        """Format rows."""
        return b"".join(self.lines[self.loaded.predict(part)].tolist())


class _Columns(_Labels):
    """Tab-separated columns."""

    def header(self) -> bytes:
        names = ["label"] if self.id_name is None else [self.id_name, "label"]
        for name in self.wanted:
            names += ["winner"] if name == "winner" else [f"{name}:{label}" for label in self.names]
        return ("\t".join(names) + "\n").encode()

    def rows(self, part: Part) -> bytes:
        found, metrics = self.loaded.outcome(part, self.wanted)
        cells = [] if part.ids is None else [[visible(cell) for cell in part.ids]]
        cells.append([self.names[c] for c in found.tolist()])
        for metric in metrics.values():
            cells += [[repr(value) for value in column.tolist()] for column in metric.T]
        return "".join("\t".join(row) + "\n" for row in zip(*cells, strict=True)).encode()


class _JsonLines(_Labels):
    """A JSON object for each row."""

    def rows(self, part: Part) -> bytes:
        found, metrics = self.loaded.outcome(part, self.wanted)
        lines = []
        for i, c in enumerate(found.tolist()):
            row: dict[str, Any] = {} if part.ids is None else {"id": part.ids[i]}
            row["label"] = self.classes[c]
            for name, metric in metrics.items():
                values = metric[i].tolist()
                row[name] = values[0] if name == "winner" else dict(zip(map(str, self.classes), values, strict=True))
            lines.append(visible_json(json.dumps(row, ensure_ascii=False)) + "\n")
        return "".join(lines).encode()
