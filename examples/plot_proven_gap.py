"""
A linear SVM with a proven gap
==============================

Cutting planes give a lower bound of the objective, while the current solution gives an upper bound. Their difference
bounds the distance to the optimum, and training stops when it is small enough.
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from polyplane import CuttingPlaneSVC
from polyplane.explain import HistoryDisplay

X, y = load_breast_cancer(return_X_y=True)
model = CuttingPlaneSVC(C=0.1, tol=1e-4).fit(StandardScaler().fit_transform(X), y)
print(f"after {model.n_iter_} cuts the objective is proven to be within {model.gap_:.1e} of the optimum")

# %%
display = HistoryDisplay.from_estimator(model, metrics=["primal", "dual", "gap"], against="step")
