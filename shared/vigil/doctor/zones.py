"""What `vigil doctor` says of the database of time zones."""

from __future__ import annotations

from ..checks import Check, fail, ok
from ..settings.config import Settings
from ..zones import database
from ..zones.database import ZoneDatabase

UNTOLD = "of a version that it doesn't tell"


def zones(settings: Settings) -> Check:
    """Whose database holds, of which version: the newer of the machine's and the package's."""
    return compared(database.of_machine(), database.of_package())


def compared(machine: ZoneDatabase | None, package: ZoneDatabase | None) -> Check:
    """Say which of the two holds."""
    used = database.newer(machine, package)
    if used is None:
        return fail("there is no database of time zones", "pip install tzdata")
    other = machine if used is package else package
    whose, others = ("package's", "machine's") if used is package else ("machine's", "package's")
    beside = "there is no other" if other is None else f"the {others} is {other.version or UNTOLD}"
    return ok(f"{used.version or UNTOLD}, the {whose}; {beside}")
