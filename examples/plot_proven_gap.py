"""
A linear SVM with a certificate
===============================

Cutting planes bound the objective from below while the search pushes it down from above. Their distance is a proof of
how near the optimum is, and training stops when the proof is good enough.
"""

# %%
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from polyplane import CuttingPlaneSVC
from polyplane.inspection import HistoryDisplay

X, y = load_breast_cancer(return_X_y=True)
machine = CuttingPlaneSVC(C=0.1, tol=1e-4).fit(StandardScaler().fit_transform(X), y)
print(f"after {machine.n_iter_} cuts the objective is proven to be within {machine.gap_:.1e} of the optimum")

# %%
display = HistoryDisplay.from_estimator(machine, figures=["primal", "dual", "gap"], against="step")
