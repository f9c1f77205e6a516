"""`Model`: the one fitted form predicts as the estimator that it comes from, for every kind of estimator."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import polyplane
import polyplane.model
from polyplane import Model, PlaneSet
from polyplane.features import Features
from polyplane.inputs.encoding import MatrixInputs
from tests.models import KINDS, fitted, numbers


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_of_an_estimator_predicts_as_it(kind):
    estimator, X = fitted(kind)
    model = Model.of(estimator)
    assert np.array_equal(model.predict(X), estimator.predict(X))
    expected = estimator.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert model.has_probabilities == hasattr(estimator, "predict_proba")
    if model.has_probabilities:
        np.testing.assert_allclose(model.predict_proba(X), estimator.predict_proba(X), atol=1e-6)
    else:
        with pytest.raises(AttributeError, match="use decision_function"):
            model.predict_proba(X)


@pytest.mark.parametrize("kind", ["standard scaler", "imputer after a scaler", "compressed", "compressed, projected"])
def test_a_flat_model_has_planes_over_the_columns(kind):
    estimator, X = fitted(kind)
    model, flat = Model.of(estimator), Model.of(estimator).flat()
    assert flat.features.is_identity
    assert flat.projection is None
    assert flat.planes.n_features == X.shape[1]
    Z = model.encode(X)
    scale = np.abs(flat.planes.coef).max() * np.abs(Z).max()
    np.testing.assert_allclose(flat.class_scores(Z), model.class_scores(Z), rtol=1e-9, atol=1e-12 * scale)


def test_sparse_rows_stay_sparse_and_named_columns_are_matched_by_name():
    X, y = numbers()
    model = Model.of(polyplane.PegasosSVC(random_state=0).fit(X, y))
    assert sparse.issparse(model.encode(sparse.csr_array(X)))
    assert np.array_equal(model.predict(sparse.csr_array(X)), model.predict(X))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})
    named = Model.of(polyplane.PegasosSVC(random_state=0).fit(frame, [0, 0, 1, 1]))
    assert np.array_equal(named.predict(frame[["b", "a"]]), named.predict(frame))
    with pytest.raises(ValueError, match="no column 'a'"):
        named.predict(frame[["b"]])


def test_contributions_to_steep_smooth_scores_are_exact():
    """On the way from the reference to a row, one plane of a class after the other has the highest score by far."""
    rng = np.random.default_rng(0)
    planes = PlaneSet(100 * rng.normal(size=(40, 3)), 100 * rng.normal(size=40), [0, 20, 40], pooling="logsumexp")
    model, X = Model(MatrixInputs(3), Features.identity(3), planes, np.arange(2)), rng.normal(size=(20, 3))
    rise = model.class_scores(X) - model.class_scores(np.ones((1, 3)))
    np.testing.assert_allclose(model.contributions(X, np.ones(3)).sum(axis=1), rise, rtol=1e-5, atol=1e-3)


def test_questions_about_a_model():
    assert Model.of(fitted("PegasosSVC")[0]).is_piecewise_linear
    assert Model.of(fitted("margin loss")[0]).is_piecewise_linear
    assert not Model.of(fitted("standard scaler")[0]).is_piecewise_linear
    assert not Model.of(fitted("clipping scaler")[0]).is_piecewise_linear
    assert not Model.of(fitted("table, bins")[0]).is_piecewise_linear
    assert Model.of(fitted("PegasosSVC")[0]).is_additive
    assert not Model.of(fitted("standard scaler")[0]).is_additive


def test_what_has_no_model_is_refused_in_a_sentence():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="OneVsRestClassifier combines several models"):
        Model.of(OneVsRestClassifier(polyplane.PegasosSVC()).fit(X, y))
    with pytest.raises(TypeError, match="A StandardScaler is not a classifier of Polyplane"):
        Model.of(StandardScaler())
    with pytest.raises(TypeError, match="'normalizer' of the pipeline, a Normalizer, is not supported"):
        Model.of(make_pipeline(Normalizer(), polyplane.PegasosSVC()).fit(X, y))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        Model.of(polyplane.PegasosSVC().fit(X, y)).predict([[np.nan] * 4])
    planes = PlaneSet(np.eye(2), np.zeros(2), np.arange(3))
    with pytest.raises(ValueError, match="There are 3 labels, but 2 classes"):
        Model(MatrixInputs(2), Features.identity(2), planes, np.arange(3))
    with pytest.raises(ValueError, match="the planes take 2 of 3 features"):
        Model(MatrixInputs(3), Features.identity(3), planes, np.arange(2))


class TestCommittee:
    def make(self, weight=None, pooling="max"):
        rng = np.random.default_rng(0)
        sizes = [(1, 3, 2), (2, 2, 2), (4, 1, 1)]
        members = [
            PlaneSet(rng.normal(size=(sum(s), 5)), rng.normal(size=sum(s)), np.cumsum([0, *s]), pooling=pooling)
            for s in sizes
        ]
        return members, PlaneSet.of_members(members, weight), rng.normal(size=(40, 5))

    @pytest.mark.parametrize("pooling", ["max", "logsumexp"])
    @pytest.mark.parametrize("weight", [None, (1.0, 2.0, 1.0)])
    def test_scores_are_the_weighted_mean_over_members(self, pooling, weight):
        members, planes, X = self.make(weight, pooling)
        pool = np.max if pooling == "max" else lambda s, axis: np.log(np.exp(s).sum(axis=axis))
        expected = [
            np.stack([pool(X @ coef.T + b, axis=1) for coef, b in map(member.of, range(3))], axis=1)
            for member in members
        ]
        np.testing.assert_allclose(planes.class_scores(X), np.average(expected, axis=0, weights=weight), rtol=1e-12)
        assert np.array_equal(planes.predict(X), planes.class_scores(X).argmax(axis=1))
        assert planes.members == tuple(members)

    @pytest.mark.parametrize("pooling", ["max", "logsumexp"])
    def test_the_linear_classifier_at_a_row_has_its_scores_and_gradient(self, pooling):
        _, planes, X = self.make((3.0, 1.0, 1.0), pooling)
        for x in X[:5]:
            local = planes.at(x)
            np.testing.assert_allclose(local.class_scores(x[None]), planes.class_scores(x[None]), rtol=1e-10)
            step = 1e-6 * np.eye(5)
            slope = (planes.class_scores(x + step) - planes.class_scores(x - step)) / 2e-6
            np.testing.assert_allclose(slope.T, local.coef, atol=1e-6)

    def test_members_that_do_not_fit_together_are_refused(self):
        members, planes, _ = self.make()
        with pytest.raises(ValueError, match="the same classes"):
            PlaneSet.of_members([members[0], members[1].replace(pooling="logsumexp")])
        with pytest.raises(ValueError, match="at least one PlaneSet"):
            PlaneSet.of_members([])
        with pytest.raises(ValueError, match="whose sum is 1"):
            planes.replace(member_weight=np.ones(3))
        with pytest.raises(ValueError, match="cannot share equally"):
            planes.replace(member_weight=np.full(2, 0.5))
        with pytest.raises(ValueError, match="pooling='mean'"):
            planes.replace(pooling="mean")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("table")])
def test_rows_far_outside_the_training_range_have_the_scores_of_the_estimator(kind):
    """Where one class is e^69 times less likely than another in a member, its score is limited."""
    estimator, X = fitted(kind)
    far = X.copy()
    for name in X.select_dtypes("number"):
        far[name] = X[name] * 40.0
    expected = estimator.decision_function(far)
    np.testing.assert_allclose(Model.of(estimator).decision_function(far), expected, rtol=1e-5, atol=1e-5)
    if kind in ("table, standard", "table, squares"):
        assert np.abs(expected).max() > 20


class TestKernel:
    """Scores of many planes by the kernel for rows with few features that are not 0, beside matrix products."""

    @pytest.fixture
    def used(self, monkeypatch):
        """Use the kernel whatever the number of rows; the list of the shapes that it was used for."""
        shapes, scores = [], Model._smooth_scores

        def counted(model, sparse_features, Z, n_jobs):
            shapes.append(Z.shape)
            return scores(model, sparse_features, Z, n_jobs)

        monkeypatch.setattr(polyplane.model, "WORTH_KERNEL", 0)
        monkeypatch.setattr(polyplane.model, "LEAST_POOLED", 0)
        monkeypatch.setattr(Model, "_smooth_scores", counted)
        return shapes

    def model(self, seed, sizes):
        """Bins of three columns, overlapping ones of a fourth, indicators, a number, its square; some 300 planes."""
        rng = np.random.default_rng(seed)
        ends = np.sort(rng.normal(size=(3, 9)), axis=1)
        low, width = ends[:, :-1].ravel(), np.diff(ends, axis=1).ravel()
        parts = [
            Features.of(np.repeat(np.arange(3), 8), centre=low, factor=1 / width, low=0.0, high=1.0, n_inputs=14),
            Features.of([3, 3, 3], centre=[0.3, -1.0, 0.5], factor=[2.0, 0.5, -1.0], low=0.0, high=1.0, n_inputs=14),
            Features.of(np.arange(4, 12), centre=[0.0, 0.5] * 4, factor=[1.0, 2.0] * 4, n_inputs=14),
            Features.of([12, 12, 13], ["smooth", "square", "value"], centre=1000.0, factor=0.5, n_inputs=14),
            Features.of([13], centre=2.0, factor=1e300, low=0.0, high=1.0, n_inputs=14),  # a step
        ]
        features = Features(14, *(np.concatenate(own) for own in zip(*(part.keys().T for part in parts), strict=True)))
        features = features.replace(source=features.source.astype(np.intp), op=features.op.astype(np.uint8))
        members = [
            PlaneSet(
                rng.normal(size=(sum(s), features.n_features)), rng.normal(size=sum(s)), np.cumsum([0, *s]),
                pooling="logsumexp",
            )
            for s in sizes
        ]  # fmt: skip
        planes = PlaneSet.of_members(members, np.arange(1, len(members) + 1))
        Z = rng.normal(size=(3000, 14))
        Z[:, 4:12] = Z[:, 4:12] < -0.5
        Z[:9, :3], Z[9:12, :4], Z[:, 12:] = ends.T, [[-1e9] * 4, [1e9] * 4, [0.0] * 4], Z[:, 12:] + 1000.0
        Z[:3, 13] = 1.0, 2.0, 3.0
        return Model(MatrixInputs(14), features, planes, np.arange(len(sizes[0]))), Z

    @pytest.mark.parametrize("sizes", [[(1, 2, 1), (40, 130, 60), (16, 16, 32)], [(1, 1)], [(128, 128)], [(300, 1)]])
    def test_scores_are_those_of_matrix_products(self, used, sizes):
        model, Z = self.model(len(sizes), sizes)
        expected = model.planes.class_scores(model.transform(Z))
        np.testing.assert_allclose(model.class_scores(Z), expected, rtol=1e-11, atol=1e-10)
        assert used == [Z.shape]
        assert np.array_equal(model.class_scores(Z, n_jobs=2), model.class_scores(Z))

    @pytest.mark.parametrize("sizes", [(300, 1), (128, 128)])
    def test_scores_that_are_far_apart_do_not_overflow(self, used, sizes):
        """The highest score of a class may be in an earlier block than others that are lower by thousands."""
        model, Z = self.model(0, [sizes])
        lower = 1e5 * (model.planes.owners == 0)  # all planes of the first class, whose last one may end a block
        planes = model.planes.replace(coef=1e3 * model.planes.coef, intercept=1e3 * model.planes.intercept - lower)
        steep = Model(model.inputs, model.features, planes, model.classes)
        expected = planes.class_scores(steep.transform(Z))
        np.testing.assert_allclose(steep.class_scores(Z), expected, rtol=1e-11, atol=1e-7)
        assert used == [Z.shape]

    def test_it_is_used_for_much_work_on_sparse_rows_only(self, used, monkeypatch):
        model, Z = self.model(0, [(40, 130, 60)])
        Model(model.inputs, model.features, model.planes.replace(pooling="max"), model.classes).class_scores(Z)
        wide = Features.of(np.arange(14), centre=np.full(14, 3.0), n_inputs=14)
        planes = PlaneSet(np.ones((3, 14)), np.zeros(3), [0, 1, 3], pooling="logsumexp")
        Model(model.inputs, wide, planes, np.arange(2)).class_scores(Z)  # half of the rest of the features is not 0
        monkeypatch.setattr(polyplane.model, "LEAST_POOLED", 2)
        single, _ = self.model(0, [(1, 1, 1)])
        single.class_scores(Z)
        monkeypatch.setattr(polyplane.model, "WORTH_KERNEL", Z.size * 10**6)
        model.class_scores(Z)
        assert used == []
        monkeypatch.setattr(polyplane.model, "WORTH_KERNEL", 0)
        model.class_scores(Z)
        assert used == [Z.shape]

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("table")])
    def test_tables_have_the_same_scores(self, used, monkeypatch, kind):
        estimator, X = fitted(kind)
        monkeypatch.setattr(polyplane.model, "MOST_USED", np.inf)
        found = estimator.decision_function(X)
        assert len(used) == 1
        monkeypatch.setattr(polyplane.model, "MOST_USED", 0.0)
        np.testing.assert_allclose(found, estimator.decision_function(X), rtol=1e-11, atol=1e-10)
