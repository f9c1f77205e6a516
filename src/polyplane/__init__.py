"""Classifiers made of hyperplanes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplane.io._model import load, save
    from polyplane.learners.convex_polytope import ConvexPolytopeClassifier
    from polyplane.learners.cutting_plane import CuttingPlaneSVC
    from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier
    from polyplane.learners.pegasos import PegasosSVC
    from polyplane.learners.polyceptron import PolyceptronClassifier
    from polyplane.learners.polyhedral_mixture import PolyhedralMixtureClassifier
    from polyplane.learners.successive_lp import SuccessiveLPClassifier
    from polyplane.planes import PlaneSet

__version__ = "0.1.0.dev0"

#: Where each public name lives. They are imported when first used: the command line answers at once.
_HOMES = {
    "ConvexPolytopeClassifier": "learners.convex_polytope",
    "CuttingPlaneSVC": "learners.cutting_plane",
    "MultiHyperplaneClassifier": "learners.multi_hyperplane",
    "PegasosSVC": "learners.pegasos",
    "PlaneSet": "planes",
    "PolyceptronClassifier": "learners.polyceptron",
    "PolyhedralMixtureClassifier": "learners.polyhedral_mixture",
    "SuccessiveLPClassifier": "learners.successive_lp",
    "load": "io._model",
    "save": "io._model",
}

__all__ = [
    "ConvexPolytopeClassifier",
    "CuttingPlaneSVC",
    "MultiHyperplaneClassifier",
    "PegasosSVC",
    "PlaneSet",
    "PolyceptronClassifier",
    "PolyhedralMixtureClassifier",
    "SuccessiveLPClassifier",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"polyplane.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
