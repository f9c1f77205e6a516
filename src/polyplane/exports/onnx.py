"""Export to ONNX, also of pipelines with skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.exports.graph import Graph, add_outputs, encode, import_package, inputs_of
from polyplane.inputs.frames import as_table
from polyplane.learners import LEARNERS, find_learner
from polyplane.model import Model

#: The oldest and newest operator sets that are tested, and the default.
OLDEST_OPSET, OPSET, NEWEST_OPSET = 13, 18, 21
#: Maximum size of an ONNX file, minus a reserve for everything except the planes.
LARGEST_PLANES = 2_000_000_000


def to_onnx(model: Any, dtype: Any = None, *, opset: int = OPSET) -> Any:
    r"""Export a fitted estimator as an ONNX graph.

    The graph maps rows to labels and scores, equal to those of `predict` and `decision_function`, and to probabilities
    if the estimator has `predict_proba`. It uses the same precision as the estimator: float64, unless both the rows and
    the planes are float32.

    ::

          X (rows, features)
          │
     [Where]         NaN: the value of the imputer of a pipeline
          │
     [Sub]           [Mul], [Max] and [Min], in float64: the scalers of a pipeline
          │
        [Cast]       where the planes are float64 and X is not, or the other way round
          │
        MatMul ◄──── coef.T (features, planes)
          │
         Add ◄────── intercept (planes)
          │
       [Reshape]     to (rows, classes, planes of a class); or where classes have different numbers of planes,
          │          [Split] into one array for each class
      [ReduceMax]    over the planes of a class
          │
       [Concat]      the classes again; these only where a class has more than one plane
          │
       [Reshape]     to (rows, members, classes), and the mean over the members: only for a committee
          │
     [ReduceMean]
          │
          ├────────────────────┬──────────────────────────┐  (rows, classes)
        ArgMax                 │                          │
          │                [second - first]               │
        Gather ◄── classes     │   for two classes    [Div] by the temperature, Softmax
          │                    │                          │
        label (rows)         scores                 [probabilities] (rows, classes)

    The graph of a `TableClassifier` takes raw table columns, each as an input of shape (rows, 1) with the name of the
    column; dropped columns are not inputs, and the order of inputs does not matter.

    * **Numbers** are float64, or of the given `dtype`; NaN is a missing value.
    * **Categories and booleans** are strings: levels without surrounding blanks, integers without a decimal point ("3",
      not "3.0"); "true", "false" and the other booleans that `TableEncoder` accepts. The empty string and the strings
      in `gaps` ("?", "NA" and so on) are missing values. Unknown levels are handled as in Python.
    * **Dates** are float64, as days since 1970 with fractions; NaN is a missing value. In pandas,
      ``(column - pandas.Timestamp(0)) / pandas.Timedelta(days=1)``.

    `table_inputs` converts a table to these arrays. A graph cannot raise errors: infinite numbers are passed through,
    and unknown booleans are missing values. The outputs are "label", "scores" and "probabilities"; if a column has the
    same name, an underscore is appended to the output. A name that is not valid in ONNX (the empty string) becomes
    "column 3", by its position in the table. The property "columns" of the file lists the inputs with their columns and
    kinds.

    ::

        a number (rows, 1)  ...         a category (rows, 1)  ...           a date (rows, 1)  ...
          │                               │                                   │
        Concat                       LabelEncoder                     Where NaN: the median date
          │                               │                                   │
        Where NaN: medians           Gather ◄── features of levels     year, month, ...
          │                               │                                   │
          └───────────────────────── Concat, Gather in order ─────────────────┘
                                          │  (rows, features)
                    Gather, Sub, Mul, [smooth clip], [square], [Max], [Min]: the features
                                          │
                     MatMul, Add: the planes of all members, in float64, weights in float32
                                          │
                    log-sum-exp over the planes of a class, mean over the members (rows, classes)
                                          │
                  ArgMax, Gather ─────────┼───────── Div ◄── temperature
                          │               │             │
                        label          scores        Softmax
                                                        │
                                                  probabilities

    Parameters
    ----------
    model : estimator, Pipeline or Model
        A fitted estimator of Polyplane, a pipeline of scalers, as `polyplane.save` takes it, that ends in one, or a
        model; for other pipelines, see `register`.
    dtype : float32, float64 or None, default=None
        Data type of the input. None: that of the planes, and float64 for the numbers of a table.
    opset : int, default=18
        Version of the ONNX operator set, from 13 to 21.

    Returns
    -------
    graph : onnx.ModelProto
        The graph. ``graph.SerializeToString()`` returns the bytes of a file.

    See Also
    --------
    table_inputs : The inputs of the graph of a `TableClassifier` for a table.
    register : Let skl2onnx export pipelines that end in an estimator of Polyplane.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = to_onnx(PegasosSVC(random_state=0).fit(X, y), dtype="float32")
    >>> [output.name for output in graph.graph.output]
    ['label', 'scores']
    """
    try:
        fitted = Model.of(model).unprojected()
    except TypeError as error:
        raise TypeError(f"{error} For other pipelines, see `polyplane.exports.onnx.register`.") from None
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise ValueError(f"opset={opset} must be from {OLDEST_OPSET} to {NEWEST_OPSET}.")
    if fitted.planes.coef.nbytes > LARGEST_PLANES:
        raise ValueError("The planes take more than 2 GB, the maximum size of an ONNX file.")
    inputs: Any = fitted.inputs
    rows = _float_type(fitted, dtype)
    about: dict[str, Any] = {"classes": fitted.classes.tolist()}
    if inputs.is_table:
        columns = inputs_of(inputs, rows)
        graph = Graph(opset, [(each.name, each.dtype, 1) for each in columns])
        outputs = add_outputs(graph, fitted, encode(graph, inputs, columns), np.dtype(np.float64))
        about["columns"] = [
            {"input": each.name, "column": each.column.name, "kind": each.column.kind} for each in columns
        ]
    else:
        graph, encoded = Graph(opset, [("X", rows, inputs.n_columns)]), "X"
        if inputs.neutral is not None:
            encoded = graph("Where", graph("IsNaN", "X"), inputs.neutral.astype(rows), "X")
        outputs = add_outputs(graph, fitted, encoded, rows)
        if inputs.is_named:
            about["feature_names"] = list(inputs.names)
    return graph.finish(fitted.learner, outputs, about)


def table_inputs(model: Any, X: Any, dtype: Any = None) -> dict[str, np.ndarray]:
    """Convert a table to the inputs of the ONNX graph of a `TableClassifier`.

    Parameters
    ----------
    model : TableClassifier, Pipeline or Model
        A fitted classifier of tables.
    X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
        The table. Invalid values raise the same errors as in `predict`.
    dtype : float32, float64 or None, default=None
        The `dtype` that was passed to `to_onnx`.

    Returns
    -------
    inputs : dict of str to ndarray of shape (n_rows, 1)
        For ``onnxruntime.InferenceSession.run(None, inputs)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> from polyplane.exports.onnx import table_inputs
    >>> frame = pd.DataFrame({"age": [39, None, 38, 53] * 5, "work": ["State", "Private", None, "State"] * 5})
    >>> model = TableClassifier(1, random_state=0).fit(frame, [0, 1, 1, 0] * 5)
    >>> inputs = table_inputs(model, frame[:3])
    >>> inputs["age"].ravel().tolist(), inputs["work"].ravel().tolist()
    ([39.0, nan, 38.0], ['State', 'Private', ''])
    """
    fitted = Model.of(model)
    inputs: Any = fitted.inputs
    if not inputs.is_table:
        raise TypeError("table_inputs takes a model of a table; the graph of other models has the input X, the rows.")
    columns, table = inputs_of(inputs, _float_type(fitted, dtype)), as_table(X, inputs.gaps)
    positions = inputs.positions(table, fitted.learner)
    return {each.name: each.array(table.read(j)) for each, j in zip(columns, positions, strict=True)}


def _float_type(model: Model, dtype: Any) -> np.dtype[Any]:
    """Return the dtype of numbers in rows: that of the planes if None."""
    rows = np.dtype(model.planes.coef.dtype if dtype is None else dtype)
    if rows not in (np.float32, np.float64):
        raise ValueError(f"dtype={rows.name!r} must be 'float32' or 'float64'.")
    return rows


def register() -> None:
    """Register the estimators of Polyplane with skl2onnx, so that it can export pipelines that end in one.

    The graph has the outputs "label", "scores", and, if the estimator has `predict_proba`, "probabilities". All are
    arrays; the option ``zipmap`` has no effect. A `OneVsRestClassifier` of such an estimator can be exported as well.

    Examples
    --------
    >>> import numpy as np
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import PegasosSVC
    >>> from polyplane.exports.onnx import register
    >>> register()
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), PegasosSVC(random_state=0)).fit(X, y)
    >>> graph = to_onnx(pipeline, X[:1].astype(np.float32))
    >>> [output.name for output in graph.graph.output]
    ['label', 'scores']
    """
    skl2onnx = import_package("skl2onnx")
    from polyplane.exports.skl2onnx_converter import convert, declare_outputs, set_types

    for name in LEARNERS:
        skl2onnx.update_registered_converter(
            find_learner(name),
            f"Polyplane{name}",
            set_types,
            convert,
            overwrite=True,
            parser=declare_outputs,
            options={"zipmap": [True, False, "columns"]},
        )
