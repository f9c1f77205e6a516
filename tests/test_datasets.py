import numpy as np
import pytest
from scipy import sparse

from polyplane.datasets import load_local


def test_a_local_set_is_read_dense_or_sparse(tmp_path, monkeypatch):
    X = np.eye(3)
    csr = sparse.csr_matrix(X)
    np.savez(tmp_path / "dense.npz", X_train=X, y_train=np.arange(3))
    np.savez(
        tmp_path / "sparse.npz",
        **{
            f"X_{part}_{name}": getattr(csr, name)
            for part in ("train", "test")
            for name in ("data", "indices", "indptr")
        },
        X_train_shape=csr.shape,
        X_test_shape=csr.shape,
        y_train=np.arange(3),
        y_test=np.arange(3),
    )
    monkeypatch.setenv("POLYPLANE_DATA", str(tmp_path))
    assert "data_test" not in load_local("dense")
    np.testing.assert_array_equal(load_local("dense").data, X)
    np.testing.assert_array_equal(load_local("sparse").data_test.toarray(), X)


def test_an_absent_set_gets_a_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("POLYPLANE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="set POLYPLANE_DATA to the folder"):
        load_local("mnist")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_local("mnist", tmp_path)
