"""What docs/guide/reproducibility.md promises about equal planes."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from polyplane import CuttingPlaneSVC, MultiHyperplaneClassifier, PolyhedralMixtureClassifier
from polyplane._array_api import one_blas_thread

MACHINES = [
    MultiHyperplaneClassifier(4, max_iter=2, random_state=0),
    PolyhedralMixtureClassifier(4, max_iter=3, tol=None, random_state=0),
    CuttingPlaneSVC(C=0.01, max_iter=20, tol=None),
]


@pytest.fixture(scope="module")
def rows():
    """So many features that BLAS takes the threads that it is given."""
    return make_classification(1500, 400, n_informative=20, random_state=0)


def trained(machine, rows, n_threads):
    with threadpool_limits(n_threads, user_api="blas"):
        return machine.fit(*rows).planes_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
def test_blas_threads_change_no_more_than_rounding(machine, rows):
    one, two = trained(machine, rows, 1), trained(machine, rows, 2)
    assert two == trained(machine, rows, 2)  # bit for bit
    assert one == trained(machine, rows, 1)
    scale = np.abs(one.coef).max()
    assert np.abs(one.coef - two.coef).max() <= 1e-9 * scale


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_on_a_cluster_planes_depend_on_the_partitions_alone(rows):
    """Neither on workers and their threads nor on those of BLAS."""
    da, distributed = pytest.importorskip("dask.array"), pytest.importorskip("distributed")
    from polyplane.dask import DaskPlaneClassifier

    X, y = (da.from_array(part, chunks=(375, -1)[: part.ndim]) for part in rows)
    machine, found = PolyhedralMixtureClassifier(4, max_iter=2, tol=None, random_state=0), []
    for n_workers, n_threads in ((1, 1), (2, 2), (2, 2)):
        with (
            threadpool_limits(n_threads, user_api="blas"),
            distributed.Client(
                n_workers=n_workers, threads_per_worker=n_threads, processes=False, dashboard_address=":0"
            ),
        ):
            found.append(DaskPlaneClassifier(machine).fit(X, y).to_local().planes_)
    assert found[0] == found[1] == found[2]


def test_one_thread_stays_until_the_last_is_done():
    """Whoever came second restored what the first had found, while the first was at work."""
    from threadpoolctl import threadpool_info

    def n_threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert n_threads() == {1}
        second.__exit__(None, None, None)
        assert n_threads() == {2}


def test_libraries_that_are_loaded_later_are_limited_too():
    """SciPy's BLAS, in which kernels multiply matrices, went its own way when it came after the first limit."""
    code = """
from polyplane._array_api import one_blas_thread
with one_blas_thread():
    pass
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
with threadpool_limits(2, user_api="blas"), one_blas_thread():
    print({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "{1}"
