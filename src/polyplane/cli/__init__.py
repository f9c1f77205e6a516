"""The command line: one file per command."""

from typing import Annotated

import typer

from polyplane.cli.common import paragraphs, register, replace_closed_streams
from polyplane.cli.compress import compress
from polyplane.cli.demo import demo
from polyplane.cli.evaluate import evaluate
from polyplane.cli.explain import explain
from polyplane.cli.export import export
from polyplane.cli.info import info
from polyplane.cli.predict import predict
from polyplane.cli.scorecard import scorecard
from polyplane.cli.train import train
from polyplane.cli.warmup import warmup

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
for function in (demo, train, predict, evaluate, explain, scorecard, info, export, compress, warmup):
    register(app, function)


def _show_version(wanted: bool) -> None:
    if wanted:
        import polyplane

        typer.echo(f"polyplane {polyplane.__version__}")
        raise typer.Exit


HELP = """Train, evaluate, explain and export classifiers made of hyperplanes.

Data can be svmlight, CSV, Parquet, Arrow, Excel, JSON, SQLite or DuckDB files, compressed or not, or standard input.
Results are printed as tables on a terminal, as tab-separated text in a pipe, and as a JSON object with --json.

Exit codes: 0 success, 1 internal error, 2 invalid options or data (with a one-sentence message), 130 interrupted by
Ctrl-C, 141 closed pipe.
"""


@app.callback(help=paragraphs(HELP))
def polyplane(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Handle the options that come before a command."""


def main() -> None:
    """Run the command line."""
    replace_closed_streams()
    app()
