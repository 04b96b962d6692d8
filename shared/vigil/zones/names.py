"""What may be the name of a time zone, and what is likely meant by another. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from ..words.nearest import nearest

_NAME: Final = re.compile(r"[A-Za-z][\w+-]*(/[A-Za-z][\w+-]*){0,3}", re.ASCII)
COPIES: Final = ("right/", "posix/")
"""Folders that repeat all zones; `right` counts leap seconds, which no clock of ours does."""
NO_ZONES: Final = ("localtime", "posixrules", "Factory")
"""Files among the zones that name none: what the machine happens to be set to, or nothing."""
_WINDOWS: Final = re.compile(r".* (Standard|Daylight) Time", re.IGNORECASE)


def is_name(name: str) -> bool:
    """Whether that can be a name, and no path to anything else.

    >>> is_name("America/Argentina/Ushuaia"), is_name("../etc/passwd"), is_name("localtime")
    (True, False, False)
    """
    return _NAME.fullmatch(name) is not None and name not in NO_ZONES


def plain(name: str) -> str:
    """Return the zone that a stored name stands for.

    >>> plain("right/Europe/Berlin"), plain("localtime"), plain("Europe/Berlin")
    ('Europe/Berlin', 'UTC', 'Europe/Berlin')
    """
    for folder in COPIES:
        name = name.removeprefix(folder)
    return "UTC" if name in NO_ZONES else name


NEAR: Final = 0.8
"""How alike a name is to the one that is likely meant, of 1."""


def refusal(name: str, known: Collection[str]) -> str:
    """Say why a name may not be given, and what to write instead; empty: it may.

    Args:
        known: the names that there are.

    >>> there = {"UTC", "Europe/Berlin", "America/New_York"}
    >>> refusal("Europe/Berlin", there)
    ''
    >>> refusal("europe/berlin", there)
    "'europe/berlin' is no IANA time zone; did you mean Europe/Berlin?"
    >>> refusal("New York", there)
    "'New York' is no IANA time zone; did you mean America/New_York?"
    >>> refusal("W. Europe Standard Time", there)
    "'W. Europe Standard Time' is Windows's name of a zone; write the IANA one, as Europe/Berlin"
    >>> refusal("Berln", there)
    "'Berln' is no IANA time zone; did you mean Europe/Berlin?"
    >>> refusal("right/Europe/Berlin", there)
    "'right/Europe/Berlin' counts leap seconds or is a copy; write Europe/Berlin"
    >>> refusal("localtime", there)
    "'localtime' is no IANA time zone; write its name, as Europe/Berlin"
    """
    if name in known:
        return ""
    shown = repr(name[:100])
    if name.startswith(COPIES) and plain(name) in known:
        return f"{shown} counts leap seconds or is a copy; write {plain(name)}"
    if _WINDOWS.fullmatch(name):
        return f"{shown} is Windows's name of a zone; write the IANA one, as Europe/Berlin"
    meant = _meant(name[:100], known)
    hint = f"did you mean {meant}?" if meant else "write its name, as Europe/Berlin"
    return f"{shown} is no IANA time zone; {hint}"


def _meant(name: str, known: Collection[str]) -> str:
    """Return the name that is likely meant; empty: none is near."""
    wanted = _folded(name)
    whole = {_folded(one): one for one in sorted(known, reverse=True)}
    cities = {folded.rpartition("/")[2]: one for folded, one in whole.items()}
    if wanted in whole or wanted in cities:
        return whole.get(wanted) or cities[wanted]
    near = nearest(wanted, whole, cutoff=NEAR)
    if near or "/" in wanted:
        return whole.get(near, "")
    return cities.get(nearest(wanted, cities, cutoff=NEAR), "")


def _folded(name: str) -> str:
    return name.strip().casefold().replace(" ", "_")
