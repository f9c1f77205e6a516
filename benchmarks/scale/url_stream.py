"""One pass over a drifting stream of 2.4 million URLs with 3.2 million features: K=10, with and without forgetting.

Each day is tested on before it is trained on. Run from the repository root:
``python -m benchmarks.scale.url_stream [--part 0.1]``; `--part` shrinks the rows of a day and the features.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from benchmarks.data.malicious_urls import make_url_stream
from benchmarks.harness.results import Results
from benchmarks.scale.measuring import in_a_fresh_process, peak_memory

from polyplane import ConvexPolytopeClassifier, PegasosSVC

DAYS, ROWS_PER_DAY, FEATURES = 120, 20_000, 3_200_000
#: alpha times the number of rows. The last planes are used, not their average: over the first 24 days of the full
#: stream the average of a single plane errs by a third more, as it comes late to what is new.
VISITS = 1000
#: In days; None: nothing is forgotten.
HALF_LIVES = (None, 40, 20, 10)


def one_pass(machine, part, half_life):
    """Errors day by day, memory and time of a machine."""
    stream = make_url_stream(DAYS, int(ROWS_PER_DAY * part), int(FEATURES * part))
    rows = None if half_life is None else half_life * stream.rows_per_day
    began = time.perf_counter()
    machine.fit_stream(stream, classes=[-1, 1], half_life=rows)
    seconds, reading = time.perf_counter() - began, sum(machine.history_["reading"])
    errors = 100 * np.array(machine.history_["progressive_error"][1:])
    return {
        "errors": np.round(errors, 3).tolist(),
        "error": round(float(errors.mean()), 4),
        "error_last_month": round(float(errors[-30:].mean()), 4),
        "memory_mb": peak_memory(),
        "seconds_making_rows": round(reading, 2),
        "seconds_training": round(seconds - reading, 2),
    }


def polytope(part, half_life):
    """The convex polytope machine, two polytopes of ten planes."""
    alpha = VISITS / (DAYS * ROWS_PER_DAY * part)
    settings = {"min_entropy": 0.8, "average": False, "random_state": 0, "n_jobs": -1}
    machine = ConvexPolytopeClassifier(10, enclosed="each", alpha=alpha, **settings)
    return one_pass(machine, part, half_life)


def linear(part, half_life):
    """A single plane."""
    alpha = VISITS / (DAYS * ROWS_PER_DAY * part)
    return one_pass(PegasosSVC(alpha, average=False, random_state=0), part, half_life)


def draw(figures, path):
    """The errors of a week, day by day."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    for name, found in figures.items():
        weekly = np.convolve(found["errors"], np.full(7, 1 / 7), mode="valid")
        ax.plot(np.arange(len(weekly)) + 8, weekly, label=name)
    ax.set(xlabel="day", ylabel="progressive error in % (mean of a week)")
    ax.set_title("One pass over make_url_stream: forgetting costs more than it brings", loc="left")
    ax.set_ylim(bottom=0)
    ax.legend()
    fig.savefig(path, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", type=float, default=1.0)
    part = parser.parse_args().part
    results = Results(__file__, alpha=f"{VISITS} / rows", min_entropy=0.8, n_planes=10, average=False)
    drawn = {}
    for kind, run, half_lives in (("K=10", polytope, HALF_LIVES), ("one plane", linear, (None, 20))):
        for half_life in half_lives:
            label = f"{kind}, " + ("nothing forgotten" if half_life is None else f"half-life {half_life} days")
            name = f"{DAYS * int(ROWS_PER_DAY * part)} rows, {label}"
            found = results.get(name, lambda run=run, h=half_life: in_a_fresh_process(run, part, h))
            drawn[label] = found
            print(
                f"{label:32} error {found['error']:6.3f} %  last month {found['error_last_month']:6.3f} %  "
                f"memory {found['memory_mb']:6.0f} MB  rows {found['seconds_making_rows']:6.1f} s  "
                f"training {found['seconds_training']:6.1f} s"
            )
    draw(drawn, Path(__file__).parent / "results" / f"url_stream{'' if part == 1 else '_part'}.png")
