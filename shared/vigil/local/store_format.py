"""In which form a home's data is, so that an older program doesn't work on what it can't read.

The number is raised by whoever changes what is stored so that older versions can't read it.
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


def note(home: Path) -> None:
    """Note that the home is in our format from now on. Raises: ConfigError, OSError."""
    found = check_home(home)
    if found is None or found.format < FORMAT:
        ours = StoreFormat(format=FORMAT, vigil=__version__)
        write_private(home / FILE, msgspec.json.encode(ours) + b"\n")
