"""Small models: the budget, the tables, the files, the programs and the mistakes."""

import re
import subprocess
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polyplane
from polyplane import Model, PlaneSet, serving
from polyplane.compression import CompressedClassifier, choice
from polyplane.compression.shapes import fitting_shapes
from polyplane.compression.training import LowRank, log_loss
from polyplane.exports import to_c, to_javascript, to_sql
from polyplane.features import Features, Projection
from polyplane.inputs.encoding import MatrixInputs
from tests import models
from tests.programs import FLAGS, needed, run_c, run_node, run_sqlite

QUICK = {"max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def quick_trials():
    """Fewer passes in trials: what is chosen is a little worse, and chosen in the same way."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ROUNDS": ((3, 1000), (6, 3)), "LAST_PASSES": 9, "FEW_ROWS": 600}.items():
            patch.setattr(choice, name, value)
        yield


@cache
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, train_size=800, random_state=0)


@cache
def large():
    X, _, y, _ = digits()
    return polyplane.MultiHyperplaneClassifier(4, max_iter=10, random_state=0).fit(X, y)


@cache
def small(max_bytes=4000):
    X, _, y, _ = digits()
    return polyplane.compress(large(), X, y, max_bytes=max_bytes, **QUICK)


class TestBudget:
    def test_is_held_and_costs_little(self):
        """Of 64 x 40 weights (10 kB in float32) 4 kB remain; the error may grow by two points."""
        _, X, _, y = digits()
        assert small().n_bytes_ <= 4000
        assert small().score(X, y) > large().score(X, y) - 0.02

    def test_a_small_one_is_held_by_fewer_features(self):
        _, X, _, y = digits()
        tiny = small(700)
        assert tiny.n_bytes_ <= 700
        assert tiny.model_.features.n_features < 64
        assert tiny.score(X, y) > 0.85

    def test_too_small(self):
        X, _, y, _ = digits()
        with pytest.raises(ValueError, match=r"max_bytes=100 is too small: the smallest tables .* take \d+ bytes"):
            polyplane.compress(large(), X, y, max_bytes=100, **QUICK)

    def test_the_smallest_that_is_named_is_possible(self):
        X, _, y, _ = digits()
        with pytest.raises(ValueError, match="too small") as error:
            polyplane.compress(large(), X, y, max_bytes=100, **QUICK)
        least = int(re.search(r"take (\d+) bytes", str(error.value))[1])
        assert polyplane.compress(large(), X, y, max_bytes=least, **QUICK).n_bytes_ <= least

    def test_shapes_fit(self):
        for max_bytes in (300, 2_000, 70_000):
            for scaled in (False, True):
                shapes = fitting_shapes(max_bytes, 64, 61, 10, 2_000, scaled=scaled, projected=True)
                assert shapes
                assert all(shape.n_bytes(64, 10) <= max_bytes for shape in shapes)

    def test_trials_say_how_it_was_chosen(self):
        trials = small().trials_
        assert len({len(figures) for figures in trials.values()}) == 1
        final = [i for i, n_passes in enumerate(trials["passes"]) if n_passes == max(trials["passes"])]
        chosen = min(final, key=lambda i: trials["error"][i])
        assert trials["rank"][chosen] == (small().model_.projection.rank or 0)
        assert trials["features"][chosen] == small().model_.features.n_features


class TestModel:
    def test_tables_are_the_planes(self):
        model, (_, X, _, _) = small(), digits()
        features, projection, planes = (getattr(model.model_, name) for name in ("features", "projection", "planes"))
        u = (X[:, features.source] - features.centre) * features.factor
        z = (u if projection.matrix is None else u @ projection.matrix.T.astype(float)) * projection.scale
        scores = z @ planes.coef.T + planes.intercept
        for part in (features.centre, features.factor, planes.intercept):
            np.testing.assert_array_equal(part, part.astype(np.float32))
        np.testing.assert_allclose(model.planes_.scores(X), scores, atol=1e-9 * np.abs(scores).max())

    def test_weights_are_bytes(self):
        """Each row of the projection, and each column of the planes, uses all of the range."""
        model = small(700).model_
        parts = [(model.planes.coef, 0)] + ([] if model.projection.rank is None else [(model.projection.matrix, 1)])
        for part, axis in parts:
            assert (part == part.astype(np.int8)).all()
            assert set(np.abs(part.astype(int)).max(axis=axis)) == {127}

    def test_same_seed_same_tables(self):
        X, _, y, _ = digits()
        again = polyplane.compress(large(), X, y, max_bytes=4000, **QUICK)
        assert again.model_.planes == small().model_.planes
        np.testing.assert_array_equal(again.model_.projection.matrix, small().model_.projection.matrix)
        np.testing.assert_array_equal(again.model_.projection.scale, small().model_.projection.scale)

    def test_features_of_any_size(self):
        """Units of a millionth and of a million, and a feature far from 0, are no harder than equal units."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 4))
        y = (np.abs(X[:, 0] + X[:, 1]) * 1.2).astype(int).clip(0, 2)
        rows = X * [1e-6, 1e6, 1.0, 1.0] + [0, 0, 0, 1e3]
        model = make_pipeline(StandardScaler(), polyplane.PegasosSVC(random_state=0)).fit(rows, y)
        assert polyplane.compress(model, rows, y, max_bytes=1200, random_state=0).score(rows, y) > 0.92

    def test_sparse_rows_weights_and_names(self):
        import pandas as pd
        from scipy import sparse

        X, X_test, y, _ = digits()
        model = polyplane.compress(large(), sparse.csr_matrix(X), y, max_bytes=4000, **QUICK)
        np.testing.assert_array_equal(model.predict(X_test), small().predict(X_test))
        frame = pd.DataFrame(X, columns=[f"p{j}" for j in range(64)])
        weight = (y < 5).astype(float)
        named = CompressedClassifier(1000, **QUICK).fit(frame, y, sample_weight=weight)
        assert named.feature_names_in_[3] == "p3"
        assert np.mean(named.predict(frame.iloc[:200]) < 5) > 0.99

    def test_gradients_are_those_of_the_loss(self):
        rng = np.random.default_rng(0)
        owners, y = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 2, 2])
        planes = LowRank(rng.normal(size=(3, 5)), rng.normal(size=(6, 3)), rng.normal(size=6), owners)
        x, weight = rng.normal(size=(4, 5)), np.array([1.0, 2.0, 0.5, 1.0])

        def loss(planes):
            scores = x @ planes.coef.T + planes.intercept
            by_class = np.array([np.exp(scores[:, owners == c]).sum(axis=1) for c in range(3)]).T
            return -(weight * np.log(by_class[range(4), y] / by_class.sum(axis=1))).mean()

        total, gradients = log_loss(planes, x, y, weight, np.array([0, 2, 3]))
        assert total / 4 == pytest.approx(loss(planes))
        for part, gradient in zip(("projection", "weights", "intercept"), gradients, strict=True):
            values = getattr(planes, part)
            for place in list(np.ndindex(values.shape))[:6]:
                moved = values.copy()
                moved[place] += 1e-6
                slope = (loss(planes._replace(**{part: moved})) - loss(planes)) / 1e-6
                assert gradient.reshape(values.shape)[place] == pytest.approx(slope, abs=1e-4)


