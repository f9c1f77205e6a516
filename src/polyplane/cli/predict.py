"""`polyplane predict`: labels for the rows of a file or a pipe."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

from polyplane._plain import visible, visible_json
from polyplane.cli.common import UserError, command, option, output, present_facts, refuse_overwriting
from polyplane.cli.data import (
    DataPath,
    FileOptionsWithId,
    FileRows,
    LoadedModel,
    ModelPath,
    PredictingThreads,
    load_model,
)


@command(
    "polyplane predict model.safetensors a9a.t -o labels.txt",
    "polyplane predict model.safetensors test.csv --scores > scores.tsv",
    "zcat rows.svm.gz | polyplane predict model.safetensors - | sort | uniq -c",
)
def predict(
    model: ModelPath,
    data: DataPath,
    reading: FileOptionsWithId,
    out: Annotated[str, option("FILE", "--out", "-o")] = "-",
    scores: Annotated[bool, option(None, "--scores")] = False,
    proba: Annotated[bool, option(None, "--proba")] = False,
    winners: Annotated[bool, option(None, "--winners")] = False,
    threads: PredictingThreads = None,
    as_json: Annotated[bool, option(None, "--json")] = False,
) -> None:
    """Predict the label of each row, one per line. With ids, scores or probabilities, write tab-separated columns.

    Table columns are matched by name: their order does not matter, and other columns, such as labels, are ignored.

    Rows are read and written in batches, so files can be larger than memory. The output file is written atomically: it
    appears only when it is complete.

    Parameters
    ----------
    out : str
        File to write to; - for standard output.
    scores : bool
        Add the score of each class.
    proba : bool
        Add the probability of each class, if the model provides them.
    winners : bool
        Add the index of the plane with the highest score.
    as_json : bool
        Write one JSON object per row.
    """
    refuse_overwriting(out, model, data)
    loaded = load_model(model)
    if proba and not loaded.model.has_probabilities:
        raise UserError("--proba: this model does not provide probabilities; use --scores for its scores.")
    if winners and not loaded.model.has_winners:
        what = "is a committee" if loaded.model.planes.n_members > 1 else "pools the planes of a class by log-sum-exp"
        raise UserError(f"--winners: this model {what}, and no single plane decides; use --scores.")
    parts = loaded.batches(data, reading.given, labels=False)
    wanted = [name for name, is_wanted in {"score": scores, "proba": proba, "winner": winners}.items() if is_wanted]
    began, n_rows, lines = time.perf_counter(), 0, None
    with output(out) as file, loaded.predicting(threads):
        for part in parts:
            if lines is None:
                lines = Lines(loaded, wanted, None if part.ids is None else visible(str(part.id_name)))
                if not as_json:
                    file.write(lines.header)
            file.write(lines.json(part) if as_json else lines.text(part))
            n_rows += part.n_rows
    if out != "-":
        seconds = time.perf_counter() - began
        facts = {"data": data, "out": out, "rows": n_rows, "seconds": round(seconds, 3)}
        present_facts("Predicted", facts, as_json)


class Lines:
    """The output, a line for each row.

    Parameters
    ----------
    loaded : LoadedModel
        The model.
    wanted : list of str
        The columns beside the label: "score", "proba", "winner".
    id_name : str or None
        The column of ids.
    """

    def __init__(self, loaded: LoadedModel, wanted: list[str], id_name: str | None) -> None:
        self.loaded, self.wanted, self.id_name = loaded, wanted, id_name
        self.classes = loaded.model.classes.tolist()
        labels = [str(label) for label in self.classes]
        self.names = [visible(label) for label in labels]
        if len(set(self.names)) < len(set(labels)):  # distinct labels remain distinct
            self.names = [visible(label.replace("\\", "\\\\")) for label in labels]

    @property
    def header(self) -> bytes:
        """The names of tab-separated columns; empty if there are only labels."""
        if not self.wanted and self.id_name is None:
            return b""
        names = ["label"] if self.id_name is None else [self.id_name, "label"]
        for name in self.wanted:
            names += ["winner"] if name == "winner" else [f"{name}:{label}" for label in self.names]
        return ("\t".join(names) + "\n").encode()

    def text(self, part: FileRows) -> bytes:
        """Return labels, or tab-separated columns."""
        found, metrics = self.loaded.outcome(part, self.wanted)
        cells = [] if part.ids is None else [[visible(cell) for cell in part.ids]]
        cells.append([self.names[c] for c in found.tolist()])
        for metric in metrics.values():
            cells += [[repr(value) for value in column.tolist()] for column in metric.T]
        return "".join("\t".join(row) + "\n" for row in zip(*cells, strict=True)).encode()

    def json(self, part: FileRows) -> bytes:
        """Return a JSON object for each row."""
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
