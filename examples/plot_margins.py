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
from polyplane.explain import MarginDisplay

X, y = load_digits(return_X_y=True)
model = MultiHyperplaneClassifier(random_state=0).fit(X[:1200], y[:1200])
display = MarginDisplay.from_estimator(model, X[1200:], y[1200:])

# %%
# Without the tenth of the rows that has the smallest margins, few errors remain:
sure = model.planes_.margins(X[1200:].astype(model.coef_.dtype))
kept = sure > np.quantile(sure, 0.1)
wrong = model.predict(X[1200:]) != y[1200:]
print(f"error on all rows: {100 * wrong.mean():.1f} %")
print(f"error on the 90 % with the largest margins: {100 * wrong[kept].mean():.1f} %")
