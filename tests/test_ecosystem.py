"""The estimators inside of what people use around classifiers: scikit-learn's tools, shap, skops."""

import inspect

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import DecisionBoundaryDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, get_scorer, log_loss
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    TunedThresholdClassifierCV,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import polyplane
from polyplane.learners import LEARNERS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = ["signal", "other signal", "noise", "more noise"]
LINEAR = ["CuttingPlaneSVC", "PegasosSVC"]
every_learner = pytest.mark.parametrize("name", LEARNERS)


def make(name, **params):
    learner = getattr(polyplane, name)
    known = inspect.signature(learner).parameters
    given = {"max_iter": 15, "random_state": 0} | params
    return learner(**{key: value for key, value in given.items() if key in known})


@pytest.fixture(scope="module")
def table():
    """Rows of two classes, which the first two of four columns tell apart."""
    X, y = make_classification(
        300, 4, n_informative=2, n_redundant=0, n_clusters_per_class=1, class_sep=1.2, shuffle=False, random_state=3
    )
    return pd.DataFrame(X, columns=NAMES), np.array(["no", "yes"])[y]


class TestInspection:
    @every_learner
    def test_permutation_importance_finds_the_signal(self, name, table):
        X, y = table
        found = permutation_importance(make(name).fit(X, y), X, y, n_repeats=3, random_state=0).importances_mean
        assert found[:2].max() > 0.1
        assert np.abs(found[2:]).max() < 0.1

    @every_learner
    def test_partial_dependence_is_monotone_along_a_plane(self, name, table):
        X, y = table
        machine = make(name, n_planes=1).fit(X, y)
        curve = partial_dependence(machine, X, ["signal"], grid_resolution=8, method="brute")["average"][0]
        steps = np.diff(curve)
        assert np.ptp(curve) > 0
        assert (steps >= -1e-9).all() or (steps <= 1e-9).all()

    def test_regions_are_drawn(self, table):
        pytest.importorskip("matplotlib").use("agg")
        X, y = table
        machine = make("MultiHyperplaneClassifier").fit(X[NAMES[:2]], y)
        display = DecisionBoundaryDisplay.from_estimator(machine, X[NAMES[:2]], grid_resolution=20)
        assert display.response.shape == (20, 20)

    @pytest.mark.parametrize("name", LINEAR)
    def test_shap_explains_linear_machines_by_their_weights(self, name, table):
        shap = importorskip_shap()
        (X, y), known = table, slice(0, 100)
        X = X.to_numpy()
        machine = make(name).fit(X, y)
        explained = shap.LinearExplainer(machine, X[known]).shap_values(X)
        np.testing.assert_allclose(explained, machine.coef_ * (X - X[known].mean(axis=0)), atol=1e-9)

    def test_shap_explains_any_machine_by_its_probabilities(self, table):
        shap = importorskip_shap()
        X, y = table[0].to_numpy(), table[1]
        machine = make("MultiHyperplaneClassifier").fit(X, y)
        explainer = shap.KernelExplainer(machine.predict_proba, X[:20])
        explained = explainer.shap_values(X[-5:], silent=True)
        total = explained.sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(total, machine.predict_proba(X[-5:]), atol=1e-6)


def importorskip_shap():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *args, **kwargs: None)  # what its import warns of is its own
        return pytest.importorskip("shap", reason="shap is installed for the tests on Linux only")


