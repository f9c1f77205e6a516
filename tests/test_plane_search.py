"""`PlaneSearchCV`: the same scores as scikit-learn's searches, sooner; deadlines, interruptions, resuming."""

import json
import math
import os

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse, stats
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.fixes import parse_version

from polyplane import CuttingPlaneSVC, MultiHyperplaneClassifier, PegasosSVC, PlaneSearchCV
from polyplane.learners import many, tangents
from polyplane.learners.many import fit_many
from polyplane.learners.tangents import choose_n_planes
from polyplane.search import candidates, trials
from polyplane.search.candidates import plan_rungs, sample_rows

MACHINE = MultiHyperplaneClassifier(2, max_iter=18, random_state=0)
EVEN, ODD = np.arange(0, 240, 2), np.arange(1, 240, 2)
SPACE = {"eta0": [0.03, 0.1, 0.3, 1.0], "scale": [1.0, 2.5, 6.0]}


@pytest.fixture(autouse=True)
def halving_of_few_rows(monkeypatch):
    """On small data all settings get all passes; tests want to see rungs."""
    monkeypatch.setattr(candidates, "LEAST_VISITS", 0)


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(240, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


def searched(**how):
    return PlaneSearchCV(clone(MACHINE), SPACE, **{"n_iter": 9, "cv": 3, "factor": 2, "random_state": 0} | how)


def same(one, other):
    """Whether two searches have found the same; times differ."""
    assert one.cv_results_.keys() == other.cv_results_.keys()
    for name in one.cv_results_:
        if "_time" not in name:
            np.testing.assert_array_equal(one.cv_results_[name], other.cv_results_[name], err_msg=name)
    assert one.best_index_ == other.best_index_
    assert one.best_estimator_.planes_ == other.best_estimator_.planes_
    return True


class TestResults:
    """What is found, beside scikit-learn."""

    def test_without_halving_it_is_a_randomized_search(self, rows):
        X, y = rows
        ours = searched(factor=None).fit(X, y)
        candidates = [{name: [value] for name, value in each.items()} for each in ours.cv_results_["params"]]
        theirs = RandomizedSearchCV(MACHINE, candidates, n_iter=9, cv=3, random_state=0).fit(X, y)
        assert ours.cv_results_.keys() - theirs.cv_results_.keys() == {"rung", "n_resources"}
        assert theirs.cv_results_.keys() <= ours.cv_results_.keys()
        order = [theirs.cv_results_["params"].index(each) for each in ours.cv_results_["params"]]
        for name in ("split0_test_score", "split2_test_score", "mean_test_score", "std_test_score", "rank_test_score"):
            np.testing.assert_array_equal(ours.cv_results_[name], theirs.cv_results_[name][order])
        assert ours.best_score_ == theirs.best_score_
        assert ours.cv_results_["param_eta0"].dtype == theirs.cv_results_["param_eta0"].dtype

    def test_halves_go_on_and_the_last_rung_is_a_cross_validation(self, rows):
        X, y = rows
        search = searched().fit(X, y)
        table = pd.DataFrame(search.cv_results_)
        assert table.groupby("rung").size().tolist() == [9, 5, 3]
        assert table.groupby("rung")["n_resources"].first().tolist() == [160 * 5, 160 * 9, 160 * 18]
        kept = table[table.rung == 1].params.tolist()
        first = table[table.rung == 0].nlargest(5, "mean_test_score", keep="first")
        assert sorted(map(str, kept)) == sorted(map(str, first.params))
        assert table.rank_test_score[search.best_index_] == 1
        best = clone(MACHINE).set_params(**search.best_params_)
        assert search.best_score_ == cross_val_score(best, X, y, cv=3).mean()
        assert search.best_estimator_.planes_ == best.fit(X, y).planes_
        assert search.n_splits_ == 3
        assert search.refit_time_ > 0
        assert search.is_complete_

    def test_the_default_setting_competes(self, rows):
        search = searched(n_iter=2).fit(*rows)
        assert search.cv_results_["params"][0] == {"eta0": None, "scale": 2.5}
        assert len({str(params) for params in search.cv_results_["params"]}) == 2

    def test_a_small_grid_is_searched_whole(self, rows):
        search = PlaneSearchCV(MACHINE, {"eta0": [0.1, None]}, factor=None, cv=2).fit(*rows)
        assert search.cv_results_["params"] == [{"eta0": None}, {"eta0": 0.1}]

    def test_distributions_and_lists_of_spaces(self, rows):
        space = [{"eta0": stats.loguniform(0.01, 1)}, {"n_planes": [1, 3]}]
        search = PlaneSearchCV(MACHINE, space, n_iter=6, cv=2, random_state=1, factor=None).fit(*rows)
        table = pd.DataFrame(search.cv_results_)
        assert 3 < len(table) <= 6
        assert len({str(params) for params in table.params}) == len(table)
        assert np.ma.getmaskarray(search.cv_results_["param_eta0"]).any()
        assert table.param_eta0.dropna().between(0.01, 1).all()

    def test_what_the_default_learner_searches(self, rows):
        X, y = rows
        X, y = X[:120], y[:120]
        search = PlaneSearchCV(n_iter=2, cv=2, random_state=0, factor=None).fit(X, y)
        assert type(search.best_estimator_) is MultiHyperplaneClassifier
        assert set(search.best_params_) == {"n_planes", "alpha", "noise", "eta0", "scale"}
        assert search.cv_results_["params"][0]["n_planes"] is None
        assert search.score(X, y) > 0.8
        hinge = PlaneSearchCV(clone(MACHINE).set_params(loss="hinge"), n_iter=3, cv=2, random_state=0).fit(X, y)
        assert set(hinge.best_params_) == {"n_planes", "eta0", "scale"}

    def test_it_can_be_repeated(self, rows):
        assert same(searched().fit(*rows), searched(n_jobs=2).fit(*rows))
        few = [part[:90] for part in rows]
        default = [PlaneSearchCV(n_iter=2, cv=2, random_state=5).fit(*few) for _ in range(2)]
        assert same(*default)


class TestPredicting:
    """The best estimator stands behind the search."""

    def test_by_delegation(self, rows):
        X, y = rows
        search = searched(n_iter=3).fit(X, y)
        for name in ("predict", "predict_proba", "decision_function"):
            np.testing.assert_array_equal(getattr(search, name)(X), getattr(search.best_estimator_, name)(X))
        assert search.score(X, y) == search.best_estimator_.score(X, y)
        assert search.score(X, y, (y == "a").astype(float)) == search.best_estimator_.score(X[y == "a"], y[y == "a"])
        assert search.classes_.tolist() == ["a", "b", "c"]
        assert search.n_features_in_ == 6
        assert not hasattr(PlaneSearchCV(PegasosSVC()), "predict_proba")

    def test_without_refit(self, rows):
        search = searched(n_iter=3, refit=False).fit(*rows)
        assert search.best_params_ in search.cv_results_["params"]
        assert not hasattr(search, "best_estimator_")
        with pytest.raises(AttributeError) as said:
            search.predict(rows[0])
        assert str(said.value.__cause__).startswith("predict is not available with refit=False")
        with pytest.raises(NotFittedError):
            searched().predict(rows[0])

    def test_another_score(self, rows):
        X, y = rows
        search = searched(scoring="neg_log_loss", n_iter=3, factor=None).fit(X, y)
        expected = [
            cross_val_score(clone(MACHINE).set_params(**params), X, y, cv=3, scoring="neg_log_loss").mean()
            for params in search.cv_results_["params"]
        ]
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)
        assert search.score(X, y) < 0


