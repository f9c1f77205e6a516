"""
The tangent start
=================

A plane tangent to a paraboloid above a point wins the neighbourhood of that point. Tangents above the cluster centres
of each class are therefore the nearest-centre classifier, and training starts from there. A start without planes
(GAMM) has to grow them, and finds fewer fields of the checkerboard.
"""

# %%
import matplotlib.pyplot as plt

from polyplane import AdaptiveMultiHyperplaneClassifier, MultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.inspection import RegionsDisplay

X, y = make_checkerboard(6000, (4, 4), random_state=0)
X_test, y_test = make_checkerboard(4000, (4, 4), random_state=1)

machines = {
    "tangents, one pass": MultiHyperplaneClassifier(n_planes=16, max_iter=1, random_state=0),
    "tangents, trained": MultiHyperplaneClassifier(n_planes=16, random_state=0),
    "from nothing (GAMM)": AdaptiveMultiHyperplaneClassifier(max_iter=15, random_state=0),
}
fig, panels = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, (name, machine) in zip(panels, machines.items(), strict=True):
    error = 100 * (1 - machine.fit(X, y).score(X_test, y_test))
    RegionsDisplay.from_estimator(machine, X_test, ax=ax, title=f"{name}: {error:.1f} %")
