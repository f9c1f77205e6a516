"""Learners over the partitions of a real cluster of two worker processes."""

import os
import signal
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification

from polyplane import (
    AdaptiveMultiHyperplaneClassifier,
    ConvexPolytopeClassifier,
    CuttingPlaneSVC,
    MultiHyperplaneClassifier,
    PegasosSVC,
    PolyceptronClassifier,
    PolyhedralMixtureClassifier,
    SuccessiveLPClassifier,
)

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

from polyplane.dask import DaskPlaneClassifier, classifiers, methods, partitions  # noqa: E402


@pytest.fixture
def client(processes):
    return processes


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(
        500, 6, n_informative=5, n_redundant=0, n_clusters_per_class=2, flip_y=0.05, random_state=1
    )
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def groups():
    return make_blobs(600, centers=4, n_features=5, cluster_std=2.0, random_state=0)


def chunked(X, y, size=300):
    return da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)


EXACT = [
    CuttingPlaneSVC(C=0.02),
    CuttingPlaneSVC(C=0.01, line_search="none", fit_intercept=False, max_iter=8),
    PolyhedralMixtureClassifier(3, max_iter=6),
    PolyhedralMixtureClassifier(2, solver="newton", gating="hard", max_iter=3, inside="no"),
    PolyhedralMixtureClassifier(2, solver="bfgs", standardize=False, max_iter=5),
    PolyceptronClassifier(2, max_iter=8, average=True, class_weight="balanced"),
    PolyceptronClassifier(3, max_iter=8, pocket=False, inside="no"),
]
IN_ROUNDS = [
    ConvexPolytopeClassifier(4, alpha=1e-2, max_iter=20, random_state=0),
    MultiHyperplaneClassifier(3, max_iter=20, random_state=0),
    MultiHyperplaneClassifier(3, loss="hinge", max_iter=20, random_state=0),
    MultiHyperplaneClassifier(3, n_estimators=2, max_iter=20, random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestExact:
    @pytest.mark.parametrize("machine", EXACT, ids=str)
    def test_the_same_planes_as_on_one_machine(self, client, rows, machine):
        local = clone(machine).fit(*rows)
        found = DaskPlaneClassifier(machine).fit(*chunked(*rows)).to_local()
        assert type(found) is type(machine)
        assert found.get_params() == machine.get_params()
        np.testing.assert_allclose(found.coef_, local.coef_, atol=1e-6)
        np.testing.assert_allclose(found.intercept_, local.intercept_, atol=1e-6)
        assert found.n_iter_ == local.n_iter_

    @pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
    def test_many_classes(self, client, groups, multi_class):
        machine = CuttingPlaneSVC(C=0.001, multi_class=multi_class, tol=0.05)
        found = DaskPlaneClassifier(machine).fit(*chunked(*groups)).to_local()
        np.testing.assert_allclose(found.coef_, clone(machine).fit(*groups).coef_, atol=1e-6)

    def test_sparse_blocks_and_weights(self, client, rows):
        X, y = rows
        weight = np.linspace(0.2, 2.0, len(y))
        machine = CuttingPlaneSVC(C=0.01, tol=0.05)
        blocks = chunked(X, y)[0].map_blocks(sparse.csr_matrix)
        found = DaskPlaneClassifier(machine).fit(blocks, chunked(X, y)[1], da.from_array(weight, chunks=300)).to_local()
        np.testing.assert_allclose(found.coef_, clone(machine).fit(X, y, weight).coef_, atol=1e-6)


class TestScales:
    """As `fit` does, over the ranges of all partitions."""

    def test_one_value_of_the_last_partition_is_seen(self, client, rows):
        X, y = rows[0].copy(), rows[1]
        X[-1, 0] = -5e6
        with pytest.warns(UserWarning, match=r"Feature 0 reaches 5e\+06 and feature \d only .* StandardScaler"):
            DaskPlaneClassifier(CuttingPlaneSVC(C=0.02, tol=0.5)).fit(*chunked(X, y))

    def test_rows_far_from_zero_are_not_moved_here_but_warned_of(self, client, rows):
        X = (rows[0] + 1e5).astype(np.float32)
        with pytest.warns(UserWarning, match=r"Feature \d lies about 1e\+05 and spans only"):
            DaskPlaneClassifier(MultiHyperplaneClassifier(2, max_iter=2), rounds=1).fit(*chunked(X, rows[1]))

    def test_values_that_would_overflow_are_refused_where_they_are(self, client, rows):
        X, y = rows[0].copy(), rows[1]
        X[-1, 0] = 1e300
        with pytest.raises(ValueError, match=r"Partition \d: X contains 1e\+300, and the squares"):
            DaskPlaneClassifier(CuttingPlaneSVC()).fit(*chunked(X, y))


class TestRounds:
    @pytest.mark.parametrize("machine", IN_ROUNDS, ids=str)
    def test_about_as_good_as_on_one_machine(self, client, groups, machine):
        X, y = groups
        found = DaskPlaneClassifier(machine, rounds=4).fit(*chunked(X, y))
        local = clone(machine).fit(X, y)
        assert found.to_local().score(X, y) > local.score(X, y) - 0.03
        assert found.to_local().n_iter_ == 20
        assert found.to_local().history_["epochs"] == [5.0, 10.0, 15.0, 20.0]

    def test_goes_on_without_the_cluster(self, client, groups):
        machine = (
            DaskPlaneClassifier(PegasosSVC(alpha=1e-2, max_iter=4, random_state=0), rounds=2)
            .fit(*chunked(*groups))
            .to_local()
        )
        assert machine.partial_fit(*groups).score(*groups) > 0.8


def at_round(monkeypatch, number, action):
    """Have `action` done when the models of a round are mixed; return the list of how many models were mixed."""
    mixed, mix = [], methods.mix

    def mix_and_act(states, share):
        mixed.append(len(states))
        if len(mixed) == number:
            action()
        return mix(states, share)

    monkeypatch.setattr(methods, "mix", mix_and_act)
    return mixed


def at_gather(monkeypatch, client, number, action):
    """Have `action` done when results are gathered for the given time."""
    calls, gather = [], client.gather

    def gather_and_act(futures):
        calls.append(futures)
        if len(calls) == number:
            action()
        return gather(futures)

    monkeypatch.setattr(client, "gather", gather_and_act)


class TestFailures:
    def test_a_killed_worker_changes_nothing(self, client, monkeypatch, groups):
        """Between two rounds a worker is killed, with its rows and what is remembered of them."""
        X, y = chunked(*groups)
        machine = DaskPlaneClassifier(ConvexPolytopeClassifier(4, max_iter=24, random_state=0), rounds=6)
        expected = clone(machine).fit(X, y).to_local()
        pids = list(client.run(os.getpid).values())
        mixed = at_round(monkeypatch, 3, lambda: os.kill(pids[0], signal.SIGKILL))
        found = clone(machine).fit(X, y).to_local()
        client.wait_for_workers(2, timeout=60)
        assert mixed == [2] * 6
        assert pids[0] not in client.run(os.getpid).values()
        assert found.planes_ == expected.planes_

    def test_a_killed_worker_changes_no_sum(self, client, monkeypatch, rows):
        machine = DaskPlaneClassifier(CuttingPlaneSVC(C=0.02))
        expected = clone(machine).fit(*chunked(*rows)).to_local()
        pids = list(client.run(os.getpid).values())
        at_gather(monkeypatch, client, 10, lambda: os.kill(pids[0], signal.SIGKILL))
        found = clone(machine).fit(*chunked(*rows)).to_local()
        client.wait_for_workers(2, timeout=60)
        assert pids[0] not in client.run(os.getpid).values()
        assert found.planes_ == expected.planes_

    def test_an_error_leaves_the_estimator_as_it_was(self, client, monkeypatch, groups):
        def fail():
            raise MemoryError

        machine = DaskPlaneClassifier(PegasosSVC(max_iter=6, random_state=0), rounds=3).fit(*chunked(*groups))
        before, planes = dict(vars(machine)), machine.to_local().planes_
        at_round(monkeypatch, 2, fail)
        with pytest.raises(MemoryError):
            machine.fit(*chunked(*groups))
        assert vars(machine) == before
        assert machine.to_local().planes_ == planes

    def test_ctrl_c_keeps_the_last_finished_round(self, client, monkeypatch, groups):
        machine = ConvexPolytopeClassifier(4, max_iter=24, random_state=0)
        expected = DaskPlaneClassifier(clone(machine).set_params(max_iter=8), rounds=2).fit(*chunked(*groups))
        at_round(monkeypatch, 3, lambda: signal.raise_signal(signal.SIGINT))
        interrupted = DaskPlaneClassifier(machine, rounds=6)
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(*chunked(*groups))
        assert interrupted.to_local().planes_ == expected.to_local().planes_
        assert interrupted.to_local().n_iter_ == 8
        assert interrupted.to_local().history_["epochs"] == [4.0, 8.0]

    def test_ctrl_c_keeps_the_last_finished_step(self, client, monkeypatch, rows):
        machine = PolyceptronClassifier(2, max_iter=1000, tol=None, inside="no")
        interrupted = DaskPlaneClassifier(machine)
        at_gather(monkeypatch, client, 20, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(*chunked(*rows))
        n_iter = interrupted.to_local().n_iter_
        assert 0 < n_iter < 20
        expected = DaskPlaneClassifier(clone(machine).set_params(max_iter=n_iter)).fit(*chunked(*rows))
        assert interrupted.to_local().planes_ == expected.to_local().planes_

    def test_ctrl_c_in_the_first_round_leaves_nothing(self, client, monkeypatch, groups):
        at_round(monkeypatch, 1, lambda: signal.raise_signal(signal.SIGINT))
        machine = DaskPlaneClassifier(PegasosSVC())
        with pytest.raises(KeyboardInterrupt):
            machine.fit(*chunked(*groups))
        assert set(vars(machine)) == {"estimator", "rounds"}

    def test_an_error_in_a_partition_is_raised_as_it_is(self, client, rows):
        X, y = rows

        @dask.delayed
        def unreadable():
            raise FileNotFoundError("rows.parquet")

        with pytest.raises(FileNotFoundError, match=r"rows\.parquet"):
            DaskPlaneClassifier(PegasosSVC()).fit([dask.delayed(X), unreadable()], [dask.delayed(y)] * 2)

    def test_no_client(self, monkeypatch, rows):
        def nobody():
            raise ValueError("No clients found")

        monkeypatch.setattr(distributed, "default_client", nobody)
        with pytest.raises(ValueError, match="No Dask client found: connect to a cluster first"):
            DaskPlaneClassifier(PegasosSVC()).fit(*chunked(*rows))


class TestPrediction:
    def test_is_lazy_and_the_same(self, client, groups):
        X, y = groups
        lazy, labels = chunked(X, y)
        machine = DaskPlaneClassifier(PegasosSVC(max_iter=2, random_state=0), rounds=1).fit(lazy, labels)
        local = machine.to_local()
        predicted, scores = machine.predict(lazy), machine.decision_function(lazy)
        assert dask.is_dask_collection(predicted)
        assert predicted.chunks == labels.chunks
        assert scores.shape == (600, 4)
        np.testing.assert_array_equal(predicted.compute(), local.predict(X))
        np.testing.assert_allclose(scores.compute(), local.decision_function(X))
        parts = machine.predict([dask.delayed(X[:100]), dask.delayed(X[100:])])
        np.testing.assert_array_equal(np.concatenate(dask.compute(*parts)), local.predict(X))

    def test_dataframes(self, client, rows):
        import dask.dataframe as dd

        X, y = rows
        y = (y == "yes").astype(int)
        frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=y)
        lazy = dd.from_pandas(frame, npartitions=3)
        machine = DaskPlaneClassifier(CuttingPlaneSVC(C=0.01, tol=0.05)).fit(lazy[list("abcdef")], lazy["label"])
        local = machine.to_local()
        assert local.feature_names_in_.tolist() == list("abcdef")
        predicted = machine.predict(lazy[list("abcdef")]).compute()
        assert predicted.index.equals(frame.index)
        np.testing.assert_array_equal(predicted, local.predict(frame[list("abcdef")]))
        np.testing.assert_allclose(local.coef_, CuttingPlaneSVC(C=0.01, tol=0.05).fit(X, y).coef_, atol=1e-6)
        unknown = lazy[list("abcdef")].values  # the sizes of its chunks are not known
        assert np.isnan(unknown.chunks[0]).all()
        again = DaskPlaneClassifier(CuttingPlaneSVC(C=0.01, tol=0.05)).fit(unknown, lazy["label"].values)
        np.testing.assert_allclose(again.to_local().coef_, local.coef_, atol=1e-9)
        assert len(again.predict(unknown).compute()) == len(y)


class TestRefusals:
    @pytest.mark.parametrize(
        ("machine", "message"),
        [
            (CuttingPlaneSVC(line_search="exact"), "needs all rows in one place"),
            (PolyceptronClassifier(mode="online"), "use mode='batch'"),
            (PolyhedralMixtureClassifier(n_init=3), "n_init=3 is not supported on a cluster"),
            (AdaptiveMultiHyperplaneClassifier(), "models of different partitions cannot be averaged"),
            (PegasosSVC(tol=1e-3), "set tol to None"),
            (ConvexPolytopeClassifier(early_stopping=True), "early_stopping is not supported on a cluster"),
            (ConvexPolytopeClassifier(alpha=-1.0), "The 'alpha' parameter of ConvexPolytopeClassifier must be"),
            (SuccessiveLPClassifier(), "its steps are not sums over rows"),
        ],
    )
    def test_what_would_move_the_rows(self, client, rows, machine, message):
        with pytest.raises(ValueError, match=message):
            DaskPlaneClassifier(machine).fit(*chunked(*rows))

    def test_partitions_that_miss_a_class(self, client, groups):
        X, y = groups
        order = np.argsort(y)
        lazy = chunked(X[order], y[order])
        with pytest.raises(ValueError, match="No partition has rows of all classes; shuffle the rows"):
            DaskPlaneClassifier(PegasosSVC()).fit(*lazy)
        machine = CuttingPlaneSVC(C=0.001, tol=0.05)
        exact = DaskPlaneClassifier(machine).fit(*lazy).to_local()
        np.testing.assert_allclose(exact.coef_, clone(machine).fit(X, y).coef_, atol=1e-6)

    def test_bad_rows_are_named_and_nothing_is_lost(self, client, rows):
        X, y = rows
        machine = DaskPlaneClassifier(CuttingPlaneSVC(C=0.01, tol=0.05)).fit(*chunked(X, y))
        before = machine.to_local()
        bad = X.copy()
        bad[400, 3] = np.nan
        with pytest.raises(ValueError, match=r"Partition 1: .*NaN"):
            machine.fit(*chunked(bad, y))
        with pytest.raises(TypeError, match="X is a ndarray; expected a Dask array"):
            machine.fit(X, y)
        with pytest.raises(ValueError, match=r"numbers of partitions differ \(X has 2, y has 1\)"):
            machine.fit([dask.delayed(X[:10]), dask.delayed(X[10:])], [dask.delayed(y)])
        with pytest.raises(ValueError, match="Partition 1 has 5 features of float64, but partition 0 has 6"):
            machine.fit([dask.delayed(X), dask.delayed(X[:, :5])], [dask.delayed(y)] * 2)
        with pytest.raises(ValueError, match="only one class"):
            machine.fit(*chunked(X, np.full(len(y), "no")))
        assert machine.to_local() is before

    def test_empty_partitions_are_passed_over(self, client, rows):
        X, y = rows
        parts = [slice(0, 200), slice(200, 200), slice(200, 500)]
        found = DaskPlaneClassifier(CuttingPlaneSVC(C=0.01, tol=0.05)).fit(
            [dask.delayed(X[part]) for part in parts], [dask.delayed(y[part]) for part in parts]
        )
        np.testing.assert_allclose(found.to_local().coef_, CuttingPlaneSVC(C=0.01, tol=0.05).fit(X, y).coef_, atol=1e-6)

    def test_columns_in_another_order_are_refused(self, client, rows):
        """They were taken as they came: an accuracy of 0.998 fell to 0.76."""
        X, y = rows
        names = list("abcdef")
        parts = [pd.DataFrame(X[:250], columns=names), pd.DataFrame(X[250:], columns=[*names[1:], "a"])]
        delayed = [dask.delayed(part) for part in parts], [dask.delayed(y[:250]), dask.delayed(y[250:])]
        with pytest.raises(
            ValueError, match="Partition 1 has the column 'b' where partition 0 has 'a': all partitions"
        ):
            DaskPlaneClassifier(CuttingPlaneSVC()).fit(*delayed)

    @pytest.mark.parametrize("machine", [CuttingPlaneSVC(C=0.1), PegasosSVC(max_iter=4, random_state=0)])
    def test_a_partition_without_weight_is_an_empty_one(self, client, rows, machine):
        X, y = rows
        weight = np.repeat([1.0, 0.0, 2.0], [200, 100, 200])
        sizes = (200, 100, 200)
        arrays = [da.from_array(X, chunks=(sizes, -1)), *(da.from_array(part, chunks=(sizes,)) for part in (y, weight))]
        found = DaskPlaneClassifier(machine).fit(*arrays).to_local()
        parts = [
            [dask.delayed(part[rows]) for rows in (slice(200), slice(0), slice(300, None))] for part in (X, y, weight)
        ]
        assert found.planes_ == DaskPlaneClassifier(machine).fit(*parts).to_local().planes_
        by_class = clone(machine).set_params(class_weight={"no": 0.0, "yes": 1.0})
        order = np.argsort(y, kind="stable")
        split = ((y == "no").sum(), (y == "yes").sum())
        with pytest.raises(ValueError, match="Fewer than two classes have rows of positive weight"):
            DaskPlaneClassifier(by_class).fit(
                da.from_array(X[order], chunks=(split, -1)), da.from_array(y[order], chunks=(split,))
            )
        with pytest.raises(ValueError, match="All sample weights are zero"):
            DaskPlaneClassifier(machine).fit(*arrays[:2], da.zeros_like(arrays[2]))

    def test_workers_that_do_not_come_back_are_said(self, monkeypatch, rows):
        """`fit` waited without a word."""
        monkeypatch.setattr(partitions, "LOOK_EVERY", 0.2)
        monkeypatch.setattr(partitions, "WAIT_FOR_WORKERS", 0.5)
        monkeypatch.setattr(
            classifiers, "connected_client", distributed.default_client
        )  # the workers are lost after it
        with (
            distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
            distributed.Client(cluster),
            pytest.warns(UserWarning, match="has lost all workers; waiting"),
            pytest.raises(RuntimeError, match=r"had no workers for 0\.5 s; the estimator has not changed"),
        ):
            DaskPlaneClassifier(CuttingPlaneSVC()).fit(*chunked(*rows))

    @pytest.mark.parametrize("is_local", [True, False])
    def test_a_cluster_that_is_closed(self, monkeypatch, rows, is_local):
        """Also where the client has the address of the scheduler only, and tries to connect again."""
        monkeypatch.setattr(partitions, "LOOK_EVERY", 0.5)
        machine = DaskPlaneClassifier(PegasosSVC(max_iter=100, random_state=0), rounds=100)
        with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
            client = distributed.Client(cluster if is_local else cluster.scheduler_address)
            closed = []

            def close():
                cluster.close()
                closed.append(time.monotonic())

            at_round(monkeypatch, 2, close)
            with client, pytest.raises(RuntimeError, match="The Dask cluster was lost during fit; the estimator has"):
                machine.fit(*chunked(*rows))
            assert time.monotonic() - closed[0] < 30
        assert set(vars(machine)) == {"estimator", "rounds"}

    def test_a_cluster_without_workers(self, client, monkeypatch, rows):
        monkeypatch.setattr(client, "nthreads", dict)
        with pytest.raises(RuntimeError, match="has no workers; start some"):
            DaskPlaneClassifier(PegasosSVC()).fit(*chunked(*rows))

    def test_a_cluster_that_dies(self, client, monkeypatch, rows):
        """What the client raises when the scheduler is gone."""
        machine = DaskPlaneClassifier(CuttingPlaneSVC(C=0.01, tol=0.05)).fit(*chunked(*rows))
        before = machine.to_local()

        def lost(*_, **__):
            raise distributed.comm.CommClosedError("in connection to scheduler: Stream is closed")

        monkeypatch.setattr(client, "gather", lost)
        with pytest.raises(RuntimeError, match="The Dask cluster was lost during fit; the estimator has not changed"):
            machine.fit(*chunked(*rows))
        assert machine.to_local() is before
