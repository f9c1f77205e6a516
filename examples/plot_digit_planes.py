"""
Planes of handwritten digits
============================

The weights of a plane over pixels form an image: ink in blue areas is evidence for the class, ink in red areas evidence
against it. The figure shows the planes of a digit classifier that most often have the highest score.
"""

# %%
from sklearn.datasets import load_digits

from polyplane import MultiHyperplaneClassifier
from polyplane.explain import PlaneUsageDisplay, PlaneWeightsDisplay

X, y = load_digits(return_X_y=True)
model = MultiHyperplaneClassifier(n_planes=3, loss="hinge", random_state=0).fit(X[:1200], y[:1200])
PlaneWeightsDisplay.from_estimator(model, X[1200:], image_shape=(8, 8), max_planes=15)

# %%
# The number of rows that each plane decides, and how many of these predictions are wrong:
display = PlaneUsageDisplay.from_estimator(model, X[1200:], y[1200:])
