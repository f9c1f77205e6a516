"""Model files that were cut, damaged or forged."""

import json
import tempfile
import tracemalloc
import warnings
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import polyplane
from polyplane import serving
from polyplane.base import PlaneClassifier
from polyplane.files import ModelFileError
from tests.models import assembled, fitted, make, parts, places, shop, some_rows

#: Learners with all kinds of states, and what to train on.
MACHINES = [
    ("ConvexPolytopeClassifier", {"n_planes": 2}),
    ("AdaptiveMultiHyperplaneClassifier", {"random_state": np.random.RandomState(0)}),
    ("CuttingPlaneSVC", {"warm_start": True, "tol": None, "max_iter": 12}),
    ("MultiHyperplaneClassifier", {"n_planes": 2}),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "loss": "hinge"}),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "n_estimators": 3}),
    ("PolyceptronClassifier", {"n_planes": 2}),
    ("PolyhedralMixtureClassifier", {"n_planes": 2}),
    ("PegasosSVC", {"class_weight": "balanced"}),
    ("SuccessiveLPClassifier", {}),
]
#: Classifiers of tables, and a learner for the end of a pipeline; the cases of others stay what they are.
TABLES = [
    ("TableClassifier", {"preparation": "bins", "n_planes": 2, "n_estimators": 2, "gaps": ["?"]}),
    ("TableClassifier", {"preparation": "robust+norm", "n_planes": 1, "n_estimators": 1}),
    ("TableClassifier", {"preparation": "steps", "n_planes": 1, "n_estimators": 1, "monotonic_cst": {"price": 1}}),
]
LAST = ("PegasosSVC", {"average": False})
#: Further models of `tests.models`, and files of format 2.
OTHERS = [
    "compressed",
    "compressed, projected",
    "WorstCasePolytopeClassifier",
    "imputer before a scaler",
    "three classes",
]
OLD = sorted((Path(__file__).parents[1] / "files" / "format2").glob("*.safetensors"))
#: What SECURITY.md states of the memory of loading: so many times the file, and so many bytes besides.
TIMES, BESIDES = 32, 64 << 20
#: The most text that a repeated value takes in a file.
LONGEST = 1 << 21
#: What a value may become.
ODD = [
    None,
    True,
    -1,
    0,
    7,
    2**62,
    2**70,
    1e308,
    -0.5,
    "",
    "x",
    "hinge",
    "log",
    [],
    [0],
    {},
    {"a": 1},
    {"float": "nan"},
]


@cache
def saved(number):
    """A saved machine as bytes, and its rows."""
    machine = make(*[*MACHINES, *TABLES, LAST][number])
    X, y = market(60) if isinstance(machine, polyplane.TableClassifier) else some_rows(machine, number)
    if number == len(MACHINES) + len(TABLES):
        machine = make_pipeline(SimpleImputer(), StandardScaler(), MinMaxScaler(), RobustScaler(), machine)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        polyplane.save(machine.fit(X, y), f"{folder}/model", metadata={"a": 1, "b": [1, "x"][1]})
        return Path(f"{folder}/model").read_bytes(), X, y


def market(n_rows):
    """A table with all kinds of columns."""
    X, y = shop(n_rows)
    rng = np.random.default_rng(1)
    X["paid"] = [f"${value:,.2f}" for value in np.exp(8 + rng.normal(size=n_rows))]
    days, months = rng.integers(1, [[29], [13]], (2, n_rows))
    X["sent"] = [f"{day:02d}.{month:02d}.2021" for day, month in zip(days, months, strict=True)]
    X["size"] = pd.Categorical(rng.choice(["small", "medium"], n_rows), ["small", "medium"], ordered=True)
    words = np.array(["engine", "wing", "bird", "none", "seen", "left"])
    X["note"] = [" ".join(words[rng.integers(6, size=5)]) + f" {i}" for i in range(n_rows)]
    return X, y


@cache
def other(number):
    """A saved model of `OTHERS` or a file of `OLD` as bytes, and rows."""
    if number >= len(OTHERS):
        return OLD[number - len(OTHERS)].read_bytes(), np.zeros((2, 3))
    model, X = fitted(OTHERS[number])
    with tempfile.TemporaryDirectory() as folder:
        polyplane.save(model, f"{folder}/model")
        return Path(f"{folder}/model").read_bytes(), X


def _load(content, folder, load=polyplane.load):
    path = folder / "model"
    path.write_bytes(content)
    try:
        return load(path)
    except ModelFileError as error:
        message = str(error)
        assert message.startswith(f"{path} "), message
        assert message.endswith("."), message
        assert "\n" not in message, message
        return None


def cut(rng, folder):
    """The beginning of a file."""
    content, _, _ = saved(int(rng.integers(len(MACHINES))))
    assert _load(content[: rng.integers(len(content))], folder) is None


def flip(rng, folder):
    """Some bytes are others."""
    content, _, _ = saved(int(rng.integers(len(MACHINES))))
    damaged = bytearray(content)
    for at in rng.integers(len(content), size=rng.integers(1, 5)):
        damaged[at] = (damaged[at] + rng.integers(1, 256)) % 256
    assert bytes(damaged) == content or _load(bytes(damaged), folder) is None


