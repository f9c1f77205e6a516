"""
Two rules for diabetes
======================

PLUME finds a few half-spaces around one class. On the Pima diabetes data, two are as accurate as far larger models,
and two inequalities are easy to read and to check.
"""

# %%
# Zeros in some columns stand for values that were not measured; they are imputed by the median. The rules below are in
# the units of the data, although the model is trained on standardised features.
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyplane import PolyhedralMixtureClassifier
from polyplane.datasets import load_pima
from polyplane.explain import PlaneWeightsDisplay, explain_model, explain_row

X, y = load_pima(return_X_y=True)
names = ["pregnancies", "glucose", "blood pressure", "skin fold", "insulin", "BMI", "pedigree", "age"]
X = np.asarray(X, dtype=np.float64)
X[:, 1:6][X[:, 1:6] == 0] = np.nan
model = make_pipeline(
    SimpleImputer(strategy="median"), StandardScaler(), PolyhedralMixtureClassifier(inside="pos", random_state=0)
)
print(f"accuracy by 10-fold cross-validation: {cross_val_score(model, X, y, cv=10).mean():.3f}")

# %%
# Small terms are omitted and numbers are rounded as long as the predictions for 95 % of the patients do not change:
model.fit(X, y)
rules = explain_model(model, X, tolerance=0.05, feature_names=names)
print(rules)

# %%
# The reasons for one prediction, and the smallest change that leads to the other class. Age, pregnancies and pedigree
# are not allowed to change.
print(explain_row(model, X[:1], X=X, feature_names=names, frozen=["age", "pregnancies", "pedigree"]))

# %%
display = PlaneWeightsDisplay.from_estimator(model, X, feature_names=names)
