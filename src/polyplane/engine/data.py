"""The rows that a method trains on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from polyplane._array_api import host_dtype, is_sparse, to_numpy


@dataclass(frozen=True)
class Data:
    """Validated rows with their labels and weights.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows, never copied; float32 or float64. All else is on the host, wherever these are.
    y : ndarray of shape (n_rows,)
        The classes, as integers.
    weight : ndarray of shape (n_rows,)
        Sample weight times class weight, in the dtype of X.
    train : ndarray
        The rows to train on: those of positive weight that are not held out.
    n_classes : int
        The number of classes, of which these rows need not show all.
    stream : bool
        More rows may follow, unlike these: no number of passes is planned.
    half_life : float or None
        In a stream that drifts, the number of rows after which what a row taught counts for half.
    is_part : bool
        Other rows are trained on elsewhere at the same time, and what is learned will be averaged.
    identity : bytes or None
        What to know the rows again by, where that is cheaper than a hash. None: SHA-256; see `fingerprint`.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    train: np.ndarray
    n_classes: int
    stream: bool = False
    half_life: float | None = None
    is_part: bool = False
    identity: bytes | None = None

    @property
    def training_weight(self) -> np.ndarray:
        """The weight of each row in training, 0 for those that are held out."""
        weight = np.zeros(len(self.y))
        weight[self.train] = self.weight[self.train]
        return weight

    @property
    def class_counts(self) -> np.ndarray:
        """The number of training rows of each class."""
        return np.bincount(self.y[self.train], minlength=self.n_classes)

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the rows, labels, weights and the choice of training rows: tells whether rows are the same."""
        if self.identity is not None:
            return self.identity
        X = self.X
        parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (to_numpy(X),)
        digest = hashlib.sha256(repr((tuple(X.shape), host_dtype(X), self.n_classes)).encode())
        for part in (*parts, self.y, self.weight, self.train):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()

    def hold_out(self, fraction: float, seed: int) -> tuple[Data, np.ndarray]:
        """Set aside a stratified part of the training rows; return what is left to train on, and the rows held out."""
        from sklearn.model_selection import train_test_split  # slow to import, and seldom needed

        try:
            train, held_out = train_test_split(
                self.train, test_size=fraction, random_state=seed, stratify=self.y[self.train]
            )
        except ValueError as error:
            raise ValueError(
                f"early_stopping={fraction} needs more rows of each class than there are: {error}"
            ) from None
        return replace(self, train=train), held_out
