"""What every learner promises, whatever its method."""

import inspect
import pickle
import signal
import threading
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval

import polyplane
from polyplane.engine.data import Data
from polyplane.engine.run import Limits
from polyplane.planes import PlaneSet

# Twenty steps are few for a learner that warns when it stops before it has reached its `tol`.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PUBLIC = [getattr(polyplane, name) for name in polyplane.__all__]
LEARNERS = [getattr(polyplane, name) for name in polyplane.learners.LEARNERS]


def has(learner, parameter):
    return parameter in inspect.signature(learner).parameters


def learners_with(*parameters):
    return [learner for learner in LEARNERS if all(has(learner, p) for p in parameters)]


#: What learners would choose by a race; one test for all of them, and those of the race, use the defaults.
CHOSEN = {
    polyplane.ConvexPolytopeClassifier: {"n_planes": 2, "alpha": 1e-3},
    polyplane.MultiHyperplaneClassifier: {"n_planes": 2},
}


def make(learner, **params):
    """A small machine, seeded where it can be."""
    params = {"max_iter": 20, "random_state": 0} | CHOSEN.get(learner, {}) | params
    return learner(**{name: value for name, value in params.items() if has(learner, name)})


def assert_same_planes(learner, planes, expected, X, atol):
    if learner is polyplane.SuccessiveLPClassifier:  # many planes solve a program equally well
        np.testing.assert_array_equal(planes.predict(X), expected.predict(X))
    else:
        np.testing.assert_allclose(planes.coef, expected.coef, atol=atol)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(240, centers=[[-2.0, 0.0, 1.0], [2.0, 0.5, -1.0]], random_state=0)
    return X, np.array(["cat", "dog"])[y]


