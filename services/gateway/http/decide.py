"""What the gateway decides, without I/O: who may come in, what is readable, what is an answer.

Pure: time comes in, nothing goes out. The shell around it is in the other modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from vigil.contracts import FollowUp, Said, SendMessage, State, Turn
from vigil.errors import InvalidInput
from vigil.subjects import token_of

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
KEY_LENGTH_MAX: Final = 256
CLIENT_LENGTH_MAX: Final = 256

_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?", re.ASCII)
_ORIGIN: Final = re.compile(r"https?://(\S+)", re.ASCII | re.IGNORECASE)
# The closing quote is optional, so that every match runs to its end and the scan is linear.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")


class TooLarge(InvalidInput):
    """Input beyond a limit of size."""


# ---------------------------------------------------------------- who may come in


def allowed_hosts(configured: Iterable[str], bound: str) -> frozenset[str]:
    """Return the names under which the gateway may be addressed: loopback and `configured`.

    >>> sorted(allowed_hosts(["Vigil.Example"], "0.0.0.0"))
    ['127.0.0.1', '::1', 'localhost', 'vigil.example']
    """
    names = {name.lower().strip("[]") for name in configured}
    return LOOPBACK | names | ({bound.lower()} - {"0.0.0.0", "::", ""})  # noqa: S104


def host_of(header: str) -> str | None:
    """Return the lower-case name in a Host header, without port; None if it's malformed.

    >>> host_of("LOCALHOST:8420"), host_of("[::1]:80"), host_of("a b"), host_of("127.0.0.1:x")
    ('localhost', '::1', None, None)
    """
    match = _HOST.fullmatch(header)
    if match is None:
        return None
    return (match[1] or match[2]).lower()


def is_host_allowed(header: str, allowed: frozenset[str]) -> bool:
    """Return whether a request with that Host header is meant for us, not rebound to us."""
    host = host_of(header)
    return host is not None and host in allowed


def is_origin_allowed(header: str, allowed: frozenset[str]) -> bool:
    """Return whether a page of that origin may talk to us. "null" may not.

    >>> is_origin_allowed("http://localhost:3000", LOOPBACK)
    True
    >>> is_origin_allowed("https://localhost.evil.example", LOOPBACK)
    False
    """
    match = _ORIGIN.fullmatch(header)
    return match is not None and is_host_allowed(match[1], allowed)


def bearer_of(header: str) -> str | None:
    """Return the token of an Authorization header, or None if it has another form.

    >>> bearer_of("Bearer pat_x"), bearer_of("bearer pat_x"), bearer_of("Basic abc")
    ('pat_x', 'pat_x', None)
    """
    scheme, _, token = header.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token and " " not in token else None


def allowance(
    left: float, elapsed_s: float, *, rate_per_s: float, burst: int
) -> tuple[float, float]:
    """Take one from a token bucket -> (what is left, seconds to wait; 0: granted).

    >>> allowance(0.0, 0.5, rate_per_s=2.0, burst=10)
    (0.0, 0.0)
    >>> allowance(0.0, 0.25, rate_per_s=2.0, burst=10)
    (0.5, 0.25)
    """
    left = min(left + elapsed_s * rate_per_s, float(burst))
    if left >= 1.0:
        return left - 1.0, 0.0
    return left, (1.0 - left) / rate_per_s


# ---------------------------------------------------------------- what is readable


def is_too_deep(data: bytes, depth_max: int) -> bool:
    """Return whether JSON nests deeper than `depth_max`, without recursion, in linear time.

    It's meant for JSON that can be decoded; what is broken may count as too deep.

    >>> is_too_deep(b'{"a": "[[[[[["}', 2), is_too_deep(b"[[[1]]]", 2), is_too_deep(b"[[1]]", 2)
    (False, True, False)
    """
    if data.count(b"[") + data.count(b"{") <= depth_max:
        return False
    brackets = _STRING.sub(b"", data).translate(_ONE_KIND, _NO_BRACKETS)
    if b"[" * (depth_max + 1) in brackets:
        return True
    # Each pass takes the innermost level away.
    for _ in range(depth_max):
        size = len(brackets)
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
        if len(brackets) == size:
            return True
    return True


def check_text(field: str, text: str, *, bytes_max: int) -> str:
    """Return `text` if it may be said.

    Raises:
        InvalidInput: it's empty, blank, or has a NUL.
        TooLarge: it's longer than `bytes_max` in UTF-8.
    """
    # Characters are at most four bytes: only a long text needs to be encoded to be measured.
    if 4 * len(text) > bytes_max and (size := len(text.encode())) > bytes_max:
        raise TooLarge(field, f"must have at most {bytes_max} bytes, has {size}")
    if not text or text.isspace():
        raise InvalidInput(field, "must not be empty")
    if "\0" in text:
        raise InvalidInput(field, "must not contain NUL")
    return text


def check_length(field: str, value: str, length_max: int) -> str:
    """Return `value` if it's not empty and not too long. Raises: InvalidInput."""
    if not value:
        raise InvalidInput(field, "must not be empty")
    if len(value) > length_max:
        raise InvalidInput(field, f"must have at most {length_max} characters, has {len(value)}")
    return value


