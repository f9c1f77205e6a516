"""Classifiers made of hyperplanes."""

from polyplane.learners.convex_polytope import ConvexPolytopeClassifier
from polyplane.learners.cutting_plane import CuttingPlaneSVC
from polyplane.learners.multi_hyperplane import MultiHyperplaneClassifier
from polyplane.learners.pegasos import PegasosSVC
from polyplane.learners.polyceptron import PolyceptronClassifier
from polyplane.learners.polyhedral_mixture import PolyhedralMixtureClassifier
from polyplane.learners.successive_lp import SuccessiveLPClassifier
from polyplane.planes import PlaneSet

__version__ = "0.1.0.dev0"

__all__ = [
    "ConvexPolytopeClassifier",
    "CuttingPlaneSVC",
    "MultiHyperplaneClassifier",
    "PegasosSVC",
    "PlaneSet",
    "PolyceptronClassifier",
    "PolyhedralMixtureClassifier",
    "SuccessiveLPClassifier",
]
