"""The options of `polyplane train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import typer

from polyplane.cli.common import UserError, note, refuse_overwriting
from polyplane.cli.data import LoadedModel
from polyplane.cli.learners import DEFAULT, TABLE, learner_names

ScaleMethod = Literal["none", "standard", "maxabs"]

#: Value of --tune without a number; seconds of a search without a time limit, and its fraction of a time limit.
AUTO, TUNING_TIME, TUNING_SHARE = "auto", 60.0, 0.5

TRAINING, DATA, LIMITS = "Training", "The data", "Time and memory"

Learner = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"One of {', '.join(learner_names())}. Default: {TABLE} for tables (CSV, TSV, Parquet), {DEFAULT} for "
        "other data, and the learner of the model with --resume.",
        rich_help_panel=TRAINING,
        autocompletion=learner_names,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the learner, as in --set max_iter=50; can be repeated. The documentation of the "
        "learner's class lists its parameters.",
        rich_help_panel=TRAINING,
    ),
]
Scale = Annotated[
    ScaleMethod | None,
    typer.Option(
        metavar="METHOD",
        help="Feature scaling: none, standard (zero mean, unit variance; sparse data are not centred) or maxabs. "
        "The saved model takes unscaled rows. Default: none; with --tune, the best one.",
        rich_help_panel=TRAINING,
    ),
]
Tune = Annotated[
    str | None,
    typer.Option(
        "--tune",
        metavar="[SECONDS]",
        help="Tune the parameters by cross-validation before training, for SECONDS. Default: a minute, or half of the "
        "time limit.",
        rich_help_panel=TRAINING,
    ),
]
Seed = Annotated[
    int, typer.Option(metavar="N", min=0, help="Seed of the random number generator.", rich_help_panel=TRAINING)
]
Resume = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Resume the training of this model.", rich_help_panel=TRAINING)
]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File to write the model to.")]
TestFile = Annotated[str | None, typer.Option("--test", metavar="FILE", help="Labelled data to test the model on.")]
Folds = Annotated[int | None, typer.Option(min=2, metavar="K", help="Estimate the error by K-fold cross-validation.")]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Threads for training, if the learner supports it, and for testing.",
        rich_help_panel=LIMITS,
    ),
]
TimeLimit = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Stop training after this time.", rich_help_panel=LIMITS)
]
Stream = Annotated[
    bool,
    typer.Option("--stream", help="Read the rows in batches, for data larger than memory.", rich_help_panel=LIMITS),
]
Passes = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Passes over the stream. Default: 1.", rich_help_panel=LIMITS)
]
BatchRows = Annotated[
    int, typer.Option(metavar="N", min=1, help="Rows in each batch of a stream.", rich_help_panel=LIMITS)
]
Classes = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="All class labels, for streaming from standard input.", rich_help_panel=DATA),
]
Features = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Number of features, if not all of them occur in the file.", rich_help_panel=DATA
    ),
]


#: Options that `table` does not support, each with the reason and a remedy.
_NOT_FOR_TABLES = {
    "tune": "`table` selects its preparation and number of planes on held-out rows; omit --tune, or use "
    "another learner",
    "scale": "`table` scales each column itself; omit --scale, or use another learner",
    "resume": "`table` cannot resume training; train again on all rows",
    "n_features": "the columns of a table are its features; omit --features",
    "classes": "the classes are taken from the label column; --classes is for streaming from standard input",
}


class TrainOptions(NamedTuple):
    """The options as given; `reading` contains those of `polyplane.readers.read`, and `source` is the opened file."""

    data: str
    learner: str | None
    out: str
    test: str | None
    cv: int | None
    scale: ScaleMethod | None
    seed: int
    threads: int | None
    time_limit: float | None
    stream: bool
    passes: int | None
    batch_rows: int
    resume: str | None
    tune: str | None
    classes: str | None
    n_features: int | None
    reading: dict[str, Any]
    as_json: bool
    source: Any = None

    @property
    def scaling(self) -> ScaleMethod:
        """The scaling method."""
        return self.scale or "none"

    @property
    def tuning_time(self) -> float:
        """Seconds for the parameter search."""
        if self.tune != AUTO:
            try:
                seconds = float(self.tune or "")
            except ValueError:
                seconds = 0.0
            if not 0 < seconds < float("inf"):
                raise UserError(f"--tune {self.tune}: expected a positive number of seconds.")
            return seconds
        return TUNING_TIME if self.time_limit is None else TUNING_SHARE * self.time_limit

    def check(self) -> None:
        """Raise an error for invalid combinations of options, before any work is done."""
        folder = Path(self.out).resolve().parent
        if not folder.is_dir():
            raise UserError(f"--out {self.out}: the folder {folder} does not exist.")
        refuse_overwriting(self.out, self.data, self.test)
        if self.test is not None and self.test != "-":
            Path(self.test).open("rb").close()  # fail now rather than after training
        if self.time_limit is not None and self.time_limit <= 0:
            raise UserError(f"--time-limit {self.time_limit:g}: expected a positive number of seconds.")
        if self.passes is not None and not self.stream:
            raise UserError("--passes requires --stream; without it, use --set max_iter=N.")
        if self.tune is not None:
            assert self.tuning_time > 0  # raises an error if --tune is not a number of seconds
        if self.stream and (self.tune or self.cv):
            raise UserError(f"--{'tune' if self.tune else 'cv'} needs all rows in memory; omit --stream.")
        if self.stream and self.data == "-" and (self.passes or 1) > 1:
            raise UserError("--passes: standard input can be read only once.")
        for option, given in (("scale", self.scaling != "none"), ("tune", self.tune), ("classes", self.classes)):
            if self.resume is not None and given:
                raise UserError(
                    f"--{option} cannot be combined with --resume: the model keeps the settings it was trained with."
                )

    def check_for_table(self) -> None:
        """Raise an error for options that `table` does not support."""
        for name, why in _NOT_FOR_TABLES.items():
            if getattr(self, name) and not (self.stream and name == "classes"):
                raise UserError(f"--{'features' if name == 'n_features' else name}: {why}.")
        if self.reading.get("format") == "svmlight":
            raise UserError("--format svmlight: `table` takes CSV, TSV and Parquet files.")

    def opened(self) -> Self:
        """Open the data; standard input is kept in memory or on disk, unless it is a stream."""
        from polyplane.readers.source import InputFile

        return self._replace(source=InputFile(self.data, keep=not self.stream))

    def reading_for(self, resumed: LoadedModel | None) -> dict[str, Any]:
        """Return the reading options: those of the model to resume, updated by the command line."""
        expected = {} if resumed is None else resumed.reading()
        if self.n_features is not None:
            expected["n_features"] = self.n_features
        return {**expected, **self.reading}


def takes_table(options: TrainOptions) -> bool:
    """Whether the learner is `table`: it is given, or no learner is given and the data are a table."""
    if options.learner is not None or options.resume is not None:
        return options.learner == TABLE
    if (options.reading.get("format") or options.source.format()) not in ("csv", "parquet"):
        return False
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        note('pip install "polyplane[tables]" to train on raw tables; without it, all columns must be numeric.')
        return False
    return True
