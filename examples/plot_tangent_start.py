"""
The tangent start
=================

A plane that is tangent to a paraboloid above a point has the highest score near that point. The tangent planes above
the cluster centres of each class are therefore a nearest-centre classifier, and training starts from them. GAMM starts
without planes, adds them during training, and finds fewer fields of the checkerboard.
"""

# %%
import matplotlib.pyplot as plt

from polyplane import AdaptiveMultiHyperplaneClassifier, MultiHyperplaneClassifier
from polyplane.datasets import make_checkerboard
from polyplane.explain import RegionsDisplay

X, y = make_checkerboard(6000, (4, 4), random_state=0)
X_test, y_test = make_checkerboard(4000, (4, 4), random_state=1)

models = {
    "tangent start, one pass": MultiHyperplaneClassifier(n_planes=16, loss="hinge", max_iter=1, random_state=0),
    "tangent start, trained": MultiHyperplaneClassifier(n_planes=16, loss="hinge", random_state=0),
    "no planes (GAMM)": AdaptiveMultiHyperplaneClassifier(max_iter=15, random_state=0),
}
fig, panels = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, (name, model) in zip(panels, models.items(), strict=True):
    error = 100 * (1 - model.fit(X, y).score(X_test, y_test))
    RegionsDisplay.from_estimator(model, X_test, ax=ax, title=f"{name}: {error:.1f} %")
