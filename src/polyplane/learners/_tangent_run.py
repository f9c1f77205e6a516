"""Training runs from the tangent start of which only the result is used: trials, and the members of a committee."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from polyplane.engine.data import Data
from polyplane.engine.run import Observer, Run
from polyplane.learners._tangent import tangent_start
from polyplane.scaling import AffineScaling


def run_from_tangents(
    method: Any,
    data: Data,
    n_planes: np.ndarray,
    scaling: AffineScaling,
    seed: int,
    observers: Sequence[Observer] = (),
) -> Run:
    """Make all passes of a `TangentMethod`, from the tangent planes at the centres of each class.

    Parameters
    ----------
    method : TangentMethod
        The training method.
    data : Data
        The rows.
    n_planes : ndarray of shape (n_classes,)
        Number of planes of each class.
    scaling : AffineScaling
        The scaling of the rows in training.
    seed : int
        Seed of the centres, the order of the rows and the noise.
    observers : sequence of Observer, default=()
        Called after each step; without observers, the run is not tracked.
    """
    state = method.begin(tangent_start(data, n_planes, scaling, method.scale, seed), scaling, seed)
    with method.products(state):
        return Run(method, state, observers=observers, tracked=bool(observers)).go(repeat(data, method.max_iter))
