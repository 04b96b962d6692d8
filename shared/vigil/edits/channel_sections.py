"""Sections ``[channels.NAME]``, made of what somebody is asked for, and taken out again.

Secrets are in files of their own, which only their owner reads: `keys/channel-NAME-FIELD` of the
home. What can be told of a section before anybody is called is checked before it's written.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import msgspec

from ..channels.contract import Channel
from ..channels.kinds import BUILT_IN, GROUP, kind_of
from ..contracts import SOCKET
from ..errors import ConfigError, InvalidInput
from ..settings.config import Config, Settings
from ..subjects import check_part
from . import toml_sections

TABLE: Final = "channels"
VALUE_LENGTH_MAX: Final = 4096
NAMES_MAX: Final = 100


class PlannedChannel(msgspec.Struct, frozen=True, kw_only=True):
    """What adding a channel comes to."""

    name: str
    section: dict[str, Any]
    secrets: dict[str, str]
    """By the file of the home that is to have it."""


def offered() -> dict[str, type[Channel]]:
    """Return the kinds that say what they ask for, by name; those of other distributions that can
    be loaded, too."""
    found = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        try:
            found.setdefault(point.name, kind_of(point.name))
        except ConfigError:
            continue
    return {name: kind for name, kind in sorted(found.items()) if kind.asked is not None}


def plan(
    found: Config, kind: str, name: str, given: Mapping[str, str], user: str
) -> PlannedChannel:
    """Return what is to be written. Pure, but for the kinds that are installed.

    Args:
        name: of the channel; empty: as its kind, with a number if there is one already.
        given: by the names of fields that are asked for.
        user: whose it is, where a channel is somebody's.

    Raises:
        InvalidInput: naming the field and the reason, never a secret.
    """
    kinds = offered()
    if kind not in kinds:
        raise InvalidInput("kind", f"must be one of {', '.join(kinds)}")
    wanted = kinds[kind].asked or ()
    name = check_part("name", name) if name else _free(found, kind)
    if name == SOCKET or name in found.channels:
        raise InvalidInput("name", f"is taken: there is a channel {name} already")
    if unknown := sorted(set(given) - {one.name for one in wanted}):
        asked = ", ".join(one.name for one in wanted) or "nothing"
        raise InvalidInput(unknown[0], f"isn't asked for: {asked} is")
    section: dict[str, Any] = {"kind": kind}
    secrets: dict[str, str] = {}
    for one in wanted:
        value = given.get(one.name, "").strip()
        if not value:
            if one.is_needed:
                raise InvalidInput(one.name, "is missing")
        elif len(value) > VALUE_LENGTH_MAX or not value.isprintable():
            raise InvalidInput(one.name, "must be one line")
        elif one.is_secret:
            section[f"{one.name}_file"] = file = _file_of(name, one.name)
            secrets[file] = value
        else:
            section[one.name] = value
    if "user" in kinds[kind].__struct_fields__ and "user" not in section:
        section["user"] = user
    return PlannedChannel(name=name, section=section, secrets=secrets)


def add(settings: Settings, planned: PlannedChannel) -> str:
    """Write it, if it can work as far as that can be told here; return what is to be heeded.

    Raises:
        InvalidInput: it can't work; nothing is left of it.
        ConfigError: the file can't be changed safely, or would be no configuration.
        OSError: a file can't be written.
    """
    files = {settings.home / file: text for file, text in planned.secrets.items()}
    advice: list[str] = []

    def check() -> None:
        advice.append(_checked(settings.home, planned))

    toml_sections.add(settings.file, TABLE, planned.name, planned.section, files, check)
    return advice[0]


def remove(settings: Settings, name: str) -> None:
    """Take it out of the file, with the secrets that are kept for it.

    Raises:
        NotReady: there is none.
        ConfigError: it can't be done safely; the file is left as it was.
    """
    section = settings.config.channels.get(name)
    files = [
        settings.home / kept
        for one in (section and section.asked) or ()
        if getattr(section, f"{one.name}_file", "") == (kept := _file_of(name, one.name))
    ]
    toml_sections.remove(settings.file, TABLE, name, files)


def _file_of(name: str, field: str) -> str:
    return f"keys/channel-{name}-{field}"


def _free(found: Config, kind: str) -> str:
    names = (kind, *(f"{kind}-{number}" for number in range(2, NAMES_MAX)))
    for one in names:
        if one not in found.channels:
            return one
    raise InvalidInput("name", f"there are {NAMES_MAX} channels called {kind} already")


def _checked(home: Path, planned: PlannedChannel) -> str:
    """Return what to heed. Raises: InvalidInput."""
    try:
        channel = msgspec.convert(planned.section, kind_of(planned.section["kind"]))
    except msgspec.ValidationError as error:
        raise InvalidInput("given", str(error)) from error
    found = channel.examine(home)
    if found is None:
        return ""
    if found.state == "fail":
        field, mark, reason = found.found.partition(": ")
        raise (
            InvalidInput(field, reason)
            if mark
            else InvalidInput("kind", f"can't be used here: {found.found}")
        )
    return f"{found.found}: {found.advice}" if found.advice else ""
