"""`polyplane train`: train a model on a data file."""

from __future__ import annotations

import sys
from copy import copy
from typing import TYPE_CHECKING, Any

import typer

from polyplane.cli import _train_options as option
from polyplane.cli._common import INTERRUPTED, AsJson, UserError, command, note
from polyplane.cli._data import (
    DataFile,
    Encoding,
    Format,
    Id,
    Label,
    LoadedModel,
    ZeroBased,
    load_model,
    reading_options,
    refuse_table_options,
)
from polyplane.cli._labels import check_guess
from polyplane.cli._learners import (
    DEFAULT,
    check_classes,
    check_resumable,
    learner_names,
    make,
    name_of,
    parse_settings,
    set_known,
    set_parameters,
)
from polyplane.cli._report import cross_validate, report, tested
from polyplane.cli._table_data import LoadedTable
from polyplane.cli._table_training import takes_table, train_table
from polyplane.cli._train_options import TrainOptions
from polyplane.cli._training import train_in_memory, train_on_stream

if TYPE_CHECKING:
    from polyplane.readers import Rows


@command(
    "polyplane train people.csv.gz --label income --id person --test more.csv --out income.safetensors",
    "polyplane train a9a --test a9a.t",
    "polyplane train numbers.csv --learner pegasos --tune",
    "polyplane train digits.svm --learner convex-polytope --set n_planes=48 --set alpha=1e-5",
    "polyplane train huge.svm --learner pegasos --stream --passes 3",
    "polyplane train monday.svm --resume model.safetensors",
    without_number={"--tune": option.AUTO},
)
def train(
    data: DataFile,
    learner: option.Learner = None,
    settings: option.Settings = None,
    out: option.Out = "model.safetensors",
    test: option.TestFile = None,
    cv: option.Folds = None,
    scale: option.Scale = None,
    seed: option.Seed = 0,
    threads: option.Threads = None,
    time_limit: option.TimeLimit = None,
    stream: option.Stream = False,
    passes: option.Passes = None,
    batch_rows: option.BatchRows = 65_536,
    resume: option.Resume = None,
    tune: option.Tune = None,
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    encoding: Encoding = None,
    id: Id = None,
    classes: option.Classes = None,
    features: option.Features = None,
    as_json: AsJson = False,
) -> None:
    """Train a classifier on labelled data and write it to a model file.

    Raw tables (CSV, TSV, Parquet) need no preparation: columns can be numeric, text, boolean or dates, and can contain
    missing values.

    The model file is replaced only when training has finished, so an error does not damage an existing model. After
    Ctrl-C, the model trained so far is written (except with `table`), and the exit code is 130.
    """
    options = TrainOptions(
        data, learner, out, test, cv, scale, seed, threads, time_limit, stream, passes, batch_rows, resume, tune,
        classes, features, reading_options(format, label, zero_based, encoding, id), as_json,
    )  # fmt: skip
    options.check()
    parameters = parse_settings(settings or [])
    if options.learner not in (None, *learner_names()):
        make(str(options.learner), {}, seed, threads)  # raises an error
    options = options.opened()
    if takes_table(options):
        train_table(options, parameters)
        return
    refuse_table_options(options.reading)
    resumed = None if resume is None else _resumed(options)
    if resumed is None:
        model = make(learner or DEFAULT, parameters, seed, threads)
    else:
        model = copy(resumed.model)
        set_parameters(model, parameters, threads)
        check_resumable(resumed.model, parameters)
    set_known(model, warm_start=resume is not None)
    if sys.stdout.isatty() and not as_json:
        set_known(model, verbose=1)
    _run(options, model, resumed, parameters)


def _resumed(options: TrainOptions) -> LoadedModel:
    """Load the model to resume."""
    assert options.resume is not None
    loaded = load_model(options.resume)
    if isinstance(loaded, LoadedTable):
        raise UserError("--resume: `table` cannot resume training; train again on all rows.")
    if hasattr(loaded.model, "steps"):
        raise UserError(
            f"--resume: {options.resume} is a pipeline, and pipelines cannot resume training; train again on all rows."
        )
    if options.learner not in (None, name_of(loaded.model)):
        raise UserError(
            f"--learner {options.learner}: {options.resume} was trained with {name_of(loaded.model)}; omit --learner."
        )
    if not hasattr(loaded.model, "_state"):
        raise UserError(
            f"--resume: {options.resume} does not contain the state that resuming needs; train again on all rows."
        )
    return loaded


def _run(options: TrainOptions, model: Any, resumed: LoadedModel | None, parameters: dict[str, Any]) -> None:
    """Train, write the model, test it, and report."""
    from polyplane.loading import save

    tuned, folds, test = None, [], None
    if options.stream:
        trained = train_on_stream(options, model, resumed)
    else:
        rows = _read(options, model, resumed)
        if options.tune is not None:
            options, tuned = _tuned(options, model, rows, parameters)
        if options.cv is not None:
            folds = cross_validate(options, model, rows)
        trained = train_in_memory(options, model, rows)
    set_known(model, warm_start=False, verbose=0)
    facts = {name: value for name, value in trained.facts.items() if value is not None}
    scaling = options.scaling if resumed is None else resumed.metadata.get("scaling", "none")
    save(model, options.out, metadata={**facts, "scaling": scaling})
    if trained.interrupted:
        steps = f"{model.n_iter_} step{'s' if model.n_iter_ != 1 else ''}"
        note(f"Interrupted after {steps}: {options.out} contains the model trained so far.")
    if options.test is not None:
        test = tested(LoadedModel(model, trained.facts), options)
    report(trained, options, tuned, folds, test)
    if trained.interrupted:
        raise typer.Exit(INTERRUPTED)


def _read(options: TrainOptions, model: Any, resumed: LoadedModel | None) -> Rows:
    """Read all rows."""
    import numpy as np

    from polyplane.readers import read
    from polyplane.readers.rows import NotNumbersError

    try:
        rows = read(options.source, **options.reading_for(resumed))
    except NotNumbersError as error:
        if resumed is not None:
            raise
        raise UserError(f"{str(error).rstrip('.')}; --learner table accepts such columns.") from error
    if resumed is None and "label" not in options.reading:
        check_guess(rows.facts.get("label"), rows.y, options.source.name)
    check_classes(model, np.unique(rows.y))
    return rows


def _tuned(
    options: TrainOptions, model: Any, rows: Rows, parameters: dict[str, Any]
) -> tuple[TrainOptions, dict[str, Any]]:
    """Tune the parameters and set the best ones; return the options with the best scaling, and the search results."""
    from polyplane.cli._tuning import tune

    found = tune(model, rows, options, set(parameters), show=sys.stdout.isatty() and not options.as_json)
    model.set_params(**found.settings)
    return options._replace(scale=found.scaling), found._asdict()