class TestWhatComesIn:
    """Data frames, sparse rows, weights, groups, pipelines, other learners."""

    def test_data_frames(self, rows):
        X, y = rows
        frame = pd.DataFrame(X, columns=list("uvwxyz"))
        search = searched(n_iter=3).fit(frame, pd.Series(y))
        assert search.feature_names_in_.tolist() == list("uvwxyz")
        assert same(search, searched(n_iter=3).fit(X, y))

    def test_sparse_rows(self, rows):
        X, y = rows
        search, dense = (searched(n_iter=3).fit(each, y) for each in (sparse.csr_array(X), X))
        np.testing.assert_allclose(
            search.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"], atol=0.03
        )

    @pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.8"), reason="float64 in scikit-learn 1.7")
    def test_arrays_on_a_device(self, rows, monkeypatch):
        strict = pytest.importorskip("array_api_strict")
        X, codes = rows[0].astype(np.float32), np.unique(rows[1], return_inverse=True)[1]
        plain = searched(n_iter=3).set_params(estimator__backoff=0)  # on a device all rows are visited
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")
        with config_context(array_api_dispatch=True):
            device = strict.Device("device1")
            there = strict.asarray(X, device=device)
            search = plain.fit(there, strict.asarray(codes, device=device))
            assert type(search.predict(there)) is type(there)
        here = clone(plain).fit(X, codes)
        scores = [each.cv_results_["mean_test_score"] for each in (search, here)]
        np.testing.assert_allclose(*scores, atol=0.02)

    def test_weights_reach_the_fits(self, rows):
        X, y = rows
        weight, machine = np.random.default_rng(0).random(240), make_pipeline(StandardScaler(), clone(MACHINE))
        for estimator, name in ((MACHINE, "sample_weight"), (machine, "multihyperplaneclassifier__sample_weight")):
            search = PlaneSearchCV(estimator, {name.replace("sample_weight", "eta0"): [0.3, 1.0]}, cv=[(EVEN, ODD)])
            search.fit(X, y, weight)
            scores = []
            for params in search.cv_results_["params"]:
                alone = clone(estimator).set_params(**params).fit(X[EVEN], y[EVEN], **{name: weight[EVEN]})
                scores.append(alone.score(X[ODD], y[ODD]))
            assert search.cv_results_["mean_test_score"].tolist() == scores
            best = clone(estimator).set_params(**search.best_params_).fit(X, y, **{name: weight})
            np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))

    def test_groups_stay_together(self, rows):
        X, y = rows
        groups = np.arange(240) // 10
        search = searched(n_iter=2, cv=GroupKFold(4), factor=None).fit(X, y, groups=groups)
        first = cross_val_score(MACHINE, X, y, cv=GroupKFold(4), groups=groups)
        assert [search.cv_results_[f"split{k}_test_score"][0] for k in range(4)] == first.tolist()

    def test_pipelines_inside_and_outside(self, rows):
        X, y = rows
        machine = make_pipeline(StandardScaler(), clone(MACHINE))
        space = {"standardscaler": [StandardScaler(), MaxAbsScaler()], "multihyperplaneclassifier__eta0": [0.1, 0.3]}
        ours = PlaneSearchCV(machine, space, cv=3, factor=None, random_state=0).fit(X, y)
        for params, score in zip(ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True):
            assert score == cross_val_score(clone(machine).set_params(**params), X, y, cv=3).mean()
        declared = PlaneSearchCV(machine, n_iter=2, cv=2, random_state=0).fit(X, y)
        assert "multihyperplaneclassifier__n_planes" in declared.best_params_
        nested = make_pipeline(StandardScaler(), searched(n_iter=3))
        assert nested.set_params(planesearchcv__estimator__max_iter=9).fit(X, y)[-1].best_estimator_.max_iter == 9
        assert cross_val_score(nested, X, y, cv=2).mean() > 0.7

    def test_steps_before_a_machine_are_fitted_once_for_all_that_share_them(self, rows, monkeypatch):
        n_machines = []

        def counted(estimators, *args, **how):
            n_machines.append(len(estimators))
            return fit_many(estimators, *args, **how)

        monkeypatch.setattr(trials, "fit_many", counted)
        machine = make_pipeline(StandardScaler(), clone(MACHINE))
        space = {"multihyperplaneclassifier__eta0": [0.1, None, 1.0]}
        PlaneSearchCV(machine, space, cv=2, factor=None, refit=False).fit(*rows)
        assert n_machines == [3, 3]

    @pytest.mark.parametrize("learner", [PegasosSVC(max_iter=20, random_state=0), CuttingPlaneSVC()])
    def test_other_learners(self, learner):
        X, y = load_breast_cancer(return_X_y=True)
        search = PlaneSearchCV(learner, n_iter=9, cv=3, random_state=0).fit(StandardScaler().fit_transform(X), y)
        assert search.best_score_ > 0.96
        assert set(search.best_params_) <= {"alpha", "C"}

    def test_machines_that_stop_by_themselves_get_fewer_rows(self):
        """C weighs the sum over rows, so that a third of the rows is given three times as much of it."""
        X, y = make_classification(2400, 5, random_state=0)
        search = PlaneSearchCV(CuttingPlaneSVC(), {"C": np.logspace(-4, 0, 9)}, cv=3, random_state=0).fit(X, y)
        assert search.cv_results_["n_resources"].tolist() == [534] * 9 + [1600] * 3
        assert search.best_params_ in search.cv_results_["params"]

    def test_any_classifier(self, rows):
        search = PlaneSearchCV(LogisticRegression(), {"C": [1.0, 0.1]}, cv=3, factor=None).fit(*rows)
        assert search.best_score_ == cross_val_score(LogisticRegression(**search.best_params_), *rows, cv=3).mean()


