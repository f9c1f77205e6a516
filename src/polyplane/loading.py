"""`save`, `load` and `read_model`: model files of all learners."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from polyplane import files as model_files
from polyplane.files import ModelFile
from polyplane.learners import LEARNERS, find_learner
from polyplane.tables.preparation import Preparation

if TYPE_CHECKING:
    from polyplane.base import PlaneClassifier

__all__ = ["load", "read_model", "save"]

#: The modules of the estimators that are not among the learners.
OTHERS = {
    "TableClassifier": "polyplane.tables.classifier",
    "CompressedClassifier": "polyplane.compression.classifier",
    "RobustPlaneClassifier": "polyplane.learners.robust",
}


def save(model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> None:
    """Save a fitted estimator to a file.

    The file is in the safetensors format. It contains the `Model`, which `polyplane.serving` reads, the estimator with
    its parameters, the history and the training state: the estimator returned by `load` gives bitwise identical
    predictions and can resume training.

    Parameters
    ----------
    model : estimator, Pipeline or Model
        A fitted estimator of Polyplane, or a pipeline of StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or
        SimpleImputer steps that ends in one. For a search, save its ``best_estimator_``. Of a `Model`, the file
        contains what is needed for prediction only.
    path : str or path-like
        The file to write, usually with the suffix ``.safetensors``. It is written atomically: if saving fails, an
        existing file does not change.
    metadata : dict of str to str, number, bool, None or ndarray, default=None
        Additional data to store with the model; `read_model` returns it.

    See Also
    --------
    load : Read the estimator.
    read_model : Read the estimator, the metadata and the versions.

    Notes
    -----
    A `random_state` that is a ``numpy.random.RandomState`` is saved in its current state; the loaded estimator has an
    independent generator that continues from that state.

    A pipeline is loaded as a pipeline of the same steps, with bitwise identical predictions. Its parameters `memory`
    and `transform_input`, which only affect fitting, are not saved.

    Planes trained on a device are copied to host memory: the loaded estimator contains NumPy arrays.

    A checksum covers every byte of the file, so damaged files are detected. It is not a signature: it does not
    authenticate the author of the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = polyplane.PegasosSVC(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.safetensors"
    ...     polyplane.save(model, path)
    ...     same = polyplane.load(path)
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    if not hasattr(model, "plane_scores"):  # a `Model` is saved as it is
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if type(last) is not _find(type(last).__name__):
            raise TypeError(_refusal(model))
        check_is_fitted(model)
        last._validate_params()
    model_files.write_model(path, model, metadata or {})


def load(path: str | os.PathLike[str]) -> PlaneClassifier | Any:
    """Load an estimator from a file written by `save`.

    No code is executed: the file is data and is fully validated, so files from untrusted sources are safe to load.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : estimator or Pipeline
        The fitted estimator, or the fitted pipeline that ends in one.

    Raises
    ------
    ModelFileError
        The file is not a model of Polyplane, is damaged, or was written by a version with another file format.
    OSError
        The file cannot be read.

    See Also
    --------
    save : Save an estimator.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polyplane
    >>> model = polyplane.PegasosSVC(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.safetensors"
    ...     polyplane.save(model, path)
    ...     polyplane.load(path)
    PegasosSVC(random_state=0)
    """
    return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file with its metadata.

    Parameters
    ----------
    path : str or path-like
        A file written by `save`.

    Returns
    -------
    found : ModelFile
        The estimator, the metadata, and the versions.

    Raises
    ------
    ModelFileError
        The file is not a model of Polyplane, is damaged, or was written by a version with another file format.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polyplane import PegasosSVC
    >>> from polyplane.loading import read_model, save
    >>> model = PegasosSVC(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.safetensors"
    ...     save(model, path, metadata={"unit": "metres"})
    ...     found = read_model(path)
    >>> found.metadata
    {'unit': 'metres'}
    """
    return model_files.read_model(path, _find, Preparation)


def _find(name: str) -> Any:
    """Return the class of estimators with a name; None for an unknown name."""
    return getattr(import_module(OTHERS[name]), name) if name in OTHERS else find_learner(name)


def _refusal(model: Any) -> str:
    """Return the reason why a model cannot be saved."""
    kind = type(model).__name__
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return (
            f"The last step of the pipeline, {name!r}, must be an estimator of Polyplane, not a {type(last).__name__}."
        )
    if isinstance(model, BaseEstimator) and (kind.endswith("SearchCV") or hasattr(model, "best_estimator_")):
        return f"A {kind} cannot be saved: save its best_estimator_ instead."
    known = ", ".join([*LEARNERS, *OTHERS])
    return f"save takes a fitted estimator of Polyplane ({known}), or a Pipeline that ends in one, not a {kind}."
