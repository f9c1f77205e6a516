"""Probabilities of learners that are trained for margins: calibrated on held-out rows."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from polyplane import ConvexPolytopeClassifier, CuttingPlaneSVC, base, load, save

CPM = ConvexPolytopeClassifier(4, alpha=1e-2, max_iter=20, random_state=0, probability=True)
SVM = CuttingPlaneSVC(C=0.01, probability=True)


def rows(load):
    X, y = load(return_X_y=True)
    return train_test_split(X / X.std(axis=0).clip(1e-9), y, random_state=0)


@pytest.mark.parametrize("model", [CPM, SVM], ids=["polytopes", "cutting planes"])
class TestProbabilities:
    @pytest.mark.parametrize("data", [load_breast_cancer, load_digits])
    def test_are_better_than_those_of_a_calibrated_linear_svm(self, model, data):
        X, X_test, y, y_test = rows(data)
        model.fit(X, y)
        p = model.predict_proba(X_test)
        assert (model.classes_[p.argmax(axis=1)] == model.predict(X_test)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        platt = CalibratedClassifierCV(LinearSVC(C=0.01, loss="hinge", max_iter=100_000)).fit(X, y)
        assert log_loss(y_test, p) < log_loss(y_test, platt.predict_proba(X_test))

    def test_do_not_change_the_planes(self, model):
        X, _, y, _ = rows(load_breast_cancer)
        planes = model.fit(X, y).planes_
        without = type(model)(**model.get_params() | {"probability": False}).fit(X, y)
        assert without.planes_ == planes
        assert not hasattr(without, "predict_proba")
        assert not without.model_.has_probabilities

    def test_are_those_of_the_model_and_of_its_file(self, model, tmp_path):
        X, X_test, y, _ = rows(load_breast_cancer)
        expected = model.fit(X, y).predict_proba(X_test)
        np.testing.assert_allclose(model.model_.predict_proba(X_test), expected)
        save(model, tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X_test), expected)

    def test_of_noisy_labels_are_modest(self, model):
        X, y = make_classification(2000, 6, n_informative=4, flip_y=0.5, random_state=0)
        p = model.fit(X[:1000], y[:1000]).predict_proba(X[1000:])
        assert log_loss(y[1000:], p) < np.log(2)
        assert p.max(axis=1).mean() < 0.85

    def test_a_class_of_one_row_is_no_obstacle(self, model):
        X, _, y, _ = rows(load_breast_cancer)
        labels = np.where(np.arange(len(y)) == 7, 2, y)
        assert model.fit(X, labels).predict_proba(X).shape == (len(X), 3)
        with pytest.raises(ValueError, match="probability=True needs two rows of a class"):
            model.fit(X[:2], [0, 1])

    def test_after_ctrl_c_the_model_has_none(self, model, monkeypatch):
        X, _, y, _ = rows(load_breast_cancer)
        train, calls = type(model)._train, iter(range(2))

        def interrupted(*given):
            if next(calls):
                raise KeyboardInterrupt
            return train(*given)

        monkeypatch.setattr(type(model), "_train", interrupted)
        stopped = type(model)(**model.get_params())
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(X, y)
        assert stopped.score(X, y) > 0.9
        with pytest.raises(NotFittedError, match="The probabilities are not calibrated: call fit"):
            stopped.predict_proba(X)


def test_many_rows_are_held_out_once(monkeypatch):
    X, _, y, _ = rows(load_breast_cancer)
    fitted, train = [], ConvexPolytopeClassifier._train
    monkeypatch.setattr(ConvexPolytopeClassifier, "_train", lambda *given: fitted.append(1) or train(*given))
    monkeypatch.setattr(base, "ROWS_TO_CALIBRATE", len(y) // 5)
    CPM.fit(X, y)
    assert len(fitted) == 2


def test_streams_have_none():
    X, y = make_classification(60, 4, random_state=0)
    for train in (lambda m: m.partial_fit(X, y, classes=[0, 1]), lambda m: m.fit_stream([(X, y)])):
        with pytest.raises(ValueError, match="probability=True needs all rows at once: use fit"):
            train(ConvexPolytopeClassifier(probability=True))


def test_missing_values_are_for_tables():
    X, y = make_classification(60, 4, random_state=0)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN, and CuttingPlaneSVC takes no missing values: use TableClassifier"):
        SVM.fit(X, y)


def test_texts_are_for_tables():
    with pytest.raises(ValueError, match=r"'\$8'\. CuttingPlaneSVC takes numbers only: use TableClassifier for text"):
        SVM.fit([["$8", "1"], ["2", "3"]], [0, 1])
