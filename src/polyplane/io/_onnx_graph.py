"""A graph of ONNX's own, part by part, and the file that it becomes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyplane._version import __version__
from polyplane.io._graph import element_type, import_package

OUTPUTS = ("label", "scores", "probabilities")
#: Version of the operators of machine learning, which know texts.
ML_OPSET = 2


class OnnxGraph:
    """Collects the parts of a graph of ONNX's own.

    Parameters
    ----------
    opset : int
        Version of the operator set.
    taken : sequence of str
        The names of the inputs, which no other part may have.
    """

    def __init__(self, opset: int, taken: Sequence[str] = ()) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._taken = frozenset(taken)
        self._prefix = "_" * max((len(name) - len(name.lstrip("_")) + 1 for name in taken), default=0)

    def _own(self, name: str) -> str:
        """The name of an output, or of anything that is neither input nor output."""
        if name not in OUTPUTS:
            return self._prefix + name
        while name in self._taken:
            name += "_"
        return name

    def constant(self, name: str, array: np.ndarray) -> str:
        """Add an array, and say under what name."""
        name = self._own(name)
        self.constants.append(import_package("onnx").numpy_helper.from_array(array, name))
        return name

    def several(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> list[str]:
        """Add an operator with several outputs, and say what they are called."""
        outputs = [self._own(name) for name in outputs]
        self.nodes.append(import_package("onnx").helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operator, and say what its output is called."""
        return self.several(op, inputs, [output], **attributes)[0]

    def finish(
        self,
        name: str,
        inputs: list[tuple[str, np.dtype[Any], int]],
        outputs: dict[str, np.dtype[Any]],
        about: dict[str, Any],
    ) -> Any:
        """The whole: inputs by name, dtype and number of columns, outputs, and what the file says of itself."""
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
        # Not the newest version of the file format but the oldest that will do: runtimes refuse what they do not know.
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
