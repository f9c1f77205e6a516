"""The command: ``python -m tests.fuzz``."""

import argparse
import faulthandler
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from tests.fuzz import KINDS, SLOW

#: A case that takes more seconds of the processor is a finding.
LONGEST = 60.0


def run(kind, seed):
    """One case; what it raises is a finding."""
    rng = np.random.default_rng([list(KINDS).index(kind), seed])
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        KINDS[kind](rng, Path(folder))
        seconds = time.process_time() - began
        assert seconds < LONGEST or kind in SLOW, f"{seconds:.0f} s"


def main():
    """Run cases until the time is up, and list what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="the most cases of a kind")
    parser.add_argument("--kind", choices=KINDS, help="one kind alone")
    parser.add_argument("--seed", type=int, help="one case alone, with its traceback")
    parser.add_argument("--first", type=int, default=int(time.time()), help="the first seed; default: the time")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else list(KINDS)
    if options.seed is not None:
        for kind in kinds:
            run(kind, options.seed)
        return 0
    faulthandler.enable()
    end, seed, cases, findings = time.monotonic() + 60 * options.minutes, options.first, Counter(), []
    with tempfile.NamedTemporaryFile("w", prefix="polyplane-fuzz-", delete=False) as at:  # where a crash would be
        print(f"Cases are noted in {at.name} before they are run.", flush=True)
        while time.monotonic() < end and seed < options.first + options.cases:
            for kind in kinds:
                if kind in SLOW and seed % 10 and len(kinds) > 1:
                    continue
                at.seek(0)
                at.write(f"{kind} {seed}\n")
                at.flush()
                try:
                    run(kind, seed)
                except Exception as error:
                    findings.append((kind, seed))
                    line = traceback.format_exception_only(error)[-1].strip()
                    print(f"found: --kind {kind} --seed {seed}: {line[:300]}", flush=True)
                cases[kind] += 1
            seed += 1
    print("\n".join(f"{kind:10s}{n:8d} cases" for kind, n in cases.items()))
    print(f"{len(findings)} findings; seeds {options.first} to {seed - 1}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
