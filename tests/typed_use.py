"""What type checkers must know of the public classes; `make lint` checks this file, nothing runs it."""

from typing import Any, assert_type

import numpy as np

from polyplane import ConvexPolytopeClassifier, MultiHyperplaneClassifier, PlaneSearchCV, TableClassifier, load


def typed_use() -> None:
    """Statements that type checkers must understand as the comments say; they are not executed."""
    # An argument that does not exist: without the error, the comment would be unused, which is an error.
    MultiHyperplaneClassifier(n_plane=4)  # type: ignore[call-arg]
    TableClassifier(n_planes="four")  # type: ignore[arg-type]

    model = MultiHyperplaneClassifier(4, n_jobs=2).fit([[0.0], [1.0]], [0, 1]).set_params(alpha=0.1)
    assert_type(model, MultiHyperplaneClassifier)
    assert_type(model.score([[0.0]], [0]), float)
    assert_type(PlaneSearchCV().best_estimator_, MultiHyperplaneClassifier)
    assert_type(PlaneSearchCV(ConvexPolytopeClassifier(), n_iter=9).best_estimator_, ConvexPolytopeClassifier)
    assert_type(load("model.safetensors").predict([[0.0]]), np.ndarray | Any)