_UNKNOWN: Final = re.compile(r"unknown field `(.*?)`", re.DOTALL)
_MISSING: Final = re.compile(r"missing required field `(.*?)`")
_PATH: Final = re.compile(r" - at (`key` in )?`\$\.?(.*?)`$")


def complaint(error: str) -> tuple[str, str]:
    """Split a decoder's message -> (field, reason); the field is "body" if it names none.

    >>> complaint("Expected `str`, got `int` - at `$.text`")
    ('text', 'expected `str`, got `int`')
    >>> complaint("Expected `str` of length >= 1 - at `key` in `$.env`")
    ('env', 'a name in it: expected `str` of length >= 1')
    >>> complaint("Object contains unknown field `color`")
    ('color', 'is not a known field')
    >>> complaint("JSON is malformed: invalid character (byte 0)")
    ('body', 'JSON is malformed: invalid character (byte 0)')
    """
    path = _PATH.search(error)
    field = path[2] if path else "body"
    if match := _UNKNOWN.search(error):
        return match[1][:64] or field, "is not a known field"
    if match := _MISSING.search(error):
        return match[1], "is required"
    reason = _PATH.sub("", error)
    is_acronym = reason[:2].isupper()  # "JSON is malformed"
    reason = reason if is_acronym else reason[:1].lower() + reason[1:]
    return field, f"a name in it: {reason}" if path and path[1] else reason


# ---------------------------------------------------------------- repeats


def keyed_event_id(user: str, session_key: str, key: str) -> str:
    """Return the id of the event that `user` names `key` in that session, in the form of a uuid.

    Nobody can reach another's events with a key: the principal is part of the hash.
    """
    token = token_of("idempotency", user, session_key, key)
    return f"{token[:8]}-{token[8:12]}-{token[12:16]}-{token[16:20]}-{token[20:]}"


def external_event_id(user: str, source: str, origin: str, origin_id: str) -> str:
    """Return the id of the event that a sender names `origin_id`, in the form of a uuid.

    Nobody can reach another's events: who let it in (`source`) and for whom is part of the hash.
    """
    token = token_of("external", user, source, origin, origin_id)
    return f"{token[:8]}-{token[8:12]}-{token[12:16]}-{token[16:20]}-{token[20:]}"


# ---------------------------------------------------------------- what is an answer


class Exchange:
    """Waits for the end of what one event caused, record by record, or until it is put off.

    The turn that names the event as ended closes the list of what will be said; a send is
    settled when it's said or has a receipt (void, failed). A message that is answered together
    with others shares their answer, which the last of them caused (SPEC S-13, `coalesce`). While
    no model is asked, for the budget or a circuit, what is said of that is all there is for now.
    """

    def __init__(self, event_id: str, seq: int) -> None:
        """
        Args:
            seq: where the event is stored.
        """
        self._event_id = event_id
        self._seq = seq
        self._is_put_off = False
        self._causes = {event_id}
        self._is_ended = False
        self._expected: set[str] = set()
        self._settled: set[str] = set()
        self._said: list[Said] = []

    def take_turn(self, turn: Turn) -> None:
        is_joined = any(n.code == "joined" and n.subject == self._event_id for n in turn.notes)
        if is_joined and turn.event is not None:
            self._causes.add(turn.event.id)
        for effect in turn.effects:
            if isinstance(effect, SendMessage) and effect.payload.caused_by in self._causes:
                self._expected.add(effect.id)
        if self._event_id in turn.ended:
            self._is_ended = True
        self._is_put_off = self._is_put_off or self._waits_in(turn.state)

    def _waits_in(self, state: State) -> bool:
        """Whether the event waits for a model that isn't asked for now, or behind one that does."""
        loop = state.loop
        if loop is None or loop.retry is None or not loop.is_stopped:
            return False
        is_behind = any(queued.seq == self._seq for queued in state.queue)
        return is_behind or loop.cause.id in self._causes

    def has(self, cause_id: str) -> bool:
        """Whether what that event caused is a part of it."""
        return cause_id in self._causes

    def take_said(self, said: Said) -> None:
        self._settled.add(said.id)
        self._said.append(said)

    def take_receipt(self, effect_id: str) -> None:
        self._settled.add(effect_id)

    @property
    def is_over(self) -> bool:
        return (self._is_ended or self._is_put_off) and self._expected <= self._settled

    @property
    def said(self) -> tuple[Said, ...]:
        """What was said because of the event, in the order of the transcript."""
        return tuple(said for said in self._said if said.caused_by in self._causes)


class OpenTimer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An open timer of a session, as a person sees it."""

    timer_id: str
    follow_up: FollowUp


def open_timers(state: State, newest_user_seq: int) -> list[OpenTimer]:
    """Return what is still open, soonest first.

    A user message voids follow-ups the moment it's stored, before any turn folds it (SPEC S-6);
    so if one is newer than the state, only kept reminders are left.
    """
    is_voided = newest_user_seq > state.position
    left = [
        OpenTimer(timer_id=timer_id, follow_up=follow_up)
        for timer_id, follow_up in state.follow_ups.items()
        if follow_up.keep or not is_voided
    ]
    return sorted(left, key=lambda timer: (timer.follow_up.fire_at, timer.timer_id))