@pytest.mark.parametrize("learner", LEARNERS)
class TestEveryLearner:
    def test_learns(self, learner, blobs):
        X, y = blobs
        machine = make(learner, **dict.fromkeys(CHOSEN.get(learner, {}))).fit(X, y)
        assert machine.score(X, y) > 0.95
        assert isinstance(machine.planes_, PlaneSet)
        if machine.planes_.n_planes > 2:
            assert machine.coef_ is machine.planes_.coef
        else:  # linear: LinearSVC's shapes
            assert (machine.coef_.shape, machine.intercept_.shape) == ((1, 3), (1,))
            scores = (X @ machine.coef_.T + machine.intercept_)[:, 0]
            np.testing.assert_allclose(scores, machine.decision_function(X), rtol=1e-9, atol=1e-9)
        assert machine.n_iter_ == len(machine.history_["time"]) >= 1

    def test_decision_and_prediction_agree(self, learner, blobs):
        X, y = blobs
        machine = make(learner).fit(X, y)
        np.testing.assert_array_equal(machine.predict(X) == "dog", machine.decision_function(X) > 0)

    def test_same_seed_same_planes(self, learner, blobs):
        X, y = blobs
        assert make(learner).fit(X, y).planes_ == make(learner).fit(X, y).planes_

    def test_containers_give_the_same_planes(self, learner, blobs):
        X, y = blobs
        expected = make(learner).fit(X, y).planes_
        names = ["a", "b", "c"]
        for table in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
            machine = make(learner).fit(table, y)
            assert machine.planes_ == expected
            assert list(machine.feature_names_in_) == names

    def test_sparse_gives_the_planes_of_dense(self, learner, blobs):
        X, y = blobs
        # With `backoff`, dense rows update only the planes with the best scores for them.
        how = {"backoff": 0} if learner is polyplane.MultiHyperplaneClassifier else {}
        expected = make(learner, **how).fit(X, y).planes_
        wide = sparse.csr_array(X)
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        for matrix in (sparse.csr_matrix(X), wide):
            assert_same_planes(learner, make(learner, **how).fit(matrix, y).planes_, expected, X, atol=1e-6)

    def test_the_order_of_sparse_entries_changes_nothing(self, learner, blobs):
        """Indices in any order, some of them twice: the matrix is the same, and the user's stays as it is."""
        X, y = blobs
        tidy = sparse.csr_array(X)
        values, columns = (
            np.column_stack([part, part])[:, ::-1] for part in (X / 2, np.tile(np.arange(3), (len(X), 1)))
        )
        untidy = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, X.size * 2 + 1, 6)), shape=X.shape)
        assert (untidy != tidy).nnz == 0
        assert make(learner).fit(untidy, y).planes_ == make(learner).fit(tidy, y).planes_
        np.testing.assert_array_equal(untidy.indices, columns.ravel())
        np.testing.assert_array_equal(untidy.data, values.ravel())

    def test_float32_stays_float32(self, learner, blobs):
        X, y = blobs
        machine = make(learner).fit(X.astype(np.float32), y)
        assert machine.coef_.dtype == machine.decision_function(X.astype(np.float32)).dtype == np.float32

    def test_data_is_left_alone(self, learner, blobs):
        X, y = blobs
        given = X.copy(), y.copy()
        given[0].flags.writeable = given[1].flags.writeable = False
        make(learner).fit(*given)
        np.testing.assert_array_equal(given[0], X)
        np.testing.assert_array_equal(given[1], y)

    def test_rows_of_weight_zero_are_not_there(self, learner, blobs):
        X, y = blobs
        weight = np.arange(len(y)) % 3 > 0
        flipped = np.where(weight, y, "dog")
        weighted = make(learner).fit(X, flipped, sample_weight=weight.astype(float)).planes_
        kept = make(learner).fit(X[weight], y[weight]).planes_
        assert_same_planes(learner, weighted, kept, X, atol=1e-9)

    def test_pickling_keeps_the_model(self, learner, blobs):
        X, y = blobs
        machine = make(learner).fit(X, y)
        assert pickle.loads(pickle.dumps(machine)).planes_ == machine.planes_

    def test_works_in_a_pipeline_and_a_grid(self, learner, blobs):
        X, y = blobs
        search = GridSearchCV(
            make_pipeline(StandardScaler(), make(learner)), {"standardscaler__with_mean": [True, False]}, cv=3
        )
        assert search.fit(X, y).best_score_ > 0.9

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda X, y: (np.where(X[3, 1] == X, np.nan, X), y), "NaN"),
            (lambda X, y: (np.where(X[3, 1] == X, np.inf, X), y), "infinity"),
            (lambda X, y: (X[:5], y), "inconsistent numbers of samples"),
            (lambda X, y: (X[:, 0], y), "Expected 2D array, got 1D array"),
            (lambda X, y: (X[:0], y[:0]), "0 sample"),
            (lambda X, y: (X, np.full(len(y), "cat")), "only one class, .*cat"),
            (lambda X, y: (X.astype(np.float16), y), "float16"),
            (lambda X, y: (np.full(X.shape, "far"), y), "could not convert string to float"),
            (lambda X, y: (X, np.linspace(0, 1, len(y))), "Unknown label type"),
            (lambda X, y: (X, y[:, None].repeat(2, axis=1)), "1d array"),
        ],
    )
    def test_bad_data_gets_a_sentence_and_costs_nothing(self, learner, blobs, spoil, message):
        X, y = blobs
        machine = make(learner).fit(X, y)
        before = machine.planes_, machine.classes_, machine.n_features_in_
        with pytest.raises(ValueError, match=message):
            machine.fit(*spoil(X, y))
        assert (machine.planes_, machine.classes_, machine.n_features_in_) == before
        assert machine.score(X, y) > 0.95

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ([1.0, 2.0], "inconsistent|shape"),
            ([-1.0] * 240, "Negative"),
            ([0.0] * 240, "zero"),
            ([np.nan] * 240, "NaN"),
        ],
    )
    def test_bad_weights_get_a_sentence(self, learner, blobs, weight, message):
        X, y = blobs
        with pytest.raises(ValueError, match=message):
            make(learner).fit(X, y, sample_weight=weight)

    def test_weights_that_leave_one_class_are_refused(self, learner, blobs):
        X, y = blobs
        with pytest.raises(ValueError, match="two classes"):
            make(learner).fit(X, y, sample_weight=(y == "cat").astype(float))

    def test_sparse_indices_out_of_range_are_refused(self, learner, blobs):
        X, y = blobs
        for index in (3, -1, 2**31 - 1):
            broken = sparse.csr_array(X)
            broken.indices = broken.indices.copy()
            broken.indices[7] = index
            with pytest.raises(ValueError, match="indices"):
                make(learner).fit(broken, y)

    def test_a_failed_refit_with_other_columns_keeps_the_model(self, learner, blobs):
        X, y = blobs
        machine = make(learner).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
        with pytest.raises(ValueError, match="NaN"):
            machine.fit(pd.DataFrame({"d": np.full(len(y), np.nan)}), y)
        assert list(machine.feature_names_in_) == ["a", "b", "c"]
        assert machine.predict(pd.DataFrame(X, columns=["a", "b", "c"])).shape == y.shape

    def test_ctrl_c_keeps_the_last_finished_step(self, learner, blobs, monkeypatch):
        X, y = blobs
        method = type(make(learner)._method(np.unique(y)))
        step, calls = method.step, []

        def interrupted(self, state, data):
            calls.append("step")
            if len(calls) == 2:
                signal.raise_signal(signal.SIGINT)
            return step(self, state, data)

        monkeypatch.setattr(method, "step", interrupted)
        given = {"alpha": 1e-3} if learner is polyplane.ConvexPolytopeClassifier else {}
        machine = make(learner, n_planes=2, inside=y[0], tol=None, **given)  # without trials
        with pytest.raises(KeyboardInterrupt):
            machine.fit(X, y)
        assert machine.n_iter_ == 1
        assert machine.predict(X).shape == y.shape
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_attributes_of_others_survive(self, learner, blobs):
        """scikit-learn's searches keep notes on the estimators that they fit."""
        machine = make(learner)
        machine._note = "mine"
        assert machine.fit(*blobs)._note == "mine"

    def test_fits_outside_of_the_main_thread(self, learner, blobs):
        X, y = blobs
        machine = make(learner)
        thread = threading.Thread(target=machine.fit, args=blobs)
        thread.start()
        thread.join()
        assert machine.planes_ == make(learner).fit(X, y).planes_


