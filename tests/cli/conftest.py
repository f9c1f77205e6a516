"""Data files for the tests of the commands."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_iris


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Cancer (two classes, of very different scales) as svmlight and CSV, iris (three) as CSV; split."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_breast_cancer(return_X_y=True)
    dump_svmlight_file(X[:400], y[:400], str(folder / "cancer.svm"), zero_based=False)
    dump_svmlight_file(X[400:], y[400:], str(folder / "cancer.t"), zero_based=False)
    iris = load_iris()
    order = np.random.default_rng(0).permutation(150)
    lines = [",".join([*map(repr, iris.data[i].tolist()), iris.target_names[iris.target[i]]]) for i in order]
    (folder / "iris.csv").write_text("\n".join(["a,b,c,d,class", *lines]) + "\n")
    return folder
