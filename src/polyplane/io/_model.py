"""Model files: a fitted estimator in a safetensors file, read without running any code of it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from sklearn.utils.validation import check_is_fitted

from polyplane._files import replace_file
from polyplane.base import PlaneClassifier
from polyplane.io._description import KINDS, describe, rebuild
from polyplane.io._safetensors import DamagedError, Header, parse_json, read_arrays, read_header, write_container
from polyplane.io._values import Packer, Unpacker

#: Files of this form are written, and those of it and of all before are read.
FORMAT = 1
#: Under this name the description of the model stands in the header.
KEY = "polyplane"


class ModelFileError(ValueError):
    """A file that is not a model, or a damaged one; the message is a sentence that names the file."""


class ModelFile(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    model : PlaneClassifier
        The estimator.
    metadata : dict
        What was given to `save` along with it.
    format : int
        The version of the format.
    version : str
        The version of Polyplane that wrote the file.
    size : int
        The size of the file in bytes.
    """

    model: PlaneClassifier
    metadata: dict[str, Any]
    format: int
    version: str
    size: int


def save(model: PlaneClassifier, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> None:
    """Write a fitted estimator to a file.

    The file is in the safetensors format. It holds the planes, the labels, the names of the features, the learner and
    its parameters, the history and the state of training: all that `load` needs to give back an estimator that predicts
    the same and goes on with the same training, to the last bit.

    Parameters
    ----------
    model : estimator
        A fitted estimator of Polyplane.
    path : str or path-like
        The file to write, by custom with the suffix ``.safetensors``. It is replaced at once when all is written; when
        anything fails before that, an existing file stays as it was.
    metadata : dict of str to str, number, bool, None or ndarray, default=None
        Anything to be kept along with the model; `read_model` gives it back.

    See Also
    --------
    load : Read the estimator.
    read_model : Read the estimator, the metadata and the versions.

    Notes
    -----
    A `random_state` that is a ``numpy.random.RandomState`` is kept in the state that it is in; the estimator that is
    loaded has a generator of its own, which goes on from there.

    Planes that were trained on a device are brought home: the estimator that is loaded holds NumPy arrays.

    A checksum covers every byte of the file, so that a copy gone wrong does not pass for a model. It is no signature:
    it does not tell who wrote the file.

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
    _check_model(model)
    model, packer = model.to_numpy(), Packer()
    description = {
        "format": FORMAT,
        "polyplane": _version(),
        **describe(model, packer),
        "metadata": _pack_metadata(metadata or {}, packer),
    }
    text = json.dumps(description, separators=(",", ":"), allow_nan=False)
    try:
        _unpack(parse_json(text), packer.arrays)
    except DamagedError as error:  # nothing is written that could not be read
        raise ValueError(f"This {type(model).__name__} cannot be saved: the file {error}.") from error
    with replace_file(path) as file:
        write_container(file, packer.arrays, {KEY: text})


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator from a file that `save` wrote.

    Nothing in the file is run: it is data, and all of it is checked. So files of others can be read without fear.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    model : estimator
        The estimator, fitted as it was.

    Raises
    ------
    ModelFileError
        The file is not a model of Polyplane, is damaged, or was written by a newer version in a newer format.
    OSError
        The file cannot be read.

    See Also
    --------
    save : Write an estimator, with an example.
    """
    return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file with all that stands in it.

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
        The file is not a model of Polyplane, is damaged, or was written by a newer version in a newer format.
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
    with open(path, "rb") as file:
        try:
            return _read(file)
        except DamagedError as error:
            raise ModelFileError(f"{Path(path)} {error}.") from error
        except RecursionError as error:
            raise ModelFileError(f"{Path(path)} has a damaged header.") from error


def _read(file: BinaryIO) -> ModelFile:
    header = read_header(file)
    description = _description(header)
    arrays = read_arrays(file, header)
    model, metadata = _unpack(description, arrays)
    return ModelFile(model, metadata, description["format"], description["polyplane"], file.tell())


def _description(header: Header) -> dict[str, Any]:
    """The description of the model, once it is known to be one that this version can understand."""
    if KEY not in header.metadata:
        raise DamagedError("is a safetensors file, but not a model of Polyplane")
    description = parse_json(header.metadata[KEY])
    form, version = description.get("format"), description.get("polyplane")
    if type(form) is not int or form < 1 or not isinstance(version, str) or not version.isprintable():
        raise DamagedError("has a damaged header")
    if form > FORMAT:
        raise DamagedError(
            f"was written by Polyplane {version[:40]} in format {form}; this is Polyplane {_version()}, which reads "
            f"formats up to {FORMAT}: upgrade it"
        )
    return description


def _unpack(description: dict[str, Any], arrays: Mapping[str, Any]) -> tuple[PlaneClassifier, dict[str, Any]]:
    unpacker = Unpacker(arrays)
    metadata = description.get("metadata")
    if not isinstance(metadata, dict):
        raise DamagedError("holds no metadata that can be understood")
    values = {name: unpacker.value(node, f"metadata.{name}") for name, node in metadata.items()}
    return rebuild(description, unpacker), values


def _pack_metadata(metadata: Mapping[str, Any], packer: Packer) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in metadata):
        raise TypeError("The names in metadata must be texts.")
    return {str(name): packer.value(value, f"metadata.{name}") for name, value in metadata.items()}


def _check_model(model: Any) -> None:
    if type(model).__name__ not in KINDS or type(model) is not KINDS[type(model).__name__].learner:
        hint = ""
        if hasattr(model, "steps"):
            hint = " A pipeline is not one: save its last step, and scale rows as before when you predict."
        raise TypeError(
            f"save takes a fitted estimator of Polyplane ({', '.join(KINDS)}), not a {type(model).__name__}.{hint}"
        )
    check_is_fitted(model)
    model._validate_params()


def _version() -> str:
    import polyplane

    return polyplane.__version__
