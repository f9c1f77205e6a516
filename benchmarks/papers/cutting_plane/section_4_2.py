"""Section 4.2: on POKER the exact line search stays at 0 for most of its iterations, the three-point search does not.

C = 1, tol = 0.01. Needs POLYPLANE_DATA.
"""

import tomllib
from pathlib import Path

from benchmarks.papers.cutting_plane import sets
from benchmarks.results import Results

EXPECTED = tomllib.loads((Path(__file__).parent / "expected.toml").read_text())["poker"]
MAX_ITER = 20_000

if __name__ == "__main__":
    results = Results(__file__, C=1.0, tol=0.01, max_iter=MAX_ITER)
    print(f"{'POKER':8} {'iterations':>11} {'paper':>6} {'seconds':>8} {'gap':>8} {'error, %':>9}")
    for search, key in {"OCA-T": "iterations_three_point", "OCA-E": "iterations_exact"}.items():
        sets.compiled(search)
        f = results.get(search, lambda search=search: sets.run(*sets.poker(), search, tol=0.01, max_iter=MAX_ITER))
        print(
            f"{search:8} {f['iterations']:11} {EXPECTED[key]:6} {f['time_s']:8.2f} {f['gap']:8.4f} {f['error']:9.2f}",
            flush=True,
        )
