"""What all commands share."""

import json
import re
import sys
import warnings

import pytest
import typer
from typer.testing import CliRunner

from polyplane.__main__ import main
from polyplane._plain import did_you_mean
from polyplane.cli import app
from polyplane.cli.common import PrintedTable, UserError, command, present, register


@pytest.fixture
def program():
    """A program of one command that does what it is told."""

    def make(action):
        @command("polyplane act now")
        def act(word: str = "x") -> None:
            """Act.

            At
            once.
            """
            action(word)

        made = typer.Typer(rich_markup_mode="rich")
        register(made, act)
        register(made, command()(lambda: None))
        return made

    return make


def raising(error):
    def act(_):
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UserError("Do\nthis."), 2, "polyplane act: Do this.\n"),
        (ValueError("Not so."), 2, "polyplane act: Not so.\n"),
        (
            FileNotFoundError(2, "No such file or directory", "x.csv"),
            2,
            "polyplane act: x.csv: No such file or directory.\n",
        ),
        (ImportError('pip install "polyplane[x]"'), 2, 'polyplane act: pip install "polyplane[x]"\n'),
        (MemoryError(), 2, "polyplane act: not enough memory; use --stream to read the rows in batches.\n"),
        (KeyboardInterrupt(), 130, "polyplane act: interrupted; no file has been written.\n"),
        (KeyboardInterrupt("interrupted; x is written."), 130, "polyplane act: interrupted; x is written.\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (KeyError("k"), 1, "polyplane act: internal error, KeyError: 'k' (use --debug to see the traceback).\n"),
    ],
)
def test_errors_are_one_sentence_and_a_code(program, error, code, sentence):
    result = CliRunner().invoke(program(raising(error)), ["act"])
    assert (result.exit_code, result.stderr, result.stdout) == (code, sentence, "")


def test_debug_shows_the_error_itself(program):
    result = CliRunner().invoke(program(raising(KeyError("k"))), ["act", "--debug"])
    assert isinstance(result.exception, KeyError)


def test_usage_errors_and_exits_are_left_alone(program):
    assert CliRunner().invoke(program(raising(typer.Exit(7))), ["act"]).exit_code == 7
    result = CliRunner().invoke(program(raising(typer.BadParameter("no"))), ["act"])
    assert result.exit_code == 2
    assert "Invalid value" in result.stderr


def test_warnings_are_notes(program):
    def act(_):
        warnings.warn("mind the\ngap", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    result = CliRunner().invoke(program(act), ["act"])
    assert result.exit_code == 0
    assert result.stderr == "note: mind the gap\n"


def test_help_has_examples_and_paragraphs(program):
    shown = CliRunner().invoke(program(print), ["act", "--help"]).stdout
    assert "At once." in shown
    assert "polyplane act now" in shown


TABLES = [
    PrintedTable("Facts", (), [("rows", 3), ("share", 0.1234567891)]),
    PrintedTable("Rows", ("a", "b"), [("x[y]", 1.0)]),
]


def test_results_are_tab_separated_when_piped(capsys):
    present({}, TABLES, as_json=False)
    assert capsys.readouterr().out == "rows\t3\nshare\t0.123457\n\na\tb\nx[y]\t1\n"


def test_results_are_an_object_with_json(capsys):
    import numpy as np

    present({"a": np.arange(2), "b": np.float64(0.5), "c": float("nan"), "d": [np.int64(1)]}, TABLES, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": [0, 1], "b": 0.5, "c": None, "d": [1]}


def test_without_typer_the_sentence_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("polyplane.cli")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    sentence = 'polyplane: The command line requires typer and rich: pip install "polyplane[cli]".\n'
    assert capsys.readouterr().err == sentence


def test_ctrl_c_while_the_commands_are_imported(capsys, monkeypatch):
    class Interrupting:
        def find_spec(self, name, *_):
            if name == "polyplane.cli":
                raise KeyboardInterrupt

    for name in [name for name in sys.modules if name.startswith("polyplane.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "polyplane: interrupted.\n"


def test_results_are_tables_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    present({}, TABLES, as_json=False)
    shown = capsys.readouterr().out
    assert "Facts" in shown
    assert "x[y]" in shown
    assert "\t" not in shown


def test_near_words_are_offered():
    assert did_you_mean("alhpa", ["alpha", "beta"]) == " Did you mean 'alpha'?"
    assert did_you_mean("zzz", ["alpha"]) == ""


def test_the_demo_as_json(monkeypatch, tmp_path):
    module = sys.modules["polyplane.cli.demo"]
    monkeypatch.setattr(module, "_warm_up", lambda: None)
    monkeypatch.setattr(module, "_measure", lambda *_: {"error": 1.0, "fit": 2.0, "predict": 3.0, "size": 4})
    monkeypatch.setattr(module, "_draw", lambda *_: "")
    result = CliRunner().invoke(app, ["demo", "--json", "--out", str(tmp_path / "x.png")])
    found = json.loads(result.stdout)
    assert len(found) == 3
    assert found["Breast cancer: 30 measurements, 2 classes"]["LinearSVC"] == {
        "error": 1.0,
        "fit": 2.0,
        "predict": 3.0,
        "size": 4,
    }


def test_the_table_of_the_demo_fits_a_terminal(capsys, monkeypatch):
    module = sys.modules["polyplane.cli.demo"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    names = ("LinearSVC", module.KERNEL, "Polyplane, multi-hyperplane")
    slow, quick = ({"error": 31.34, "fit": 123.45, "predict": t, "size": 400_000} for t in (4321.0, 0.5))
    task = module.Task("Inside or outside of a hexagon", {}, None, [0], None, None)
    present({}, [module._table(task, {name: slow if name == module.KERNEL else quick for name in names})], False)
    lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("Polyplane, multi-hyperplane" in line and "8,642 x" in line for line in lines)
