"""Synthetic data sets: checkerboards, one class inside a polyhedron, and a table with mixed columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyplane.planes import PlaneSet

_PURPOSES = {"car": 0.40, "furniture": 0.25, "education": 0.15, "business": 0.12, "medical": 0.08}
_HOMES = {"rent": 0.45, "own": 0.40, "parents": 0.15}
#: Contribution of each level to the log-odds of a default.
_RISKS = {"education": 0.8, "business": 1.2, "own": -1.0, "parents": 0.4}


def check_counts(**counts: int) -> None:
    """Raise an error if a count is below 1."""
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name}={value} must be 1 or more.")


def check_shares(**shares: float) -> None:
    """Raise an error if a fraction is outside the range from 0 to 1."""
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name}={value} must be a fraction from 0 to 1.")


def make_checkerboard(
    n_samples: int = 15_000, shape: tuple[int, int] = (4, 4), *, flip_y: float = 0.0, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Generate points on a checkerboard over the square [-1, 1] x [-1, 1]; the class is the colour of the cell.

    Parameters
    ----------
    n_samples : int, default=15_000
        Number of points.
    shape : tuple of int, default=(4, 4)
        Number of cells along the first and the second feature.
    flip_y : float, default=0.0
        Fraction of the points whose class is replaced by a random one.
    random_state : int, RandomState or None, default=None
        Controls the random numbers. Pass an int for reproducible output.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, uniformly distributed over the square.
    y : ndarray of shape (n_samples,)
        0 or 1.

    Examples
    --------
    >>> from polyplane.datasets import make_checkerboard
    >>> X, y = make_checkerboard(1000, (2, 2), random_state=0)
    >>> bool(((X[:, 0] * X[:, 1] < 0) == y).all())
    True
    """
    check_counts(n_samples=n_samples)
    check_shares(flip_y=flip_y)
    if min(shape) < 1 or max(shape) < 2:
        raise ValueError(f"shape={shape} has only one cell: specify at least two.")
    rng = check_random_state(random_state)
    X = rng.uniform(-1.0, 1.0, size=(n_samples, 2))
    fields = np.floor((X + 1.0) / 2.0 * np.array(shape)).astype(int)
    y = fields.sum(axis=1) % 2
    drawn = rng.uniform(size=n_samples) < flip_y
    return X, np.where(drawn, rng.randint(2, size=n_samples), y)


def make_polyhedron(
    n_samples: int = 1000,
    n_features: int = 2,
    n_planes: int = 4,
    *,
    inside: float = 0.5,
    flip_y: float = 0.0,
    random_state: Any = None,
    return_planes: bool = False,
) -> Any:
    """Generate uniform points in a cube, with class 1 inside a random polyhedron.

    The planes have random normals and the same distance to the origin, which is set by the fraction of rows inside.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows, uniformly distributed in the cube from -1 to 1.
    n_features : int, default=2
        Number of features.
    n_planes : int, default=4
        Number of planes. A bounded polyhedron needs at least n_features + 1 planes.
    inside : float, default=0.5
        Fraction of the rows inside.
    flip_y : float, default=0.0
        Fraction of the rows whose class is then replaced by a random one.
    random_state : int, RandomState or None, default=None
        Controls the random planes, rows and labels. Pass an int for reproducible output.
    return_planes : bool, default=False
        If True, also return the true planes.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        1 inside, 0 outside.
    planes : PlaneSet
        The true planes, owned by class 0. Only returned if `return_planes` is True.

    Examples
    --------
    >>> from polyplane.datasets import make_polyhedron
    >>> X, y, planes = make_polyhedron(500, 3, 6, random_state=0, return_planes=True)
    >>> int(y.sum())
    250
    >>> planes
    PlaneSet(n_classes=2, n_planes=7, n_features=3, dtype=float64)
    """
    check_counts(n_samples=n_samples, n_features=n_features, n_planes=n_planes)
    check_shares(inside=inside, flip_y=flip_y)
    rng = check_random_state(random_state)
    normals = rng.normal(size=(n_planes, n_features))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    X = rng.uniform(-1, 1, size=(n_samples, n_features))
    outermost = (X @ normals.T).max(axis=1)
    distance = float(np.quantile(outermost, inside))
    y = (outermost <= distance).astype(np.intp)
    planes = PlaneSet.of_classes([(normals, np.full(n_planes, -distance)), (np.zeros((1, n_features)), np.zeros(1))])
    drawn = rng.permutation(n_samples)[: round(flip_y * n_samples)]
    y[drawn] = rng.randint(2, size=len(drawn))
    return (X, y, planes) if return_planes else (X, y)


def make_loans(n_samples: int = 2000, *, random_state: Any = None) -> tuple[Any, np.ndarray]:
    """Generate a synthetic table of loans, which are repaid or end in a default.

    The probability of a default depends on the debt relative to the income, the age (young and old borrowers default
    more often), the purpose, the home, the duration of employment, and a guarantor, which matters for large debts only.

    Parameters
    ----------
    n_samples : int, default=2000
        Number of loans.
    random_state : int, RandomState or None, default=None
        Controls the random numbers. Pass an int for reproducible output.

    Returns
    -------
    frame : DataFrame of pandas
        The columns "age" (years), "income" and "debt" (per year and in total; some incomes are missing), "purpose",
        "home", "employed since" (dates; missing for those without employment) and "guarantor" (booleans).
    y : ndarray of shape (n_samples,)
        "repaid" or "default".

    Examples
    --------
    >>> from polyplane.datasets import make_loans
    >>> frame, y = make_loans(1000, random_state=0)
    >>> frame.columns.tolist()
    ['age', 'income', 'debt', 'purpose', 'home', 'employed since', 'guarantor']
    >>> print(f"{(y == 'default').mean():.2f}")
    0.18
    """
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("make_loans requires pandas: pip install pandas.") from None
    check_counts(n_samples=n_samples)
    rng = check_random_state(random_state)
    age = np.clip(np.round(18 + rng.gamma(3.0, 8.0, n_samples)), 18, 90)
    income = np.round(rng.lognormal(10.4, 0.5, n_samples), -2)
    debt = np.round(income * rng.lognormal(-0.7, 0.8, n_samples), -2)
    purpose, home = (rng.choice(list(shares), n_samples, p=list(shares.values())) for shares in (_PURPOSES, _HOMES))
    years = rng.exponential(6.0, n_samples)
    unemployed, unknown = rng.uniform(size=n_samples) < 0.08, rng.uniform(size=n_samples) < 0.05
    guarantor = rng.uniform(size=n_samples) < 0.3
    logit = -2.4 + 2.0 * np.log1p(debt / income) + np.square((age - 45) / 18) - 0.08 * years + 1.5 * unemployed
    logit += [_RISKS.get(p, 0.0) + _RISKS.get(h, 0.0) for p, h in zip(purpose, home, strict=True)]
    logit -= 2.0 * guarantor * (debt > income)
    y = np.where(1.7 * logit > rng.logistic(size=n_samples), "default", "repaid")
    since = np.datetime64("2026-01-01") - (years * 365.25).astype("timedelta64[D]")
    columns = {
        "age": age.astype(int),
        "income": np.where(unknown, np.nan, income),
        "debt": debt,
        "purpose": purpose.astype(object),
        "home": home.astype(object),
        "employed since": np.where(unemployed, np.datetime64("NaT"), since),
        "guarantor": guarantor,
    }
    return pd.DataFrame(columns), y
