"""Synthetic table with mixed columns: numbers of different scales, text, booleans, dates and missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyplane.datasets._checks import check_counts

_PURPOSES = {"car": 0.40, "furniture": 0.25, "education": 0.15, "business": 0.12, "medical": 0.08}
_HOMES = {"rent": 0.45, "own": 0.40, "parents": 0.15}
#: Contribution of each level to the log-odds of a default.
_RISKS = {"education": 0.8, "business": 1.2, "own": -1.0, "parents": 0.4}


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
