"""A training in many lives, and what ends them."""

import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

import polyplane
from polyplane.files.estimator import describe
from polyplane.files.values import Packer
from tests.soak.child import FULL, REFUSED
from tests.soak.process import Fork, Interpreter
from tests.soak.stream import BAD, LABELS, Plan

#: Bytes of the file system that fills up, where one may be mounted.
DISK = 16 << 20
SIGNALS = {
    "SIGKILL": [signal.SIGKILL],
    "SIGTERM": [signal.SIGTERM],
    "SIGINT": [signal.SIGINT],
    "SIGINT twice": [signal.SIGINT, signal.SIGINT],
    "SIGTERM, SIGKILL": [signal.SIGTERM, signal.SIGKILL],
    "SIGSTOP, SIGCONT": [signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL],
    "full disk, SIGTERM": [signal.SIGTERM],
    "full disk, SIGINT": [signal.SIGINT],
}
KINDS = [*SIGNALS, "bad batch", "bad batch", "full disk", "file too large", "time limit"]
FULL_DISK = ("full disk", "full disk, SIGTERM", "full disk, SIGINT")
#: Figures that no two trainings have in common.
OWN = ("fitted.history_.time", "fitted.history_.reading")


@contextmanager
def small_disk(folder):
    """A folder on a small file system, or, where mounting is not permitted, the folder itself."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", disk]
    mounted = bool(shutil.which("mount")) and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield disk
    finally:
        if mounted:
            subprocess.run(["umount", disk], check=True)


class Training:
    """One machine on one stream, life after life.

    Parameters
    ----------
    machine : int
        Which of the `MACHINES`.
    disk : Path
        Where the checkpoint is.
    n_batches : int
        The length of the stream.
    chance : random.Random
        Decides what happens.
    counts : Counter
        Counts what has happened.
    pause : float
        Seconds that each batch takes at least.
    """

    def __init__(self, machine, disk, n_batches, chance, counts, pause=0.0):
        self.chance, self.counts = chance, counts
        self.folder = Path(tempfile.mkdtemp(dir=disk))
        self.checkpoint = self.folder / "checkpoint"
        self.plan = Plan(machine, str(self.checkpoint), n_batches, chance.randrange(2**31), pause=pause)
        self.n_learned = 0
        some = [self.plan.batch(number) for number in range(3)]
        self.plan.estimator().fit_stream(some, classes=LABELS)  # compiled, for the forks

    def run(self, end, kinds=None):
        """Live until the stream is learned, and compare with the twin; the number of lives.

        What happens is drawn until the time `end`, or is what `kinds` names; then nothing does.
        """
        n_lives, named = 0, iter(kinds or ())
        try:
            while self.n_learned < self.plan.total:
                drawn = self.chance.choice(KINDS) if time.monotonic() < end else None
                self._live(next(named, None) if kinds else drawn)
                n_lives += 1
            self._compare()
        finally:
            shutil.rmtree(self.folder)
        return n_lives

    def _live(self, kind):
        """One life, and what must hold after it."""
        chance = self.chance
        plan = replace(
            self.plan,
            seek=chance.random() < 0.8,
            prefetch=chance.choice([0, 0, 1, 3]),
            every=chance.choice([1e-3, 0.02, 0.2]),
            clock=chance.choice([0.0, 0.0, 0.0, 1.0, 1e4, 1e9]),
        )
        match kind:
            case "bad batch":
                self._spoil(plan)
            case "time limit":
                plan.time_limit, plan.clock = chance.uniform(0.01, 0.3), 0.0
            case "file too large":
                plan.largest_file = chance.choice([0, 100, 4000])
        self.counts["clock jumps"] += plan.clock > 0
        with self._full_disk() if kind in FULL_DISK else nullcontext():
            code, said, complaint = self._process(plan, SIGNALS.get(kind, []))
        self.counts[f"bad batch: {plan.bad}" if "refused" in said else kind or "undisturbed"] += 1
        self._check(kind, plan, code, said, complaint)

    def _spoil(self, plan):
        """Make one of the batches to come a bad one."""
        ahead = self.chance.choice([0, 1, 20, 100])
        if self.n_learned + ahead >= plan.total:
            return
        plan.bad, plan.again = self.chance.choice(list(BAD)), self.chance.random() < 0.3
        if plan.again:  # a time limit ends this life before the stream does, so the clock does not jump
            plan.time_limit, plan.clock = self.chance.uniform(0.1, 0.5), 0.0
        numbers = [number for number in range(plan.n_batches) if number not in plan.left_out]
        plan.bad_at = numbers[(self.n_learned + ahead) % len(numbers)]

    @contextmanager
    def _full_disk(self):
        """No room for another checkpoint, or soon none."""
        filler = self.folder / "filler"
        room = shutil.disk_usage(self.folder).free
        if room > DISK:
            yield  # no file system of our own
            return
        with filler.open("wb") as file:
            file.write(b"\0" * max(0, room - self.chance.choice([0, 4096, 20_000])))
        yield
        filler.unlink()

    def _process(self, plan, signals):
        """Run a life, with signals at some moment; how it ended, and what it said."""
        process = (Interpreter if self.chance.random() < 0.05 else Fork)(plan)
        early = bool(signals) and self.chance.random() < 0.1
        said = "" if early else process.stdout.readline()
        for signum in signals:
            time.sleep(self.chance.uniform(0.0, 0.3 if signum is signals[0] else 0.05))
            process.send_signal(signum)
        code, more, complaint = process.end()
        return code, said + more, complaint

    def _check(self, kind, plan, code, said, complaint):
        """The life ended as planned, and left a checkpoint that is whole and no older than the one before."""
        allowed = {0, *(-signum for signum in SIGNALS.get(kind, [])), *([REFUSED] if plan.bad else [])}
        allowed |= {FULL} if kind in (*FULL_DISK, "file too large") else set()
        assert code in allowed, (kind, plan, code, complaint)
        if code == REFUSED and plan.passes == 1 and self.chance.random() < 0.5 and plan.bad_at >= self.n_learned:
            self.plan.left_out.append(plan.bad_at)
            self.counts["batches left out"] += 1
        left = [path for path in self.folder.iterdir() if path.name.endswith(".tmp")]
        assert not left or code == -signal.SIGKILL, (kind, plan, left)
        for path in left:
            self.counts["unfinished files"] += 1
            path.unlink()
        n_learned = polyplane.load(self.checkpoint).n_iter_ if self.checkpoint.exists() else 0
        assert self.n_learned <= n_learned <= plan.total, (kind, plan, self.n_learned, n_learned)
        if code == 0 and plan.time_limit is None and kind not in SIGNALS:
            assert n_learned == plan.total, (kind, plan, n_learned, said, complaint)
        self.n_learned = n_learned

    def _compare(self):
        """The model is that of a twin to which nothing happened, deep inside too."""
        twin = replace(self.plan, checkpoint=str(self.folder / "twin"), pause=0.0)
        code, said, complaint = self._process(twin, [])
        assert code == 0, (code, said, complaint)
        mine, theirs = (polyplane.load(path) for path in (self.checkpoint, twin.checkpoint))
        assert mine.planes_ == theirs.planes_, self.plan
        packers = Packer(), Packer()
        texts = [describe(model, packer) for model, packer in zip((mine, theirs), packers, strict=True)]
        assert texts[0] == texts[1], self.plan
        for name, array in packers[0].arrays.items():
            if name not in OWN:
                np.testing.assert_array_equal(array, packers[1].arrays[name], err_msg=f"{name} {self.plan}")
