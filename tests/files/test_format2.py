"""Files of format 2: those in `format2/` were written by Polyplane before format 3, with rows and their predictions."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import polyplane
from polyplane import serving
from polyplane.files import ModelFileError
from polyplane.loading import read_model
from tests.models import assembled, parts, places, replaced

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "format2").glob("*.safetensors"))}
#: Those whose training can go on.
TRAINED = ["adaptive", "convex_polytope", "cutting_plane", "mixture", "multi_hyperplane", "multi_hyperplane_hinge"]
TRAINED += ["pegasos", "polyceptron", "successive_lp", "worst_case"]


def rows_of(found):
    rows = json.loads(found.metadata["rows"])
    return rows if isinstance(rows[0], dict) else np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("name", FILES)
def test_predictions_are_those_of_before(name, tmp_path):
    """To the bit; the members of a committee are summed in another order, and tables are computed in float64 now."""
    found = read_model(FILES[name])
    rows, expected = rows_of(found), found.metadata
    assert found.format == 2
    scores = found.model.decision_function(rows)
    tolerance = 1e-6 if "table" in name else 1e-15 if name == "committee" else 0.0
    np.testing.assert_allclose(scores, expected["scores"], rtol=0, atol=tolerance)
    served = serving.load(FILES[name])
    np.testing.assert_allclose(served.decision_function(rows), expected["scores"], rtol=0, atol=1e-6)
    for model in (found.model, served):
        assert model.predict(rows).tolist() == json.loads(expected["labels"])
        if "probabilities" in expected:
            np.testing.assert_allclose(model.predict_proba(rows), expected["probabilities"], rtol=0, atol=1e-6)
    polyplane.save(found.model, tmp_path / "again")
    again = read_model(tmp_path / "again")
    assert again.format == 3
    assert again.model.decision_function(rows).tobytes() == scores.tobytes()


@pytest.mark.parametrize("name", TRAINED)
def test_training_goes_on(name):
    found = read_model(FILES[name])
    model, rows = found.model, rows_of(found)
    assert len(model.history_["time"]) == model.n_iter_
    assert type(model._state) is model._trained_by.traits.state
    if hasattr(model, "partial_fit"):
        n_iter = model.n_iter_
        assert model.partial_fit(rows, model.predict(rows)).n_iter_ == n_iter + 1


@pytest.mark.parametrize("name", ["committee", "compressed", "multi_hyperplane", "pipeline", "table_bins"])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    pick=st.integers(0, 10**6),
    value=st.sampled_from([None, -1, 7, 1e308, "x", [], {}, {"array": "planes.coef"}, True, [0.5], 2**70]),
)
def test_a_forged_value_is_refused_or_harmless(name, tmp_path_factory, pick, value):
    header, description, data = parts(FILES[name].read_bytes())
    keys = list(places(description))
    forged = tmp_path_factory.getbasetemp() / "forged.safetensors"
    forged.write_bytes(assembled(header, replaced(description, keys[pick % len(keys)], value), data))
    for load in (polyplane.load, serving.load):
        with contextlib.suppress(ModelFileError):
            load(forged)
