"""What classifiers with planes accept, and how they predict: validation of matrices, labels and weights."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.utils import check_consistent_length, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from polyplane._array_api import (
    describe,
    host_dtype,
    is_foreign,
    is_on_host,
    labels_of,
    namespace,
    same_place,
    to_numpy,
    widest_float,
)
from polyplane._sklearn import BaseEstimator, ClassifierMixin
from polyplane.engine.data import LARGEST_VALUE
from polyplane.features import Features
from polyplane.inputs.encoding import MatrixInputs
from polyplane.inputs.frames import is_missing
from polyplane.model import Model, decision
from polyplane.planes import PlaneSet


def check_matrix(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """Validate a matrix: finite floats, dense in C order or canonical CSR; copied only if necessary.

    With scikit-learn's array API dispatch, arrays of other libraries are accepted and stay on their device.
    """
    _refuse_sparse_on_device(X)
    if is_foreign(X):
        if _is_dispatched("X", X):
            return _check_foreign_matrix(estimator, X, reset)
        X = to_numpy(X)
    if getattr(X, "dtype", None) == np.float16:
        raise ValueError("X is float16, which is not precise enough; convert it with X.astype(numpy.float32).")
    with np.errstate(over="ignore", invalid="ignore"):  # the check for infinite values sums all values
        try:
            X = validate_data(
                estimator,
                X,
                accept_sparse="csr",
                accept_large_sparse=True,
                dtype=[np.float64, np.float32],
                order="C",
                reset=reset,
            )
        except ValueError as error:
            if str(error).startswith("could not convert string"):
                raise ValueError(
                    f"{error}. {type(estimator).__name__} takes numbers only: use TableClassifier for text and dates."
                ) from None
            if "NaN" not in str(error):
                raise
            raise ValueError(
                f"Input X contains NaN, and {type(estimator).__name__} takes no missing values: use TableClassifier, "
                "which does, or a SimpleImputer before it."
            ) from None
        except OverflowError:  # of Python's integers
            raise ValueError("Input X contains infinity or a value too large for dtype('float64').") from None
    if sparse.issparse(X):
        X.check_format(full_check=True)  # kernels do not check bounds: an invalid index would access invalid memory
        X = _canonical(X)
    return X


def _canonical(X: Any) -> Any:
    """Return the CSR matrix with sorted, distinct indices: sums over a row must not depend on how it is stored."""
    view = type(X)((X.data, X.indices, X.indptr), shape=X.shape, copy=False)  # no outdated flags
    if view.has_canonical_format:
        return X
    view = view.copy()
    view.sum_duplicates()
    return view


def _refuse_sparse_on_device(X: Any) -> None:
    """Raise an error for sparse arrays of other libraries than SciPy."""
    strided = str(getattr(X, "layout", "torch.strided")) == "torch.strided"
    if strided and type(X).__module__.partition(".")[0] != "cupyx":
        return
    library = type(X).__module__.partition(".")[0]
    raise TypeError(
        f"X is a sparse array of {library}, which is not supported. Pass a SciPy CSR matrix, to train on the CPU, or "
        "convert X to a dense array (to_dense() in PyTorch, toarray() in CuPy)."
    )


def _is_dispatched(name: str, array: Any) -> bool:
    """Whether array API dispatch applies to an array; otherwise it must be in host memory."""
    if get_config()["array_api_dispatch"]:
        return True
    if is_on_host(array):
        return False
    raise ValueError(
        f"{name} is {describe(array)}, and scikit-learn's array API dispatch is off: enable it with "
        f"`with sklearn.config_context(array_api_dispatch=True):`, or pass {name} as a NumPy array."
    )


def _check_foreign_matrix(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """Validate an array of another library: dense, finite, float32 or float64."""
    xp = namespace(X)
    if str(X.dtype).endswith("float16"):
        raise ValueError(f"X is {X.dtype}, which is not precise enough; convert it to float32.")
    dtypes = [xp.float32] if widest_float(X) == xp.float32 else [xp.float64, xp.float32]
    return validate_data(estimator, X, dtype=dtypes, reset=reset)


def check_place(estimator: Any, X: Any, learned: bool) -> None:
    """Raise an error if X is not in the library and on the device of the fitted planes."""
    if learned and not same_place(estimator.planes_.coef, X):
        raise ValueError(
            f"X is {describe(X)}, but the planes are {describe(estimator.planes_.coef)}: move X, copy the "
            "estimator to host memory with to_numpy(), or predict with planes_.to(X)."
        )


def to_host(name: str, array: Any, X: Any) -> Any:
    """Copy labels or weights to host memory; they may be in host memory or on the device of X."""
    if not is_foreign(array):
        return array
    if _is_dispatched(name, array) and not is_on_host(array) and not same_place(array, X):
        raise ValueError(f"{name} is {describe(array)}, but X is {describe(X)}: move one of them.")
    return to_numpy(array)


def check_targets(y: Any, n_rows: int) -> np.ndarray:
    """Validate labels: a one-dimensional array, one label per row."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    y = column_or_1d(as_labels(y), warn=True)
    _refuse_missing(y)
    check_classification_targets(y)
    if len(y) != n_rows:
        check_consistent_length(np.empty((n_rows, 1)), y)
    return np.asarray(y)


