"""What the tests of the commands share: running them, and the data that they take."""

import json

import numpy as np
import pyarrow as pa
from typer.testing import CliRunner

from polyplane.cli import app

#: Options for a quick training of a matrix learner, and of a table.
QUICK = ["--set", "max_iter=5"]
QUICK_TABLE = ["--set", "n_estimators=1", "--set", "preparation=standard", "--set", "n_planes=1", "--set", "max_iter=5"]


def run(*arguments, code=0, text=None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    return result


def refused(*arguments, text=None):
    """The one sentence of a refusal."""
    result = run(*arguments, code=2, text=text)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, result.stderr
    return lines[0]


def told(*arguments, **options):
    return json.loads(run(*arguments, "--json", **options).stdout)


def people(n_rows, seed):
    """People: who earns much follows from age and work; numbers, texts, dates, booleans, gaps, an id, a constant."""
    rng = np.random.default_rng(seed)
    age, work = rng.integers(18, 80, n_rows), rng.choice(["State", "Private, Inc.", "Own"], n_rows)
    rich = (age > 45) ^ (work == "Own")
    return pa.table(
        {
            "person": [f"p{seed}-{i}" for i in range(n_rows)],
            "age": [None if i % 11 == 3 else int(a) for i, a in enumerate(age)],
            "work": [None if i % 13 == 5 else w for i, w in enumerate(work.tolist())],
            "since": [f"20{10 + i % 9}-0{1 + i % 7}-11" for i in range(n_rows)],
            "owner": (rng.random(n_rows) < 0.5).tolist(),
            "country": ["US"] * n_rows,
            "income": np.where(rich, ">50K", "<=50K").tolist(),
        }
    )
