"""A cluster of processes: their start takes seconds, so there is one for all tests."""

import pytest


@pytest.fixture(scope="session")
def cluster():
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    settings = {"distributed.worker.memory.terminate": False, "distributed.comm.timeouts.connect": "60s"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def processes(cluster):
    """Two worker processes, whatever other cluster there is."""
    with cluster.as_current():
        yield cluster
