"""The states of all learners, described part by part."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyplane.io._schema import (
    Array,
    EmptyArray,
    Fingerprint,
    FloatType,
    Many,
    Maybe,
    Number,
    Pair,
    Part,
    Record,
    Sizes,
    Whole,
)
from polyplane.learners._cuts import Bundle
from polyplane.learners._log_loss import Adam
from polyplane.learners._margin import MarginState
from polyplane.learners._polytopes import Polytope, PolytopeState
from polyplane.learners._smooth import SmoothState
from polyplane.learners._tangent import Lengths, Tangents
from polyplane.learners._units import Units
from polyplane.learners.cutting_plane import CutState, Search
from polyplane.learners.polyceptron import PolyceptronState
from polyplane.learners.polyhedral_mixture import MixtureState
from polyplane.learners.successive_lp import LPState

NUMBER, WHOLE = Number(), Whole()
#: Seeds are below 2**31; see `PlaneClassifier._seed`.
SEED = Whole(2**31)

COMMON_UNITS = Record(Units, {"centre": Array("f", "features"), "factor": NUMBER})
SEPARATE_UNITS = Record(Units, {"centre": Array("f", "features"), "factor": Array("f", "features")})


# The polytope machines.


def _outside_of_each(state: PolytopeState, sizes: Sizes) -> bool:
    outer = [polytope.outer for polytope in state.polytopes]
    return outer == list(range(sizes["classes"])) or (sizes["classes"] == 2 and outer in ([0], [1]))


POLYTOPE = Record(
    Polytope,
    {
        "outer": Whole("classes"),
        "coef": Array("f", "features", "planes"),
        "intercept": Array("f", "planes"),
        "counts": Array("i", "planes"),
        "mean": Maybe(Pair(Array("f", "features", "planes"), Array("f", "planes"))),
    },
    lambda polytope, sizes: bool((polytope.counts >= 0).all()),
)
POLYTOPES = Record(
    PolytopeState,
    {
        "polytopes": Many(POLYTOPE),
        "seed": SEED,
        "epoch": WHOLE,
        "t": WHOLE,
        **dict.fromkeys(("margin", "step", "loss", "updates"), NUMBER),
        **dict.fromkeys(("window", "blends", "blend_rows", "blend_entries"), WHOLE),
    },
    _outside_of_each,
)


# The multi-hyperplane machines.


def _columns_are_owned(state: MarginState, sizes: Sizes) -> bool:
    """The first columns belong to classes, as many as these are said to own; the others are free."""
    counts, n_planes = state.counts, state.n_planes
    if (counts < 0).any() or n_planes > len(state.owner) or (state.mean and len(state.mean[1]) != n_planes):
        return False
    owner = state.owner[:n_planes]
    if ((owner < 0) | (owner >= sizes["classes"])).any() or (state.owner[n_planes:] != -1).any():
        return False
    return np.array_equal(np.bincount(owner, minlength=sizes["classes"]), counts)


SMOOTH = Record(
    SmoothState,
    {
        "W": Array("f", "classes", "planes", "features+1"),
        "anchor": Maybe(Array("f", "classes", "planes", "features+1")),
        "adam": Record(
            Adam,
            {
                "first": Array("f", "classes", "planes", "features+1"),
                "second": Array("f", "classes", "planes", "features+1"),
                "t": WHOLE,
            },
        ),
        "units": COMMON_UNITS,
        "tangents": Record(
            Tangents,
            {
                "centres": Array("f", "classes", "planes", "features"),
                "real": Array("b", "classes", "planes"),
                "lengths": Record(Lengths, {"spread": NUMBER, "gap": NUMBER, "margin": NUMBER}),
                "scale": NUMBER,
            },
            lambda tangents, sizes: bool(tangents.real.any(axis=1).all()),
        ),
        "seed": SEED,
        "epoch": WHOLE,
        "loss": NUMBER,
        "mean": Maybe(Array("f", "classes", "planes", "features+1")),
        "n_averaged": WHOLE,
    },
)
MARGIN = Record(
    MarginState,
    {
        "coef": Array("f", "features", "columns"),
        "intercept": Array("f", "columns"),
        "shift": Array("f", "columns"),
        "owner": Array("i", "columns"),
        "counts": Array("i", "classes"),
        "units": COMMON_UNITS,
        "unit_step": NUMBER,
        "seed": SEED,
        "epoch": WHOLE,
        "loss": NUMBER,
        "mean": Maybe(Pair(Array("f", "planes", "features"), Array("f", "planes"))),
        "n_averaged": WHOLE,
        "t": WHOLE,
        "chance": NUMBER,
    },
    _columns_are_owned,
)


# The learners of a single polyhedron.

POLYCEPTRON = Record(
    PolyceptronState,
    {
        **{name: Array("f", "planes", "features+1") for name in ("planes", "mean", "pocket")},
        "inside": Whole("classes"),
        "seed": SEED,
        "steps": WHOLE,
        "kind": EmptyArray(),
        **dict.fromkeys(("error", "pocket_error", "criterion", "push"), NUMBER),
    },
)


def _polyhedron(state: type, **others: Part) -> Record:
    planes, inside = Array("f", "planes", "features+1"), Whole("classes")
    return Record(state, {"planes": planes, "units": SEPARATE_UNITS, "inside": inside, **others})


# The cutting planes. A bundle has room for more cuts than there are; only these are kept, and how much room there is:
# compiled code sums in another order where an array is full.


def _bundle_fields(bundle: Bundle) -> dict[str, Any]:
    n, size = bundle.n_cuts, bundle.size
    return {
        "shape": bundle.shape,
        "made": bundle.made,
        "solved": bundle.solved,
        "shift": bundle.shift,
        "room": len(bundle.x),
        "support": bundle.support[:size],
        "normals": bundle.normals[:n],
        "gram": bundle.gram[:n, :n],
        "offsets": bundle.offsets[:n],
        "x": bundle.x[:n],
        "idle": bundle.idle[:n],
        "factor": bundle.factor[:size, :size],
    }


def _bundle(
    shape: tuple[int, int], made: int, solved: int, shift: float, room: int, support: np.ndarray, **cuts: np.ndarray
) -> Bundle:
    n, size = len(cuts["x"]), len(support)
    if cuts["normals"].shape[1] != shape[0] * shape[1] or not 1 <= size <= n <= room or size == room:
        raise ValueError("The cuts have other shapes than the planes, or more of them are in use than there are.")
    if room > max(8, 3 * (made + 1) // 2):
        raise ValueError("There is more room than was ever needed.")
    if len(np.unique(support)) < size or support.min() < 0 or support.max() >= n:
        raise ValueError("The cuts in use are not among those that are there.")
    bundle = Bundle(shape)
    bundle.made, bundle.solved, bundle.shift = made, solved, shift
    bundle._allocate(room)
    bundle.n_cuts, bundle.size = n, size
    bundle.support[:size] = support
    for name in ("normals", "offsets", "x", "idle"):
        getattr(bundle, name)[:n] = cuts[name]
    bundle.gram[:n, :n], bundle.factor[:size, :size] = cuts["gram"], cuts["factor"]
    return bundle


BUNDLE = Record(
    _bundle,
    {
        "shape": Pair(WHOLE, WHOLE),
        "made": WHOLE,
        "solved": WHOLE,
        "shift": NUMBER,
        "room": WHOLE,
        "support": Array("i", "used"),
        "normals": Array("f", "cuts", "entries"),
        "gram": Array("f", "cuts", "cuts"),
        "offsets": Array("f", "cuts"),
        "x": Array("f", "cuts"),
        "idle": Array("i", "cuts"),
        "factor": Array("f", "used", "used"),
    },
    fields=_bundle_fields,
    local=True,
)
SEARCH = Record(
    Search,
    {
        "bundle": BUNDLE,
        "here": Array("f", "rows", "features+1"),
        "best": Array("f", "rows", "features+1"),
        **dict.fromkeys(("primal", "dual", "step"), NUMBER),
    },
    lambda search, sizes: search.bundle.shape == search.best.shape,
)
CUTS = Record(
    CutState,
    {
        "searches": Many(SEARCH),
        "kind": EmptyArray(),
        "seconds": Record(dict, dict.fromkeys(("outputs", "line_search", "cut", "qp"), NUMBER), fields=dict),
        "rows": Maybe(Fingerprint()),
    },
    lambda state, sizes: len(state.searches) * sizes["rows"] == (1 if sizes["classes"] == 2 else sizes["classes"]),
)

#: The description of each kind of state, by the name that stands for it in a file.
STATES: dict[str, Part] = {
    "PolytopeState": POLYTOPES,
    "SmoothState": SMOOTH,
    "MarginState": MARGIN,
    "PolyceptronState": POLYCEPTRON,
    "MixtureState": _polyhedron(MixtureState, kind=EmptyArray(), log_likelihood=NUMBER),
    "LPState": _polyhedron(LPState, dtype=FloatType(), objective=NUMBER),
    "CutState": CUTS,
}
