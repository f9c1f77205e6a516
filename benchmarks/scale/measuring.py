"""How the scaling experiments measure time and memory."""

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor


def peak_memory():
    """The most memory that this process has held so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1e6 if sys.platform == "darwin" else 1e3), 1)


def least_seconds(*calls, repeats=5):
    """The least time of each call, in turns: what else a machine does only ever adds to a time."""
    seconds = [float("inf")] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            began = time.perf_counter()
            call()
            seconds[i] = min(seconds[i], time.perf_counter() - began)
    return seconds


def in_a_fresh_process(function, *arguments):
    """What `function` returns, called in a process of its own: the peak of its memory is that of this call alone."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
