"""
Export to ONNX
==============

A pipeline is exported as an ONNX graph, which gives the same labels and scores in onnxruntime, with or without
Python.
"""

# %%
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import MultiHyperplaneClassifier
from polyplane.exports.onnx import to_onnx

X, y = load_wine(return_X_y=True)
X = X.astype(np.float32)
model = make_pipeline(StandardScaler(), MultiHyperplaneClassifier(n_planes=3, random_state=0)).fit(X, y)
graph = to_onnx(model[-1])
print(f"{len(graph.graph.node)} operations, {len(graph.SerializeToString()):,} bytes")

# %%
# The graph is a matrix product, the log-sum-exp over the planes of each class, and an arg max.
print([node.op_type for node in graph.graph.node])
