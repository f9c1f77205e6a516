"""
Use all planes of a polytope
============================

Without a constraint, training can end with few planes of a polytope in use. `min_entropy` encourages an even
assignment of rows to planes, which lowers the error.
"""

# %%
import numpy as np
from sklearn.datasets import load_digits

from polyplane import ConvexPolytopeClassifier
from polyplane.explain import PlaneUsageDisplay

X, y = load_digits(return_X_y=True)
X, y = X / 16, np.where(y == 8, "eight", "other")
train, test = slice(0, 1200), slice(1200, None)
for share in (0.0, 0.8):
    model = ConvexPolytopeClassifier(16, enclosed="each", min_entropy=share, alpha=1e-3, max_iter=60, random_state=0)
    model.fit(X[train], y[train])
    used = len(np.unique(model.planes_.winners(X[train])))
    print(f"min_entropy={share}: {used} planes in use, {100 * (1 - model.score(X[test], y[test])):.1f} % error")

# %%
display = PlaneUsageDisplay.from_estimator(model, X[train], y[train])
