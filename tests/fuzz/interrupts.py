"""Ctrl-C at any time of the first fit of a process, which imports Numba and loads or compiles kernels."""

import subprocess
import sys

LEARNERS = ["PegasosSVC", "MultiHyperplaneClassifier", "ConvexPolytopeClassifier", "CuttingPlaneSVC", "TableClassifier"]
#: Latest time of Ctrl-C after the process starts to fit, in seconds.
LATEST = 5.0
#: Fits until it is interrupted, and then once more. Ctrl-C must not be lost, and later fits must work.
CHILD = """
import os, signal, sys, threading, time
import numpy as np
import polyplane

signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
delay, learner = float(sys.argv[1]), getattr(polyplane, sys.argv[2])
X = np.random.default_rng(0).normal(size=(400, 5))
y = (np.abs(X[:, 0]) > 0.7).astype(int)

def interrupt():
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGINT)

alarm = threading.Thread(target=interrupt, daemon=True)
try:
    alarm.start()
    while alarm.is_alive():
        learner().fit(X, y)
    time.sleep(0.5)
    print("lost")
except KeyboardInterrupt:
    learner().fit(X, y).predict(X)
    print("fine")
"""


def interrupt(rng, folder):
    """A process that is interrupted while it fits for the first time, or soon after."""
    arguments = [str(rng.uniform(0.0, LATEST)), LEARNERS[rng.integers(len(LEARNERS))]]
    done = subprocess.run([sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "fine\n"), (arguments, done.stdout, done.stderr[-1000:])