class TestEnds:
    """Deadlines, Ctrl-C, failures."""

    def test_a_deadline_ends_with_the_best_so_far(self, rows, monkeypatch):
        monkeypatch.setattr("polyplane.search.trials.BATCH_WORK", 0)
        with pytest.warns(
            UserWarning, match="time_limit=1e-09 ended the search on rung 1 of 3, after 1 trials"
        ) as said:
            search = searched(time_limit=1e-9).fit(*rows)
        assert len(said) == 1
        assert not search.is_complete_
        assert len(search.cv_results_["params"]) == 1
        assert search.best_params_ == search.cv_results_["params"][search.best_index_]
        assert search.predict(rows[0]).shape == (240,)

    def test_ctrl_c_leaves_what_is_finished(self, rows, tmp_path, monkeypatch):
        X, y = rows
        path = tmp_path / "search.json"
        search, calls = searched(checkpoint=path), []

        def interrupted(estimators, *args, **how):
            calls.append(estimators)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return fit_many(estimators, *args, **how)

        with monkeypatch.context() as patch:
            patch.setattr(trials, "fit_many", interrupted)
            with pytest.raises(KeyboardInterrupt):
                search.fit(X, y)
        assert not hasattr(search, "cv_results_")
        content = json.loads(path.read_text())
        assert [row["rung"] for row in content["trials"]] == [0] * 9
        assert same(searched(checkpoint=path, resume=True).fit(X, y), searched().fit(X, y))

    def test_resuming_makes_no_fit_twice(self, rows, tmp_path, monkeypatch):
        path = tmp_path / "search.json"
        whole = searched(checkpoint=path).fit(*rows)
        monkeypatch.setattr(trials, "fit_many", None)
        assert same(searched(checkpoint=path, resume=True).fit(*rows), whole)

    def test_resuming_with_nothing_there_begins(self, rows, tmp_path):
        assert same(searched(checkpoint=tmp_path / "new", resume=True).fit(*rows), searched().fit(*rows))

    def test_checkpoints_of_other_searches_are_refused(self, rows, tmp_path):
        X, y = rows
        path = tmp_path / "search.json"
        searched(checkpoint=path, n_iter=3).fit(X, y)
        before = path.read_bytes()
        others = {
            "rows": (searched(n_iter=3), X + 1),
            "candidates": (searched(n_iter=3, random_state=1), X),
            "folds": (searched(n_iter=3, cv=2), X),
            "estimator": (searched(n_iter=3).set_params(estimator__backoff=0), X),
        }
        for part, (search, matrix) in others.items():
            with pytest.raises(ValueError, match=f"belongs to a search with different .*{part}"):
                search.set_params(checkpoint=path, resume=True).fit(matrix, y)
        assert path.read_bytes() == before
        for text in ("", "{}", "[1]", '{"format": "PlaneSearchCV 1", "trials": [{}]}'):
            path.write_text(text)
            with pytest.raises(ValueError, match="is not a checkpoint of PlaneSearchCV"):
                searched(checkpoint=path, resume=True).fit(X, y)

    def test_a_candidate_that_fails_has_no_score(self, rows):
        space = {"alpha": [None, 0.01], "loss": ["log", "hinge"]}
        search = PlaneSearchCV(MACHINE, space, cv=2, factor=None, random_state=0)
        with pytest.warns(FitFailedWarning, match="2 fits failed.*alpha=0.01 belongs to the log-loss"):
            search.fit(*rows)
        failed = [math.isnan(score) for score in search.cv_results_["mean_test_score"]]
        assert [p for p, f in zip(search.cv_results_["params"], failed, strict=True) if f] == [
            {"alpha": 0.01, "loss": "hinge"}
        ]
        assert search.cv_results_["rank_test_score"][failed.index(True)] == 4

    def test_when_all_fail_the_reason_is_raised(self, rows):
        search = PlaneSearchCV(MultiHyperplaneClassifier(alpha=1.0, loss="hinge"), {"eta0": [0.1, 1.0]}, cv=2)
        with pytest.raises(ValueError, match=r"alpha=1\.0 belongs to the log-loss"):
            search.fit(*rows)

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"n_iter": 0}, "The 'n_iter' parameter of PlaneSearchCV"),
            ({"factor": 1}, "The 'factor' parameter of PlaneSearchCV"),
            ({"time_limit": 0}, "The 'time_limit' parameter of PlaneSearchCV"),
            ({"scoring": "best"}, "The 'scoring' parameter of PlaneSearchCV"),
            ({"param_distributions": {"etta0": [1]}}, "'etta0' is not a parameter of .*Did you mean 'eta0'"),
            (
                {"param_distributions": None, "estimator": LogisticRegression()},
                "does not declare default search parameters",
            ),
            ({"checkpoint": "x", "random_state": None}, "set random_state to an int"),
            (
                {"checkpoint": "x", "param_distributions": {"class_weight": [None, {"a": 2.0}]}},
                "class_weight={'a': 2.0} is not a number or a string",
            ),
        ],
    )
    def test_bad_parameters_get_one_sentence(self, rows, how, message, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ValueError, match=message):
            searched().set_params(**how).fit(*rows)
        assert os.listdir(tmp_path) == []


