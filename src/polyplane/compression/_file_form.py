"""Model files of a `CompressedClassifier`: its tables, from which the planes are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polyplane.compression._file_tables import pack_tables, unpack_tables
from polyplane.compression.classifier import CompressedClassifier
from polyplane.engine.state import Array
from polyplane.files.container import DamagedError
from polyplane.files.parts import (
    pack_labels,
    pack_parameters,
    part_of,
    possible,
    unpack_labels,
    unpack_names,
    unpack_parameters,
)
from polyplane.files.values import Packer, Sizes, Unpacker, unpack

#: Fitted attributes that are dicts of lists of numbers, without the trailing underscore.
FIGURES = ("history", "trials")


@dataclass(frozen=True)
class CompressedForm:
    """The model file form of compressed classifiers."""

    learner: Any = CompressedClassifier

    def describe(self, model: Any, packer: Packer) -> dict[str, Any]:
        """Describe the model as JSON; arrays are added to the packer."""
        names = getattr(model, "feature_names_in_", None)
        figures = {name: getattr(model, f"{name}_") for name in FIGURES}
        return {
            "learner": "CompressedClassifier",
            "parameters": pack_parameters(model.get_params(deep=False), packer),
            "classes": pack_labels(model.classes_, packer),
            "feature_names": None if names is None else [str(name) for name in names],
            "tables": pack_tables(model.tables_, packer),
            **{name: _pack_figures(figures[name], name, packer) for name in FIGURES},
        }

    def rebuild(self, description: dict[str, Any], unpacker: Unpacker) -> CompressedClassifier:
        """Validate the description and return the estimator."""
        values = unpack_parameters(CompressedClassifier, part_of(description, "parameters"), unpacker)
        sizes: Sizes = {}
        with possible():
            model = CompressedClassifier(**values)
            model._validate_params()
            tables = unpack_tables(description, unpacker, sizes)
            model.classes_ = unpack_labels(description.get("classes"), sizes["classes"], unpacker)
            model._keep_tables(tables)
        model.n_features_in_ = tables.n_features
        names = description.get("feature_names")
        if names is not None:
            model.feature_names_in_ = unpack_names(names, tables.n_features)
        figures = {name: _unpack_figures(part_of(description, name), name, unpacker) for name in FIGURES}
        if "loss" not in figures["history"]:
            raise DamagedError("has an invalid value for history")
        model.history_, model.trials_ = figures["history"], figures["trials"]
        model.n_iter_ = len(model.history_["loss"])
        return model


def _pack_figures(figures: dict[str, list[float]], what: str, packer: Packer) -> dict[str, Any]:
    return {name: packer.array(np.array(values, dtype=float), f"{what}.{name}") for name, values in figures.items()}


def _unpack_figures(nodes: dict[str, Any], what: str, unpacker: Unpacker) -> dict[str, list[float]]:
    sizes: Sizes = {}
    kind = Array("float64", "steps")
    return {name: unpack(kind, node, f"{what}.{name}", unpacker, sizes).tolist() for name, node in nodes.items()}
