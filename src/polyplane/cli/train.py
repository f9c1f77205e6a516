"""`polyplane train`: train a model on a data file."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from polyplane.cli import training
from polyplane.cli.common import AsJson, UserError, command, note, option, refuse_overwriting
from polyplane.cli.data import (
    PANEL,
    DataPath,
    FileOptionsWithId,
    LoadedModel,
    SeedOption,
    load_model,
    name_of,
    refuse_table_options,
)
from polyplane.cli.report import Report, tested
from polyplane.cli.rows import MatrixSource, MoreRows, TableSource
from polyplane.cli.training import DEFAULT, TABLE

ScaleMethod = Literal["none", "standard", "maxabs"]

#: Value of --tune without a number; seconds of a search without a time limit, and its fraction of a time limit.
AUTO, TUNING_TIME, TUNING_SHARE = "auto", 60.0, 0.5
#: Panels of the options.
TRAINING, LIMITS = "Training", "Time and memory"
LEARNER_HELP = (
    f"One of {', '.join(training.learner_names())}. Default: {TABLE} for tables (CSV, TSV, Parquet), {DEFAULT} for "
    "other data, and the learner of the model with --resume."
)
LEARNER_OPTION = option("NAME", panel=TRAINING, autocompletion=training.learner_names, help=LEARNER_HELP)
#: The largest number of features: that of 32 bits.
MOST_FEATURES = 2**31 - 1
#: Options that `table` does not support, each with the reason and a remedy.
_NOT_FOR_TABLES = {
    "tune": "`table` selects its preparation and number of planes on held-out rows; omit --tune, or use "
    "another learner",
    "scale": "`table` scales each column itself; omit --scale, or use another learner",
    "features": "the columns of a table are its features; omit --features",
    "classes": "the classes are taken from the label column; --classes is for streaming from standard input",
}


@dataclass(frozen=True, kw_only=True)
class TrainOptions(FileOptionsWithId):
    """The options of `polyplane train`.

    Parameters
    ----------
    out : str
        File to write the model to.
    test : str or None
        Labelled data to test the model on.
    cv : int or None
        Estimate the error by K-fold cross-validation.
    settings : list of str or None
        Set a parameter of the learner, as in --set max_iter=50; can be repeated. The documentation of the learner's
        class lists its parameters.
    scale : str or None
        Feature scaling: none, standard (zero mean, unit variance; sparse data are not centred) or maxabs. The saved
        model takes unscaled rows. Default: none, unless the learner standardises the features (its parameter
        `standardize`); with --tune, the best one.
    tune : str or None
        Tune the parameters by cross-validation before training, for SECONDS. Default: a minute, or half of the time
        limit.
    resume : str or None
        Resume the training of this model; a table model is trained on the new rows in batches.
    threads : int or None
        Threads for training, if the learner supports it, and for testing.
    time_limit : float or None
        Stop training after this time.
    stream : bool
        Read the rows in batches, for data larger than memory.
    passes : int or None
        Passes over the stream. Default: 1.
    batch_rows : int
        Rows in each batch of a stream.
    classes : str or None
        All class labels, for streaming from standard input.
    features : int or None
        Number of features, if not all of them occur in the file.
    """

    data: DataPath
    out: Annotated[str, option("FILE", "--out", "-o")] = "model.safetensors"
    test: Annotated[str | None, option("FILE")] = None
    cv: Annotated[int | None, option("K", min=2)] = None
    learner: Annotated[
        str | None, option("NAME", panel=TRAINING, autocompletion=training.learner_names, help=LEARNER_HELP)
    ] = None
    settings: Annotated[list[str] | None, option("NAME=VALUE", "--set", panel=TRAINING)] = None
    scale: Annotated[ScaleMethod | None, option("METHOD", panel=TRAINING)] = None
    tune: Annotated[str | None, option("[SECONDS]", panel=TRAINING)] = None
    seed: SeedOption = 0
    resume: Annotated[str | None, option("MODEL", panel=TRAINING)] = None
    threads: Annotated[int | None, option("N", min=1, panel=LIMITS)] = None
    time_limit: Annotated[float | None, option("SECONDS", panel=LIMITS)] = None
    stream: Annotated[bool, option(None, "--stream", panel=LIMITS)] = False
    passes: Annotated[int | None, option("N", min=1, panel=LIMITS)] = None
    batch_rows: Annotated[int, option("N", min=1, panel=LIMITS)] = 65_536
    classes: Annotated[str | None, option("A,B,...", panel=PANEL)] = None
    features: Annotated[int | None, option("N", min=1, panel=PANEL)] = None
    as_json: AsJson = False

    @property
    def scaling(self) -> ScaleMethod:
        """The scaling method."""
        return self.scale or "none"

    @cached_property
    def source(self) -> Any:
        """The data file; standard input is kept in memory or on disk, unless it is a stream."""
        from polyplane.readers.source import InputFile

        return InputFile(self.data, keep=not self.stream)

    @property
    def tuning_time(self) -> float:
        """Seconds for the parameter search."""
        if self.tune == AUTO:
            return TUNING_TIME if self.time_limit is None else TUNING_SHARE * self.time_limit
        try:
            seconds = float(self.tune or "")
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise UserError(f"--tune {self.tune}: expected a positive number of seconds.")
        return seconds

    @property
    def takes_table(self) -> bool:
        """Whether the learner is `table`: it is given, or no learner is given and the data are a table."""
        if self.learner is not None:
            return self.learner == TABLE
        if (self.format or self.source.format()) == "svmlight":
            return False
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            note('pip install "polyplane[tables]" to train on raw tables; without it, all columns must be numeric.')
            return False
        return True

    def check(self) -> None:
        """Raise an error for invalid combinations of options, before any work is done."""
        folder = Path(self.out).resolve().parent
        if not folder.is_dir():
            raise UserError(f"--out {self.out}: the folder {folder} does not exist.")
        refuse_overwriting(self.out, self.data, self.test)
        if self.test is not None and self.test != "-":
            Path(self.test).open("rb").close()  # fail now rather than after training
        if self.time_limit is not None and not self.time_limit > 0:  # NaN is not
            raise UserError(f"--time-limit {self.time_limit:g}: expected a positive number of seconds.")
        if self.features is not None and self.features > MOST_FEATURES:
            raise UserError(f"--features {self.features}: at most {MOST_FEATURES:,} features are supported.")
        if self.passes is not None and not self.stream:
            raise UserError("--passes requires --stream; without it, use --set max_iter=N.")
        if self.tune is not None:
            assert self.tuning_time > 0  # raises an error if --tune is not a number of seconds
        if self.stream and (self.tune or self.cv):
            raise UserError(f"--{'tune' if self.tune else 'cv'} needs all rows in memory; omit --stream.")
        if self.stream and self.data == "-" and (self.passes or 1) > 1:
            raise UserError("--passes: standard input can be read only once.")
        for name, given in (("scale", self.scaling != "none"), ("tune", self.tune), ("classes", self.classes)):
            if self.resume is not None and given:
                raise UserError(
                    f"--{name} cannot be combined with --resume: the model keeps the settings it was trained with."
                )
        training.check_learner(self.learner)

    def check_for_table(self) -> None:
        """Raise an error for options that `table` does not support."""
        for name, why in _NOT_FOR_TABLES.items():
            if getattr(self, name) and not (self.stream and name == "classes"):
                raise UserError(f"--{name}: {why}.")
        if self.format == "svmlight":
            raise UserError("--format svmlight: `table` takes tables, such as CSV and Parquet files.")


@command(
    "polyplane train people.csv.gz --label income --id person --test more.csv --out income.safetensors",
    "polyplane train a9a --test a9a.t",
    "polyplane train numbers.csv --learner pegasos --tune",
    "polyplane train digits.svm --learner convex-polytope --set n_planes=48 --set alpha=1e-5",
    "polyplane train huge.svm --learner pegasos --stream --passes 3",
    "polyplane train monday.svm --resume model.safetensors",
    without_number={"--tune": AUTO},
)
def train(options: TrainOptions) -> None:
    """Train a classifier on labelled data and write it to a model file.

    Raw tables (CSV, TSV, Parquet) need no preparation: columns can be numeric, text, boolean or dates, and can contain
    missing values.

    The model file is replaced only when training has finished, so an error does not damage an existing model. After
    Ctrl-C, the model trained so far is written, and the exit code is 130.
    """
    options.check()
    parameters = training.parse_settings(options.settings or [])
    resumed = None if options.resume is None else _resumed(options.resume, options.learner)
    is_table = options.takes_table if resumed is None else resumed.is_table
    if is_table:
        options.check_for_table()
    else:
        refuse_table_options(options.given)
    if resumed is None:
        model = training.make(
            TABLE if is_table else options.learner or DEFAULT, parameters, options.seed, options.threads
        )
    else:
        model = copy(resumed.estimator)
        training.set_parameters(model, parameters, options.threads)
        training.check_resumable(resumed.estimator, parameters)
    training.set_known(model, warm_start=resumed is not None)
    if options.stream and not model._declaration.streams:
        raise UserError(f"--stream: {name_of(model)} needs all rows in memory; omit --stream, or use another learner.")
    source: Any
    if not is_table:
        source = MatrixSource(options, resumed)
    elif resumed is None:
        source = TableSource(options, model)
    elif options.cv is not None:
        raise UserError("--cv cannot be combined with --resume for tables: the new rows are read in batches.")
    else:
        source, options = MoreRows(options, resumed), replace(options, stream=True)
    _run(options, model, resumed, source, set(parameters), is_table)


def _resumed(path: str, learner: str | None) -> LoadedModel:
    """Load the model to resume."""
    loaded = load_model(path)
    if hasattr(loaded.estimator, "steps"):
        raise UserError(
            f"--resume: {path} is a pipeline, and pipelines cannot resume training; train again on all rows."
        )
    if learner not in (None, name_of(loaded.estimator)):
        raise UserError(f"--learner {learner}: {path} was trained with {name_of(loaded.estimator)}; omit --learner.")
    if not getattr(loaded.estimator, "_is_resumable", False):
        raise UserError(f"--resume: {path} does not contain the state that resuming needs; train again on all rows.")
    return loaded


def _run(
    options: TrainOptions, model: Any, resumed: LoadedModel | None, source: Any, fixed: set[str], is_table: bool
) -> None:
    """Read the data, train, write the model, test it, and report."""
    from polyplane.loading import save

    report = Report(options)
    if options.stream:
        facts, batches = source.stream()
    else:
        rows = source.read()
        facts = rows.facts
    training.check_classes(model, facts.classes)
    is_surveyed = is_table and facts.n_columns > 0  # in a stream from standard input, the columns are not known yet
    if is_surveyed:
        report.show_read(facts)
    if options.tune is not None:
        report.tuned = training.tune(model, rows, options, fixed, show=report.is_live)
        model.set_params(**report.tuned["settings"])
        options = replace(options, scale=report.tuned["scaling"])
    if options.cv is not None:
        report.cv_errors = training.cross_validate(options, model, rows)
    training.set_known(model, verbose=int(report.is_live))
    if options.stream:
        outcome = training.train_on_stream(options, model, facts, batches)
    else:
        outcome = training.train_in_memory(options, model, rows)
    if is_table and not is_surveyed:
        n_rows = int(model.history_["rows"][-1])
        report.show_read(replace(facts, n_rows=n_rows, n_columns=model.n_features_in_))
    training.set_known(model, warm_start=False, verbose=0)
    metadata = {name: value for name, value in facts.metadata.items() if value is not None}
    if not is_table:
        before = {} if resumed is None else resumed.metadata
        metadata["scaling"] = before.get("scaling") or training.scaling_shown(model, options.scaling)
    save(model, options.out, metadata=metadata)
    if outcome.interrupted:
        steps = f"{model.n_iter_} step{'s' if model.n_iter_ != 1 else ''}"
        note(f"Interrupted after {steps}: {options.out} contains the model trained so far.")
    report.show_trained(model, facts, outcome, metadata)
    if options.test is not None:
        report.test_error = tested(LoadedModel(model, metadata), options)
    report.finish(outcome.interrupted)
