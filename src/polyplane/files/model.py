"""Writing and reading of model files."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from polyplane._files import replace_file
from polyplane._version import __version__
from polyplane.files.container import (
    DamagedError,
    Header,
    parse_json,
    read_arrays,
    read_header,
    write_container,
)
from polyplane.files.estimator import LearnerForm
from polyplane.files.parts import Form
from polyplane.files.values import Packer, Unpacker, Value, pack, unpack

#: The file format that is written, and the only one that can be read.
FORMAT = 2
#: The key of the model description in the header.
KEY = "polyplane"


class ModelFileError(ValueError):
    """The file is not a model, or is damaged; the message names the file."""


class ModelFile(NamedTuple):
    """The contents of a model file.

    Attributes
    ----------
    model : estimator
        The estimator.
    metadata : dict
        The metadata that was passed to `save`.
    format : int
        The version of the file format.
    version : str
        The version of Polyplane that wrote the file.
    size : int
        The size of the file in bytes.
    """

    model: Any
    metadata: dict[str, Any]
    format: int
    version: str
    size: int


def write_model(
    path: str | os.PathLike[str], model: Any, metadata: Mapping[str, Any], form: Form | None = None
) -> None:
    """Write a fitted estimator; `form` defaults to that of learners. See `polyplane.save`."""
    packer, form = Packer(), LearnerForm(type(model)) if form is None else form
    description = {
        "format": FORMAT,
        "polyplane": __version__,
        **form.describe(model, packer),
        "metadata": _pack_metadata(metadata, packer),
    }
    text = json.dumps(description, separators=(",", ":"), allow_nan=False)
    try:
        _unpack(parse_json(text), packer.arrays, lambda name: form)
    except DamagedError as error:  # never write a file that cannot be read
        raise ValueError(f"This {type(model).__name__} cannot be saved: the file {error}.") from error
    with replace_file(path) as file:
        write_container(file, packer.arrays, {KEY: text})


def read_model(path: str | os.PathLike[str], find: Callable[[str], Form | None]) -> ModelFile:
    """Read a model file; `find` returns the file form for the name of an estimator. See `polyplane.loading`."""
    with _opened(path) as file:
        try:
            return _read(file, find)
        except DamagedError as error:
            raise ModelFileError(f"{Path(path)} {error}.") from error
        except RecursionError as error:
            raise ModelFileError(f"{Path(path)} has a damaged header.") from error


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file; opening a pipe would block until another process writes to it."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise ModelFileError(f"{Path(path)} is not a regular file.")


def _read(file: BinaryIO, find: Callable[[str], Form | None]) -> ModelFile:
    header = read_header(file)
    description = _description(header)
    arrays = read_arrays(file, header)
    model, metadata = _unpack(description, arrays, find)
    return ModelFile(model, metadata, description["format"], description["polyplane"], file.tell())


def _description(header: Header) -> dict[str, Any]:
    """Return the description of the model, if this version supports its format."""
    if KEY not in header.metadata:
        raise DamagedError("is a safetensors file, but not a model of Polyplane")
    description = parse_json(header.metadata[KEY])
    form, version = description.get("format"), description.get("polyplane")
    if type(form) is not int or form < 1 or not isinstance(version, str) or not version.isprintable():
        raise DamagedError("has a damaged header")
    if form != FORMAT:
        remedy = "upgrade it" if form > FORMAT else "train the model again, or use that version"
        raise DamagedError(
            f"was written by Polyplane {version[:40]} in format {form}; this is Polyplane {__version__}, which reads "
            f"format {FORMAT}: {remedy}"
        )
    return description


def _unpack(
    description: dict[str, Any], arrays: Mapping[str, Any], find: Callable[[str], Form | None]
) -> tuple[Any, dict[str, Any]]:
    unpacker = Unpacker(arrays)
    metadata = description.get("metadata")
    if not isinstance(metadata, dict):
        raise DamagedError("has an invalid value for metadata")
    values = {name: unpack(Value(), node, f"metadata.{name}", unpacker, {}) for name, node in metadata.items()}
    form = find(str(description.get("learner")))
    if form is None:
        raise DamagedError(f"names an unknown learner, {str(description.get('learner'))[:40]!r}")
    model = form.rebuild(description, unpacker)
    if unpacker.used != unpacker.arrays.keys():
        raise DamagedError(f"contains an unused array: {min(unpacker.arrays.keys() - unpacker.used)!r}")
    return model, values


def _pack_metadata(metadata: Mapping[str, Any], packer: Packer) -> dict[str, Any]:
    if not all(isinstance(name, str) for name in metadata):
        raise TypeError("The keys of metadata must be strings.")
    return {str(name): pack(Value(), value, f"metadata.{name}", packer) for name, value in metadata.items()}