def as_labels(y: Any) -> Any:
    """Return labels as they are, but a list as an array that keeps them apart.

    In an array of strings, NumPy writes a missing label as "nan" and omits zero characters at the end.
    """
    if not isinstance(y, list | tuple):
        return y
    found = np.asarray(y)
    if found.dtype.kind == "U":
        objects = np.array(y, dtype=object)
        _refuse_missing(objects)
        if any(str(label).endswith("\0") for label in objects.flat):
            return objects
    return found


def _refuse_missing(y: np.ndarray) -> None:
    """Raise scikit-learn's error for missing labels among objects or dates, whatever library they come from."""
    if y.dtype.kind in "OmM" and any(map(is_missing, y.ravel())):
        raise ValueError("Input y contains NaN.")


def check_classes(y: np.ndarray) -> np.ndarray:
    """Return the sorted distinct labels, at least two."""
    _refuse_missing(y)
    classes: np.ndarray = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"A classifier needs at least two classes; y has only one class, {classes.tolist()[0]!r}.")
    return classes


def encode(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Convert labels to indices into `classes`."""
    codes = np.searchsorted(classes, y)
    codes[codes == len(classes)] = 0
    unknown = classes[codes] != y
    if unknown.any():
        raise ValueError(
            f"y contains the label {y[unknown].tolist()[0]!r} (row {int(unknown.argmax())}), which is not one of the "
            f"known classes: {classes.tolist()}."
        )
    return codes


class NoWeightError(ValueError):
    """All sample weights are zero."""


def check_weights(
    X: Any, y: np.ndarray, codes: np.ndarray, classes: np.ndarray, sample_weight: Any, class_weight: Any
) -> np.ndarray:
    """Compute the sample weight times the class weight of each row, in the dtype of X."""
    dtype = host_dtype(X)
    rows = np.broadcast_to(dtype.type(0), (len(codes), 1)) if is_foreign(X) else X  # only the number of rows matters
    weight: np.ndarray = _check_sample_weight(sample_weight, rows, dtype=dtype, ensure_non_negative=True)
    if class_weight is not None:
        by_class = compute_class_weight(class_weight, classes=classes, y=y)
        if not (np.isfinite(by_class).all() and (by_class >= 0).all()):
            wrong = int((~(np.isfinite(by_class) & (by_class >= 0))).argmax())
            raise ValueError(
                f"class_weight must be finite and non-negative; the weight of {classes[wrong]!r} is {by_class[wrong]}."
            )
        weight = weight * by_class[codes].astype(dtype)
    if not weight.any():
        raise NoWeightError("All sample weights are zero; at least one row needs a positive weight.")
    limit = LARGEST_VALUE[dtype.itemsize]
    if not 1 / limit <= (largest := float(weight.max())) <= limit:
        raise ValueError(
            f"The largest sample weight, {largest:.3g}, must be between {1 / limit:.0e} and {limit:.0e} in {dtype}: "
            "scale the sample weights to a mean near 1."
        )
    return weight


def check_fitted_matrix(estimator: BaseEstimator, X: Any) -> Any:
    """Validate a matrix for prediction."""
    check_is_fitted(estimator)
    X = check_matrix(estimator, X, reset=False)
    check_place(estimator, X, learned=True)
    return X


class PlanePrediction(ClassifierMixin, BaseEstimator):
    """A classifier that predicts with planes: scores, labels and coefficients.

    Attributes
    ----------
    planes_ : PlaneSet
        The model.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    """

    #: A `polyplane.base.Declaration`.
    _declaration: ClassVar[Any]

    planes_: PlaneSet
    classes_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    _state: Any

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute class scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
            For two classes, the score of the second class minus that of the first; if positive, the second class is
            predicted.
        """
        X = check_fitted_matrix(self, X)
        return decision(self.planes_.class_scores(X, getattr(self, "n_jobs", None)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            The labels of the classes with the highest scores.
        """
        X = check_fitted_matrix(self, X)
        return labels_of(self.classes_, self.planes_.predict(X, getattr(self, "n_jobs", None)))

    @property
    def model_(self) -> Model:
        """The fitted model in host memory, from the columns of the rows to class scores."""
        check_is_fitted(self)
        planes = self.planes_.to_numpy()
        return Model(
            self._inputs(),
            Features.identity(planes.n_features),
            planes,
            self.classes_,
            temperature=getattr(self, "temperature_", 1.0) if hasattr(self, "predict_proba") else None,
            learner=type(self).__name__,
        )

    def _inputs(self) -> MatrixInputs:
        names = getattr(self, "feature_names_in_", None)
        return MatrixInputs(self.n_features_in_, None if names is None else tuple(map(str, names)))

    def _restore(self, model: Model, fitted: Mapping[str, Any]) -> None:
        """Set the fitted attributes: those that follow from the model, and others; for model files."""
        self.planes_, self.classes_, self.n_features_in_ = model.planes, model.classes, model.n_columns
        if model.inputs.is_named:
            self.feature_names_in_ = np.array(model.inputs.names, dtype=object)
        self.__dict__.update(fitted)

    def _accepts_state(self, state: Any) -> bool:
        """Whether a state from a file, whose sizes are those of the model, can be continued."""
        return True

    def to_numpy(self) -> Self:
        """Copy the fitted model to host memory.

        Returns
        -------
        estimator : object
            A copy with NumPy arrays, from which training can continue.
        """
        host = copy(self)
        host.planes_ = self.planes_.to_numpy()
        if hasattr(self, "_state"):
            host._state = self._state.to_host()
        return host

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = self._declaration.multi_class
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "planes_")

    @property
    def coef_(self) -> np.ndarray:
        """Normals of the planes, class by class: ``planes_.coef``.

        If two classes own one plane each, the classifier is linear, and this is the difference of their normals, of
        shape (1, n_features) as in `LinearSVC`: ``decision_function(X)`` is ``(X @ coef_.T + intercept_)[:, 0]``.
        """
        return self._as_linear(self.planes_.coef)

    @property
    def intercept_(self) -> np.ndarray:
        """Offsets of the planes: ``planes_.intercept``, or their difference, of shape (1,); see ``coef_``."""
        return self._as_linear(self.planes_.intercept)

    def _as_linear(self, part: Any) -> Any:
        """A part of the planes, or the difference of two where there is one plane for each of two classes."""
        if not self.planes_.n_classes == self.planes_.n_planes == 2:
            return part
        difference = part[1:, ...] - part[:1, ...]
        if isinstance(difference, np.ndarray):
            difference.flags.writeable = False  # like the planes: changes to this copy would have no effect
        return difference
