"""The list of mutations fits the source; `make mutants` runs them."""

from pathlib import Path

import polyplane
from tests.mutants import MUTANTS


def test_each_mutation_changes_one_place():
    for mutant in MUTANTS:
        text = (Path(polyplane.__file__).parent / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.file}: {mutant.old!r}"
        assert mutant.old != mutant.new
        assert all(Path(__file__).parents[1].joinpath(t.split("::")[0]).exists() for t in mutant.tests.split()[:1])
