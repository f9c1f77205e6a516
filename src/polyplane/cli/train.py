"""`polyplane train`: a file in, a model out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyplane.cli._common import INTERRUPTED, AsJson, UserError, command
from polyplane.cli._data import DataFile, Format, Known, Label, ZeroBased, options
from polyplane.cli._fitting import Fitted, Plan, Survey, fit_rows, fit_stream, survey
from polyplane.cli._learners import DEFAULT, Learner, check_classes, make, name_of, parse_settings, set_parameters
from polyplane.cli._order import Order, check, reading, taken_up
from polyplane.cli._report import cross_validate, tell, test_error
from polyplane.cli._scaling import Method, from_metadata, scaling_of

if TYPE_CHECKING:
    from polyplane.io import Rows

#: Seconds that a search for parameters takes when no time limit is given, and its share of one that is.
TUNING_TIME, TUNING_SHARE = 60.0, 0.5

HOW, DATA, LIMITS = "How to learn", "The data", "Time and memory"

LearnerOption = Annotated[
    Learner | None,
    typer.Option(
        metavar="NAME",
        help="multi-hyperplane (default), convex-polytope, svm and pegasos for any number of classes; mixture, "
        "polyceptron and successive-lp for two.",
        rich_help_panel=HOW,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of the learner; may be given again and again.",
        rich_help_panel=HOW,
    ),
]
Scale = Annotated[
    Method,
    typer.Option(
        metavar="METHOD",
        help="Scale features for training: none, standard (mean 0, variance 1; sparse rows keep their mean) or maxabs. "
        "The planes are turned back into the data's own units.",
        rich_help_panel=HOW,
    ),
]
Tune = Annotated[
    bool,
    typer.Option("--tune", help="Search for good parameters first, on rows held out: a minute.", rich_help_panel=HOW),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Source of all randomness.", rich_help_panel=HOW)]
Resume = Annotated[str | None, typer.Option(metavar="MODEL", help="Go on training this model.", rich_help_panel=HOW)]
Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to write the model.")]
TestFile = Annotated[str | None, typer.Option("--test", metavar="FILE", help="Rows to test the model on.")]
Folds = Annotated[int | None, typer.Option(min=2, metavar="K", help="Estimate the error by K-fold cross-validation.")]
Threads = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Threads to train with, where a learner can.", rich_help_panel=LIMITS),
]
TimeLimit = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="End training after this time.", rich_help_panel=LIMITS)
]
Stream = Annotated[
    bool,
    typer.Option("--stream", help="Read rows in parts, for data larger than memory.", rich_help_panel=LIMITS),
]
Passes = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Passes over a stream; one if not said.", rich_help_panel=LIMITS)
]
BatchRows = Annotated[int, typer.Option(metavar="N", min=1, help="Rows in a part of a stream.", rich_help_panel=LIMITS)]
Classes = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="All labels, for a stream from standard input.", rich_help_panel=DATA),
]
Features = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="The number of features, if the file may not use all.", rich_help_panel=DATA),
]


@command(
    "polyplane train a9a --test a9a.t",
    "polyplane train train.csv.gz --label income --scale standard --tune --out income.safetensors",
    "polyplane train digits.npz --learner convex-polytope --set n_planes=48 --set alpha=1e-5",
    "polyplane train huge.svm --learner pegasos --stream --passes 3",
    "polyplane train monday.svm --resume model.safetensors",
)
def train(
    data: DataFile,
    learner: LearnerOption = None,
    settings: Settings = None,
    out: Out = "model.safetensors",
    test: TestFile = None,
    cv: Folds = None,
    scale: Scale = "none",
    seed: Seed = 0,
    threads: Threads = None,
    time_limit: TimeLimit = None,
    stream: Stream = False,
    passes: Passes = None,
    batch_rows: BatchRows = 65_536,
    resume: Resume = None,
    tune: Tune = False,
    label: Label = None,
    zero_based: ZeroBased = None,
    format: Format = None,
    classes: Classes = None,
    features: Features = None,
    as_json: AsJson = False,
) -> None:
    """Learn planes from labelled rows and write them to a model file.

    The file is replaced at once when all is done: an error, or the end of the process, leaves an older model as it was.
    After Ctrl-C the model of the steps so far is written, and the exit code is 130.
    """
    order = Order(
        data, out, test, cv, scale, seed, time_limit, stream, passes or 1, batch_rows, tune, classes, features,
        options(format, label, zero_based), as_json,
    )  # fmt: skip
    check(order, passes, resume)
    parameters = parse_settings(settings or [])
    before = None if resume is None else taken_up(resume, learner, order)
    if before is None:
        model = make(learner or DEFAULT, parameters, seed, threads)
    else:
        model = before.model
        set_parameters(model, name_of(model), {**parameters}, None, threads)
    _run(order, model, before, parameters)


def _run(order: Order, model: Any, before: Known | None, parameters: dict[str, Any]) -> None:
    """Train, test, write, and tell."""
    from polyplane.io import save

    if "verbose" in model.get_params() and sys.stdout.isatty() and not order.as_json:
        model.set_params(verbose=1)
    scaling = None if before is None else from_metadata(before.metadata)
    plan = Plan(name_of(model), order.scale, scaling, order.time_limit)
    model.set_params(warm_start=before is not None)
    extra: dict[str, Any] = {}
    fitted = _on_stream(order, model, plan, before) if order.stream else None
    if fitted is None:
        fitted = _in_memory(order, model, plan, before, parameters, extra)
    fitted.model.set_params(warm_start=False)
    if "verbose" in model.get_params():
        model.set_params(verbose=0)
    save(fitted.model, order.out, metadata={key: value for key, value in fitted.facts.items() if value is not None})
    if order.test is not None:
        extra["test_error_percent"] = test_error(fitted, order)
    tell(order, fitted, extra)
    if fitted.interrupted:
        raise typer.Exit(INTERRUPTED)


def _in_memory(
    order: Order, model: Any, plan: Plan, before: Known | None, parameters: dict[str, Any], extra: dict[str, Any]
) -> Fitted:
    from polyplane.io import read

    rows = read(order.data, **reading(order, before))
    if order.tune:
        check_classes(model, plan.learner, len(set(rows.y.tolist())))
        _tune(order, model, plan, rows, parameters, extra)
    if order.cv is not None:
        extra["cv_error_percent"] = cross_validate(order.cv, model, rows, plan, order.seed)
    return fit_rows(model, rows, plan)


def _tune(order: Order, model: Any, plan: Plan, rows: Rows, parameters: dict[str, Any], extra: dict[str, Any]) -> None:
    from polyplane.cli._tuning import tune

    scaling = scaling_of([rows.X], order.scale)
    X = rows.X if scaling is None else scaling.apply(rows.X)
    budget = TUNING_TIME if order.time_limit is None else TUNING_SHARE * order.time_limit
    found = tune(model, plan.learner, X, rows.y, set(parameters), budget, order.seed)
    model.set_params(**found.settings)
    extra["tuned"] = found._asdict()


def _on_stream(order: Order, model: Any, plan: Plan, before: Known | None) -> Fitted:
    import numpy as np

    from polyplane.io import batches

    how = reading(order, before)
    if order.data != "-":
        found = survey(batches(order.data, order.batch_rows, **how), order.scale)
    else:
        known = None if before is None else before.model.classes_
        n_features = order.n_features if before is None else before.model.n_features_in_
        if order.classes is not None:
            known = np.unique(np.array([_label(text) for text in order.classes.split(",")]))
        if known is None or n_features is None or order.scale != "none":
            raise UserError(
                "A stream from standard input is seen only once: say --classes and --features, and leave out --scale."
            )
        facts = {} if before is None else dict(before.metadata)
        found = Survey(known, n_features, None, facts, None)
    if before is not None:
        found = found._replace(classes=before.model.classes_)

    def open_parts(n_features: int) -> Any:
        zero_based = found.facts.get("zero_based")
        fixed = {} if zero_based is None else {"zero_based": zero_based}
        kind = "text" if found.classes.dtype.kind in "UO" else "number"
        return batches(order.data, order.batch_rows, **{**how, **fixed, "n_features": n_features, "labels": kind})

    return fit_stream(model, open_parts, found, order.passes, plan)


def _label(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        return text.strip()
