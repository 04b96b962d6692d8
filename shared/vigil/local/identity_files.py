"""The agents of a home, and the files that say who each is (SPEC P-4): found, read, written."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ..settings.config import Config, Settings
from ..settings.credentials import write_private
from ..subjects import PART
from ..teams import DEFAULT_AGENT

FILES: Final = ("SOUL.md", "IDENTITY.md", "ROLE.md", "USER.md")
MEANINGS: Final = {
    "SOUL.md": "what it cares about, how it speaks",
    "IDENTITY.md": "who it is",
    "ROLE.md": "what it does",
    "USER.md": "what it should know about the person; not for a team",
}
FILE_BYTES_MAX: Final = 32 * 1024
CUT: Final = "\n\n[cut here: the file is larger than 32 kB]"


def agents_there(settings: Settings) -> tuple[str, ...]:
    """Return the names of the agents that there are: configured, or with a folder of their own."""
    folders = settings.agents.glob("*/") if settings.agents.is_dir() else ()
    named = {one.name for one in folders if PART.fullmatch(one.name)}
    return tuple(sorted({DEFAULT_AGENT, *settings.config.agents, *named}))


def naming(config: Config) -> Iterator[tuple[str, Any]]:
    """Yield the sections that have something to do with an agent, a channel or a hook, say, and
    where each is: what they name is their `agent`."""
    for kind in ("channels", "hooks", "watch", "mailboxes"):
        for name, section in getattr(config, kind).items():
            if getattr(section, "agent", ""):
                yield f"{kind}.{name}", section
    yield from ((f"grants.{grant.name}", grant) for grant in config.grants)


def digest_of(text: str) -> str:
    """Return what tells one text of a file from another.

    >>> digest_of("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def read_text(path: Path) -> str:
    """Read at most 32 kB of text; what is not UTF-8 is replaced, what is too long is cut.

    Raises:
        OSError: it can't be read, or is not a file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("not a regular file")  # a pipe would block the loop for good
    with path.open("rb") as file:
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) <= FILE_BYTES_MAX:
        return data.decode("utf-8-sig", "replace").strip()
    # A character that the limit cuts in two is dropped, not replaced.
    end = FILE_BYTES_MAX
    while end > FILE_BYTES_MAX - 3 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode("utf-8-sig", "replace").strip() + CUT


def is_whole(path: Path) -> bool:
    """Return whether `read_text` reads all that a file says, or there is none. Raises: OSError."""
    try:
        data = path.read_bytes() if path.exists() else b""
        data.decode()
    except UnicodeDecodeError:
        return False
    return len(data) <= FILE_BYTES_MAX


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all; where a link leads elsewhere, there. Raises: OSError."""
    write_private(path.resolve(), f"{text.strip()}\n".encode())
