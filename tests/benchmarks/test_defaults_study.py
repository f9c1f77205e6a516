"""The study of the defaults: which rows it may use, and what it concludes."""

import inspect
from functools import partial

import numpy as np
import pytest
from benchmarks.data import tables
from benchmarks.harness import defaults, defaults_study
from benchmarks.harness.results import KeptFigures

import polyplane


def parts(loaders):
    """The parts of sets that partial loaders read: their names, first rows and ends."""
    for load in loaders:
        if isinstance(load, partial) and load.func in (tables.npz_rows, tables.csv_rows) and len(load.args) > 1:
            name, n_rows, *first = load.args
            yield name, first[0] if first else 0, (first[0] if first else 0) + n_rows


def test_its_rows_are_in_no_table_of_the_comparisons():
    used = list(parts([*tables.TABLES.values(), *tables.OTHER_TABLES.values()]))
    studied = list(parts([*defaults_study.SETS.values(), *defaults_study.MIXED.values()]))
    assert len(studied) >= 10
    for name, first, end in studied:
        assert all(end <= start or stop <= first for which, start, stop in used if which == name), name
        if name == "covtype":  # 100,000 rows are for `covtype_rows`, and those from 464,810 on are test rows of a paper
            assert first >= 100_000
            assert end <= 464_810


@pytest.mark.parametrize(
    ("difference", "deviation", "verdict"),
    [(-0.5, 0.2, "better"), (-0.3, 0.2, "no different"), (0.5, 0.2, "worse"), (0.0, 0.0, "no different")],
)
def test_a_value_is_better_by_two_standard_errors(difference, deviation, verdict):
    assert defaults_study.Comparison(1, difference, deviation, 10, 1.0).verdict == verdict


@pytest.mark.parametrize("name", defaults_study.STUDIES)
def test_other_values_than_the_default_are_compared(name):
    signature = inspect.signature(getattr(polyplane, name)).parameters
    for parameter, values in defaults_study.STUDIES[name].values.items():
        assert signature[parameter].default not in values
        assert defaults.DECLARED[name][parameter]["kind"] in defaults.DUE


def test_all_defaults_that_are_due_are_studied_or_say_where():
    for name, parameters in defaults.DECLARED.items():
        for parameter, found in parameters.items():
            if found["kind"] in defaults.DUE:
                assert parameter in defaults_study.STUDIES[found.get("studied", name)].values, f"{name}.{parameter}"


def one_set():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return tables.made((X, np.digitize(X[:, 0], [-0.4, 0.4])))


def test_errors_are_of_the_held_out_parts():
    found = defaults_study.held_out_errors(polyplane.PegasosSVC, {"one": one_set}, True, 30, {"max_iter": 5})
    assert list(found["errors"]) == ["one"]
    assert len(found["errors"]["one"]) == len(defaults_study.SPLITS)
    assert all(0 <= error < 50 for error in found["errors"]["one"])


def test_differences_are_means_over_the_sets(tmp_path, monkeypatch):
    def errors(*values):
        return {"errors": {name: [value, value] for name, value in zip("abc", values, strict=True)}, "fit_seconds": 2.0}

    results = KeptFigures(str(tmp_path / "study.py"))
    results.figures.update({"PegasosSVC": errors(10, 20, 30), "PegasosSVC: max_iter=30": errors(9, 18, 27)})
    results.figures["PegasosSVC: max_iter=30"]["fit_seconds"] = 1.0
    monkeypatch.setattr(results, "state", lambda name: "current" if name in results.figures else "")
    monkeypatch.setattr(defaults_study, "kept", lambda: results)
    (found,) = defaults_study.comparisons("PegasosSVC", "max_iter")
    assert (found.value, found.difference, found.n_sets, found.times) == (30, -2.0, 3, 0.5)
    assert found.deviation == pytest.approx(1 / np.sqrt(3))
    assert found.verdict == "better"
    assert str(found) == "`30` -2.00 ± 0.58 (0.5 x time)"
    assert defaults_study.comparisons("PegasosSVC", "alpha") == []
