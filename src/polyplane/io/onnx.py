"""ONNX: models for onnxruntime, and for pipelines by skl2onnx."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from polyplane._version import __version__
from polyplane.base import PlaneClassifier
from polyplane.io._graph import build_graph, element_type, import_package
from polyplane.learners import LEARNERS, find_learner

#: Versions of the operator set that graphs are tested with, and the one that is used unless another is asked for.
OLDEST_OPSET, OPSET, NEWEST_OPSET = 13, 18, 21
#: A file in the format of ONNX cannot be larger; graphs need but a little beside the planes.
LARGEST_PLANES = 2_000_000_000


def to_onnx(model: PlaneClassifier, dtype: Any = None, *, opset: int = OPSET) -> Any:
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

    Parameters
    ----------
    model : estimator
        A fitted estimator of Polyplane.
    dtype : float32, float64 or None, default=None
        Of the rows that the graph takes; None: that of the planes.
    opset : int, default=18
        Version of ONNX's operator set, from 13 to 21.

    Returns
    -------
    graph : onnx.ModelProto
        The graph. ``graph.SerializeToString()`` are the bytes of a file.

    See Also
    --------
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
    onnx = import_package("onnx")
    _check(model, opset)
    model = model.to_numpy()
    rows = np.dtype(model.planes_.coef.dtype if dtype is None else dtype)
    if rows not in (np.float32, np.float64):
        raise ValueError(f"dtype={rows.name!r} must be 'float32' or 'float64'.")
    sink = _Graph(opset)
    n_classes, n_features = model.planes_.n_classes, model.planes_.n_features
    outputs = build_graph(model, "X", rows, sink)
    shapes: dict[str, list[Any]] = {
        "label": ["rows"],
        "scores": ["rows"] if n_classes == 2 else ["rows", n_classes],
        "probabilities": ["rows", n_classes],
    }
    value_info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        sink.nodes,
        type(model).__name__,
        [value_info("X", element_type(rows), ["rows", n_features])],
        [value_info(name, element_type(output), shapes[name]) for name, output in outputs.items()],
        sink.constants,
    )
    return _finish(graph, model, opset)


def _finish(graph: Any, model: PlaneClassifier, opset: int) -> Any:
    onnx = import_package("onnx")
    imports = [onnx.helper.make_opsetid("", opset)]
    # Not the newest version of the file format but the oldest that will do: runtimes refuse what they do not know.
    proto = onnx.helper.make_model(
        graph,
        opset_imports=imports,
        ir_version=onnx.helper.find_min_ir_version_for(imports),
        producer_name="polyplane",
        producer_version=__version__,
    )
    about = {"classes": json.dumps(model.classes_.tolist())}
    if hasattr(model, "feature_names_in_"):
        about["feature_names"] = json.dumps([str(name) for name in model.feature_names_in_])
    onnx.helper.set_model_props(proto, about)
    onnx.checker.check_model(proto, full_check=True)
    return proto


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


class _Graph:
    """Collects the parts of a graph of ONNX's own."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, array: np.ndarray) -> str:
        """Add an array, and say under what name."""
        self.constants.append(import_package("onnx").numpy_helper.from_array(array, name))
        return name

    def several(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> list[str]:
        """Add an operator with several outputs, and say what they are called."""
        self.nodes.append(import_package("onnx").helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operator, and say what its output is called."""
        return self.several(op, inputs, [output], **attributes)[0]


def _check(model: Any, opset: int) -> None:
    if not isinstance(model, PlaneClassifier):
        raise TypeError(f"to_onnx takes a fitted estimator of Polyplane, not a {type(model).__name__}.")
    check_is_fitted(model)
    if not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise ValueError(f"opset={opset} must be from {OLDEST_OPSET} to {NEWEST_OPSET}.")
    if model.planes_.coef.nbytes > LARGEST_PLANES:
        raise ValueError("The planes take more than 2 GB, the most that a file in the format of ONNX can hold.")
