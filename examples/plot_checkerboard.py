"""
A checkerboard with several planes per class
============================================

A 4 x 4 checkerboard is not linearly separable. In a multi-hyperplane model each class owns several planes, and the
class of the highest-scoring plane is predicted, so decision regions can have any shape.
"""

# %%
# A linear SVM is no better than chance here. `MultiHyperplaneClassifier` separates the fields, and with the margin
# loss, one plane decides each prediction. The figure shows the cell of each plane, the region where it has the highest
# score, as an exact polygon; thin dashed lines separate planes of the same class.
from polyplane import CuttingPlaneSVC, MultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.explain import RegionsDisplay

X, y = make_checkerboard(8000, (4, 4), random_state=0)
X_test, y_test = make_checkerboard(4000, (4, 4), random_state=1)

model = MultiHyperplaneClassifier(loss="hinge", random_state=0).fit(X, y)
print(f"one plane:   {100 * (1 - CuttingPlaneSVC().fit(X, y).score(X_test, y_test)):.1f} % error")
print(f"many planes: {100 * (1 - model.score(X_test, y_test)):.1f} % error")

# %%
display = RegionsDisplay.from_estimator(model, X_test[:600], y_test[:600])
