"""`polyplane warmup`: compile the kernels before they are needed."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from polyplane.cli.common import AsJson, command, present_facts

#: Settings of learners with kernels, or types of kernel arguments, of their own.
FITS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("AdaptiveMultiHyperplaneClassifier", {}),
    ("ConvexPolytopeClassifier", {"n_planes": 2, "alpha": 0.01}),
    ("ConvexPolytopeClassifier", {"n_planes": 2, "alpha": 0.01, "min_entropy": 0.5}),
    ("ConvexPolytopeClassifier", {"n_planes": 2, "enclosed": "each"}),
    ("ConvexPolytopeClassifier", {"n_planes": 2, "enclosed": "each", "min_entropy": 0.5}),
    ("CuttingPlaneSVC", {}),
    ("CuttingPlaneSVC", {"line_search": "exact"}),
    ("MultiHyperplaneClassifier", {"n_planes": 2}),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "loss": "hinge"}),
    ("MultiHyperplaneClassifier", {"n_planes": 2, "monotonic_cst": {0: 1}}),
    ("PegasosSVC", {}),
    ("PolyceptronClassifier", {"mode": "online"}),
    ("PolyhedralMixtureClassifier", {"n_planes": 2}),
    ("RobustPlaneClassifier", {}),
    ("SuccessiveLPClassifier", {"n_planes": 2}),
    ("WorstCasePolytopeClassifier", {"n_planes": 2}),
)

#: Number of lines that kernels read; short texts are read without them.
MANY = 20_000


@command("polyplane warmup", "NUMBA_CACHE_DIR=/cache polyplane warmup")
def warmup(as_json: AsJson = False) -> None:
    """Compile the kernels of all learners, so that no later process has to wait for it.

    Each learner is fitted to a few made rows: two and three classes, dense and sparse, float32 and float64. The
    compiled kernels are kept in the cache on disk, for processors of the same kind as this one.
    """
    import numpy as np
    from scipy import sparse

    import polyplane
    from polyplane.features import SparseFeatures
    from polyplane.kernels.jit import KERNELS
    from polyplane.model import Model
    from polyplane.readers import read

    began, rng = time.perf_counter(), np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    two = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    for name, settings in FITS:
        fresh = getattr(polyplane, name)
        if "max_iter" in fresh().get_params():
            settings = {"max_iter": 3, **settings}
        for dtype in (np.float64, np.float32):
            for rows in (X.astype(dtype), sparse.csr_matrix(X, dtype=dtype)):
                for y in (two, two + (X[:, 2] > 0.3)):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        try:
                            fresh(**settings).fit(rows, y).predict(rows)
                        except (TypeError, ValueError):  # sparse rows or three classes are not for all
                            continue
    model = Model.of(polyplane.TableClassifier(random_state=0).fit(X, two))
    model._smooth_scores(SparseFeatures(model.features), model.encode(X), None)  # as for many rows and planes
    with TemporaryDirectory() as folder:
        for name, text in (("rows.svm", "1 1:0.5\n" * MANY), ("rows.csv", "x,label\n" + "0.5,1\n" * MANY)):
            path = Path(folder, name)
            path.write_text(text)
            read(path)
    compiled = [kernel for kernel in KERNELS if kernel.signatures]
    facts = {
        "kernels": len(compiled),
        "variants": sum(len(kernel.signatures) for kernel in compiled),
        "seconds": round(time.perf_counter() - began, 1),
        "cache": sorted({str(kernel._cache.cache_path) for kernel in compiled}),
    }
    present_facts("Compiled", facts, as_json)