class TestFiles:
    def test_round_trip(self, tmp_path):
        model, (_, X, _, _) = small(), digits()
        polyplane.save(model, tmp_path / "small.safetensors")
        again = polyplane.load(tmp_path / "small.safetensors")
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        assert (again.n_bytes_, again.trials_, again.history_) == (model.n_bytes_, model.trials_, model.history_)
        assert again.get_params() == model.get_params()
        predictor = serving.load(tmp_path / "small.safetensors")
        np.testing.assert_array_equal(predictor.predict(X), model.predict(X))

    def test_tables_that_do_not_belong_together_are_refused(self, tmp_path):
        model = small()
        fitted = model.model_
        infinite = replace(fitted.projection, scale=fitted.projection.scale * np.float32(np.inf))
        for change in ({"features": fitted.features.take(slice(None, None, -1))}, {"projection": infinite}):
            forged = CompressedClassifier(**model.get_params())
            forged.__dict__.update(model.__dict__, planes_=model.planes_)
            forged._model = replace(fitted, **change)
            with pytest.raises(
                ValueError, match=r"cannot be saved: the file (contains an invalid model|has an invalid value)"
            ):
                polyplane.save(forged, tmp_path / "forged.safetensors")


class TestPrograms:
    @pytest.mark.parametrize("max_bytes", [700, 4000])
    def test_c(self, max_bytes, tmp_path):
        model, (_, X, _, _) = small(max_bytes), digits()
        outcome = run_c(model, X, tmp_path)
        assert outcome.labels == model.predict(X).tolist()
        np.testing.assert_allclose(outcome.scores, model.planes_.class_scores(X), rtol=2e-5, atol=1e-3)

    @pytest.mark.parametrize("max_bytes", [700, 4000])
    def test_bytes_are_those_of_the_compiled_tables(self, max_bytes, tmp_path):
        (tmp_path / "model.c").write_text(to_c(small(max_bytes)))
        subprocess.run([needed("gcc"), *FLAGS, "-O0", "-c", "model.c"], cwd=tmp_path, check=True)
        symbols = subprocess.run(
            [needed("nm"), "-S", "model.o"], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout
        sizes = [int(line.split()[1], 16) for line in symbols.splitlines() if re.search(r" [rR] model_", line)]
        assert sum(sizes) == small(max_bytes).n_bytes_

    @pytest.mark.parametrize("projected", [False, True])
    @pytest.mark.parametrize("labels", [['?"*/', "b"], [True, False]])
    def test_every_kind_of_table(self, projected, labels, tmp_path):
        rng = np.random.default_rng(0)
        model = CompressedClassifier(4000)
        model.classes_ = np.unique(np.array(labels))
        model.n_features_in_ = 11
        kept = np.array([0, 3, 8, 10])
        matrix = rng.integers(-127, 128, (2, 4), dtype=np.int8) if projected else None
        projection = Projection(matrix, rng.random(2 if projected else 4).astype(np.float32))
        coef = rng.integers(-127, 128, (300, 2 if projected else 4)).astype(float)
        planes = PlaneSet(coef, rng.normal(size=300).astype(np.float32).astype(float), np.array([0, 120, 300]))
        centre, factor = (rng.random((2, 4)) + 0.5).astype(np.float32)
        features = Features.of(kept, centre=centre, factor=factor, n_inputs=11)
        model._model = Model(MatrixInputs(11), features, planes, model.classes_, projection=projection)
        X = rng.normal(size=(200, 11)).astype(np.float32)
        outcome = run_c(model, X, tmp_path, name="every")
        assert outcome.labels == model.predict(X).tolist()
        about = re.search(r"Memory: (\d+) bytes of constant tables \(int8\), (\d+) of texts", to_c(model))
        assert int(about[1]) + int(about[2]) == model.n_bytes_

    def test_other_languages_read_the_planes(self, tmp_path):
        model, (_, X, _, _) = small(700), digits()
        assert run_sqlite(model, X[:50]).labels == model.predict(X[:50]).tolist()
        assert run_node(model, X[:50], tmp_path).labels == model.predict(X[:50]).tolist()
        assert "score_3" in to_sql(model)
        assert "predict" in to_javascript(model)

    def test_wider_types_are_those_of_the_planes(self):
        assert "double *scores" in to_c(small(700), "float64")


class TestMonotoneColumns:
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("is_pipeline", [False, True])
    def test_constraints_are_kept(self, n_classes, is_pipeline):
        """The class grows and falls with column 0; the constraint forbids the fall."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 4)) * [1.0, 5.0, 1.0, 0.1] + [0.0, 10.0, 0.0, 0.0]
        value = 2 * np.sin(2 * X[:, 0]) + X[:, 1] / 5 + 4 * np.abs(X[:, 2]) + rng.normal(size=600) / 2
        y = np.digitize(value, np.quantile(value, np.arange(1, n_classes) / n_classes))
        y[:4] = n_classes  # a class with few rows
        constraints = {0: {n_classes - 1: 1}, 1: "ordered"}
        model = polyplane.MultiHyperplaneClassifier(4, max_iter=10, monotonic_cst=constraints, random_state=0)
        model = make_pipeline(StandardScaler(), model) if is_pipeline else model
        small = polyplane.compress(model.fit(X, y), X, y, max_bytes=300, max_iter=20, random_state=0)
        assert small.model_.projection.matrix is None
        assert small.planes_.n_planes > n_classes + 1
        rows = X[:300].repeat(5, axis=0)
        grown = rows.copy()
        grown[:, 0] += rng.exponential(size=len(rows))
        scores, more = small.planes_.class_scores(rows), small.planes_.class_scores(grown)
        lead = n_classes - 1
        assert ((more[:, [lead]] - more) - (scores[:, [lead]] - scores) > -1e-9).all()
        least, most = (np.array([f(small.planes_.coef[small.planes_.owners == c, 1]) for c in small.classes_])
                       for f in (np.min, np.max))  # fmt: skip
        assert (least[1:] >= most[:-1]).all()
        model.set_params(**{f"{'multihyperplaneclassifier__' * is_pipeline}monotonic_cst": None})
        free = polyplane.compress(model.fit(X, y), X, y, max_bytes=300, max_iter=20, random_state=0)
        scores, more = free.planes_.class_scores(rows), free.planes_.class_scores(grown)
        assert not ((more[:, [lead]] - more) - (scores[:, [lead]] - scores) > -1e-9).all()


class TestMistakes:
    def test_other_models(self):
        from sklearn.linear_model import LogisticRegression

        X, _, y, _ = digits()
        with pytest.raises(TypeError, match="A LogisticRegression is not a classifier of Polyplane"):
            polyplane.compress(LogisticRegression(), X, y, max_bytes=4000)
        table, rows = models.fitted("table, standard")
        with pytest.raises(TypeError, match=r"compress takes a fitted learner of Polyplane.*not a TableClassifier"):
            polyplane.compress(table, rows, table.predict(rows), max_bytes=4000)

    def test_other_rows(self):
        X, _, y, _ = digits()
        with pytest.raises(ValueError, match="X has 63 features, but the model was fitted on 64"):
            polyplane.compress(large(), X[:, 1:], y, max_bytes=4000)
        with pytest.raises(ValueError, match="y contains the label 17, which the model was not fitted on"):
            polyplane.compress(large(), X, np.where(y == 7, 17, y), max_bytes=4000)

    def test_pipelines_that_mix_features(self):
        from sklearn.decomposition import PCA

        X, _, y, _ = digits()
        pipe = make_pipeline(PCA(64), polyplane.PegasosSVC(max_iter=2, random_state=0)).fit(X, y)
        with pytest.raises(TypeError, match="The step 'pca' of the pipeline, a PCA, is not supported"):
            polyplane.compress(pipe, X, y, max_bytes=4000)

    def test_parameters(self):
        X, _, y, _ = digits()
        with pytest.raises(ValueError, match="'max_bytes' parameter"):
            polyplane.compress(large(), X, y, max_bytes=0)


class TestCommand:
    def test_compress_then_predict_and_export(self, tmp_path):
        import json

        import pandas as pd
        from typer.testing import CliRunner

        from polyplane.cli import app

        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 3))
        y = np.where(np.abs(X[:, 0]) < 0.7, "in", "out")
        pd.DataFrame(X, columns=[*"abc"]).assign(label=y).to_csv(tmp_path / "rows.csv", index=False)

        def run(*arguments):
            result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
            assert result.exit_code == 0, result.output
            return result.stdout

        model, small, rows = (tmp_path / name for name in ("m.safetensors", "s.safetensors", "rows.csv"))
        run("train", rows, "-o", model, "--set", "n_planes=2", "--seed", 0, "--learner", "multi-hyperplane")
        facts = json.loads(run("compress", model, rows, "--max-bytes", 300, "-o", small, "--json"))
        assert facts["bytes"] <= 300
        assert json.loads(run("evaluate", small, rows, "--json"))["accuracy"] > 0.9
        assert json.loads(run("info", small, "--json"))["learner"] == "compressed"
        run("export", small, "-o", tmp_path / "s.c")
        assert "signed char s_weights" in (tmp_path / "s.c").read_text()
