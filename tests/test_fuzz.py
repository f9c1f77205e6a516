"""A short run of the attacks; `make fuzz` makes a long one."""

import pytest

from tests.fuzz import KEPT, KINDS, SLOW
from tests.fuzz.__main__ import run

#: Cases of each kind.
N_CASES = 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in SLOW])
def test_nothing_is_found(kind):
    for seed in [*range(N_CASES), *(seed for found, seed in KEPT if found == kind)]:
        run(kind, seed)
