"""The learners: one paper's method, one file, one estimator. A new one is exported here, and nowhere else."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyplane.learners.adaptive_multi_hyperplane import AdaptiveMultiHyperplaneClassifier
    from polyplane.learners.convex_polytope import ConvexPolytopeClassifier
    from polyplane.learners.cutting_plane import CuttingPlaneSVC
    from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier
    from polyplane.learners.pegasos import PegasosSVC
    from polyplane.learners.polyceptron import PolyceptronClassifier
    from polyplane.learners.polyhedral_mixture import PolyhedralMixtureClassifier
    from polyplane.learners.successive_lp import SuccessiveLPClassifier
    from polyplane.learners.worst_case_polytope import WorstCasePolytopeClassifier

#: The module of each learner; on the command line it has the name of its module.
LEARNERS = {
    "AdaptiveMultiHyperplaneClassifier": "adaptive_multi_hyperplane",
    "ConvexPolytopeClassifier": "convex_polytope",
    "CuttingPlaneSVC": "cutting_plane",
    "MultiHyperplaneClassifier": "multi_hyperplane",
    "PegasosSVC": "pegasos",
    "PolyceptronClassifier": "polyceptron",
    "PolyhedralMixtureClassifier": "polyhedral_mixture",
    "SuccessiveLPClassifier": "successive_lp",
    "WorstCasePolytopeClassifier": "worst_case_polytope",
}

__all__ = [
    "LEARNERS",
    "AdaptiveMultiHyperplaneClassifier",
    "ConvexPolytopeClassifier",
    "CuttingPlaneSVC",
    "MultiHyperplaneClassifier",
    "PegasosSVC",
    "PolyceptronClassifier",
    "PolyhedralMixtureClassifier",
    "SuccessiveLPClassifier",
    "WorstCasePolytopeClassifier",
    "find_learner",
]


def find_learner(name: str) -> Any:
    """The learner of a name, imported when first asked for; None when there is none."""
    return getattr(import_module(f"polyplane.learners.{LEARNERS[name]}"), name) if name in LEARNERS else None


def __getattr__(name: str) -> Any:
    learner = find_learner(name)
    if learner is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return learner
