"""Back-off: rows whose margin is sure to hold are skipped. How far margins move in a pass is measured on some rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from polyplane.engine.data import Data

#: Movements are measured on one row in sixteen, but at least and at most on so many.
ROWS_TO_MEASURE = (32, 256)


class MeasuredRows:
    """The lengths of all rows, and the rows on which movements are measured.

    Attributes
    ----------
    length : ndarray of shape (n_rows,)
        Length of each row, the constant feature included.
    update_length : float
        Length of what an update adds to a plane, relative to the step: root of the mean square.
    rows : ndarray
        The rows that are measured.
    """

    def __init__(self, data: Data, bias_input: float) -> None:
        dtype, n_rows = data.X.dtype, len(data.train)
        squares = row_norms(data.X, squared=True) + max(bias_input, np.finfo(dtype).tiny)
        self.length: np.ndarray = np.sqrt(squares).astype(dtype)
        updates = (data.weight * self.length)[data.train]
        self.update_length = float(np.linalg.norm(updates)) / max(1, n_rows) ** 0.5
        self.rows = data.train[:: max(1, n_rows // int(np.clip(n_rows // 16, *ROWS_TO_MEASURE)))]

    def movement(self, now: np.ndarray, before: np.ndarray, step: float) -> Any:
        """How far scores move in a pass, per length of the row, from those of the measured rows (first axis).

        That is how far they moved in the last pass where they moved most, and what a single update would add to it:
        where steps are long a pass may end where it began.
        """
        moved = np.abs(now - before).T / self.length[self.rows]
        return moved.max(axis=-1, initial=0.0).astype(np.float64) + self.update_length * step
