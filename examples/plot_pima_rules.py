"""
Two rules for diabetes
======================

PLUME finds a few half-spaces around one class. On the Pima diabetes data, two are as accurate as far larger models,
and two inequalities are easy to read and to check.
"""

# %%
# Zeros in some columns stand for values that were not measured; they are filled in by the median. The rules below
# speak the units of the data, although the machine was trained on standardised ones.
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import PolyhedralMixtureClassifier
from polyplane.datasets import load_pima
from polyplane.inspection import PlaneWeightsDisplay, explain_model, explain_row

X, y = load_pima(return_X_y=True)
names = ["pregnancies", "glucose", "blood pressure", "skin fold", "insulin", "BMI", "pedigree", "age"]
X = np.asarray(X, dtype=np.float64)
X[:, 1:6][X[:, 1:6] == 0] = np.nan
machine = make_pipeline(
    SimpleImputer(strategy="median"), StandardScaler(), PolyhedralMixtureClassifier(inside="pos", random_state=0)
)
print(f"accuracy by 10-fold cross-validation: {cross_val_score(machine, X, y, cv=10).mean():.3f}")

# %%
# Small terms are left out and numbers rounded as long as 95 % of the persons keep their class:
machine.fit(X, y)
rules = explain_model(machine, X, tolerance=0.05, feature_names=names)
print(rules)

# %%
# Why this person, and what would have to be different? Age and pregnancies do not change.
print(explain_row(machine, X[:1], X=X, feature_names=names, frozen=["age", "pregnancies", "pedigree"]))

# %%
display = PlaneWeightsDisplay.from_estimator(machine, X, feature_names=names)
