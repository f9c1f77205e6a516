"""Command lines over files that may be anything."""

from typer.testing import CliRunner

from polyplane.cli import app
from tests.fuzz import models

#: What a program may say of itself: done, or a sentence about what is wrong.
ALLOWED = (0, 2)


def command(rng, folder):
    """A command with a model and rows, either of which may be damaged."""
    content, X, y = models.saved(int(rng.integers(len(models.MACHINES))))
    content = bytearray(content)
    if rng.random() < 0.3:
        content[rng.integers(len(content))] ^= 1
    (folder / "model").write_bytes(bytes(content))
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row))
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    raw = bytearray("\n".join(lines).encode())
    for _ in range(rng.integers(3)):
        raw[rng.integers(len(raw))] = rng.integers(256)
    (folder / "rows").write_bytes(bytes(raw))
    model, rows = str(folder / "model"), str(folder / "rows")
    choices = [
        ["info", model], ["info", model, "--json"], ["predict", model, rows],
        ["predict", model, rows, "--scores", "--json"],
        ["evaluate", model, rows], ["explain", model, rows], ["explain", model, rows, "--row", "0", "--json"],
        ["export", model, "--to", "json"], ["info", rows], ["predict", rows, rows], ["predict", model, model],
        ["train", rows, "--resume", model, "--out", str(folder / "new")], ["predict", model, str(folder)],
        ["train", rows, "--learner", "pegasos", "--stream", "--batch-rows", "7", "--out", str(folder / "new")],
    ]  # fmt: skip
    arguments = choices[rng.integers(len(choices))]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in ALLOWED, (arguments, result.stderr, result.exception)
    if result.exit_code == 2:
        assert result.stderr.rstrip("\n").splitlines()[-1].startswith("polyplane "), result.stderr
