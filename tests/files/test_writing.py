"""Writing model files: the old file or the new one, whatever happens."""

import os
import stat
import subprocess
import sys
import threading

import pytest

import polyplane
from tests.models import make, model_with_everything


@pytest.fixture(scope="module")
def small():
    return model_with_everything()


def folder_of(path):
    return sorted(entry.name for entry in path.parent.iterdir())


class TestWriting:
    @pytest.fixture
    def old(self, small, tmp_path):
        path = tmp_path / "model.safetensors"
        polyplane.save(small, path)
        return path

    @pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
    def test_a_full_disk_costs_nothing(self, small, old, failing, monkeypatch):
        import polyplane.files.container as atomic

        before = old.read_bytes()

        def full(*args):
            raise OSError(28, "No space left on device")

        if failing == "write":
            monkeypatch.setattr("polyplane.files.file.write_container", full)
        else:
            monkeypatch.setattr(atomic.os, failing, full)
        with pytest.raises(OSError, match=r"No space left on device: '.*/model\.safetensors'"):
            polyplane.save(small, old)
        monkeypatch.undo()
        assert old.read_bytes() == before
        assert folder_of(old) == [old.name]

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, the device that is always full")
    def test_what_is_not_a_plain_file_is_not_replaced(self, small):
        with pytest.raises(OSError, match="/dev/full exists and is not a regular file"):
            polyplane.save(small, "/dev/full")

    def test_a_limit_on_the_size_of_files_costs_nothing(self, small, old):
        """The system itself refuses to write on: the same as a full disk."""
        code = (
            "import resource, signal, sys, polyplane\n"
            "model = polyplane.load(sys.argv[1])\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "try:\n    polyplane.save(model, sys.argv[1])\nexcept OSError as error:\n    print(error)"
        )
        before = old.read_bytes()
        ran = subprocess.run([sys.executable, "-c", code, old], check=True, capture_output=True, text=True)
        assert "File too large" in ran.stdout
        assert old.read_bytes() == before
        assert folder_of(old) == [old.name]

    def test_permissions_and_links_stay(self, small, old):
        old.chmod(0o640)
        link = old.with_name("link")
        link.symlink_to(old)
        inode = old.stat().st_ino
        polyplane.save(small, link)
        assert link.is_symlink()
        assert stat.S_IMODE(old.stat().st_mode) == 0o640
        assert old.stat().st_ino != inode

    def test_a_long_name(self, small, tmp_path):
        polyplane.save(small, tmp_path / ("m" * 250))
        assert polyplane.load(tmp_path / ("m" * 250)).planes_ == small.planes_

    def test_a_missing_folder(self, small, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"none/m'$"):
            polyplane.save(small, tmp_path / "none" / "m")

    def test_readers_see_the_old_or_the_new(self, old):
        """Two readers beside a writer that goes back and forth between two models."""
        models = [make("PegasosSVC", {"max_iter": n}).fit([[0.0], [1.0]], [0, 1]) for n in (1, 3)]
        polyplane.save(models[0], old)
        failures, done = [], threading.Event()

        def read():
            while not done.is_set():
                try:
                    assert polyplane.load(old).n_iter_ in (1, 3)
                except Exception as error:
                    failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for i in range(40):
            polyplane.save(models[i % 2], old)
        done.set()
        for thread in threads:
            thread.join()
        assert failures == []

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_killed_at_any_moment(self, old):
        """`kill -9`, twenty times, of a process that does nothing but save: the file is always a whole one."""
        ran = subprocess.run([sys.executable, "-c", KILLING, old], check=True, capture_output=True, text=True)
        assert set(ran.stdout.split()) <= {"1", "2", "3"}
        assert len(ran.stdout.split()) == 20
        assert len(folder_of(old)) > 1, "no process was killed while it wrote"


#: Prints the number of steps of the model in the file after each kill.
KILLING = """
import itertools, os, random, signal, sys, time
import numpy, polyplane

path, model, rng = sys.argv[1], polyplane.load(sys.argv[1]), random.Random(0)
for _ in range(20):
    saver = os.fork()
    if saver == 0:
        for model.n_iter_ in itertools.cycle((1, 2)):
            polyplane.save(model, path, metadata={"ballast": numpy.zeros(50_000 * model.n_iter_)})
    time.sleep(rng.uniform(0.0, 0.1))
    os.kill(saver, signal.SIGKILL)
    os.waitpid(saver, 0)
    print(polyplane.load(path).n_iter_)
"""
