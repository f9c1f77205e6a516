"""What comes in: matrices, labels, weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from polyplane._array_api import (
    describe,
    host_dtype,
    is_foreign,
    is_on_host,
    namespace,
    same_place,
    to_numpy,
    widest_float,
)


def check_matrix(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """A finite float matrix that a kernel may walk through, dense in C order or canonical CSR; copied only if need be.

    Arrays of other libraries stay what and where they are when scikit-learn dispatches on them.
    """
    _refuse_sparse_on_device(X)
    if is_foreign(X):
        if _is_dispatched("X", X):
            return _check_foreign_matrix(estimator, X, reset)
        X = to_numpy(X)
    if getattr(X, "dtype", None) == np.float16:
        raise ValueError("X is float16, too coarse to sum over rows; convert it with X.astype(numpy.float32).")
    with np.errstate(over="ignore", invalid="ignore"):  # the sum of large values, by which infinite ones are found
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=[np.float64, np.float32],
            order="C",
            reset=reset,
        )
    if sparse.issparse(X):
        X.check_format(full_check=True)  # a kernel does not check bounds: a wrong index would read foreign memory
        X = _canonical(X)
    return X


def _canonical(X: Any) -> Any:
    """The same CSR matrix with sorted indices, each once: a sum over a row must not depend on how it is stored."""
    view = type(X)((X.data, X.indices, X.indptr), shape=X.shape, copy=False)  # it has no flag that could be out of date
    if view.has_canonical_format:
        return X
    view = view.copy()
    view.sum_duplicates()
    return view


def _refuse_sparse_on_device(X: Any) -> None:
    """Sparse arrays are CSR matrices of SciPy, or nothing that is known here."""
    strided = str(getattr(X, "layout", "torch.strided")) == "torch.strided"
    if strided and type(X).__module__.partition(".")[0] != "cupyx":
        return
    library = type(X).__module__.partition(".")[0]
    raise TypeError(
        f"X is a sparse array of {library}, which no learner takes. Pass a SciPy CSR matrix, to learn from it on the "
        "host, or make it dense (to_dense() in PyTorch, toarray() in CuPy)."
    )


def _is_dispatched(name: str, array: Any) -> bool:
    """Whether an array of another library is to be taken as it is; not so, NumPy must be able to look at it."""
    if get_config()["array_api_dispatch"]:
        return True
    if is_on_host(array):
        return False
    raise ValueError(
        f"{name} is {describe(array)}, and scikit-learn's array API dispatch is off: work in a block "
        f"`with sklearn.config_context(array_api_dispatch=True):`, or pass {name} as a NumPy array."
    )


def _check_foreign_matrix(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """The same for an array of another library: dense, finite, float32 or float64."""
    xp = namespace(X)
    if str(X.dtype).endswith("float16"):
        raise ValueError(f"X is {X.dtype}, too coarse to sum over rows; convert it to float32.")
    dtypes = [xp.float32] if widest_float(X) == xp.float32 else [xp.float64, xp.float32]
    return validate_data(estimator, X, dtype=dtypes, reset=reset)


def check_place(estimator: BaseEstimator, X: Any, learned: bool) -> None:
    """Whether X lies where what the estimator has learned so far lies, if it has."""
    if learned and not same_place(estimator.planes_.coef, X):
        raise ValueError(
            f"X is {describe(X)}, but the planes are {describe(estimator.planes_.coef)}: move X, copy the "
            "estimator to host memory with to_numpy(), or predict with planes_.to(X)."
        )


def to_host(name: str, array: Any, X: Any) -> Any:
    """Labels or weights as the host sees them; they may come from the host or from the device of X."""
    if not is_foreign(array):
        return array
    if _is_dispatched(name, array) and not is_on_host(array) and not same_place(array, X):
        raise ValueError(f"{name} is {describe(array)}, but X is {describe(X)}: move one of them.")
    return to_numpy(array)


def check_targets(y: Any, n_rows: int) -> np.ndarray:
    """Labels as a one-dimensional array, one per row."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if len(y) != n_rows:
        check_consistent_length(np.empty((n_rows, 1)), y)
    return np.asarray(y)


def check_classes(y: np.ndarray) -> np.ndarray:
    """The sorted distinct labels, two or more."""
    classes: np.ndarray = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"A classifier needs at least two classes; y has only one class, {classes.tolist()[0]!r}.")
    return classes


def encode(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels as indices into `classes`."""
    codes = np.searchsorted(classes, y)
    codes[codes == len(classes)] = 0
    unknown = classes[codes] != y
    if unknown.any():
        raise ValueError(
            f"y holds the label {y[unknown].tolist()[0]!r} (row {int(unknown.argmax())}), which is not among the known "
            f"classes: {classes.tolist()}."
        )
    return codes


class NoWeightError(ValueError):
    """No row has a weight."""


def check_weights(
    X: Any, y: np.ndarray, codes: np.ndarray, classes: np.ndarray, sample_weight: Any, class_weight: Any
) -> np.ndarray:
    """Sample weight times class weight of each row, in the dtype of X."""
    dtype = host_dtype(X)
    rows = np.broadcast_to(dtype.type(0), (len(codes), 1)) if is_foreign(X) else X  # asked for their number alone
    weight: np.ndarray = _check_sample_weight(sample_weight, rows, dtype=dtype, ensure_non_negative=True)
    if class_weight is not None:
        by_class = compute_class_weight(class_weight, classes=classes, y=y)
        if not (np.isfinite(by_class).all() and (by_class >= 0).all()):
            wrong = int((~(np.isfinite(by_class) & (by_class >= 0))).argmax())
            raise ValueError(
                f"class_weight must hold finite numbers from 0 on; that of {classes[wrong]!r} is {by_class[wrong]}."
            )
        weight = weight * by_class[codes].astype(dtype)
    if not weight.any():
        raise NoWeightError("All sample weights are zero: there is no row to learn from.")
    return weight


def check_fitted_matrix(estimator: BaseEstimator, X: Any) -> Any:
    """A matrix to predict on."""
    check_is_fitted(estimator)
    X = check_matrix(estimator, X, reset=False)
    check_place(estimator, X, learned=True)
    return X
