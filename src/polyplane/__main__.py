"""`python -m polyplane`: the command line."""

from polyplane.cli import main

main()
