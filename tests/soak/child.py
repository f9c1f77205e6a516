"""One life, in a fork or in a process of its own: ``python -m tests.soak.child PLAN``, with a `Plan` as JSON."""

import errno
import json
import random
import signal
import sys
import time

#: How a life ends that its plan ends: a bad batch was refused, the disk was full.
REFUSED, FULL = 3, 4


def jumping(clock, size):
    """A clock that jumps by up to `size` seconds now and then."""
    offset = 0.0

    def read():
        nonlocal offset
        if random.random() < 0.01:
            offset = random.uniform(-size, size)
        return clock() + offset

    return read


def source_of(plan):
    """A function that returns the batches from a row on, or, where it cannot `seek`, all of them."""
    from tests.soak.stream import BAD, N_ROWS

    def batches(start=0):
        numbers = [number for number in range(plan.n_batches) if number not in plan.left_out]
        for number in numbers[start // N_ROWS :]:
            if plan.pause:
                time.sleep(plan.pause)
            batch = plan.batch(number)
            yield BAD[plan.bad][0](*batch) if number == plan.bad_at and plan.bad else batch
            if not told:
                told.append(print("going", flush=True))

    told = []
    return batches if plan.seek else lambda: batches()


def train(plan):
    from tests.soak.stream import LABELS

    machine = plan.estimator()
    machine.fit_stream(
        source_of(plan),
        classes=LABELS,
        passes=plan.passes,
        checkpoint=plan.checkpoint,
        checkpoint_every=plan.every,
        resume=True,
        prefetch=plan.prefetch,
        time_limit=plan.time_limit,
    )


def live(plan):
    """Train by a plan."""
    from tests.soak.stream import BAD

    if plan.clock:
        time.perf_counter, time.time = jumping(time.perf_counter, plan.clock), jumping(time.time, plan.clock)
    if plan.largest_file is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (plan.largest_file, plan.largest_file))
    try:
        train(plan)
    except (ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EFBIG):
            return FULL
        if plan.bad is None or BAD[plan.bad][1] not in str(error):
            raise
        print("refused", flush=True)
        if not plan.again:
            return REFUSED
        plan.bad = None  # the batch as it should be
        train(plan)
    return 0


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored where the parent was started so
    from tests.soak.stream import Plan

    return live(Plan(**json.loads(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
