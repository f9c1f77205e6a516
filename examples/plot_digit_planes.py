"""
Planes of handwritten digits
============================

The weights of a plane over pixels are an image: ink in blue areas is evidence for the class, ink in red areas against
it. The most frequently winning planes of a digit classifier:
"""

# %%
from sklearn.datasets import load_digits

from polyplane import MultiHyperplaneClassifier
from polyplane.inspection import PlaneUsageDisplay, PlaneWeightsDisplay

X, y = load_digits(return_X_y=True)
machine = MultiHyperplaneClassifier(n_planes=3, random_state=0).fit(X[:1200], y[:1200])
PlaneWeightsDisplay.from_estimator(machine, X[1200:], image_shape=(8, 8), max_planes=15)

# %%
# Not all planes work equally hard, and few of them err:
display = PlaneUsageDisplay.from_estimator(machine, X[1200:], y[1200:])
