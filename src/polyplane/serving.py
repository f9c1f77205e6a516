"""Prediction from model files. Only NumPy is required; SciPy, scikit-learn and pandas are not imported.

Numba, if it is installed, is imported where it saves seconds: for many rows of a table and many planes.
"""

from __future__ import annotations

import os

from polyplane.files import ModelFileError, read_for_prediction
from polyplane.model import Model
from polyplane.tables.preparation import Preparation

__all__ = ["ModelFileError", "load"]


def load(path: str | os.PathLike[str]) -> Model:
    """Read the `Model` of a model file, for prediction.

    The file is written by `polyplane.save` and contains an estimator, or a pipeline of scalers and an estimator. As
    with `polyplane.load`, no code is executed, and the checksum and everything needed for prediction are validated. The
    estimator and its training state are not read.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    model : Model
        Predicts the labels of the estimator; scores and probabilities agree to within rounding. Rows are a NumPy array
        of shape (n_rows, n_columns), a list of rows, a data frame of pandas, Polars or Arrow, a dict of columns, or a
        list of dicts, one per row. If the columns had names during training, named columns are selected by name, in any
        order, and additional columns are ignored.

    Raises
    ------
    ModelFileError
        The file is not a Polyplane model, is damaged, or has a different version of the file format.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane
    >>> from polyplane import serving
    >>> fruit = {"size": [1.0, 2.0, 7.0, 8.0] * 10, "colour": ["red", "green"] * 20}
    >>> table = polyplane.TableClassifier(random_state=0, n_planes=1).fit(fruit, ["raw", "raw", "ripe", "ripe"] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.safetensors"
    ...     polyplane.save(table, path)
    ...     model = serving.load(path)
    >>> model.predict([{"size": 7.5, "colour": "red"}, {"size": 1.5, "colour": None}]).tolist()
    ['ripe', 'raw']
    """
    return read_for_prediction(path, Preparation)
