"""The page of comparisons says what was measured."""

import pytest
from benchmarks.harness import comparison

if not comparison.PAGE.exists():
    pytest.skip("the documentation is not beside the tests (an installed copy of them)", allow_module_level=True)


def test_the_page_is_made_of_the_results():
    page = comparison.PAGE.read_text(encoding="utf-8")
    assert page == comparison.markdown(), "run `python -m benchmarks.harness.comparison`"


def test_ranks_share_equal_errors():
    tables = {"a": {"x": {"error": 1.0}, "y": {"error": 1.0}, "z": {"error": 2.0}}}
    assert comparison.ranks(tables, ["x", "y", "z"]) == {"x": 1.5, "y": 1.5, "z": 3.0}
