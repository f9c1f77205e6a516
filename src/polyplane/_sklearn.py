"""The classes that estimators inherit from scikit-learn; the stub file beside this one has their annotations."""

from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "TransformerMixin"]