def test_progress_is_shown_where_asked_for(rows, capsys):
    searched(verbose=1).fit(*rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("PlaneSearchCV  100/100  rung 3  score 0.")


def plan(passes, n_rows, n_candidates, factor):
    return plan_rungs(passes, n_rows, n_candidates, 5, factor)


def test_rungs_of_small_data_differ_in_their_folds_and_keep_earlier_fits(rows, monkeypatch):
    monkeypatch.setattr(candidates, "LEAST_VISITS", 20_000)
    rungs = [(None, 1.0, 18_000, n_folds, n) for n_folds, n in ((2, 40), (3, 14), (5, 5))]
    assert plan(60, 300, 40, 3) == rungs
    assert [rung.passes for rung in plan(60, 1000, 40, 3)] == [20, 20, None]
    assert [rung.passes for rung in plan(60, 2000, 40, 3)] == [10, 20, None]
    n_fits = []
    monkeypatch.setattr(
        trials, "fit_many", lambda machines, *a, **how: n_fits.append(len(machines)) or fit_many(machines, *a, **how)
    )
    search, full = searched(cv=4).fit(*rows), searched(cv=4, factor=None).fit(*rows)
    found, every = search.cv_results_, full.cv_results_
    assert np.bincount(found["rung"]).tolist() == [9, 5]
    assert sum(n_fits) == 9 * 2 + 5 * 2 + 9 * 4  # in full, 9 * 2 + 5 * 4 + 9 * 4
    for i in np.flatnonzero(found["rung"] == 1):
        j = every["params"].index(found["params"][i])
        for fold in range(4):
            assert found[f"split{fold}_test_score"][i] == every[f"split{fold}_test_score"][j]


def test_rungs():
    """What a fit is given: passes, share of the rows, row visits, how many of five folds; and how many candidates."""
    last = (None, 1.0, 60_000, 5)
    assert plan(60, 1000, 40, 3) == [(7, 1.0, 7000, 2, 40), (20, 1.0, 20_000, 3, 14), (*last, 5)]
    many = [(7, 1 / 3, 210_000, 2, 40), (20, 51_962 / 90_000, 1_039_240, 3, 14), (None, 1.0, 5_400_000, 5, 5)]
    assert plan(60, 90_000, 40, 3) == many
    assert plan(60, 1000, 26, 3) == [(20, 1.0, 20_000, 3, 26), (*last, 9)]
    assert plan(60, 1000, 9, 3) == [(20, 1.0, 20_000, 3, 9), (*last, 3)]
    assert (plan(60, 1000, 8, 3), plan(60, 1000, 40, None)) == ([(*last, 8)], [(*last, 40)])
    assert plan(5, 1000, 40, 3) == [(None, 1.0, 5000, folds, n) for folds, n in ((2, 40), (3, 14), (5, 5))]
    assert [rung.n_folds for rung in plan_rungs(60, 1000, 40, 2, 3)] == [2, 2, 2]
    assert [rung.n_visits for rung in plan(None, 9000, 40, 3)] == [1000, 3000, 9000]
    assert [(rung.n_visits, rung.n_folds) for rung in plan(None, 600, 40, 3)] == [(600, 2), (600, 3), (600, 5)]


def test_rungs_of_many_rows_have_fewer_folds_and_share_their_rows():
    """The last candidates have all passes on three folds first; rows are kept if few would be left out."""
    full = (None, 1.0, 720_000)
    rungs = [(7, 1.0, 84_000, 1, 40), (20, 1.0, 240_000, 2, 14), (*full, 3, 5), (*full, 5, 2)]
    assert plan_rungs(60, 12_000, 40, 5, 3, 3000) == rungs
    assert [rung.n_folds for rung in plan_rungs(60, 12_000, 40, 5, 3, 1499)] == [2, 3, 5]
    assert [rung.n_folds for rung in plan_rungs(60, 12_000, 40, 2, 3, 6000)] == [1, 1, 2]
    assert [rung.n_folds for rung in plan_rungs(5, 12_000, 40, 5, 3, 3000)] == [1, 2, 5]
    assert len(plan_rungs(60, 12_000, 40, 5, None, 3000)) == 1


def test_fits_share_selections_and_random_numbers(rows, monkeypatch):
    """Two selections per fold serve four candidates; keeping the random numbers of few epochs, or none, is the same."""
    space = [{"n_planes": [None], "eta0": [0.1, 1.0]}, {"n_planes": [None], "noise": [0.1]}, {"scale": [1.0]}]
    selected = []

    def choose(method, *rest):
        selected.append(method.n_planes)
        return choose_n_planes(method, *rest)

    monkeypatch.setattr(many, "choose_n_planes", choose)
    search = PlaneSearchCV(clone(MACHINE), space, n_iter=9, cv=2, factor=None, random_state=0).fit(*rows)
    assert len(search.cv_results_["params"]) == 5
    assert selected.count(None) == 2 * 2
    for room in (0, 1 << 15):
        monkeypatch.setattr(tangents, "MOST_DRAWN", room)
        assert same(search, clone(search).fit(*rows))


def test_samples_have_all_classes_and_grow():
    y = np.array([0] * 90 + [1] * 9 + [2])
    rows = np.arange(100)
    small, large = (sample_rows(rows, y, share, 0) for share in (0.2, 0.5))
    assert set(small) < set(large)
    assert np.bincount(y[small]).tolist() == [17, 2, 1]
    assert sample_rows(rows, y, 1.0, 0) is rows


def test_fit_many_is_many_fits():
    X, y = load_iris(return_X_y=True)
    weight = np.linspace(0, 1, 150)
    machines = [MultiHyperplaneClassifier(2, max_iter=5, eta0=eta0, random_state=0) for eta0 in (0.1, 0.3)]
    machines.append(PegasosSVC(max_iter=5, random_state=0))
    rows = [np.arange(k, 150, 2) for k in (0, 1, 0)]
    fitted = fit_many(machines, X, y, rows, sample_weight=weight, n_jobs=2)
    for machine, own, found in zip(machines, rows, fitted, strict=True):
        alone = clone(machine).fit(X[own], y[own], weight[own])
        np.testing.assert_allclose(found.planes_.coef, alone.planes_.coef, rtol=1e-6, atol=1e-9)
        assert not hasattr(machine, "planes_")
