"""`load`: a `Predictor` from a model file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyplane.compression._file_tables import unpack_tables
from polyplane.files.container import DamagedError
from polyplane.files.estimator import unpack_model_planes
from polyplane.files.model import read_model
from polyplane.files.parts import Form, part_of, possible, unpack_labels, unpack_names
from polyplane.files.steps import pipeline_parts, transformation, unpack_step
from polyplane.files.values import Packer, Sizes, Unpacker
from polyplane.learners import LEARNERS, PROBABILISTIC
from polyplane.serving._predictor import PlaneScorer, Predictor, Scalers, TableScorer
from polyplane.tables._file_model import unpack_table_model


def load(path: str | os.PathLike[str]) -> Predictor:
    """Read a model file for prediction.

    The file is written by `polyplane.save` and contains an estimator, or a pipeline of scalers and an estimator. As
    with `polyplane.load`, no code is executed, and the checksum and everything needed for prediction are validated. The
    training state is not read.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    predictor : Predictor
        Makes the same predictions as the estimator.

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
    >>> model = polyplane.PegasosSVC(random_state=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.safetensors"
    ...     polyplane.save(model, path)
    ...     predictor = serving.load(path)
    >>> predictor.predict([[-0.5], [2.0]]).tolist()
    ['no', 'yes']
    """
    predictor: Predictor = read_model(path, _find_form).model
    return predictor


def _find_form(name: str) -> Form | None:
    return _PipelineForm() if name == "Pipeline" else _find_alone(name)


def _find_alone(name: str) -> Form | None:
    if name == "TableClassifier":
        return _TableForm()
    if name == "CompressedClassifier":
        return _CompressedForm()
    return _LearnerForm() if name in LEARNERS else None


@dataclass(frozen=True)
class _ReadForm:
    """Base class of the readers of model files."""

    learner: Any = Predictor

    def describe(self, model: Any, packer: Packer) -> dict[str, Any]:
        """Raise an error: a predictor lacks part of the content of a model file."""
        raise TypeError("A Predictor cannot be saved: copy the model file that it was loaded from.")


class _LearnerForm(_ReadForm):
    """Reader of a learner: planes, labels and feature names."""

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> Predictor:
        """Return the predictor, after validating everything needed for prediction."""
        sizes: Sizes = {}
        name, names = str(description["learner"]), description.get("feature_names")
        parameters = part_of(description, "parameters")
        with possible():
            planes = unpack_model_planes(part_of(description, "planes"), unpacker, sizes, committee=True)
            classes = unpack_labels(description.get("classes"), sizes["classes"], unpacker)
        names = None if names is None else unpack_names(names, sizes["features"])
        _skip(description, ("parameters", "history", "fitted", "training"), unpacker)
        has_probabilities = name in PROBABILISTIC and parameters.get("loss", "log") == "log"
        return Predictor(name, classes, PlaneScorer(planes, names, has_probabilities))


class _CompressedForm(_ReadForm):
    """Tables of one-byte weights, labels and the names of features."""

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> Predictor:
        """The predictor, once all that counts in prediction is known to be sound."""
        sizes: Sizes = {}
        names = description.get("feature_names")
        with possible():
            planes = unpack_tables(description, unpacker, sizes).planes()
            classes = unpack_labels(description.get("classes"), sizes["classes"], unpacker)
        names = None if names is None else unpack_names(names, sizes["features"])
        _skip(description, ("parameters", "history", "trials"), unpacker)
        return Predictor("CompressedClassifier", classes, PlaneScorer(planes, names, False))


class _TableForm(_ReadForm):
    """Reader of a `TableClassifier`: columns, preparations and planes of the members, and temperature."""

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> Predictor:
        """Return the predictor, after validating everything needed for prediction."""
        with possible():
            model, classes = unpack_table_model(description, unpacker)
        _skip(description, ("parameters", "encoder", "fitted"), unpacker)
        return Predictor("TableClassifier", classes, TableScorer(model))


class _PipelineForm(_ReadForm):
    """Reader of a pipeline of scalers and an estimator."""

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> Predictor:
        """Return the predictor, after validating everything needed for prediction."""
        _, nodes, last = pipeline_parts(description)
        form = _find_alone(str(last.get("learner")))
        if form is None:
            raise DamagedError(f"names an unknown learner, {str(last.get('learner'))[:40]!r}")
        predictor: Predictor = form.rebuild(last, unpacker)
        n_features, names = predictor.n_features, predictor.feature_names
        steps: list[Callable[[np.ndarray], np.ndarray]] = []
        for i, node in reversed([*enumerate(nodes)]):  # backwards: the planes have the last number of features
            step = unpack_step(node, n_features, f"steps.{i}", unpacker)
            if step is not None:
                n_features, names = step.n_features, step.feature_names
                steps.insert(0, transformation(step, f"steps.{i}"))
        return replace(predictor, scalers=Scalers(n_features, names, steps)) if steps else predictor


def _skip(description: dict[str, Any], names: Sequence[str], unpacker: Unpacker) -> None:
    """Skip parts that prediction does not need."""
    for name in names:
        unpacker.skip(description.get(name))
