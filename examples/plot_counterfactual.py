"""
Counterfactual explanations
===========================

The region of a class is a union of convex polyhedra, so the nearest point of another class can be found exactly.
Features can be frozen or bounded.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from polyplane import MultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.explain import RegionsDisplay
from polyplane.explain.geometry import counterfactual

X, y = make_checkerboard(6000, (3, 3), random_state=0)
model = MultiHyperplaneClassifier(n_planes=8, loss="hinge", random_state=0).fit(X, y)

fig, ax = plt.subplots(figsize=(6, 5.4), layout="constrained")
RegionsDisplay.from_estimator(model, X, ax=ax, title="Nearest points of the other class; squares: x only")
rng = np.random.default_rng(3)
for point in rng.uniform(-0.95, 0.95, size=(12, 2)):
    free, across = counterfactual(model.planes_, point), counterfactual(model.planes_, point, frozen=[1])
    ax.plot(*np.stack([point, free.point]).T, color="black", linewidth=1.2)
    ax.plot(*free.point, "o", color="black", markersize=5)
    ax.plot(*np.stack([point, across.point]).T, color="black", linewidth=0.8, linestyle=":")
    ax.plot(*across.point, "s", color="white", markeredgecolor="black", markersize=6)
    ax.plot(*point, "x", color="black", markersize=7)
