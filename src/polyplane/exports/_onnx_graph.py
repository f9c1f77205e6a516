"""Construction of an ONNX graph and its file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane._version import __version__
from polyplane.exports._graph import element_type, import_package

OUTPUTS = ("label", "scores", "probabilities")
#: Version of the operator set for machine learning, which supports strings.
ML_OPSET = 2


class OnnxGraph:
    """Collects the parts of an ONNX graph.

    Parameters
    ----------
    opset : int
        Version of the operator set.
    taken : sequence of str
        The names of the inputs, which are reserved.
    """

    def __init__(self, opset: int, taken: Sequence[str] = ()) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = frozenset(taken)
        self._prefix = "_" * max((len(name) - len(name.lstrip("_")) + 1 for name in taken), default=0)

    def _own(self, name: str) -> str:
        """Return a name that differs from those of the inputs."""
        if name not in OUTPUTS:
            return self._prefix + name
        while name in self._taken:
            name += "_"
        return name

    def constant(self, name: str, array: np.ndarray) -> str:
        """Add an array; return its name."""
        name = self._own(name)
        self.constants.append(import_package("onnx").numpy_helper.from_array(array, name))
        return name

    def several(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> list[str]:
        """Add an operator with several outputs; return their names."""
        outputs = [self._own(name) for name in outputs]
        self.nodes.append(import_package("onnx").helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operator; return the name of its output."""
        return self.several(op, inputs, [output], **attributes)[0]

    def finish(
        self,
        name: str,
        inputs: list[tuple[str, np.dtype[Any], int]],
        outputs: dict[str, np.dtype[Any]],
        about: dict[str, Any],
    ) -> Any:
        """Return the model: inputs by name, dtype and number of columns, outputs, and the metadata of the file."""
        onnx = import_package("onnx")
        n_classes, info = len(about["classes"]), onnx.helper.make_tensor_value_info
        shapes: dict[str, list[Any]] = {
            "label": ["rows"],
            "scores": ["rows"] if n_classes == 2 else ["rows", n_classes],
            "probabilities": ["rows", n_classes],
        }
        graph = onnx.helper.make_graph(
            self.nodes,
            name,
            [info(each, element_type(dtype), ["rows", width]) for each, dtype, width in inputs],
            [info(self._own(each), element_type(dtype), shapes[each]) for each, dtype in outputs.items()],
            self.constants,
        )
        domains = {node.domain: ML_OPSET for node in self.nodes if node.domain} | {"": self.opset}
        imports = [onnx.helper.make_opsetid(*each) for each in sorted(domains.items())]
        # The oldest sufficient version of the file format: runtimes reject newer versions than they know.
        proto = onnx.helper.make_model(
            graph,
            opset_imports=imports,
            ir_version=onnx.helper.find_min_ir_version_for(imports),
            producer_name="polyplane",
            producer_version=__version__,
        )
        onnx.helper.set_model_props(proto, {key: json.dumps(value) for key, value in about.items()})
        onnx.checker.check_model(proto, full_check=True)
        return proto
