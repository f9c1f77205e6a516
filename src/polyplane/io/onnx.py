"""ONNX: models for onnxruntime, and for pipelines by skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyplane.base import PlaneClassifier
from polyplane.io._graph import build_graph, import_package
from polyplane.io._onnx_graph import OnnxGraph
from polyplane.learners import LEARNERS, find_learner
from polyplane.tables._frames import read_table
from polyplane.tables.classifier import TableClassifier

#: Versions of the operator set that graphs are tested with, and the one that is used unless another is asked for.
OLDEST_OPSET, OPSET, NEWEST_OPSET = 13, 18, 21
#: A file in the format of ONNX cannot be larger; graphs need but a little beside the planes.
LARGEST_PLANES = 2_000_000_000


def to_onnx(model: PlaneClassifier | TableClassifier, dtype: Any = None, *, opset: int = OPSET) -> Any:
    r"""A fitted estimator as an ONNX graph.

    It takes rows, and gives their labels and their scores as `predict` and `decision_function` do, and where the
    estimator has `predict_proba`, the probabilities too. Sums are made in the same precision as here, in float64 unless
    both the rows and the planes are float32.

    ::

          X (rows, features)
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
       [Reshape]     to (rows, machines, classes), and the mean over the machines: these only of a committee
          │
     [ReduceMean]
          │
          ├────────────────────┬──────────────────────────┐  (rows, classes)
        ArgMax                 │                          │
          │                [second - first]               │
        Gather ◄── classes     │   for two classes    Softmax, or Sigmoid of ∓ scores
          │                    │                          │
        label (rows)         scores                 [probabilities] (rows, classes)

    The graph of a `TableClassifier` takes the columns of a table as they come, each as an input of shape (rows, 1) with
    the name of the column; columns that were dropped are no inputs, and the order of inputs does not matter.

    * **Numbers** are float64, or of the `dtype` that is asked for; NaN is a gap.
    * **Categories and booleans** are strings: levels without blanks at their ends, whole numbers without a point ("3",
      not "3.0"); "true", "false" and what else `TableEncoder` takes for a boolean. The empty string is a gap, and so
      are the texts that were gaps in fitting ("?", "NA" and so on). Unknown levels are those that they are in Python.
    * **Dates** are float64, as days since 1970 with their fractions; NaN is a gap. In pandas,
      ``(column - pandas.Timestamp(0)) / pandas.Timedelta(days=1)``.

    `table_inputs` makes these arrays of a table. A graph cannot refuse a value: infinite numbers go through, and an
    unknown boolean is a gap. The outputs are "label", "scores" and "probabilities"; where a column has such a name, the
    output has an underscore behind it. A name that ONNX cannot have (the empty one) becomes "column 3", by its place in
    the table. The property "columns" of the file lists the inputs with their columns and kinds.

    ::

        a number (rows, 1)  ...         a category (rows, 1)  ...           a date (rows, 1)  ...
          │                               │                                   │
        Concat                       LabelEncoder                     Where NaN: the median date
          │                               │                                   │
        Where NaN: medians           Gather ◄── features of levels     year, month, ...
          │                               │                                   │
          └───────────────────────── Concat, Gather in order ─────────────────┘
                                          │  (rows, features)
             centre, scale, [smooth clip], [bins], [squares], [norm]: once for each preparation
                                          │
                       Cast to float32, MatMul, Add: the planes of each machine
                                          │
                            log-sum-exp over the planes of a class
                                          │
                           mean over the machines (rows, classes)
                                          │
                  ArgMax, Gather ─────────┼───────── Div ◄── temperature
                          │               │             │
                        label          scores        Softmax
                                                        │
                                                  probabilities

    Parameters
    ----------
    model : estimator
        A fitted estimator of Polyplane, or a fitted `TableClassifier`.
    dtype : float32, float64 or None, default=None
        Of the rows that the graph takes; None: that of the planes, and float64 for the numbers of a table.
    opset : int, default=18
        Version of ONNX's operator set, from 13 to 21.

    Returns
    -------
    graph : onnx.ModelProto
        The graph. ``graph.SerializeToString()`` are the bytes of a file.

    See Also
    --------
    table_inputs : The inputs of the graph of a `TableClassifier` for a table.
    register : Let skl2onnx export pipelines that end in an estimator of Polyplane.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polyplane import PegasosSVC
    >>> from polyplane.io.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = to_onnx(PegasosSVC(random_state=0).fit(X, y), dtype="float32")
    >>> [output.name for output in graph.graph.output]
    ['label', 'scores']
    """
    import_package("onnx")
    if isinstance(model, TableClassifier):
        return _table_to_onnx(model, dtype, opset)
    _check(model, opset)
    model = model.to_numpy()
    rows = _float_type(model.planes_.coef.dtype if dtype is None else dtype)
    sink = OnnxGraph(opset)
    outputs = build_graph(model, "X", rows, sink)
    about = {"classes": model.classes_.tolist()}
    if hasattr(model, "feature_names_in_"):
        about["feature_names"] = [str(name) for name in model.feature_names_in_]
    return sink.finish(type(model).__name__, [("X", rows, model.planes_.n_features)], outputs, about)


def _table_to_onnx(model: TableClassifier, dtype: Any, opset: int) -> Any:
    """The graph of a classifier of tables."""
    from polyplane.io._table_graph import build_table_graph, inputs_of

    check_is_fitted(model)
    _check_size(sum(member.planes.coef.nbytes for member in model.members_), opset)
    inputs = inputs_of(model.model_.encoding, _float_type(np.float64 if dtype is None else dtype))
    sink = OnnxGraph(opset, taken=[each.name for each in inputs])
    outputs = build_table_graph(model.model_, model.classes_, inputs, sink)
    columns = [{"input": each.name, "column": each.column.name, "kind": each.column.kind} for each in inputs]
    about = {"classes": model.classes_.tolist(), "columns": columns}
    return sink.finish(type(model).__name__, [(each.name, each.dtype, 1) for each in inputs], outputs, about)


def table_inputs(model: TableClassifier, X: Any, dtype: Any = None) -> dict[str, np.ndarray]:
    """The inputs of the graph of a `TableClassifier` for the rows of a table.

    Parameters
    ----------
    model : TableClassifier
        A fitted classifier.
    X : data frame of pandas, Polars or Arrow, or array-like of shape (n_rows, n_columns)
        The table. Values that `predict` would refuse are refused here.
    dtype : float32, float64 or None, default=None
        What was given to `to_onnx`.

    Returns
    -------
    inputs : dict of str to ndarray of shape (n_rows, 1)
        For ``onnxruntime.InferenceSession.run(None, inputs)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyplane import TableClassifier
    >>> from polyplane.io.onnx import table_inputs
    >>> frame = pd.DataFrame({"age": [39, None, 38, 53] * 5, "work": ["State", "Private", None, "State"] * 5})
    >>> model = TableClassifier(1, random_state=0).fit(frame, [0, 1, 1, 0] * 5)
    >>> inputs = table_inputs(model, frame[:3])
    >>> inputs["age"].ravel().tolist(), inputs["work"].ravel().tolist()
    ([39.0, nan, 38.0], ['State', 'Private', ''])
    """
    from polyplane.io._table_graph import feed, inputs_of

    check_is_fitted(model)
    encoding = model.model_.encoding
    inputs = inputs_of(encoding, _float_type(np.float64 if dtype is None else dtype))
    return feed(encoding, inputs, read_table(X, encoding.gaps), type(model).__name__)


def _float_type(dtype: Any) -> np.dtype[Any]:
    rows = np.dtype(dtype)
    if rows not in (np.float32, np.float64):
        raise ValueError(f"dtype={rows.name!r} must be 'float32' or 'float64'.")
    return rows


def register() -> None:
    """Teach skl2onnx the estimators of Polyplane, so that it exports pipelines that end in one.

    The graph has the outputs "label", "scores", and "probabilities" where there is `predict_proba`, all of them arrays:
    the option ``zipmap`` changes nothing. `OneVsRestClassifier` around an estimator is exported as well.

    Examples
    --------
    >>> import numpy as np
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polyplane import PegasosSVC
    >>> from polyplane.io.onnx import register
    >>> register()
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), PegasosSVC(random_state=0)).fit(X, y)
    >>> graph = to_onnx(pipeline, X[:1].astype(np.float32))
    >>> [output.name for output in graph.graph.output]
    ['label', 'scores']
    """
    skl2onnx = import_package("skl2onnx")
    from polyplane.io._skl2onnx import convert, declare_outputs, set_types

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


def _check(model: Any, opset: int) -> None:
    if not isinstance(model, PlaneClassifier):
        hint = " For pipelines, see `register`." if hasattr(model, "steps") else ""
        raise TypeError(f"to_onnx takes a fitted estimator of Polyplane, not a {type(model).__name__}.{hint}")
    check_is_fitted(model)
    _check_size(model.planes_.coef.nbytes, opset)


def _check_size(size: int, opset: int) -> None:
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise ValueError(f"opset={opset} must be from {OLDEST_OPSET} to {NEWEST_OPSET}.")
    if size > LARGEST_PLANES:
        raise ValueError("The planes take more than 2 GB, the most that a file in the format of ONNX can hold.")