@pytest.mark.parametrize("learner", learners_with("n_jobs"))
def test_threads_do_not_change_the_planes(learner):
    X, y = make_blobs(300, centers=4, n_features=5, random_state=0)
    if not learner().__sklearn_tags__().classifier_tags.multi_class:
        y = y % 2
    one, two = (make(learner, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert one.planes_ == two.planes_
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("learner", learners_with("class_weight"))
def test_class_weights_are_weights(learner, blobs):
    X, y = blobs
    by_class = make(learner, class_weight={"cat": 3.0, "dog": 0.5}).fit(X, y)
    by_row = make(learner).fit(X, y, sample_weight=np.where(y == "cat", 3.0, 0.5))
    assert by_class.planes_ == by_row.planes_
    unbalanced = np.r_[np.flatnonzero(y == "cat"), np.flatnonzero(y == "dog")[:12]]
    balanced = make(learner, class_weight="balanced").fit(X[unbalanced], y[unbalanced])
    assert balanced.score(X, y) > 0.95


@pytest.mark.parametrize("learner", learners_with("warm_start"))
def test_warm_start_goes_on(learner, blobs):
    X, y = blobs
    halves = make(learner, max_iter=5, warm_start=True, tol=None).fit(X, y).fit(X, y)
    cold = make(learner, max_iter=5, tol=None).fit(X, y)
    if learner is not polyplane.SuccessiveLPClassifier:  # its first program is already solved to the end
        assert halves.planes_ != cold.planes_
    assert halves.score(X, y) >= cold.score(X, y) - 0.02
    with pytest.raises(ValueError, match="features"):
        halves.fit(X[:, :2], y)
    with pytest.raises(ValueError, match=r"'cow' \(row 0\), which is not one of the known classes"):
        halves.fit(X, np.where(np.arange(len(y)) == 0, "cow", y))
    assert halves.predict(X).shape == y.shape


@pytest.mark.parametrize("learner", learners_with("early_stopping"))
def test_early_stopping_keeps_the_best_planes(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    machine = make(learner, early_stopping=True, max_iter=500, n_iter_no_change=3, alpha=1e-2).fit(X, y)
    errors = machine.history_["validation_error"]
    assert len(errors) == machine.n_iter_ < 500
    seed = int(np.random.RandomState(0).randint(2**31))
    rows = Data(X, y, np.ones(400), np.arange(400), 2)
    assert 1 - machine.score(X[held_out(rows, 0.1, seed)], y[held_out(rows, 0.1, seed)]) == pytest.approx(min(errors))
    more = make(learner, early_stopping=0.4, max_iter=20, alpha=1e-2).fit(X, y)
    kept = held_out(rows, 0.4, seed)
    assert 1 - more.score(X[kept], y[kept]) == pytest.approx(min(more.history_["validation_error"]))
    with pytest.raises(ValueError, match=r"early_stopping=0.1 needs more rows of each class"):
        machine.fit(X[:12], np.arange(12) == 0)
    with pytest.raises(ValueError, match="'early_stopping' parameter"):
        make(learner, early_stopping=1.0).fit(X, y)


def held_out(rows, share, seed):
    return rows.hold_out(share, seed)[1]


@pytest.mark.parametrize("learner", learners_with("warm_start", "n_planes"))
def test_changed_parameters_are_refused_between_warm_starts(learner, blobs):
    """Training that cannot go on with another number of planes says so, and loses nothing."""
    machine = make(learner, n_planes=2, warm_start=True).fit(*blobs)
    before = machine.planes_
    with pytest.raises(ValueError, match=r"Training started with n_planes=2 and cannot continue with n_planes=3"):
        machine.set_params(n_planes=3).fit(*blobs)
    assert machine.planes_ is before
    assert machine.set_params(n_planes=2).fit(*blobs).n_iter_ >= 1
    assert machine.set_params(n_planes=3, warm_start=False).fit(*blobs).planes_.n_planes != before.n_planes


@pytest.mark.parametrize("learner", LEARNERS)
def test_there_are_not_too_many_parameters(learner):
    assert len(inspect.signature(learner).parameters) <= 20


def numbers_of(learner):
    """The parameters that may be whole numbers, and are no labels."""
    intervals = {
        name: any(isinstance(constraint, Interval) for constraint in constraints)
        for name, constraints in learner._parameter_constraints.items()
        if isinstance(constraints, list)
    }
    others = ("verbose", "n_jobs", "random_state")
    return [name for name in inspect.signature(learner).parameters if intervals.get(name) or name in others]


@pytest.mark.parametrize(("learner", "name"), [(learner, name) for learner in LEARNERS for name in numbers_of(learner)])
def test_huge_whole_numbers_work_or_are_refused_by_name(learner, name, blobs, capsys):
    for value in (2**70, -(2**70), 2**5000):
        free = name == "n_jobs" or (name == "verbose" and value > 0)
        machine = make(learner, **{"max_iter": 2, name: value})
        with nullcontext() if free else pytest.raises(ValueError, match=f"The '{name}' parameter|{name}="):
            machine.fit(*blobs)


@pytest.mark.parametrize("learner", learners_with("alpha"))
def test_a_large_alpha_may_be_a_whole_number(learner, blobs):
    """Times the number of visits it would be larger than the whole numbers of a kernel."""
    power = 49 if learner is polyplane.SuccessiveLPClassifier else 62
    machines = [make(learner, alpha=alpha, max_iter=2) for alpha in (2**power, 2.0**power)]
    assert machines[0].fit(*blobs).planes_ == machines[1].fit(*blobs).planes_


@pytest.mark.parametrize("learner", learners_with("max_iter"))
def test_endless_training_can_be_limited(learner, blobs):
    """`sys.maxsize` passes, as one writes who stops training otherwise."""
    machine = make(learner, max_iter=2**63 - 1)
    assert machine._fit(*blobs, None, Limits(0.01)).n_iter_ >= 1


@pytest.mark.parametrize("learner", [learner for learner in LEARNERS if hasattr(learner(), "partial_fit")])
class TestPartialFit:
    def test_learns_from_batches(self, learner, blobs):
        X, y = blobs
        machine = make(learner)
        for _ in range(10):
            for batch in np.array_split(np.arange(len(y)), 4):
                machine.partial_fit(X[batch], y[batch], classes=["cat", "dog"])
        assert machine.n_iter_ == 40
        assert machine.score(X, y) > 0.95

    def test_one_step_is_fit_with_one_iteration(self, learner, blobs):
        X, y = blobs
        step = make(learner, n_planes=2, max_iter=1).partial_fit(X, y, classes=["cat", "dog"])
        assert step.n_iter_ == 1
        assert step.planes_.n_planes == make(learner, n_planes=2, max_iter=1).fit(X, y).planes_.n_planes

    def test_goes_on_after_fit_and_after_pickling(self, learner, blobs):
        X, y = blobs
        machine = make(learner).fit(X, y)
        copy = pickle.loads(pickle.dumps(machine))
        assert machine.partial_fit(X[:50], y[:50]).planes_ == copy.partial_fit(X[:50], y[:50]).planes_

    def test_a_batch_may_lack_a_class(self, learner, blobs):
        X, y = blobs
        machine = make(learner)
        for label in ("cat", "dog") * 5:
            machine.partial_fit(X[y == label], y[y == label], classes=["cat", "dog"])
        assert list(machine.classes_) == ["cat", "dog"]

    def test_bad_batches_get_a_sentence_and_cost_nothing(self, learner, blobs):
        X, y = blobs
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            make(learner).partial_fit(X, y)
        machine = make(learner).partial_fit(X, y, classes=["cat", "dog"])
        before = machine.planes_
        for bad, message in (
            ((X, np.where(y == "cat", "cow", y)), r"'cow' \(row \d+\), which is not one of the known classes"),
            ((X[:, :2], y), "features"),
            ((X, y, ["cat", "cow"]), "not the same as on the last call"),
            ((X[:0], y[:0]), "0 sample"),
        ):
            with pytest.raises(ValueError, match=message):
                machine.partial_fit(*bad)
        assert machine.planes_ is before

    def test_balanced_weights_are_refused(self, learner, blobs):
        X, y = blobs
        if has(learner, "class_weight"):
            with pytest.raises(ValueError, match="'balanced' needs all rows at once"):
                make(learner, class_weight="balanced").partial_fit(X, y, classes=["cat", "dog"])


@pytest.mark.parametrize("learner", learners_with("verbose"))
def test_progress_is_plain_lines_without_a_terminal(learner, blobs, capsys):
    make(learner, max_iter=3, verbose=1).fit(*blobs)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{learner.__name__}  1/3  ")
    assert make(learner, max_iter=3).fit(*blobs)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("learner", LEARNERS)
def test_fit_does_not_rewrite_parameters(learner, blobs):
    machine = make(learner)
    before = clone(machine).get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine.fit(*blobs)
    assert machine.get_params() == before
