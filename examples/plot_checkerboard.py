"""
A checkerboard with several planes per class
============================================

A 4 x 4 checkerboard is not linearly separable. In a multi-hyperplane model each class owns several planes, and the
class of the highest-scoring plane is predicted, so decision regions can have any shape.
"""

# %%
# A linear SVM can do no better than guess here. The machine, as it comes, does; the picture shows its cells, each won
# by one plane, as exact polygons. Thin dashes separate planes of the same class.
from polyplane import CuttingPlaneSVC, MultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.inspection import RegionsDisplay

X, y = make_checkerboard(8000, (4, 4), random_state=0)
X_test, y_test = make_checkerboard(4000, (4, 4), random_state=1)

machine = MultiHyperplaneClassifier(random_state=0).fit(X, y)
print(f"one plane:   {100 * (1 - CuttingPlaneSVC().fit(X, y).score(X_test, y_test)):.1f} % error")
print(f"many planes: {100 * (1 - machine.score(X_test, y_test)):.1f} % error")

# %%
display = RegionsDisplay.from_estimator(machine, X_test[:600], y_test[:600])
