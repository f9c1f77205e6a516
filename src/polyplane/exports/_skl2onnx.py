"""The converter for skl2onnx: the outputs, their types, and the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx.common import data_types
from skl2onnx.common.utils import check_input_and_output_numbers

from polyplane.exports._graph import build_graph, element_type, label_array, link_function

LABELS = {"O": data_types.StringTensorType, "b": data_types.BooleanTensorType, "f": data_types.DoubleTensorType}


class Container:
    """Adds the parts of a graph to the container of skl2onnx, with names that are unique in the pipeline."""

    def __init__(self, scope: Any, container: Any, names: dict[str, str]) -> None:
        self.scope, self.container = scope, container
        self.names = names
        self.opset = container.target_opset_any_domain("")

    def constant(self, name: str, array: np.ndarray) -> str:
        """Add an array; return its name."""
        import onnx

        unique: str = self.scope.get_unique_variable_name(name)
        if array.dtype == object:
            text = [str(value).encode() for value in array]
            self.container.add_initializer(unique, onnx.TensorProto.STRING, list(array.shape), text)
        else:
            self.container.add_initializer(unique, None, None, onnx.numpy_helper.from_array(array, unique))
        return unique

    def several(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> list[str]:
        """Add an operator with several outputs; return their names."""
        unique = [self.names.setdefault(name, self.scope.get_unique_variable_name(name)) for name in outputs]
        inputs = [self.names.get(name, name) for name in inputs]
        name = self.scope.get_unique_operator_name(op)
        self.container.add_node(op, inputs, unique, op_version=self.opset, name=name, **attributes)
        return unique

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operator; return the name of its output."""
        return self.several(op, inputs, [output], **attributes)[0]


def declare_outputs(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the outputs of an estimator."""
    operator = scope.declare_local_operator(f"Polyplane{type(model).__name__}", model)
    operator.inputs = inputs
    names = ["label", "scores", *(["probabilities"] if link_function(model) else [])]
    types = _types(model, inputs[0])
    for name in names:
        operator.outputs.append(scope.declare_local_variable(name, types[name]))
    return operator.outputs


def set_types(operator: Any) -> None:
    """Set the types of the outputs, given that of the rows."""
    check_input_and_output_numbers(operator, input_count_range=1, output_count_range=[2, 3])
    types = _types(operator.raw_operator, operator.inputs[0])
    for variable in operator.outputs:
        if variable.raw_name in types:
            variable.type = types[variable.raw_name]


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of an estimator."""
    outputs = {variable.raw_name: variable.full_name for variable in operator.outputs}
    nested = "scores" not in outputs
    if nested:
        label, wanted = (variable.full_name for variable in operator.outputs)
        outputs = {"label": label}
    sink = Container(scope, container, outputs)
    model, rows = operator.raw_operator.to_numpy(), operator.inputs[0]
    found = build_graph(model, rows.full_name, _dtype(rows), sink)
    if nested:
        _column_per_class(sink, found["scores"], _dtype(rows), len(model.classes_), wanted)


def _column_per_class(sink: Container, have: Any, want: Any, n_classes: int, output: str) -> None:
    """Convert scores to the form that a meta-estimator expects: one column per class, in the type of the rows."""
    scores = "scores"
    if have != want:
        scores = sink.node("Cast", [scores], "cast_scores", to=element_type(want))
    sink.names["columns"] = output
    if n_classes > 2:
        sink.node("Identity", [scores], "columns")
        return
    column = sink.node("Unsqueeze", [scores, sink.constant("axis", np.array([1]))], "score_column")
    sink.node("Mul", [column, sink.constant("signs", np.array([[-1, 1]], dtype=want))], "columns")


def _dtype(rows: Any) -> np.dtype[Any]:
    if isinstance(rows.type, data_types.DoubleTensorType):
        return np.dtype(np.float64)
    if isinstance(rows.type, data_types.FloatTensorType):
        return np.dtype(np.float32)
    raise ValueError(f"The rows must be float32 or float64, not {type(rows.type).__name__}.")


def _types(model: Any, rows: Any) -> dict[str, Any]:
    planes, n_rows = model.planes_.to_numpy(), rows.get_first_dimension()
    precise = np.result_type(_dtype(rows), planes.coef.dtype)
    number = data_types.DoubleTensorType if precise == np.float64 else data_types.FloatTensorType
    label = LABELS.get(label_array(model.classes_).dtype.kind, data_types.Int64TensorType)
    soft = number if link_function(model) == "softmax" else data_types.DoubleTensorType
    shape = [n_rows] if planes.n_classes == 2 else [n_rows, planes.n_classes]
    return {"label": label([n_rows]), "scores": number(shape), "probabilities": soft([n_rows, planes.n_classes])}
