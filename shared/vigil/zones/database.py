"""The database of time zones that holds: the newer of the machine's and the one of `tzdata`.

`zoneinfo` takes the machine's wherever there is one, however old. But governments change their
clocks at short notice, and a stable distribution brings the news months later: then each instant
ahead is an hour off. So both are read, and the newer one counts, for whatever has a zone.

A process reads it once: an update holds from the next start on. Nothing that lies ahead is stored
as an instant alone if a clock on a wall was meant, so all of it is reckoned anew then.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from .names import is_name, plain, refusal

VERSION_FILES: Final = ("tzdata.zi", "+VERSION")
"""What tells the version: the first as `# version 2026f`, the second, of macOS, as `2026f`."""
PACKAGE: Final = "tzdata"


class ZoneDatabase(NamedTuple):
    """A database: a folder with a file per zone."""

    version: str
    """As `2026f`, so the greater is the newer; empty: it tells none."""
    folder: Traversable
    is_package: bool
    """Whether it is the package's, and not the machine's."""


def of_folder(folder: Traversable, *, is_package: bool = False) -> ZoneDatabase | None:
    """Return what lies in a folder; None: no zones do."""
    try:
        if not (folder / "UTC").is_file():
            return None
    except OSError:
        return None
    return ZoneDatabase(_version(folder), folder, is_package)


def _version(folder: Traversable) -> str:
    for name in VERSION_FILES:
        try:
            with (folder / name).open("r", encoding="utf-8") as file:
                first = file.readline(100)
        except (OSError, UnicodeDecodeError):
            continue
        return first.removeprefix("# version ").strip()
    return ""


def of_machine(folders: Iterable[str] | None = None) -> ZoneDatabase | None:
    """Return the one that `zoneinfo` would take; None: the machine has none.

    Args:
        folders: where it may be; None: where `zoneinfo` looks (`PYTHONTZPATH`).
    """
    found = (of_folder(Path(each)) for each in (zoneinfo.TZPATH if folders is None else folders))
    return next((one for one in found if one is not None), None)


def of_package() -> ZoneDatabase | None:
    """Return the one of the package `tzdata`; None: it isn't installed."""
    try:
        return of_folder(resources.files(PACKAGE) / "zoneinfo", is_package=True)
    except ModuleNotFoundError:
        return None


def newer(machine: ZoneDatabase | None, package: ZoneDatabase | None) -> ZoneDatabase | None:
    """Return the one that holds; the machine's, if it is as new: somebody looks after it."""
    if machine is None or package is None:
        return machine or package
    return package if package.version > machine.version else machine


@cache
def current() -> ZoneDatabase | None:
    """Return the one that holds in this process; None: there is none at all."""
    return newer(of_machine(), of_package())


@cache
def zone_named(name: str) -> ZoneInfo:
    """Return a zone by its IANA name, each time the same object.

    A name that may not be given any more, but was stored, stands for what it says: `right/…` and
    `posix/…` are the zone itself.

    Raises:
        KeyError: there is none of that name.
    """
    wanted, database = plain(name), current()
    if database is None or not is_name(wanted):
        raise KeyError(name)
    try:
        return _read(database, wanted)
    except (OSError, ValueError):
        # One of the two may leave out names of old, as Debian's does.
        other = of_machine() if database.is_package else of_package()
        with suppress(OSError, ValueError):
            if other is not None:
                return _read(other, wanted)
        raise KeyError(name) from None


def _read(database: ZoneDatabase, name: str) -> ZoneInfo:
    """Raises: OSError, ValueError: it has no such zone."""
    with database.folder.joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def refusal_of(name: str) -> str:
    """Say why a name may not be given, and what to write instead; empty: it may."""
    if plain(name) == name:
        with suppress(KeyError):
            zone_named(name)
            return ""
    return refusal(name, {one for one in zoneinfo.available_timezones() if is_name(one)})
