"""The learners: one paper's method, one file, one estimator. A new one is exported in the stub, and nowhere else."""

from typing import Any

from polyplane._public import imported_on_use, names_in_stub

#: The module of each learner; on the command line it has the name of its module.
LEARNERS = names_in_stub(__name__, __file__)
__all__ = ["LEARNERS", "find_learner", *LEARNERS]
__getattr__, __dir__ = imported_on_use(__name__, LEARNERS)


def find_learner(name: str) -> Any:
    """The learner of a name, imported when first asked for; None when there is none."""
    return __getattr__(name) if name in LEARNERS else None
