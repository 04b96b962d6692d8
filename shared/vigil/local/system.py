"""What the machine tells of the person at it: their time zone and their language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..settings.sections import Person
from ..zones.database import refusal_of

_LOCALE: Final = re.compile(r"([a-z]{2,3})(?:_([A-Z]{2}))?(?:[.@].*)?", re.ASCII)
_ZONES: Final = "zoneinfo/"


def person_of(environ: Mapping[str, str], etc: Path = Path("/etc")) -> Person:
    """Return the default for a first vigil.toml."""
    return Person(timezone=zone(environ, etc), language=language(environ))


def zone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """Return the IANA name of the machine's zone: by `TZ`, `timezone`, or the link `localtime`.

    >>> zone({"TZ": ":Europe/Berlin"}), zone({"TZ": "CET-1CEST"}, Path("/nowhere"))
    ('Europe/Berlin', 'UTC')
    """
    for name in (environ.get("TZ", "").removeprefix(":"), _written(etc), _linked(etc)):
        if name and not refusal_of(name):
            return name
    return "UTC"


def _written(etc: Path) -> str:
    try:
        return (etc / "timezone").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _linked(etc: Path) -> str:
    try:
        target = str((etc / "localtime").readlink())
    except OSError:
        return ""
    return target.partition(_ZONES)[2]


def language(environ: Mapping[str, str]) -> str:
    """Return the tag of the language of messages; empty: none is set.

    >>> language({"LANG": "de_AT.UTF-8"}), language({"LC_ALL": "C", "LANG": "de_DE"})
    ('de-AT', '')
    """
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    found = _LOCALE.fullmatch(next((environ[name] for name in names if environ.get(name)), ""))
    return "" if found is None else "-".join(part for part in found.groups() if part)
