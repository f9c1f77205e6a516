"""`save`, `load` and `read_model`: model files of all learners."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polyplane import files as model_files
from polyplane.files import Form, LearnerForm, ModelFile
from polyplane.learners import LEARNERS, find_learner

__all__ = ["load", "read_model", "save"]


def save(model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> None:
    """Save a fitted estimator to a file.

    The file is in the safetensors format. It contains the planes, the class labels, the feature names, the learner and
    its parameters, the history and the training state: the estimator returned by `load` gives bitwise identical
    predictions and can resume training. For a `TableClassifier`, it also contains the fitted encoder.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, or a pipeline of StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or
        SimpleImputer steps that ends in one. For a search, save its ``best_estimator_``.
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
    form = find_form(type(model).__name__)
    if form is None or form.learner is not type(model):
        raise TypeError(_refusal(model))
    check_is_fitted(model)
    model._validate_params()
    model_files.write_model(path, model, metadata or {}, form)


def load(path: str | os.PathLike[str]) -> Any:
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
    save : Save an estimator, with an example.
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
    return model_files.read_model(path, find_form)


def find_form(name: str) -> Form | None:
    """Return the file form of the estimators with a name; None for an unknown name."""
    if name == "Pipeline":
        from polyplane.files.pipeline import PipelineForm

        return PipelineForm(_find_alone)
    return _find_alone(name)


def _find_alone(name: str) -> Form | None:
    """Return the file form of an estimator that may be the last step of a pipeline."""
    if name == "TableClassifier":
        from polyplane.tables._file_form import TableForm

        return TableForm()
    if name == "CompressedClassifier":
        from polyplane.compression._file_form import CompressedForm

        return CompressedForm()
    learner = find_learner(name)
    return None if learner is None else LearnerForm(learner)


def _refusal(model: Any) -> str:
    """Return the reason why a model cannot be saved."""
    kind = type(model).__name__
    if isinstance(model, BaseEstimator) and (kind.endswith("SearchCV") or hasattr(model, "best_estimator_")):
        return f"A {kind} cannot be saved: save its best_estimator_ instead."
    known = ", ".join([*LEARNERS, "TableClassifier", "CompressedClassifier"])
    return f"save takes a fitted estimator of Polyplane ({known}), or a Pipeline that ends in one, not a {kind}."
