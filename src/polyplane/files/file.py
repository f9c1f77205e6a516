"""Writing and reading of model files: a `Model`, and optionally the estimator that it belongs to."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from polyplane._version import __version__
from polyplane.files import format2
from polyplane.files.container import (
    DamagedError,
    parse_json,
    read_arrays,
    read_header,
    replace_file,
    write_container,
)
from polyplane.files.estimator import Find, describe, rebuild
from polyplane.files.model import pack_model, unpack_model
from polyplane.files.values import Packer, Unpacker, Value, mismatch, pack, part_of, unpack
from polyplane.model import Model

#: The file format that is written; format 2 can be read too.
FORMAT = 3
#: The key of the model description in the header.
KEY = "polyplane"

#: Returns what is read from a description.
Build = Callable[[dict[str, Any], Unpacker], Any]


class ModelFileError(ValueError):
    """The file is not a model, or is damaged; the message names the file."""


class ModelFile(NamedTuple):
    """The contents of a model file.

    Attributes
    ----------
    model : estimator, Pipeline or Model
        The estimator; the `Model`, if the file contains no estimator.
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


def write_model(path: str | os.PathLike[str], model: Any, metadata: Mapping[str, Any]) -> None:
    """Write a fitted estimator, a pipeline that ends in one, or a `Model`. See `polyplane.save`."""
    if not all(isinstance(name, str) for name in metadata):
        raise TypeError("The keys of metadata must be strings.")
    packer = Packer()
    estimator = describe(model, packer) if hasattr(model, "get_params") else None  # a `Model` has no parameters
    description = {
        "format": FORMAT,
        "polyplane": __version__,
        "model": pack_model(Model.of(model), packer),
        "estimator": estimator,
        "metadata": {name: pack(Value(), value, f"metadata.{name}", packer) for name, value in metadata.items()},
    }
    text = json.dumps(description, separators=(",", ":"), allow_nan=False)
    parts = [model, *(step for _, step in getattr(model, "steps", ()))]
    classes = {type(part).__name__: type(part) for part in parts}
    try:
        size = len(text) + sum(array.nbytes for array in packer.arrays.values())
        _unpack(parse_json(text), Unpacker(packer.arrays, size), _builder(classes.get))
    except DamagedError as error:  # never write a file that cannot be read
        raise ValueError(f"This {type(model).__name__} cannot be saved: the file {error}.") from error
    with replace_file(path) as file:
        write_container(file, packer.arrays, {KEY: text})


def read_model(path: str | os.PathLike[str], find: Find, preparation: Any = None) -> ModelFile:
    """Read a model file; `find` returns the class of an estimator for its name. See `polyplane.loading`.

    `preparation` is the class of the preparations of tables, to read those of format 2.
    """
    return _read(path, _builder(find), preparation)


def read_for_prediction(path: str | os.PathLike[str], preparation: Any) -> Model:
    """Read the `Model` of a file, which requires NumPy only. See `polyplane.serving`."""

    def build(description: dict[str, Any], unpacker: Unpacker) -> Model:
        unpacker.skip(description.get("estimator"))
        return unpack_model(part_of(description, "model"), unpacker)

    model: Model = _read(path, build, preparation).model
    return model


def _builder(find: Find) -> Build:
    def build(description: dict[str, Any], unpacker: Unpacker) -> Any:
        model = unpack_model(part_of(description, "model"), unpacker)
        if description.get("estimator") is None:
            return model
        return rebuild(part_of(description, "estimator"), model, find, unpacker)

    return build


def _read(path: str | os.PathLike[str], build: Build, preparation: Any) -> ModelFile:
    with _opened(path) as file:
        try:
            header = read_header(file)
            if KEY not in header.metadata:
                raise DamagedError("is a safetensors file, but not a model of Polyplane")
            description = parse_json(header.metadata[KEY])
            number, version = description.get("format"), description.get("polyplane")
            if type(number) is not int or number < 1 or not isinstance(version, str) or not version.isprintable():
                raise DamagedError("has a damaged header")
            if number not in (2, FORMAT):
                remedy = "upgrade it" if number > FORMAT else "train the model again, or use that version"
                raise DamagedError(
                    f"was written by Polyplane {version[:40]} in format {number}; this is Polyplane {__version__}, "
                    f"which reads formats 2 and {FORMAT}: {remedy}"
                )
            unpacker = Unpacker(read_arrays(file, header), os.fstat(file.fileno()).st_size)
            if number == 2:
                description, unpacker = format2.translated(description, unpacker, preparation)
            model, metadata = _unpack(description, unpacker, build)
            return ModelFile(model, metadata, number, version, file.tell())
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


def _unpack(description: dict[str, Any], unpacker: Unpacker, build: Build) -> tuple[Any, dict[str, Any]]:
    metadata = description.get("metadata")
    if not isinstance(metadata, dict):
        raise mismatch("metadata")
    values = {name: unpack(Value(), node, f"metadata.{name}", unpacker, {}) for name, node in metadata.items()}
    model = build(description, unpacker)
    if unpacker.used != unpacker.arrays.keys():
        raise DamagedError(f"contains an unused array: {min(unpacker.arrays.keys() - unpacker.used)!r}")
    return model, values
