"""What `vigil doctor` says of the machine's clock, as the timetable met it."""

from __future__ import annotations

import contextlib
import os
from typing import Final

from ..checks import Check, ok, warn
from ..errors import VigilError
from ..local import runfile
from ..sdk.client import connect
from ..settings.config import Settings

ADVICE: Final = (
    "keep it right, by NTP; `vigil cron history` has what ran by the clock that was ahead"
)


def clock(settings: Settings) -> Check | None:
    """Whether it was set back within the last days; None: nobody can tell."""
    client = connect(settings)
    is_asked = runfile.running(settings.run_file) is not None or "VIGIL_URL" in os.environ
    if not client.headers or not is_asked:
        return None
    with contextlib.suppress(KeyError, VigilError):
        found = [one["text"] for one in client.cron_findings() if one["what"] == "clock"]
        return warn(found[0], ADVICE) if found else ok("it went on evenly")
    return None
