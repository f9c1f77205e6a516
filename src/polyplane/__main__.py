"""`polyplane` and `python -m polyplane`: the command line."""

import sys

MISSING = 'polyplane: The command line requires typer and rich: pip install "polyplane[cli]".'


def main() -> None:
    """Run the command line."""
    try:
        from polyplane.cli import main as run

        run()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(MISSING, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # outside of a command
        print("polyplane: interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
