"""Processes that live by a plan."""

import os
import signal
import subprocess
import sys
import tempfile
import traceback

from tests.soak.child import live

#: Seconds after which a life is one too long.
LONGEST = 600


class Interpreter:
    """A Python of its own: seconds to start, in which it may be killed too."""

    def __init__(self, plan):
        command = [sys.executable, "-m", "tests.soak.child", plan.to_json()]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.stdout, self.send_signal = self._process.stdout, self._process.send_signal

    def end(self):
        """How it ended, and what it said."""
        with self._process as process:
            said, complaint = process.communicate(timeout=LONGEST)
        return process.returncode, said, complaint


class Fork:
    """A copy of this process, which trains at once."""

    def __init__(self, plan):
        reading, writing = os.pipe()
        self._complaint = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(reading)
            os.dup2(writing, 1)
            os.dup2(self._complaint.fileno(), 2)
            _live_and_die(plan)
        os.close(writing)
        self.stdout = os.fdopen(reading)

    def send_signal(self, signum):
        """As to any process; one that has ended is not waited for yet, and its number not free."""
        os.kill(self._pid, signum)

    def end(self):
        """How it ended, and what it said."""
        with self.stdout, self._complaint:
            said = self.stdout.read()
            code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self._complaint.seek(0)
            return code, said, self._complaint.read()


def _live_and_die(plan):
    """End as an interpreter does, but at once."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        code = live(plan)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
