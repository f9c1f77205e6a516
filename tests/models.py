"""Small fitted models of every kind, for the tests of what is done with them."""

import dataclasses
import functools
import hashlib
import inspect
import json

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import polyplane
from polyplane.datasets import make_loans
from polyplane.files.container import DIGEST_AT, ZEROS
from polyplane.learners import LEARNERS

LABELS = {
    "int64": np.array([-3, 0, 7]),
    "uint8": np.array([0, 1, 255], dtype=np.uint8),
    "float64": np.array([-1.0, 0.0, 1.0]),
    "float32": np.array([-1.0, 3.0, 7.0], dtype=np.float32),
    "float16": np.array([-1.0, 3.0, 7.0], dtype=np.float16),
    "text": np.array(["", "naïve", "zebra\x00s"]),
    "object": np.array(["a", "bb", "long \ud800 one"], dtype=object),
    "bool": np.array([False, True]),
}


def make(name, params):
    learner = getattr(polyplane, name)
    known = inspect.signature(learner).parameters
    given = {"max_iter": 4, "random_state": 0} | params
    return learner(**{key: value for key, value in given.items() if key in known})


def some_rows(model, seed, dtype=np.float64, labels="int64", as_sparse=False):
    """Rows of overlapping classes, as many as the learner and the labels allow."""
    rng = np.random.default_rng(seed)
    names = LABELS[labels]
    n_classes = len(names) if model.__sklearn_tags__().classifier_tags.multi_class else 2
    codes = np.arange(60) % n_classes
    X = (rng.normal(size=(60, 3)) + 1.5 * np.eye(3)[codes]).astype(dtype)
    return sparse.csr_array(X) if as_sparse else X, names[codes]


def model_with_everything():
    """A fitted model with all that a model file can hold."""
    model = polyplane.ConvexPolytopeClassifier(
        2,
        enclosed="each",
        max_iter=3,
        class_weight={"no": 2.0, "yes": np.float32(0.5)},
        random_state=np.random.RandomState(3),
    )
    X, y = some_rows(model, 0)
    return model.fit(pd.DataFrame(X, columns=["width", "höhe", 'a "b"']), np.where(y == -3, "no", "yes"))


METADATA = {"note": "a", "n": 3, "rate": 0.5, "centre": np.arange(3.0)}


SHORT = {"PolyceptronClassifier": {"max_iter": 20}, "ConvexPolytopeClassifier": {"n_planes": 3, "alpha": 1e-3}}


def learner(name):
    made = getattr(polyplane, name)(**SHORT.get(name, {}))
    return made.set_params(random_state=0) if "random_state" in made.get_params() else made


def numbers(n_classes=2):
    X, y = load_breast_cancer(return_X_y=True) if n_classes == 2 else load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]


def with_missing(X):
    X = X.copy()
    X[::7, 1], X[3::11, 0] = np.nan, np.nan
    return X


def of_learner(name, n_classes=2):
    X, y = numbers(n_classes)
    return learner(name).fit(X, y), X


def of_committee():
    X, y = numbers(3)
    return polyplane.MultiHyperplaneClassifier(2, n_estimators=3, max_iter=10, random_state=0).fit(X, y), X


def of_pipeline(*steps, missing=False, loss="log"):
    X, y = load_iris(return_X_y=True)
    X = with_missing(X) if missing else X
    learner = polyplane.MultiHyperplaneClassifier(2, loss=loss, random_state=0)
    return make_pipeline(*steps, learner).fit(X[:120], y[:120]), X


def of_table(preparation):
    X, y = make_loans(400, random_state=0)
    return polyplane.TableClassifier(3, preparation=preparation, max_iter=5, random_state=0).fit(X, y), X


def of_wide_table(n_classes):
    """A category of 300 levels, some of them odd, of which 40 have an indicator and all have evidence."""
    rng = np.random.default_rng(0)
    odd = ["it's", 'a "b"', "ünï", "back\\slash", "4", "1e-07", "true", "</script>", "*/"]
    names = np.array([*odd, *(f"level {i}" for i in range(300 - len(odd)))], dtype=object)
    level, number = np.sort(rng.integers(0, 300, 1200)), rng.normal(size=1200)
    frame = pd.DataFrame({"where": names[level], "number": number, "kind": rng.choice(["a", "b"], 1200)})
    y = np.array(["no", "may'be", 'y"es'])[(level * 7919 % 101 + 20 * number).astype(int) % n_classes]
    frame.loc[rng.random(1200) < 0.05, "where"] = None
    rows = rng.permutation(1200)
    model = polyplane.TableClassifier(3, max_levels=40, n_planes=2, max_iter=5, random_state=0)
    X = frame.iloc[rows].reset_index(drop=True)
    return model.fit(X, y[rows]), X.assign(where=X["where"].where(X.index % 17 > 0, "never seen"))


def of_special_codes(n_estimators=3, **params):
    """Numbers with special codes, one of them with gaps as well."""
    X, y = make_loans(600, random_state=0)
    X = X.drop(columns="employed since")
    rng = np.random.default_rng(0)
    X = X.astype({"income": float, "age": float})
    X.loc[rng.random(600) < 0.2, "income"] = -999.0
    X.loc[rng.random(600) < 0.1, "income"] = -998.5
    X.loc[rng.random(600) < 0.1, "income"] = np.nan
    X.loc[rng.random(600) < 0.2, "age"] = 999.0
    how = {"n_planes": 2, "max_iter": 5, "random_state": 0} | params
    special = {"income": [-999, -998.5], "age": (999,)}
    return polyplane.TableClassifier(n_estimators, special_codes=special, **how).fit(X, y), X


