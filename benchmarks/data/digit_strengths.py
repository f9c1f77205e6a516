"""What deformed digits are worth: errors on unseen *training* rows of MNIST, for several strengths of deformation.

Images are made from the first 50,000 training rows; the last 10,000 tell the error. Two machines learn by
`partial_fit` from as many images of each kind: polytopes for "2" against the rest (48 planes), and a multi-hyperplane
machine of ten classes (30 planes each). Strength 0 is the undeformed rows over and over, 1 the defaults of
`InfiniteDigits`. Needs MNIST; takes minutes. The number of images may be given.
"""

import sys

import numpy as np

from polyplane import ConvexPolytopeClassifier, MultiHyperplaneClassifier
from polyplane.datasets import InfiniteDigits, load_mnist

DEFAULTS = {"rotation": 0.15, "scale": 0.07, "shear": 0.07, "shift": 0.7, "elastic": 0.5, "thickness": 0.15}
N_BASE, BATCH = 50_000, 50_000


def errors(strength, n_images):
    """Errors of both machines, in per cent."""
    X, y = load_mnist(return_X_y=True)
    digits = InfiniteDigits(X[:N_BASE], y[:N_BASE], **{name: strength * value for name, value in DEFAULTS.items()})
    unseen = X[N_BASE:] / np.float32(255)
    polytopes = ConvexPolytopeClassifier(48, enclosed="each", alpha=1000 / n_images, average=False, random_state=0)
    planes = MultiHyperplaneClassifier(30, max_iter=n_images // BATCH, random_state=0)
    for images, labels in digits.batches(BATCH, stop=n_images):
        polytopes.partial_fit(images, labels == 2, classes=[False, True])
        planes.partial_fit(images, labels, classes=range(10))
    return tuple(
        100 * (1 - machine.score(unseen, target))
        for machine, target in ((polytopes, y[N_BASE:] == 2), (planes, y[N_BASE:]))
    )


def main(n_images):
    print(f"{n_images:,} images; errors in per cent on 10,000 unseen training rows")
    print("strength    two against the rest    ten classes")
    for strength in (0.0, 0.5, 1.0, 1.5):
        binary, ten = errors(strength, n_images)
        print(f"{strength:8.1f}    {binary:20.2f}    {ten:11.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)
