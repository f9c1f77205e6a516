from typing import Any

from polyplane.learners.adaptive_multi_hyperplane import (
    AdaptiveMultiHyperplaneClassifier as AdaptiveMultiHyperplaneClassifier,
)
from polyplane.learners.convex_polytope import ConvexPolytopeClassifier as ConvexPolytopeClassifier
from polyplane.learners.cutting_plane import CuttingPlaneSVC as CuttingPlaneSVC
from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier as MultiHyperplaneClassifier
from polyplane.learners.pegasos import PegasosSVC as PegasosSVC
from polyplane.learners.polyceptron import PolyceptronClassifier as PolyceptronClassifier
from polyplane.learners.polyhedral_mixture import PolyhedralMixtureClassifier as PolyhedralMixtureClassifier
from polyplane.learners.successive_lp import SuccessiveLPClassifier as SuccessiveLPClassifier
from polyplane.learners.worst_case_polytope import WorstCasePolytopeClassifier as WorstCasePolytopeClassifier

LEARNERS: dict[str, str]

def find_learner(name: str) -> Any: ...
