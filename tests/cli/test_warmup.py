"""`polyplane warmup` compiles every kernel."""

import json
import subprocess
import sys

#: In a process of its own: in this one, other tests have used the kernels.
CODE = """
import importlib, pkgutil
import polyplane.kernels
from polyplane.cli import app
try:
    app(["warmup", "--json"])
except SystemExit as end:
    assert end.code == 0
for module in pkgutil.iter_modules(polyplane.kernels.__path__):
    importlib.import_module(f"polyplane.kernels.{module.name}")
import polyplane.readers.kernels
from polyplane.kernels.jit import KERNELS
print([kernel.__qualname__ for kernel in KERNELS if not kernel.signatures])
"""


def test_every_kernel_is_compiled():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    *facts, missing = done.stdout.splitlines()
    assert missing == "[]"
    found = json.loads("".join(facts))
    assert found["variants"] > 2 * found["kernels"] > 40
    assert found["cache"]
