"""Bearer tokens: opaque, kept only as hashes, and looked up in memory.

A token is 256 random bits, so its SHA-256 needs no salt and no slow hash, and a lookup by that
hash tells an attacker's clock nothing about the token. Every gateway watches the bucket, so a
request costs one hash and one dictionary lookup, and a revoked token ends within milliseconds.

This module decides who a token speaks for. What that person may do is the gateway's matter.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog

from ..bus.bus import Bus
from ..bus.kv import KeyValue, Watch
from ..contracts import Instant
from ..errors import InvalidInput
from ..subjects import ANYBODY, Scope
from ..teams import Teams, check_user, may_act, owner_of, reach_of

log = structlog.get_logger("vigil.tokens")

BUCKET: Final = "TOKENS"
PREFIX: Final = "pat_"
LINK_PREFIX: Final = "cal_"
"""Of a token that is a part of a link, for programs that can't send a header."""
ALL_SCOPES: Final = "*"
CALENDAR: Final = "calendar"
"""To read when one's rows of the timetable are due, and nothing else."""
_FORM: Final = re.compile(r"(?:pat|cal)_[A-Za-z0-9_-]{43}", re.ASCII)
_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Token(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the bucket stores under the hash of a token."""

    user: str
    created_at: Instant
    is_admin: bool = False
    name: str = ""
    """For a person to tell tokens apart: "laptop"."""
    expires_at: Instant | None = None
    scopes: tuple[str, ...] = (ALL_SCOPES,)
    """What it is good for: ``*`` for all that its user may, ``calendar`` for that alone."""

    @property
    def is_link(self) -> bool:
        """Whether it only opens a feed."""
        return ALL_SCOPES not in self.scopes

    def is_live(self, now: datetime) -> bool:
        """Return whether it counts at `now` (aware UTC)."""
        return self.expires_at is None or now < self.expires_at


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who makes a request: a live token's user. `token_id` is the token's hash."""

    user: str
    is_admin: bool
    token_id: str
    teams: Teams = {}

    def may_reach(self, owner: str, agent: str) -> bool:
        """Return whether this principal may read and act for `owner` with that agent."""
        return self.is_admin or may_act(self.user, owner, agent, self.teams)

    def owner_of(self, agent: str) -> str:
        """Return who owns what the agent does for this principal."""
        return owner_of(self.user, agent, self.teams)

    @property
    def reach(self) -> tuple[Scope, ...]:
        """Whose things this principal may read; an admin, anybody's."""
        return (ANYBODY,) if self.is_admin else reach_of(self.user, self.teams)

    @property
    def nearest(self) -> tuple[Scope, ...]:
        """The same, where something is looked for by its id: their own first, as what was imported
        for somebody else has the ids that it had."""
        own = reach_of(self.user, self.teams)
        return (*own, ANYBODY) if self.is_admin else own


def token_id_of(token: str) -> str:
    """Return the hash under which `token` is stored: 64 hex digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_token(text: str) -> bool:
    """Whether that has the form of a token, of whichever kind."""
    return _FORM.fullmatch(text) is not None


async def create(
    bus: Bus,
    *,
    user: str,
    now: datetime,
    is_admin: bool = False,
    name: str = "",
    expires_at: datetime | None = None,
    scope: str = ALL_SCOPES,
) -> str:
    """Make a token and return its text, which is shown once and stored nowhere.

    Args:
        scope: what it is good for.

    Raises:
        InvalidInput: nobody may be called `user`.
        OutcomeUnknown: it may be stored; nobody knows its text, so make another.
    """
    check_user(user)
    text = (PREFIX if scope == ALL_SCOPES else LINK_PREFIX) + secrets.token_urlsafe(32)
    facts: dict[str, Any] = {"name": name, "expires_at": expires_at, "scopes": (scope,)}
    token = Token(user=user, created_at=now, is_admin=is_admin, **facts)
    await KeyValue(bus, BUCKET).put(token_id_of(text), msgspec.json.encode(token))
    return text


async def revoke(bus: Bus, token: str) -> None:
    """End a token, given as its text or as its hash. Harmless if there is none.

    Raises:
        InvalidInput: neither a token nor the hash of one.
    """
    if is_token(token):
        token = token_id_of(token)
    elif not _HASH.fullmatch(token):
        raise InvalidInput("token", "must be a token (pat_…, cal_…) or its hash (64 hex digits)")
    await KeyValue(bus, BUCKET).delete(token)


class Tokens:
    """The live tokens, kept up to date by a watch."""

    def __init__(self, bus: Bus, teams: Teams) -> None:
        self._teams = teams
        self._bucket = KeyValue(bus, BUCKET)
        self._tokens: dict[str, Token] = {}
        self._watch: Watch | None = None
        self._listeners: list[Callable[[str], None]] = []

    @classmethod
    async def watch(cls, bus: Bus, teams: Teams) -> Tokens:
        """Read all tokens, and follow what changes."""
        tokens = cls(bus, teams)
        tokens._watch = await tokens._bucket.watch(tokens._on_change)
        return tokens

    def on_end(self, listener: Callable[[str], None]) -> None:
        """Call `listener(token_id)` when a token was revoked."""
        self._listeners.append(listener)

    def _on_change(self, token_id: str, value: bytes | None) -> None:
        # A value that can't be read grants nothing, and must not end the watch.
        token = None if value is None else _decode(token_id, value)
        if token is None:
            self._tokens.pop(token_id, None)
            for listener in self._listeners:
                listener(token_id)
            return
        self._tokens[token_id] = token

    def find(self, text: str, now: datetime, scope: str = ALL_SCOPES) -> Principal | None:
        """Return who `text` speaks for at `now` (aware UTC), or None.

        Args:
            scope: what it has to be good for.
        """
        return self.find_id(token_id_of(text), now, scope)

    def find_id(self, token_id: str, now: datetime, scope: str = ALL_SCOPES) -> Principal | None:
        """Return who the token with that hash speaks for at `now`, or None."""
        token = self._tokens.get(token_id)
        return None if token is None else self._principal(token_id, token, now, scope)

    def live(self, now: datetime) -> dict[str, Token]:
        """Return everybody's tokens that count at `now`, by their hash."""
        return {id_: token for id_, token in self._tokens.items() if token.is_live(now)}

    async def find_fresh(
        self, text: str, now: datetime, scope: str = ALL_SCOPES
    ) -> Principal | None:
        """Ask the broker for a token that the watch hasn't shown yet: one made just now.

        Costs a round trip, so the caller limits how often strangers make it happen.

        Raises:
            Unavailable: the broker can't be asked.
        """
        token_id = token_id_of(text)
        if not is_token(text) or token_id in self._tokens:
            return None
        entry = await self._bucket.get(token_id)
        token = None if entry is None else _decode(token_id, entry.value)
        # Not kept: only the watch knows the order of what happened to it.
        return None if token is None else self._principal(token_id, token, now, scope)

    async def close(self) -> None:
        if self._watch is not None:
            await self._watch.close()

    def _principal(
        self, token_id: str, token: Token, now: datetime, scope: str
    ) -> Principal | None:
        if not token.is_live(now) or scope not in token.scopes:
            return None
        return Principal(
            user=token.user, is_admin=token.is_admin, token_id=token_id, teams=self._teams
        )


def _decode(token_id: str, value: bytes) -> Token | None:
    try:
        return msgspec.json.decode(value, type=Token)
    except (msgspec.MsgspecError, ValueError) as error:
        log.warning("unreadable", action="tokens.unreadable", id=token_id[:8], error=str(error))
        return None
