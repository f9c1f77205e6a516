"""Quantisation of weights to one byte."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polyplane.exports._program import Program, Weights

#: The largest one-byte weight.
LARGEST_WEIGHT = 127


class Quantized(NamedTuple):
    """Weights as integers from -127 to 127.

    A weight is the integer times the scale of its plane times the scale of its feature.

    Parameters
    ----------
    weights : tuple of Weights
        The integers.
    planes : ndarray of shape (n_planes,)
        Scales of the planes.
    features : ndarray of shape (n_features,) or None
        Scales of the features. None: all 1.
    """

    weights: tuple[Weights, ...]
    planes: np.ndarray
    features: np.ndarray | None


def quantize(program: Program) -> Quantized:
    """Round weights to one byte, with one scale per plane.

    The features of a table are scaled to similar ranges. Those of other learners may have very different ranges, and so
    do their weights: these get one scale per feature, too.
    """
    largest = [np.abs(row.values).max(initial=0.0) for row in program.weights]
    features = None if program.of_table else np.array([each or 1.0 for each in largest])
    dense = np.zeros((len(program.weights), program.n_planes))
    for i, (start, values) in enumerate(program.weights):
        dense[i, start : start + len(values)] = values / (1.0 if features is None else features[i])
    by_plane = np.abs(dense).max(axis=0, initial=0.0)
    planes = np.where(by_plane > 0, by_plane, 1.0) / LARGEST_WEIGHT
    whole = np.rint(dense / planes).astype(np.int8)
    weights = tuple(
        Weights(start, whole[i, start : start + len(values)]) for i, (start, values) in enumerate(program.weights)
    )
    return Quantized(weights, planes, features)
