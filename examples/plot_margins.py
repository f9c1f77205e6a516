"""
Margins of predictions
======================

The margin of a row is the score of its class minus that of the best other class. Errors have negative margins; rows
with small positive margins are uncertain.
"""

# %%
import numpy as np
from sklearn.datasets import load_digits

from polyplane import MultiHyperplaneClassifier
from polyplane.inspection import MarginDisplay

X, y = load_digits(return_X_y=True)
machine = MultiHyperplaneClassifier(random_state=0).fit(X[:1200], y[:1200])
display = MarginDisplay.from_estimator(machine, X[1200:], y[1200:])

# %%
# Refusing to answer the least sure tenth leaves few errors:
sure = machine.planes_.margins(X[1200:].astype(machine.coef_.dtype))
kept = sure > np.quantile(sure, 0.1)
wrong = machine.predict(X[1200:]) != y[1200:]
print(f"all rows: {100 * wrong.mean():.1f} % wrong; the sure nine tenths: {100 * wrong[kept].mean():.1f} %")