class TestLinearHabits:
    """Of the linear machines other packages expect the shapes of `LinearSVC`."""

    @pytest.mark.parametrize("name", LINEAR)
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
    def test_two_classes(self, name, table, container):
        X, y = table
        X = container(X.to_numpy())
        machine, peer = make(name).fit(X, y), LinearSVC().fit(X, y)
        assert machine.coef_.shape == peer.coef_.shape == (1, 4)
        assert machine.intercept_.shape == peer.intercept_.shape == (1,)
        scores = (X @ machine.coef_.T + machine.intercept_)[:, 0]
        np.testing.assert_allclose(scores, machine.decision_function(X), rtol=1e-9, atol=1e-9)
        assert machine.planes_.coef.shape == (2, 4)
        assert not machine.coef_.flags.writeable

    @pytest.mark.parametrize("name", LINEAR)
    def test_three_classes(self, name):
        X, y = load_iris(return_X_y=True)
        machine = make(name).fit(X, y)
        assert (machine.coef_.shape, machine.intercept_.shape) == ((3, 4), (3,))

    @pytest.mark.parametrize("params", [{"enclosed": "no"}, {"enclosed": "yes"}, {}])
    def test_machines_of_one_plane_per_class(self, table, params):
        """Whichever class owns the zero plane, the sign is that of the decision function."""
        X, y = table
        machine = make("ConvexPolytopeClassifier", n_planes=1, **params).fit(X, y)
        assert machine.coef_.shape == (1, 4)
        scores = (X.to_numpy() @ machine.coef_.T + machine.intercept_)[:, 0]
        np.testing.assert_allclose(scores, machine.decision_function(X), rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("name", LINEAR)
    def test_features_are_selected_by_weight(self, name, table):
        X, y = table
        assert RFE(make(name), n_features_to_select=2).fit(X, y).support_[:2].any()
        best = SelectFromModel(make(name), max_features=1, threshold=-np.inf).fit(X, y)
        assert best.get_feature_names_out()[0] in NAMES[:2]

    @pytest.mark.parametrize("name", LINEAR)
    def test_one_against_the_rest_stacks_the_weights(self, name):
        X, y = load_iris(return_X_y=True)
        machine = OneVsRestClassifier(make(name)).fit(X, y)
        assert np.vstack([binary.coef_ for binary in machine.estimators_]).shape == (3, 4)


class TestProbabilitiesAndThresholds:
    @every_learner
    def test_calibration_gives_probabilities(self, name, table):
        X, y = table
        calibrated = CalibratedClassifierCV(make(name), method="sigmoid", cv=3).fit(X, y)
        share = calibrated.predict_proba(X)
        np.testing.assert_allclose(share.sum(axis=1), 1)
        assert log_loss(y, share) < 0.9 * np.log(2)

    @every_learner
    def test_thresholds_move_the_balance(self, name, table):
        X, y = table
        how = {"response_method": "decision_function", "pos_label": "yes"}
        few, many = (FixedThresholdClassifier(make(name), threshold=t, **how).fit(X, y) for t in (np.inf, -np.inf))
        assert (few.predict(X) == "no").all()
        assert (many.predict(X) == "yes").all()

    @pytest.mark.parametrize("name", ["CuttingPlaneSVC", "MultiHyperplaneClassifier"])
    def test_thresholds_are_tuned_for_rare_classes(self, name, table):
        X, y = table
        keep = (y == "no") | (np.arange(len(y)) % 6 == 0)
        X, y = X[keep], y[keep]
        tuned = TunedThresholdClassifierCV(make(name), scoring="balanced_accuracy", cv=3).fit(X, y)
        plain = make(name).fit(X, y)
        score = [balanced_accuracy_score(y, machine.predict(X)) for machine in (tuned, plain)]
        assert score[0] >= score[1] - 0.02
        assert np.isfinite(tuned.best_threshold_)


class TestSearchAndEnsembles:
    @pytest.mark.parametrize("resource", ["n_samples", "max_iter"])
    def test_halving_search(self, table, resource):
        X, y = table
        rising = {"resource": resource} | ({"max_resources": 12, "min_resources": 4} if resource == "max_iter" else {})
        search = HalvingGridSearchCV(
            make("ConvexPolytopeClassifier"), {"alpha": [1e-4, 1e-2, 100.0]}, cv=3, random_state=0, **rising
        ).fit(X, y)
        assert search.best_params_["alpha"] < 100
        assert search.score(X, y) > 0.85

    def test_search_by_several_scores_through_a_pipeline(self, table):
        X, y = table
        grid = {"multihyperplaneclassifier__n_planes": [1, 2]}
        pipeline = make_pipeline(StandardScaler(), make("MultiHyperplaneClassifier"))
        search = GridSearchCV(pipeline, grid, scoring=["accuracy", "neg_log_loss", "roc_auc"], refit="roc_auc", cv=3)
        assert search.fit(X, y).best_score_ > 0.9

    def test_stacks_and_votes(self, table):
        X, y = table
        members = [(name, make(name)) for name in LEARNERS]
        stack = StackingClassifier(members, LogisticRegression(), cv=2).fit(X, y)
        assert stack.transform(X).shape == (len(y), len(members))
        assert stack.score(X, y) > 0.9
        assert VotingClassifier(members).fit(X, y).score(X, y) > 0.85

    @every_learner
    def test_bags(self, name, table):
        X, y = table
        bag = BaggingClassifier(make(name), 3, max_features=3, random_state=0).fit(X, y)
        assert bag.score(X, y) > 0.8

    def test_boosts(self, table):
        X, y = table
        assert AdaBoostClassifier(make("PegasosSVC"), n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.85


class TestMetadataRouting:
    @every_learner
    def test_weights_reach_fit_through_a_pipeline_and_a_search(self, name, table):
        """With weights of zero for all rows but some, a routed weight leaves a trace: the planes of those rows."""
        X, y = table
        weight = (np.arange(len(y)) % 2).astype(float)
        with config_context(enable_metadata_routing=True):
            machine = make(name).set_fit_request(sample_weight=True)
            pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), machine)
            routed = pipeline.fit(X, y, sample_weight=weight)[-1].planes_
            assert pipeline.score(X, y) > 0.8
            scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
            search = GridSearchCV(pipeline, {f"{name.lower()}__max_iter": [15]}, cv=2, scoring=scorer)
            search.fit(X, y, sample_weight=weight)
        scaler = StandardScaler().fit(X, sample_weight=weight)
        direct = make(name).fit(scaler.transform(X), y, weight).planes_
        assert routed == direct == search.best_estimator_[-1].planes_

    def test_weights_that_were_not_asked_for_are_refused(self, table):
        X, y = table
        with config_context(enable_metadata_routing=True):
            deaf = make_pipeline(make("PegasosSVC").set_fit_request(sample_weight=False))
            with pytest.raises(TypeError, match="unexpected argument"):
                deaf.fit(X, y, sample_weight=np.ones(len(y)))
            scored = cross_validate(
                make("PegasosSVC").set_fit_request(sample_weight=True).set_score_request(sample_weight=False),
                X,
                y,
                params={"sample_weight": np.ones(len(y))},
                cv=2,
                error_score="raise",
            )
        assert scored["test_score"].mean() > 0.85


class TestSkops:
    @every_learner
    def test_estimators_come_back_without_pickle(self, name, table):
        """Once the types that the file names are trusted; `polyplane.load` needs no trust."""
        skops = pytest.importorskip("skops.io", reason="skops is a development dependency")
        X, y = table
        machine = make_pipeline(StandardScaler(), make(name)).fit(X, y)
        content = skops.dumps(machine)
        types = skops.get_untrusted_types(data=content)
        assert all(kind.startswith(("polyplane.", "numpy.", "sklearn.", "scipy.")) for kind in types)
        loaded = skops.loads(content, trusted=types)
        assert loaded[-1].planes_ == machine[-1].planes_
        np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
        assert clone(loaded).get_params()[f"{name.lower()}__max_iter"] == 15
