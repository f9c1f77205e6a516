"""`polyplane demo`."""


def demo() -> None:
    """Train on three data sets, print a table, draw a polytope."""
