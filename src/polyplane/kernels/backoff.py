"""Back-off: a row whose margin is ample is not visited for 1, 3, 7, ... epochs."""

from polyplane.kernels._jit import kernel


@kernel
def next_patience(patience: int, is_ample: bool, longest: int) -> int:
    """For how many visits to skip a row that was just visited, `longest` at the most; 0 when its margin is thin."""
    return min(2 * patience + 1, longest) if is_ample else 0
