"""Requests to a person, as the board has them."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

from ..base import Instant, Record
from ..tools import Risk, ServerQuestion
from ..vocabulary import ApprovalState

Verdict = Literal["accept", "edit", "answer", "reject"]
DECIDED: Final[dict[Verdict, ApprovalState]] = {
    "accept": "accepted",
    "edit": "edited",
    "answer": "answered",
    "reject": "rejected",
}
"""What a request is once that is its verdict."""
_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's: none is taken for another when it's read aloud or copied by hand."""
SHORT_NAME: Final = f"a[{_LETTERS}]{{3}}"
"""A pattern of it: 32,768 names, so that of ten open requests two share one in 0.1 % of cases."""
QUESTION: Final = "ask_user"
"""The tool by which a session asks the person something; there is nothing to run."""


def short_name(id_: str, letter: str = "a") -> str:
    """Return what a person calls a request, or a goal (``g``); it follows from its id.

    >>> short_name("0123456789abcdef0123456789abcdef")
    'a7tr'
    """
    number = int.from_bytes(hashlib.sha256(id_.encode()).digest()[:2]) >> 1
    return letter + "".join(_LETTERS[number >> shift & 31] for shift in (10, 5, 0))


class Approval(Record, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """A call that waits for a person, or a question to them (SPEC X-2)."""

    id: str
    """32 hex digits."""
    session_key: str
    """The session that asks: a conversation, or a worker behind one."""
    tool: str
    """`QUESTION`: it asks for an answer, and only `answer` and `reject` fit."""
    input: dict[str, Any]
    """The exact arguments. A verdict holds for these and no others."""
    digest: str
    """SHA-256 over session, tool and canonical arguments, in hex: a verdict names it."""
    risk: Risk
    reason: str
    """Why it has to wait, in words."""
    asked_at: Instant
    expires_at: Instant
    caused_by: str
    """The id of the event that began the loop."""
    generation: int = 0
    """The generation of the deadline that ends the request."""
    is_tainted: bool = False
    is_ordered: bool = False
    """Whether the person began or ordered what asks: then what comes of it is theirs, too."""
    is_lasting: bool = False
    """Whether it stays open when the person writes where it was asked. Those of older versions
    said that they don't, and don't."""
    state: ApprovalState = "open"
    decided_at: Instant | None = None
    decided_by: str = ""
    """The user whose verdict it was."""
    decided_channel: str = ""
    """Over which it came; empty: the API, which the console and the command ask, too."""
    edited: dict[str, Any] | None = None
    """The arguments that the person put in their place."""
    text: str = ""
    """The person's answer, or why they rejected it."""
    call_id: str = ""
    """The effect that ran it, once it was accepted or edited."""
    wanted: ServerQuestion | None = None
    """It is asked by the tool's server, in the middle of a call; `input` tells what for."""

    @property
    def is_question(self) -> bool:
        """Whether a session asks for an answer, and not for leave."""
        return self.tool == QUESTION

    @property
    def fields(self) -> dict[str, Any] | None:
        """Fields that a tool's server asks for -> their JSON Schema; None: it's no such request."""
        return None if self.wanted is None else self.wanted.form.get("properties", {})

    @property
    def name(self) -> str:
        """Short, for people."""
        return short_name(self.id)


class Settled(Record, frozen=True, kw_only=True):
    """What became of a request, as the session that asked remembers it: who decides the same one a
    moment later is told by whom it was decided, before the board has it."""

    id: str
    state: ApprovalState
    at: Instant
    by: str = ""
    channel: str = ""
    order: str = ""
    """The event that decided it, or the effect that brings a verdict in words; while that is on its
    way the request is open, and no other verdict counts."""
