"""`polyplane train`: train a model on a data file."""

from __future__ import annotations

from copy import copy
from typing import Any

from polyplane.cli import train_options as option
from polyplane.cli.common import AsJson, UserError, command, note
from polyplane.cli.data import (
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
from polyplane.cli.learners import (
    DEFAULT,
    TABLE,
    check_resumable,
    learner_names,
    make,
    name_of,
    parse_settings,
    set_known,
    set_parameters,
)
from polyplane.cli.report import Report, tested
from polyplane.cli.train_options import TrainOptions, takes_table
from polyplane.cli.training import (
    cross_validate,
    matrix_stream,
    read_matrix,
    read_table,
    table_stream,
    train_in_memory,
    train_on_stream,
)


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
    Ctrl-C, the model trained so far is written, and the exit code is 130.
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
    is_table = takes_table(options)
    resumed = None if resume is None else _resumed(options)
    if is_table:
        options.check_for_table()
    else:
        refuse_table_options(options.reading)
    if resumed is None:
        model = make(TABLE if is_table else learner or DEFAULT, parameters, seed, threads)
    else:
        model = copy(resumed.estimator)
        set_parameters(model, parameters, threads)
        check_resumable(resumed.estimator, parameters)
    set_known(model, warm_start=resume is not None)
    _run(options, model, resumed, parameters, is_table)


def _resumed(options: TrainOptions) -> LoadedModel:
    """Load the model to resume."""
    assert options.resume is not None
    loaded = load_model(options.resume)
    if hasattr(loaded.estimator, "steps"):
        raise UserError(
            f"--resume: {options.resume} is a pipeline, and pipelines cannot resume training; train again on all rows."
        )
    if loaded.is_table:
        raise UserError("--resume: `table` cannot resume training; train again on all rows.")
    if options.learner not in (None, name_of(loaded.estimator)):
        raise UserError(
            f"--learner {options.learner}: {options.resume} was trained with {name_of(loaded.estimator)}; omit "
            "--learner."
        )
    if not hasattr(loaded.estimator, "_state"):
        raise UserError(
            f"--resume: {options.resume} does not contain the state that resuming needs; train again on all rows."
        )
    return loaded


def _run(
    options: TrainOptions, model: Any, resumed: LoadedModel | None, parameters: dict[str, Any], is_table: bool
) -> None:
    """Read the data, train, write the model, test it, and report."""
    from polyplane.cli.tuning import tune
    from polyplane.loading import save

    report = Report(options)
    if options.stream:
        if is_table:
            facts, batches = table_stream(options, model, "decimal" in parameters)
        else:
            facts, batches = matrix_stream(options, model, resumed)
        if is_table and options.data != "-":
            report.show_read(facts)
        set_known(model, verbose=int(report.is_live))
        outcome = train_on_stream(options, model, facts, batches)
        if is_table and options.data == "-":
            n_rows = int(model.history_["rows"][-1])
            report.show_read(facts._replace(n_rows=n_rows, n_columns=model.n_features_in_))
    else:
        if is_table:
            rows = read_table(options, model, "decimal" in parameters)
            report.show_read(rows.facts)
        else:
            rows = read_matrix(options, model, resumed)
        facts = rows.facts
        if options.tune is not None:
            found = tune(model, rows, options, set(parameters), show=report.is_live)
            model.set_params(**found.settings)
            options, report.tuned = options._replace(scale=found.scaling), found._asdict()
        if options.cv is not None:
            report.cv_errors = cross_validate(options, model, rows)
        set_known(model, verbose=int(report.is_live))
        outcome = train_in_memory(options, model, rows)
    set_known(model, warm_start=False, verbose=0)
    metadata = {name: value for name, value in facts.metadata.items() if value is not None}
    if not is_table:
        metadata["scaling"] = options.scaling if resumed is None else resumed.metadata.get("scaling", "none")
    save(model, options.out, metadata=metadata)
    if outcome.interrupted:
        steps = f"{model.n_iter_} step{'s' if model.n_iter_ != 1 else ''}"
        note(f"Interrupted after {steps}: {options.out} contains the model trained so far.")
    report.show_trained(model, facts, outcome)
    if options.test is not None:
        report.test_error = tested(LoadedModel(model, metadata), options)
    report.finish(outcome.interrupted)
