"""Validation of the parameters of generators."""


def check_counts(**counts: int) -> None:
    """Raise an error if a count is below 1."""
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name}={value} must be 1 or more.")


def check_shares(**shares: float) -> None:
    """Raise an error if a fraction is outside the range from 0 to 1."""
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name}={value} must be a fraction from 0 to 1.")
