"""The command: ``python -m tests.mutants [WORD ...]``, all mutations or those with a word in their file or text."""

import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants import FAILED, MUTANTS, PASSED, ROOT, run

#: A mutation may make a loop endless: its tests are then killed, and so is it.
LONGEST = 300
#: What the package and its tests import: where processes can be forked, it is imported once.
IMPORTS = ["numba", "pytest", "scipy.optimize", "sklearn.datasets", "sklearn.linear_model", "sklearn.svm"]
PROCESSES = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")


def fails(source, tests):
    """Whether tests fail with the package in `source`; an error if none was run."""
    log = source.with_name("log.txt")
    process = PROCESSES.Process(target=run, args=(str(source), str(log), tests))
    process.start()
    process.join(LONGEST)
    if process.is_alive():
        process.kill()
        process.join()
    if process.exitcode not in (PASSED, FAILED) and process.exitcode >= 0:
        raise RuntimeError(f"{tests}: the process ended with {process.exitcode}\n{log.read_text()[-4000:]}")
    return process.exitcode != PASSED


def main(words):
    """Apply one mutation at a time to a copy of the package; list the survivors."""
    chosen = [m for m in MUTANTS if not words or any(word in m.file or word in m.old for word in words)]
    survivors, began = [], time.perf_counter()
    if hasattr(os, "fork"):
        PROCESSES.set_forkserver_preload(IMPORTS)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        for tests in dict.fromkeys(mutant.tests for mutant in chosen):
            if fails(source, tests):
                sys.exit(f"These tests fail without a mutation: {tests}")
        for number, mutant in enumerate(chosen, 1):
            path = source / "polyplane" / mutant.file
            text = path.read_text(encoding="utf-8")
            if text.count(mutant.old) != 1:
                sys.exit(f"{mutant.file} must have this text once: {mutant.old!r}")
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
            is_killed = fails(source, mutant.tests)
            path.write_text(text, encoding="utf-8")
            what = "killed  " if is_killed else "SURVIVED"
            print(f"{number:3} of {len(chosen)}  {what}  {mutant.file}: {mutant.old.strip()!r}", flush=True)
            survivors += [] if is_killed else [mutant]
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed, {(time.perf_counter() - began) / 60:.1f} minutes")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main(sys.argv[1:])
