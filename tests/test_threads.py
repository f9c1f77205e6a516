"""Threads: the same results whatever their number, errors that come through, and no more of them than asked for."""

import threading
import time

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.multiclass import OneVsOneClassifier
from threadpoolctl import threadpool_info

from polyplane import ConvexPolytopeClassifier, CuttingPlaneSVC, PegasosSVC
from polyplane._array_api import ThreadPool, in_threads


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


class TestThreadPool:
    @pytest.mark.parametrize("n_jobs", [None, 1, 2, 5])
    @pytest.mark.parametrize("n_items", [0, 1, 2, 17])
    def test_results_come_in_order(self, n_jobs, n_items):
        items = list(range(n_items))
        assert ThreadPool(n_jobs).map(lambda i: i * i, items) == [i * i for i in items]
        assert in_threads(lambda i: i * i, iter(items), n_jobs) == [i * i for i in items]

    def test_an_idle_thread_takes_the_next_item(self):
        """One long item and many short ones: the long one holds up nobody."""
        done = []

        def work(i):
            time.sleep(0.3 if i == 0 else 0.001)
            done.append((i, threading.get_ident()))

        ThreadPool(2).map(work, range(20))
        assert done[-1][0] == 0
        assert len({thread for _, thread in done[:-1]}) == 1

    def test_the_calling_thread_works_too(self):
        seen = ThreadPool(2).map(lambda i: (time.sleep(0.01), threading.get_ident())[1], range(20))
        assert len(set(seen)) == 2
        assert threading.get_ident() in seen

    @pytest.mark.parametrize("bad", [0, 7])
    def test_errors_come_through_and_the_team_lives_on(self, bad):
        threads = ThreadPool(2)
        with pytest.raises(ZeroDivisionError):
            threads.map(lambda i: 1 / (i - bad), range(8))
        assert threads.map(lambda i: i, range(4)) == [0, 1, 2, 3]

    def test_blas_is_not_asked_for_the_same_cores(self):
        before = blas_threads()
        assert in_threads(lambda i: blas_threads(), range(4), 2) == [{1}] * 4
        assert blas_threads() == before


@pytest.fixture(scope="module")
def rows():
    return make_classification(9000, 10, n_informative=6, n_classes=3, random_state=0)


class TestLearners:
    @pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
    @pytest.mark.parametrize(
        "machine",
        [
            ConvexPolytopeClassifier(4, max_iter=5, min_entropy=0.8, random_state=0),
            PegasosSVC(max_iter=5, random_state=0),
            CuttingPlaneSVC(C=1e-3, tol=0.1),
            CuttingPlaneSVC(C=1e-3, tol=0.1, multi_class="ovr"),
        ],
        ids=str,
    )
    def test_planes_do_not_depend_on_threads(self, rows, machine, convert):
        X, y = convert(rows[0]), rows[1]
        fitted = [machine.set_params(n_jobs=n).fit(X, y).planes_ for n in (1, 2, 3)]
        assert fitted[0] == fitted[1] == fitted[2]

    def test_stopping_early_does_not_depend_on_threads(self, rows):
        machine = ConvexPolytopeClassifier(3, tol=1e-3, n_iter_no_change=2, early_stopping=True, random_state=0)
        one, two = (machine.set_params(n_jobs=n).fit(*rows) for n in (1, 2))
        assert one.planes_ == two.planes_

    def test_prediction_does_not_depend_on_threads(self, rows):
        X, y = rows
        machine = ConvexPolytopeClassifier(8, max_iter=2, random_state=0).fit(X, y)
        many = np.tile(X, (15, 1))
        one, two = (machine.set_params(n_jobs=n).decision_function(many) for n in (1, 2))
        np.testing.assert_array_equal(one, two)

    def test_pairs_of_classes_in_threads(self, rows):
        """scikit-learn's own wrapper, told to use threads, gives the planes of one after the other."""
        pairs = OneVsOneClassifier(ConvexPolytopeClassifier(3, max_iter=3, random_state=0))
        one = [pair.planes_ for pair in pairs.fit(*rows).estimators_]
        with parallel_config(backend="threading", n_jobs=2):
            two = [pair.planes_ for pair in pairs.fit(*rows).estimators_]
        assert one == two
