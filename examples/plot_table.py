"""
Explain a model of a table
==========================

``TableClassifier`` takes raw tables, with missing values and any units. Its explanations are in the columns of the
table, as sums of contributions that can be verified.
"""

# %%
# The Pima diabetes data. Zeros in some columns stand for values that were not measured, so they are replaced by NaN.
import numpy as np
import pandas as pd

from polyplane import TableClassifier
from polyplane.datasets import load_pima
from polyplane.explain import EffectsDisplay, ImportanceDisplay, ReasonsDisplay, explain_model, explain_row

X, y = load_pima(return_X_y=True)
names = ["pregnancies", "glucose", "blood pressure", "skin fold", "insulin", "BMI", "pedigree", "age"]
frame = pd.DataFrame(np.asarray(X, dtype=np.float64), columns=names)
frame[names[1:6]] = frame[names[1:6]].where(frame[names[1:6]] > 0)
frame[["pregnancies", "age"]] = frame[["pregnancies", "age"]].astype(int)
label = np.where(np.asarray(y) == "pos", "diabetes", "healthy")
model = TableClassifier(random_state=0).fit(frame[::2], label[::2])
print(f"accuracy on the other half: {model.score(frame[1::2], label[1::2]):.3f}")

# %%
# The importance of a column is the standard deviation, over patients, of its contribution to the log-odds.
explanation = explain_model(model, frame[1::2])
display = ImportanceDisplay.from_estimator(explanation)

# %%
# Each curve shows by how much a value raises or lowers the log-odds of diabetes, compared with the median.
display = EffectsDisplay.from_estimator(explanation, label="diabetes")

# %%
# For one patient, the contributions of the columns sum to the log-odds of the predicted class. Frozen columns are
# excluded from the change that leads to the other class.
patient = frame.iloc[1]
print(explain_row(model, patient, true_label=label[1], frozen=["age", "pregnancies", "pedigree"]))

# %%
display = ReasonsDisplay.from_estimator(model, patient, true_label=label[1])
