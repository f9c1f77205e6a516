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
        The rows, never copied; float32 or float64. The other arrays are in host memory, also if X is on a device.
    y : ndarray of shape (n_rows,)
        The classes, as integers.
    weight : ndarray of shape (n_rows,)
        Sample weight times class weight, in the dtype of X.
    train : ndarray
        The indices of the training rows: those of positive weight that are not held out.
    n_classes : int
        The number of classes; not all of them need occur in these rows.
    stream : bool
        Whether more rows may follow, so that the number of passes is unknown.
    half_life : float or None
        For streams with concept drift: the number of rows after which the weight of a row is halved.
    is_part : bool
        Whether other partitions are trained on at the same time and the models are averaged.
    is_repeated : bool
        Whether these rows of a stream were seen in an earlier pass.
    identity : bytes or None
        An identifier of the rows that is cheaper than a hash. None: use the SHA-256; see `fingerprint`.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray
    train: np.ndarray
    n_classes: int
    stream: bool = False
    half_life: float | None = None
    is_part: bool = False
    is_repeated: bool = False
    identity: bytes | None = None

    @property
    def training_weight(self) -> np.ndarray:
        """The weight of each row in training, 0 for held-out rows."""
        weight = np.zeros(len(self.y))
        weight[self.train] = self.weight[self.train]
        return weight

    @property
    def class_counts(self) -> np.ndarray:
        """The number of training rows of each class."""
        return np.bincount(self.y[self.train], minlength=self.n_classes)

    @cached_property
    def fingerprint(self) -> bytes:
        """Return the SHA-256 of the rows, labels, weights and indices of the training rows, to compare data sets."""
        if self.identity is not None:
            return self.identity
        X = self.X
        parts = (X.data, X.indices, X.indptr) if is_sparse(X) else (to_numpy(X),)
        digest = hashlib.sha256(repr((tuple(X.shape), host_dtype(X), self.n_classes)).encode())
        for part in (*parts, self.y, self.weight, self.train):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()

    def hold_out(self, fraction: float, seed: int) -> tuple[Data, np.ndarray]:
        """Hold out a stratified fraction of the training rows; return the data without them, and their indices."""
        from sklearn.model_selection import train_test_split  # slow to import, and rarely needed

        try:
            train, held_out = train_test_split(
                self.train, test_size=fraction, random_state=seed, stratify=self.y[self.train]
            )
        except ValueError as error:
            raise ValueError(
                f"early_stopping={fraction} needs more rows of each class than there are: {error}"
            ) from None
        return replace(self, train=train), held_out
