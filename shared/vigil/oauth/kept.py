"""What is kept of a sign-in to an MCP server: a file in the home's `keys`, for its owner alone.

Whoever signs in writes it, whoever uses it exchanges the tokens in it. It holds what the sign-in
found out of the server that gives tokens, so that one that expires is exchanged there, and only
there, also after a restart.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from ..files import alone
from ..settings.credentials import write_private

SIGN_IN_AGAIN: Final = "sign in again: `vigil mcp sign-in {name}`, or the console's page of servers"
FOLDER: Final = "keys"


LIFE_MAX_S: Final = 10 * 365 * 86_400


class KeptSignIn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sign-in to one server."""

    url: str
    """The server's, as it was signed in to: another one never gets these tokens."""
    id: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))
    """Of this sign-in: tokens are exchanged within one; another may be another person's."""
    client: dict[str, Any]
    """What the server that gives tokens knows us as (RFC 7591)."""
    tokens: dict[str, Any]
    """The tokens (RFC 6749)."""
    expires_at: float | None = None
    """When the access token expires, in seconds since 1970; None: nobody said."""
    server: dict[str, Any]
    """The server that gives tokens (RFC 8414)."""
    resource: dict[str, Any] | None = None
    """What the MCP server says of itself (RFC 9728)."""
    refused: str = ""
    """Why it's good no more; empty: it is."""
    scope_wanted: str = ""
    """Rights that a call was refused for, to be asked for at the next sign-in."""

    def __repr__(self) -> str:
        return f"KeptSignIn(url={self.url!r}, <tokens hidden>)"


def until(now_s: float, expires_in: int | None) -> float | None:
    """Return when a token expires, by what was said of it: any number at all.

    >>> until(1.0, 60), until(1.0, None), until(1.0, 10**400) == until(1.0, 10**10)
    (61.0, None, True)
    """
    return None if expires_in is None else now_s + max(0, min(expires_in, LIFE_MAX_S))


def path_of(home: Path, name: str) -> Path:
    """Return where a home keeps the sign-in to a server."""
    return home / FOLDER / f"mcp-{name}.oauth"


def read(home: Path, name: str, url: str) -> KeptSignIn | None:
    """Return the sign-in to a server; None: there is none, or it was to another URL."""
    found = _read(home, name)
    return found if found is not None and found.url == url else None


def _read(home: Path, name: str) -> KeptSignIn | None:
    try:
        return msgspec.json.decode(path_of(home, name).read_bytes(), type=KeptSignIn)
    except (OSError, msgspec.MsgspecError):
        return None


def write(home: Path, name: str, kept: KeptSignIn) -> None:
    """Keep a sign-in. Raises: OSError."""
    write_private(path_of(home, name), msgspec.json.encode(kept))


def id_of(home: Path, name: str) -> str:
    """Return the id of the sign-in that is kept, to whichever URL; empty: there is none."""
    found = _read(home, name)
    return "" if found is None else found.id


def write_new(home: Path, name: str, made: KeptSignIn, before: str) -> bool:
    """Keep a sign-in -> False: no, as somebody signed in to another URL of it meanwhile.

    Args:
        before: `id_of` when it began.

    Raises:
        OSError: it can't be written.
    """
    with alone(home / FOLDER):
        there = _read(home, name)
        if there is not None and there.url != made.url and there.id != before:
            return False
        write(home, name, made)
        return True


def forget(home: Path, name: str) -> None:
    """Keep a sign-in no more; harmless if there is none."""
    path_of(home, name).unlink(missing_ok=True)


def revise(
    home: Path, name: str, seen: KeptSignIn, change: Callable[[KeptSignIn], KeptSignIn]
) -> None:
    """Change what is kept, unless the person has signed in anew, or out, since it was seen.

    Raises: OSError.
    """
    with alone(home / FOLDER):
        now = read(home, name, seen.url)
        if now is not None and now.id == seen.id:
            write(home, name, change(now))


def state_of(home: Path, name: str, url: str) -> str:
    """Return `signed in`, why it's good no more, or nothing if nobody signed in."""
    kept = read(home, name, url) if url else None
    return "" if kept is None else kept.refused or "signed in"
