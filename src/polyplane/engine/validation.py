"""`Validation`: early stopping on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from polyplane._array_api import take_rows, to_numpy
from polyplane.engine.data import Data
from polyplane.engine.run import Observer, Run
from polyplane.planes import PlaneSet


class Validation(Observer):
    """The error on held-out rows after each step, and the planes that were best on them."""

    def __init__(self, data: Data, held_out: np.ndarray) -> None:
        self.planes: PlaneSet | None = None
        self._error = float("inf")
        self._X = take_rows(data.X, held_out)
        self._y, self._weight = data.y[held_out], data.weight[held_out]

    def after_step(self, run: Run, metrics: Mapping[str, float]) -> Mapping[str, float]:
        """Evaluate the planes."""
        planes = run.method.planes(run.state)
        wrong = to_numpy(planes.predict(self._X)) != self._y
        error = float(np.average(wrong, weights=self._weight))
        if error < self._error:
            self._error, self.planes = error, planes
        return {"validation_error": error}
