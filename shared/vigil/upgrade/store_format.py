"""In which form a home's data is, so that an older program doesn't work on what it can't read.

The number is raised by whoever changes what is stored so that older versions can't read it. What
they could go on with is a step alone (`vigil.upgrade.steps`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from .. import __version__
from ..errors import ConfigError
from ..settings.credentials import write_private

FORMAT: Final = 1
FILE: Final = "format"


class StoreFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds; a home from before there was one has the format 1."""

    format: int
    vigil: str
    """The version that put it into that format."""
    step: int = 0
    """How many of the steps it has seen."""


def check(data: bytes, where: str) -> StoreFormat:
    """Refuse data of a newer format. Raises: ConfigError."""
    try:
        found = msgspec.json.decode(data, type=StoreFormat)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{where}: {FILE} can't be read ({error}): restore a backup") from error
    if found.format > FORMAT:
        raise ConfigError(
            f"{where} was last used by Vigil {found.vigil}, and {__version__} can't read what that "
            "stores: install that version or a newer one, or restore a backup into a new home"
        )
    return found


def check_home(home: Path) -> StoreFormat | None:
    """Refuse a home of a newer format; None: nothing was noted yet. Raises: ConfigError."""
    try:
        return check((home / FILE).read_bytes(), str(home))
    except FileNotFoundError:
        return None


def write(home: Path, found: StoreFormat) -> None:
    """Note what a home is in from now on. Raises: OSError."""
    write_private(home / FILE, msgspec.json.encode(found) + b"\n")
