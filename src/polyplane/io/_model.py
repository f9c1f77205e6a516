"""`save`, `load` and `read_model`: model files of all learners."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from polyplane import model_files
from polyplane.learners import LEARNERS, find_learner
from polyplane.model_files import Form, LearnerForm, ModelFile


def save(model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file.

    The file is in the safetensors format. It holds the planes, the labels, the feature names, the learner and its
    parameters, the history and the state of training: the estimator that `load` returns predicts the same and continues
    the same training, to the last bit. Of a `TableClassifier` it also holds what was learned of the columns.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of Polyplane, alone or behind StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and
        SimpleImputer in a pipeline. Of a search, save its ``best_estimator_``.
    path : str or path-like
        The file to write, usually with the suffix ``.safetensors``. It is replaced when everything is written; if
        anything fails before, an existing file stays as it was.
    metadata : dict of str to str, number, bool, None or ndarray, default=None
        Anything to keep along with the model; `read_model` returns it.

    See Also
    --------
    load : Read the estimator.
    read_model : Read the estimator, the metadata and the versions.

    Notes
    -----
    A `random_state` that is a ``numpy.random.RandomState`` is saved in its current state; the loaded estimator has a
    generator of its own, which continues from there.

    A pipeline is loaded as a pipeline of the same steps, which predicts the same to the last bit. Its parameters
    `memory` and `transform_input`, which count in fitting alone, are not kept.

    Planes that were trained on a device are copied to the host: the loaded estimator holds NumPy arrays.

    A checksum covers every byte of the file, so that a damaged copy is not taken for a model. It is no signature: it
    does not tell who wrote the file.

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
    """Read an estimator from a file that `save` wrote.

    No code is run: the file is data, and all of it is checked. So files from others are safe to read.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : estimator or Pipeline
        The estimator, or the pipeline that ends in one, fitted as it was.

    Raises
    ------
    ModelFileError
        The file is not a model of Polyplane, is damaged, or was written by a version with another file format.
    OSError
        The file cannot be read.

    See Also
    --------
    save : Write an estimator, with an example.
    """
    return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file with everything in it.

    Parameters
    ----------
    path : str or path-like
        A file that `save` wrote.

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
    >>> from polyplane.io import read_model, save
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
    """How estimators of a name stand in a file; None for a name that is not known."""
    if name == "Pipeline":
        from polyplane.model_files.pipeline import PipelineForm

        return PipelineForm(_find_alone)
    return _find_alone(name)


def _find_alone(name: str) -> Form | None:
    """The same of what may be the last step of a pipeline."""
    if name == "TableClassifier":
        from polyplane.tables._file_form import TableForm

        return TableForm()
    learner = find_learner(name)
    return None if learner is None else LearnerForm(learner)


def _refusal(model: Any) -> str:
    """Why a model is not saved."""
    kind = type(model).__name__
    if isinstance(model, BaseEstimator) and (kind.endswith("SearchCV") or hasattr(model, "best_estimator_")):
        return f"A {kind} cannot be saved: save its best_estimator_, the model that it found."
    known = ", ".join([*LEARNERS, "TableClassifier"])
    return f"save takes a fitted estimator of Polyplane ({known}), or a Pipeline that ends in one, not a {kind}."
