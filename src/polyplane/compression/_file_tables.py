"""Conversion of `CompressedTables` to and from the arrays of a model file."""

from __future__ import annotations

from typing import Any

from polyplane.compression._tables import CompressedTables
from polyplane.engine.state import Array, Maybe, Whole
from polyplane.files.parts import part_of
from polyplane.files.values import Packer, Sizes, Unpacker, pack, unpack

#: The fields of the tables. Without a projection, there is one unit per kept feature.
PARTS: dict[str, Any] = {
    "n_features": Whole(2**48),
    "kept": Array("i", "kept"),
    "projection": Maybe(Array("int8", "rank", "kept")),
    "units": Array("float32", "rank"),
    "weights": Array("int8", "planes", "rank"),
    "intercept": Array("float32", "planes"),
    "indptr": Array("i", "classes+1"),
    "centres": Maybe(Array("float32", "kept")),
    "factors": Maybe(Array("float32", "kept")),
}
#: Maximum number of weights of the planes over all features, so that a small file cannot exhaust the memory.
MAX_WEIGHTS = 1 << 28


def pack_tables(tables: CompressedTables, packer: Packer) -> dict[str, Any]:
    """Describe the tables as JSON; arrays are added to the packer."""
    return {name: pack(kind, getattr(tables, name), f"tables.{name}", packer) for name, kind in PARTS.items()}


def unpack_tables(description: dict[str, Any], unpacker: Unpacker, sizes: Sizes) -> CompressedTables:
    """Validate and return the tables; `sizes` gets the numbers of classes and features."""
    nodes = part_of(description, "tables")
    parts = {name: unpack(kind, nodes.get(name), f"tables.{name}", unpacker, sizes) for name, kind in PARTS.items()}
    tables = CompressedTables(**{**parts, "n_features": int(parts["n_features"])})
    if len(tables.weights) * tables.n_features > MAX_WEIGHTS:
        raise ValueError(f"its planes have more than {MAX_WEIGHTS:,} weights")
    tables.check()
    sizes["features"] = tables.n_features
    return tables
