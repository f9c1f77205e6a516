"""What the makers ask of their parameters."""


def check_counts(**counts: int) -> None:
    """Refuse a number of things below 1."""
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be 1 or more, not {value}.")


def check_shares(**shares: float) -> None:
    """Refuse a share outside of 0 to 1."""
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is a share, from 0 to 1, not {value}.")
