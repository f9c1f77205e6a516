"""The learners: one paper's method, one file, one estimator. A new one is exported here, and nowhere else."""

from typing import TYPE_CHECKING, Any

from polyplane._public import imported_on_use

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

__getattr__ = imported_on_use(__name__, LEARNERS)


def find_learner(name: str) -> Any:
    """The learner of a name, imported when first asked for; None when there is none."""
    return __getattr__(name) if name in LEARNERS else None
