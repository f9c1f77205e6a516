"""
Fewer planes, the same predictions
==================================

GAMM grows more planes than it needs. `simplify` removes planes whose rows are won by other planes of the same class;
predictions on the given rows do not change, up to a tolerance.
"""

# %%
import matplotlib.pyplot as plt

from polyplane import AdaptiveMultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.explain.geometry import simplify

X, y = make_checkerboard(8000, (4, 4), random_state=0)
X_test, y_test = make_checkerboard(8000, (4, 4), random_state=1)
planes = AdaptiveMultiHyperplaneClassifier(average_fraction=1 / 3, max_iter=15, random_state=0).fit(X, y).planes_

tolerances = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1]
smaller = [simplify(planes, X, tolerance=tolerance) for tolerance in tolerances]
errors = [100 * (each.predict(X_test) != y_test).mean() for each in smaller]
print(f"{planes.n_planes} planes, {100 * (planes.predict(X_test) != y_test).mean():.2f} % error")

# %%
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot([each.n_planes for each in smaller], errors, "o-", color="#0072B2")
for each, error, tolerance in zip(smaller, errors, tolerances, strict=True):
    ax.annotate(f" {tolerance:g}", (each.n_planes, error), va="bottom")
ax.set(xlabel="planes after simplification", ylabel="test error, %", title=f"{planes.n_planes} planes, by tolerance")
ax.spines[["top", "right"]].set_visible(False)
