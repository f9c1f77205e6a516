"""The command line: one file per command."""

from typing import Annotated

import typer

from polyplane.cli._common import register
from polyplane.cli.demo import demo
from polyplane.cli.evaluate import evaluate
from polyplane.cli.explain import explain
from polyplane.cli.predict import predict
from polyplane.cli.train import train

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
for function in (demo, train, predict, evaluate, explain):
    register(app, function)


def _show_version(wanted: bool) -> None:
    if wanted:
        import polyplane

        typer.echo(f"polyplane {polyplane.__version__}")
        raise typer.Exit


@app.callback()
def polyplane(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Classifiers made of hyperplanes."""


def main() -> None:
    """Run the command line."""
    app()
