"""What a channel tells that only tells one person something. Pure."""

from __future__ import annotations

from ...contracts import Said
from ...mail.letter import clean
from ...subjects import SessionKey
from ...words.plain import plain_lines
from ..answers import NotTaken
from ..mail.composition import OUTSIDE
from .pages import rest_of


def not_theirs(said: Said, user: str) -> NotTaken | None:
    """Return the refusal of a message that isn't for who gets what is said there; None: it is."""
    if SessionKey.parse(said.session_key).user == user:
        return None
    return NotTaken(reason=f"the channel is of {user} alone", is_final=True)


def shortened(said: Said, bytes_max: int, console_url: str) -> str:
    """Return what is said, cut to what fits, with where all of it is.

    Args:
        bytes_max: over 1,000, so that this has room.
        console_url: where people reach the console; empty: nobody said.

    >>> from datetime import UTC, datetime
    >>> import msgspec
    >>> said = Said(id="e", session_key="ann:vigil:main", text="é" * 999, at=datetime.now(UTC),
    ...             caused_by="", turn_seq=1)
    >>> len(shortened(said, 1_000, "").encode()) <= 1_000, shortened(said, 1_000, "")[-12:]
    (True, 'the console)')
    >>> shortened(msgspec.structs.replace(said, text="See [*this*](https://a.example)"), 1_000, "")
    'See this (https://a.example)'
    """
    text = plain_lines(clean(said.text), has_addresses=True).strip() or "…"
    if said.is_tainted:
        text = f"({OUTSIDE})\n\n{text}"
    data = text.encode("utf-8", "ignore")
    if len(data) <= bytes_max:
        return data.decode()
    rest = rest_of(said, console_url)
    return data[: bytes_max - len(rest.encode())].decode("utf-8", "ignore") + rest
