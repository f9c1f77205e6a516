"""Back-off: rows with a large margin are skipped. The movement of margins per pass is measured on a sample of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from polyplane.engine.data import Data

#: Movements are measured on one row in sixteen; minimum and maximum number of these rows.
ROWS_TO_MEASURE = (32, 256)


class MeasuredRows:
    """The norms of all rows, and the rows on which movements are measured.

    Attributes
    ----------
    length : ndarray of shape (n_rows,)
        Norm of each row, including the constant feature.
    update_length : float
        Root mean square, over the rows, of the norm of an update of a plane, relative to the step size.
    rows : ndarray of int
        Indices of the measured rows.
    X, y : matrix and ndarray of int
        These rows, and their classes.
    """

    def __init__(self, data: Data, bias_input: float) -> None:
        dtype, n_rows = data.X.dtype, len(data.train)
        squares = row_norms(data.X, squared=True) + max(bias_input, np.finfo(dtype).tiny)
        self.length: np.ndarray = np.sqrt(squares).astype(dtype)
        updates = (data.weight * self.length)[data.train]
        self.update_length = float(np.linalg.norm(updates)) / max(1, n_rows) ** 0.5
        self.rows = data.train[:: max(1, n_rows // int(np.clip(n_rows // 16, *ROWS_TO_MEASURE)))]
        self.X, self.y = data.X[self.rows], data.y[self.rows]

    def movement(self, now: np.ndarray, before: np.ndarray, step: float) -> Any:
        """The movement of scores per pass, relative to the norm of the row; first axis of `now` and `before`: rows.

        It is the largest movement in the last pass plus that of a single update: if steps are large, the planes after a
        pass may be close to those before it.
        """
        moved = np.abs(now - before).T / self.length[self.rows]
        return moved.max(axis=-1, initial=0.0).astype(np.float64) + self.update_length * step
