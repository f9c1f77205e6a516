"""The command line: one file per command."""

import typer

from polyplane.cli.demo import demo

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(demo)


@app.callback()
def polyplane() -> None:
    """Classifiers made of hyperplanes."""


def main() -> None:
    """Run the command line."""
    app()
