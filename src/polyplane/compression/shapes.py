"""The sizes of compressed models, and the shapes that fit into a budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyplane.model import Model

#: Bytes of a float, of a numeric label, and of a (32-bit) pointer to a string label.
FLOAT, LABEL, POINTER = 4, 8, 4
#: Maximum size of the planes over all features of a model from a file, which has only the number of features.
MOST_PLANE_BYTES = 1 << 29


def check_compressed(model: Model) -> None:
    """Raise an error unless a model is one of a `CompressedClassifier`."""
    features, projection, planes = model.features, model.projection, model.planes
    if projection is None or planes.n_members > 1 or not features.is_affine or (np.diff(features.source) < 1).any():
        raise ValueError("the model is not compressed")
    if (planes.coef.astype(np.int8) != planes.coef).any():
        raise ValueError("the weights of the planes must be whole numbers from -127 to 127")
    if 8 * planes.n_planes * model.n_columns > MOST_PLANE_BYTES:
        raise ValueError(f"its planes over all columns take more than {MOST_PLANE_BYTES >> 20} MB")


def model_bytes(model: Model) -> int:
    """Size in bytes of a compressed model as constants of a compiled program, including the labels."""
    features, planes = model.features, model.planes
    return label_bytes(model.classes) + table_bytes(
        model.n_columns,
        features.n_features,
        None if model.projection is None else model.projection.rank,
        planes.n_planes,
        planes.n_classes,
        scaled=bool(features.centre.any() or (features.factor != 1.0).any()),
    )


def table_bytes(n_features: int, n_kept: int, rank: int | None, n_planes: int, n_classes: int, *, scaled: bool) -> int:
    """Size in bytes of all tables except the labels; if `rank` is None, there is no projection."""
    size = n_kept if rank is None else rank
    bytes_kept = -(-n_features // 8) if n_kept < n_features else 0  # one bit per feature
    bytes_scaling = 2 * FLOAT * n_kept if scaled else 0
    bytes_projection = 0 if rank is None else n_kept * rank
    bytes_planes = n_planes * (size + FLOAT)
    return bytes_kept + bytes_scaling + bytes_projection + FLOAT * size + bytes_planes + edge_bytes(n_planes, n_classes)


def edge_bytes(n_planes: int, n_classes: int) -> int:
    """Size in bytes of the table `indptr`."""
    return (n_classes + 1) * (1 if n_planes < 256 else 2 if n_planes < 65536 else 4)


def label_bytes(classes: Any) -> int:
    """Size in bytes of the labels: null-terminated strings with pointers, or 64-bit numbers."""
    labels = np.asarray(classes).tolist()
    return sum(len(label.encode()) + 1 + POINTER if isinstance(label, str) else LABEL for label in labels)


#: Numbers of projected features to try.
RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
#: Maximum fractions of the bytes for the projection, to try.
FRACTIONS = (0.3, 0.6, 0.8)
#: Maximum number of planes per class, and minimum number of training rows per plane.
MAX_PLANES, ROWS_PER_PLANE = 512, 4
#: Minimum size of a shape, relative to the largest shape that fits.
MIN_USED = 0.6
#: Without projections, which prevent overfitting, the numbers of planes to try are the largest one divided by these.
PARTS = (1, 4, 16, 64)


class Shape(NamedTuple):
    """The shape of a model.

    Parameters
    ----------
    n_kept : int
        Number of features in use.
    rank : int or None
        Number of projected features. None: no projection.
    n_planes : int
        Number of planes per class.
    scaled : bool
        Whether each feature has its own scale.
    """

    n_kept: int
    rank: int | None
    n_planes: int
    scaled: bool

    def n_bytes(self, n_features: int, n_classes: int) -> int:
        """Size of the tables in bytes, excluding the labels."""
        n_planes = self.n_planes * n_classes
        return table_bytes(n_features, self.n_kept, self.rank, n_planes, n_classes, scaled=self.scaled)


def smallest(n_features: int, n_classes: int, *, scaled: bool) -> Shape:
    """The shape with the fewest bytes."""
    shapes = [Shape(min(1, n_features), None, 1, scaled), Shape(n_features, None, 1, scaled)]
    return min(shapes, key=lambda shape: shape.n_bytes(n_features, n_classes))


def fitting_shapes(
    max_bytes: int, n_features: int, n_varying: int, n_classes: int, n_rows: int, *, scaled: bool, projected: bool
) -> list[Shape]:
    """Shapes whose tables take at most `max_bytes`; `n_varying` of the `n_features` features are not constant.

    Without `projected`, there are only shapes without a projection.
    """
    max_planes = max(1, min(MAX_PLANES, n_rows // (ROWS_PER_PLANE * n_classes)))
    found = []
    for n_kept, rank in _sizes(max_bytes, n_varying, scaled, RANKS if projected else ()):
        one = Shape(n_kept, rank, 1, scaled)
        left = max_bytes - one.n_bytes(n_features, n_classes)
        more = left // (n_classes * ((n_kept if rank is None else rank) + FLOAT))
        # With more planes, the table of edges may need a wider integer type.
        shapes = [one._replace(n_planes=min(max_planes, n)) for n in (1 + more, more, more - 1) if n >= 1]
        largest = [shape for shape in shapes if shape.n_bytes(n_features, n_classes) <= max_bytes][:1]
        parts = (1,) if projected else PARTS
        found += [shape._replace(n_planes=-(-shape.n_planes // part)) for shape in largest for part in parts]
    sizes = {shape: shape.n_bytes(n_features, n_classes) for shape in found}
    enough = MIN_USED * max(sizes.values(), default=0) if projected else 0
    return sorted((shape for shape in sizes if sizes[shape] >= enough), key=lambda shape: (shape.rank or 0, shape))


def _sizes(max_bytes: int, n_varying: int, scaled: bool, ranks: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Yield the pairs (number of kept features, rank) to try."""
    for fraction in FRACTIONS:
        room = int(fraction * max_bytes)
        for rank in ranks:
            n_kept = min(n_varying, room // (rank + (2 * FLOAT if scaled else 0)))
            if rank <= n_kept:
                yield n_kept, rank
    for n_kept in (n_varying, n_varying // 2, n_varying // 4, n_varying // 8, 1):
        if n_kept >= 1:
            yield n_kept, None
