"""On whose clocks instants are shown: a person's at a terminal, UTC in what a program may read."""

from __future__ import annotations

import contextlib
import functools
import sys
from datetime import UTC, datetime
from typing import Final

from vigil.errors import VigilError
from vigil.zones.database import zone_named
from vigil.zones.wall import local, on_clocks

from . import output

UTC_NAMES: Final = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "Zulu", "Etc/Zulu", "Etc/Universal"})


@functools.cache
def zone_name() -> str:
    """Return the zone's name: that of the person whose token is used, else as it's configured."""
    if not output.is_screen(sys.stdout):
        return "UTC"
    found = _of_person()
    return "UTC" if found in UTC_NAMES else found


def _of_person() -> str:
    from vigil.settings import config

    from . import options

    with contextlib.suppress(VigilError, OSError):
        return str(options.client().person()["timezone"])
    with contextlib.suppress(VigilError):
        return config.load_right().config.person.timezone
    return "UTC"


def instant(at: object) -> str:
    """Return a point in time as people read it, without the zone's name; empty: there is none.

    >>> instant("2026-01-05T10:00:00.5+01:00"), instant(None)
    ('2026-01-05 09:00:00', '')
    """
    if not at:
        return ""
    moment = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
    name = zone_name()
    zone = UTC if name == "UTC" else zone_named(name)
    return f"{local(moment, zone):%Y-%m-%d %H:%M:%S}"


def zoned(at: object) -> str:
    """Return a point in time with its zone; empty: there is none.

    >>> zoned("2026-01-05T10:00:00+01:00")
    '2026-01-05 09:00:00 UTC'
    """
    return f"{instant(at)} {zone_name()}" if at else ""


def told(text: str) -> str:
    """Return what a service said with its instants on these clocks.

    >>> told("It is planned for 2026-01-05 09:00:00 UTC.")
    'It is planned for 2026-01-05 09:00:00 UTC.'
    """
    name = zone_name()
    return text if name == "UTC" else on_clocks(text, zone_named(name))
