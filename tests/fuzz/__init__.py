"""Attacks on model files, readers, exports, fits and the command line: any input is taken as it is meant, or refused.

``make fuzz MINUTES=10`` (``python -m tests.fuzz --minutes 10``) goes on with new seeds until the time is up. A case is
a kind and a seed: ``python -m tests.fuzz --kind forge --seed 17`` runs one again. Seeds that have found something stay
in `KEPT`, and are run by the tests with some others.
"""

from tests.fuzz import commands, interrupts, models, tables, values

#: Each kind of attack is a function of a generator of random numbers and an empty folder, which raises what is wrong.
KINDS = {
    "cut": models.cut,
    "flip": models.flip,
    "forge": models.forge,
    "csv": tables.csv,
    "svmlight": tables.svmlight,
    "text": tables.text,
    "command": commands.command,
    "forge_table": models.forge_table,
    "forge_pipeline": models.forge_pipeline,
    "forms": values.forms,
    "messy": values.messy,
    "programs": values.programs,
    "interrupt": interrupts.interrupt,
    "forge_other": models.forge_other,
    "budget": models.budget,
}
#: Kinds whose cases take seconds: `make fuzz` runs one for every ten of the others, and the tests run none.
SLOW = ("interrupt",)
#: What has been found once.
KEPT = [
    ("forge", 1159),
    ("forge", 1405),
    ("forge", 1794790022),
    ("forge", 1794791235),
    ("forge_table", 2002614),
    ("forge_table", 2002694),
    ("forge_table", 2004347),
    ("forms", 20984),
    ("forge_other", 7004169),
]

__all__ = ["KEPT", "KINDS", "SLOW"]
