"""Functions shared by all commands: one-sentence errors, tables for terminals, text and JSON for programs."""

from __future__ import annotations

import functools
import inspect
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, BinaryIO, NamedTuple, NoReturn, get_type_hints

import typer
from typer.core import TyperCommand

from polyplane._plain import plain, visible, visible_json
from polyplane.kernels.notice import compilation_shown

#: Exit codes. Invalid options also exit with 2.
FAILED, USER_ERROR, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141

#: The option of all commands that report figures.
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as one JSON object.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback on errors.")]
#: A parameter and its description in a docstring.
_PARAMETER = re.compile(r"^(\w+) : .*\n((?:    .*\n?)+)", re.MULTILINE)


class UserError(Exception):
    """An error that the user can correct; its message is one sentence with the remedy."""


class PrintedTable(NamedTuple):
    """A table: formatted on a terminal, tab-separated in a pipe. Without `columns` it has no header."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def option(metavar: str | None = None, *names: str, panel: str | None = None, **how: Any) -> Any:
    """Declare an option of a command, which the docstring of the command or of its dataclass describes."""
    return typer.Option(*names, metavar=metavar, rich_help_panel=panel, **how)


def command(
    *examples: str, without_number: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function into a command: errors become one sentence and an exit code; ``--debug`` shows the traceback.

    A parameter that is a dataclass stands for the options that are its fields. The help is that of the docstrings:
    their sections "Parameters" describe the options. The `examples` are command lines shown at the end of the help.
    Options in `without_number` can be given without their number, and then have the value listed there.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters = {each.name: each for each in _described(function)}
        groups: dict[str, Any] = {name: p.annotation for name, p in parameters.items() if is_dataclass(p.annotation)}
        expanded = [q for name, p in parameters.items() for q in (_described(groups[name]) if name in groups else [p])]

        @functools.wraps(function)
        def run(*, debug: bool = False, **options: Any) -> None:
            with one_sentence(function.__name__, debug), compilation_shown():
                for name, group in groups.items():
                    options[name] = group(**{each.name: options.pop(each.name) for each in fields(group)})
                function(**options)

        switch = inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Debug)
        run.__signature__ = inspect.Signature([*expanded, switch])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (*expanded, switch)} | {"return": None}
        run.examples = examples  # type: ignore[attr-defined]
        run.without_number = without_number or {}  # type: ignore[attr-defined]
        return run

    return decorate


def _described(owner: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function or a dataclass, with their descriptions in the docstrings as help."""
    docs = [each.__doc__ for each in reversed(getattr(owner, "__mro__", (owner,)))]
    helps = {name: _one_line(text) for doc in docs for name, text in _PARAMETER.findall(inspect.cleandoc(doc or ""))}
    hints, found = get_type_hints(owner, include_extras=True), []
    for each in inspect.signature(owner).parameters.values():
        for declared in getattr(hints[each.name], "__metadata__", ()):
            declared.help = declared.help or helps.get(each.name)
        found.append(each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY))
    return found


def register(app: typer.Typer, function: Any) -> None:
    """Add a command to the program, with its examples at the end of the help."""

    class Command(TyperCommand):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            words: list[str] = []
            for word, following in zip(args, [*args[1:], ""], strict=False):
                is_short = word in function.without_number and not _is_number(following)
                words += [word, function.without_number[word]] if is_short else [word]
            return super().parse_args(ctx, words)

    epilog = "\n\n".join(["[bold]Examples[/]", *(f"  {line}" for line in function.examples)])
    app.command(help=paragraphs(function.__doc__), epilog=epilog if function.examples else None, cls=Command)(function)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def paragraphs(text: str | None) -> str:
    """Convert a docstring to help text: the terminal, not the source, determines the line breaks."""
    before, _, _ = inspect.cleandoc(text or "").partition("\nParameters\n---")
    return "\n\n".join(_one_line(part) for part in before.split("\n\n"))