def forge(rng, folder):
    """What the file says is changed, and the checksum with it: refused, or a machine that predicts and trains."""
    _forge(rng, folder, int(rng.integers(len(MACHINES))))


def forge_table(rng, folder):
    """The same of a classifier of tables."""
    _forge(rng, folder, len(MACHINES) + int(rng.integers(len(TABLES))))


def forge_pipeline(rng, folder):
    """The same of a pipeline."""
    _forge(rng, folder, len(MACHINES) + len(TABLES))


def forge_other(rng, folder):
    """The same of other models, and of files of format 2."""
    content, X = other(int(rng.integers(len(OTHERS) + len(OLD))))
    forged = _forged(rng, content)
    for load in (polyplane.load, serving.load):
        model = _load(forged, folder, load)
        if model is not None:
            _use(lambda model=model: model.predict(X), lambda model=model: polyplane.save(model, folder / "again"))


def budget(rng, folder):
    """A small file that refers to its arrays, or repeats its values, so often that the memory would not suffice."""
    number = int(rng.integers(len(MACHINES) + len(TABLES) + 1 + len(OTHERS) + len(OLD)))
    n_own = len(MACHINES) + len(TABLES) + 1
    content = saved(number)[0] if number < n_own else other(number - n_own)[0]
    header, description, data = parts(content)
    names = [name for name in header if name != "__metadata__"]
    times = int(10 ** rng.uniform(2, 4.5))
    keys = [key for key in places(description) if not isinstance(key[-1], str) or rng.random() < 0.5]
    at = keys[rng.integers(len(keys))]
    place = description
    for key in at[:-1]:
        place = place[key]
    match place:
        case list():
            place.extend([place[at[-1]]] * min(times, LONGEST // len(json.dumps(place[at[-1]]))))
        case dict() if isinstance(place[at[-1]], dict) and rng.random() < 0.5:
            place[at[-1]] |= {f"a{i}": {"array": names[rng.integers(len(names))]} for i in range(times)}
        case dict():
            place[at[-1]] = int(2 ** rng.uniform(10, 47))
    forged = assembled(header, description, data)
    for load in (polyplane.load, serving.load):
        tracemalloc.start()
        try:
            _load(forged, folder, load)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < TIMES * len(forged) + BESIDES, f"{peak >> 20} MB for a file of {len(forged)} bytes"


def _forge(rng, folder, number):
    content, X, y = saved(number)
    forged = _forged(rng, content)
    served = _load(forged, folder, serving.load)
    if served is not None:
        _use(lambda: served.predict(X))
    model = _load(forged, folder)
    if model is not None:
        _use(lambda: model.predict(X), lambda: _go_on(model, X, y), lambda: polyplane.save(model, folder / "again"))


def _use(*uses):
    """What is loaded works, or says what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for use in uses:
            try:
                use()
            except (ValueError, MemoryError, FloatingPointError):
                continue


def _forged(rng, content):
    """The bytes of a file in which one to three things have changed, with the right checksum."""
    header, description, data = parts(content)
    for _ in range(rng.integers(1, 4)):
        [_forge_value, _forge_entry, _forge_array][rng.choice(3, p=[0.6, 0.1, 0.3])](
            rng, header, description, data := bytearray(data)
        )
    return assembled(header, description, bytes(data))


def _go_on(model, X, y):
    """Train on, within a second."""
    from polyplane.engine.run import Limits

    if isinstance(model, PlaneClassifier) and len(model.classes_) == len(np.unique(y)):
        y = model.classes_[np.unique(y, return_inverse=True)[1]]
        model.warm_start = True
        if isinstance(model, polyplane.TableClassifier):  # its fits take no limit of time
            model.max_iter = 3
        model._fit(X, y, None, Limits(1.0))


def _forge_value(rng, header, description, data):
    keys = list(places(description))
    at = keys[rng.integers(len(keys))]
    place = description
    for key in at[:-1]:
        place = place[key]
    others = [{"array": name} for name in header if name != "__metadata__"]
    match rng.integers(4):
        case 0 if isinstance(place, dict):
            del place[at[-1]]
        case 1:
            place[at[-1]] = others[rng.integers(len(others))]
        case 2 if isinstance(place, list):
            place.append(json.loads(json.dumps(place[at[-1]])))
        case _:
            place[at[-1]] = deepcopy(ODD[rng.integers(len(ODD))])  # it may be forged again, and is no case's own


def _forge_entry(rng, header, description, data):
    names = [name for name in header if name != "__metadata__"]
    entry = header[names[rng.integers(len(names))]]
    match rng.integers(3):
        case 0:
            entry["dtype"] = ["F64", "F32", "I64", "I32", "I8", "U8", "BOOL", "C64"][rng.integers(8)]
        case 1:
            entry["shape"] = entry["shape"][::-1]
        case _:
            entry["shape"] = [*entry["shape"], 1] if rng.random() < 0.5 else [int(np.prod(entry["shape"]))]


def _forge_array(rng, header, description, data):
    names = [name for name in header if name != "__metadata__"]
    start, stop = header[names[rng.integers(len(names))]]["data_offsets"]
    if stop > start:
        for at in rng.integers(start, stop, size=rng.integers(1, 9)):
            data[at] = rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