def of_compressed(max_bytes):
    X, y = load_breast_cancer(return_X_y=True)
    model = polyplane.PegasosSVC(random_state=0).fit(StandardScaler().fit_transform(X), y)
    return polyplane.compress(model, X, y, max_bytes=max_bytes, max_iter=3, random_state=0), X


def of_search():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), polyplane.PegasosSVC(random_state=0))
    return GridSearchCV(pipeline, {"pegasossvc__alpha": [0.1]}).fit(X, y), X


#: Small enough for tests of behaviour.
QUICK = {"n_estimators": 3, "preparation": "standard", "n_planes": 2, "max_iter": 5, "random_state": 0}


def shop(n_rows=600, seed=0):
    """Text, a boolean, a date and gaps; the label needs the text, the date and a number together."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "price": np.exp(rng.normal(size=n_rows)),
            "colour": rng.choice(["red", "green", "blue"], n_rows),
            "new": rng.random(n_rows) < 0.5,
            "sold": np.datetime64("2024-01-01") + rng.integers(0, 365, n_rows).astype("timedelta64[D]"),
            "noise": rng.normal(size=n_rows),
        }
    )
    y = np.where((frame["price"] > 1) ^ (frame["colour"] == "red") ^ (frame["sold"].dt.month > 6), "kept", "returned")
    frame.loc[rng.random(n_rows) < 0.1, "noise"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "colour"] = None
    return frame, y


KINDS = {
    **{name: lambda name=name: of_learner(name) for name in LEARNERS},
    "committee": lambda: of_committee(),
    "three classes": lambda: of_learner("MultiHyperplaneClassifier", 3),
    "standard scaler": lambda: of_pipeline(StandardScaler()),
    "margin loss": lambda: of_pipeline(StandardScaler(), loss="hinge"),
    "two scalers": lambda: of_pipeline(RobustScaler(), MinMaxScaler((-2, 3))),
    "clipping scaler": lambda: of_pipeline(MinMaxScaler(clip=True)),
    "imputer alone": lambda: of_pipeline(SimpleImputer(), missing=True),
    "imputer before a scaler": lambda: of_pipeline(SimpleImputer(strategy="median"), StandardScaler(), missing=True),
    "imputer after a scaler": lambda: of_pipeline(MaxAbsScaler(), SimpleImputer(), missing=True),
    "search": of_search,
    "compressed": lambda: of_compressed(400),
    "compressed, projected": lambda: of_compressed(150),
    **{
        f"table, {p or 'chosen'}": lambda p=p: of_table(p) for p in (None, "standard", "squares", "robust+norm", "bins")
    },
    "table, special codes": lambda: of_special_codes(),
    "table, wide category": lambda: of_wide_table(2),
    "table, wide category, three classes": lambda: of_wide_table(3),
}


@functools.cache
def fitted(kind):
    """A fitted estimator of a kind in `KINDS`, and rows to predict; fitted once."""
    return KINDS[kind]()


# Model files: what is the same, and what a forger would write.


def assert_same(value, expected):
    """The same down to types, dtypes, the order in memory and NaN."""
    assert type(value) is type(expected)
    if isinstance(expected, np.ndarray):
        assert value.dtype == expected.dtype
        assert value.shape == expected.shape
        if expected.dtype == object:
            assert value.tolist() == expected.tolist()
        else:
            assert value.tobytes() == expected.tobytes()
            assert value.flags.f_contiguous == expected.flags.f_contiguous
            assert value.flags.writeable == expected.flags.writeable
    elif isinstance(expected, dict):
        assert list(value) == list(expected)
        assert_same(list(value.values()), list(expected.values()))
    elif isinstance(expected, list | tuple):
        assert len(value) == len(expected)
        for a, b in zip(value, expected, strict=True):
            assert_same(a, b)
    elif dataclasses.is_dataclass(expected):
        assert_same(fields_of(value), fields_of(expected))
    elif isinstance(expected, np.random.RandomState):
        assert_same(value.get_state()[1:], expected.get_state()[1:])
    else:
        assert value == expected or (value != value and expected != expected)


def fields_of(record):
    return {part.name: getattr(record, part.name) for part in dataclasses.fields(record)}


def assert_same_model(model, expected):
    assert vars(model).keys() == vars(expected).keys()
    for name, value in vars(expected).items():
        assert_same(vars(model)[name], value)


def reload(path, content):
    path.write_bytes(content)
    return polyplane.load(path)


def signed(content):
    """The bytes with the checksum that belongs to them: what a forger would write."""
    content = content[:DIGEST_AT] + ZEROS + content[DIGEST_AT + 64 :]
    return content[:DIGEST_AT] + hashlib.sha256(content).hexdigest().encode() + content[DIGEST_AT + 64 :]


def parts(content):
    """The header, the description in it, and the bytes of the arrays."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["polyplane"]), content[8 + length :]


def assembled(header, description, data):
    header = {**header, "__metadata__": {"sha256": "0" * 64, "polyplane": json.dumps(description)}}
    text = json.dumps(header, separators=(",", ":")).encode()
    return signed(len(text).to_bytes(8, "little") + text + data)


def replaced(tree, keys, value):
    """A copy of nested dicts and lists with one place changed."""
    tree = json.loads(json.dumps(tree))
    place = tree
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return tree


def places(tree, at=()):
    """All places in nested dicts and lists."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))
