"""
What planes look at
===================

A plane over pixels is a picture: ink where it is blue speaks for the class, ink where it is red against it. The
busiest planes of a machine that reads digits:
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