@contextmanager
def one_sentence(name: str, debug: bool) -> Iterator[None]:
    """Turn errors into one sentence on standard error and an exit code, and warnings into notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # columns were matched by name before
        warnings.filterwarnings("ignore", "How columns are read")  # the tables of `train` list them
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        try:
            yield
        except BrokenPipeError:  # as in `| head`
            _forget_stdout()
            raise typer.Exit(PIPE_CLOSED) from None
        except (KeyboardInterrupt, UserError, ValueError, OSError, ImportError, MemoryError) as error:
            if debug:
                raise
            code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else USER_ERROR
            _leave(f"polyplane {name}: {_sentence(error)}", code)
        except Exception as error:
            if debug or type(error).__module__.partition(".")[0] in ("click", "typer"):
                raise  # a usage error or an exit: for the framework
            what = f"{type(error).__name__}: {error}".rstrip(": ")
            _leave(f"polyplane {name}: internal error, {what} (use --debug to see the traceback).", FAILED)


def replace_closed_streams() -> None:
    """Replace closed standard streams: otherwise a file could get their descriptor, and printed text would go into it.

    Writing to a closed standard output raises an error, as the operating system would; reading from a closed standard
    input is refused by the reader. Messages to a closed standard error are lost.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        if name != "stdin":
            raw: Any = io.FileIO(number, "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(raw, write_through=True))


def refuse_overwriting(out: str | None, *inputs: str | None) -> None:
    """Raise an error if an output file is one of the input files, also under another name or as standard input."""
    if out is None or out == "-" or not os.path.isfile(out):
        return
    for path in inputs:
        try:
            is_read = path is not None and os.path.samestat(os.stat(out), os.fstat(0) if path == "-" else os.stat(path))
        except OSError:  # the file does not exist, or standard input is closed
            continue
        if is_read:
            raise UserError(f"{out}: this file is read by the same command; write to another one.")


@contextmanager
def output(out: str) -> Iterator[BinaryIO]:
    """Open standard output, or a file that appears when it is complete."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from polyplane.files import replace_file

    with replace_file(out) as file:
        yield file


def note(text: str) -> None:
    """Print one line on standard error."""
    typer.echo(f"note: {visible(_one_line(text))}", err=True)


def present(content: Mapping[str, Any], tables: Iterable[PrintedTable], as_json: bool) -> None:
    """Print the results of a command: `tables`, or with `as_json` its `content`."""
    if as_json:
        typer.echo(visible_json(json.dumps(plain(content), ensure_ascii=False, allow_nan=False)))
    elif sys.stdout.isatty():
        _present_rich(tables)
    else:
        typer.echo("\n\n".join("\n".join(_tabbed(table)) for table in tables))


def present_facts(title: str, facts: Mapping[str, Any], as_json: bool) -> None:
    """Print the results of a command that are names and values."""
    present(facts, [PrintedTable(title, (), list(facts.items()))], as_json)


def show_number(value: Any) -> str:
    """Format a number with six digits, or a label on one line with escapes for control characters."""
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


def listed(names: Iterable[Any], most: int = 10) -> str:
    """List the first names, and the number of the others."""
    found = [str(name) for name in names]
    return ", ".join(found[:most]) + (f" and {len(found) - most:,} more" if len(found) > most else "")


def _sentence(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return str(error) or "interrupted; no file has been written."
    if isinstance(error, MemoryError):
        return "not enough memory; use --stream to read the rows in batches."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'standard output'}: {error.strerror}."
    return _one_line(str(error)) or type(error).__name__


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _leave(sentence: str, code: int) -> NoReturn:
    typer.echo(visible(sentence), err=True)
    raise typer.Exit(code) from None


def _forget_stdout() -> None:
    """Discard unwritten output, so that the interpreter raises no error at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file, as in tests
        return


def _tabbed(table: PrintedTable) -> Iterator[str]:
    if table.columns:
        yield "\t".join(map(visible, table.columns))
    for row in table.rows:
        yield "\t".join(show_number(cell) for cell in row)


def _present_rich(tables: Iterable[PrintedTable]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    style: dict[str, Any] = {"title_justify": "left", "title_style": "", "pad_edge": False, "box": box.SIMPLE_HEAD}
    for table in tables:
        title = f"[bold]{escape(visible(table.title))}[/]" if table.title else None
        drawn = Table(title=title, show_header=bool(table.columns), **style)
        width = max((len(row) for row in table.rows), default=len(table.columns))
        for j in range(width):
            numeric = bool(table.columns) and any(isinstance(row[j], int | float) for row in table.rows)
            header = escape(visible(table.columns[j])) if table.columns else ""
            drawn.add_column(header, justify="right" if numeric else "left")
        for row in table.rows:
            drawn.add_row(*(escape(show_number(cell)) for cell in row))
        console.print(drawn)
