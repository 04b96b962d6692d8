"""What kinds of sessions there are, for those who list and explain them. Pure.

What a kind may do is its profile, which the cortex has (`cortex.profiles`); a test holds the two
against each other.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import InvalidInput


class SessionKind(msgspec.Struct, frozen=True, kw_only=True):
    """How a kind is spoken of."""

    meaning: str
    one: str = ""
    """What a single one is, where it's named for people who know no kinds."""
    started: str = ""
    """What a turn did that starts one, as a sentence; empty: no turn does, so it has no parent."""
    is_due: bool = False
    """The timetable starts it, and no turn: its thread is made of what is due."""
    run: str = "The job {name!r}"
    """What a run is called where it's told that it failed, with the row's `{name}` and the
    `{agent}`; empty: nobody is told."""
    signals: tuple[str, ...] = ()
    """The second halves of the signals that tell of it (`worker.started`)."""


SESSION_KINDS: Final[dict[str, SessionKind]] = {
    "channel": SessionKind(meaning="conversations", one="a conversation"),
    "branch": SessionKind(
        meaning="thoughts apart from a conversation",
        one="a thought apart",
        started="It began to think about something apart",
        signals=("started", "completed", "failed"),  # it ends within a minute: no status
    ),
    "worker": SessionKind(
        meaning="tasks done apart",
        one="a task done apart",
        started="It started a worker",
        signals=("started", "status", "completed", "failed"),
    ),
    "reader": SessionKind(
        meaning="questions looked up on the web",
        one="a question looked up on the web",
        started="It had something looked up",
        signals=("started", "completed", "failed"),
    ),
    "sampler": SessionKind(
        meaning="answers that MCP servers wanted of a model",
        one="an answer for an MCP server",
        started="A server wanted a model's answer",
    ),
    "planner": SessionKind(meaning="jobs", one="a job"),
    "cron": SessionKind(meaning="runs of the timetable", one="a run of the timetable", is_due=True),
    "autonomy": SessionKind(
        meaning="cycles in which agents keep up by themselves",
        one="a cycle of keeping up",
        is_due=True,
        run="A cycle of {agent}'s",
    ),
    "mind": SessionKind(
        meaning="what agents do between conversations",
        one="a look between conversations",
        run="A look of {agent}'s mind",
    ),
    "bulletin": SessionKind(
        meaning="texts of bulletins", one="the text of a bulletin", is_due=True, run=""
    ),
    "maintenance": SessionKind(
        meaning="merged memories, written anew", one="a memory written anew", is_due=True, run=""
    ),
    "mail": SessionKind(
        meaning="new mail, read by a model without tools",
        one="new mail that was read",
        is_due=True,
        run="Reading the mailbox {name!r}",
    ),
    "errand": SessionKind(
        meaning="calls that a person accepted after who asked had gone on",
        one="a call accepted later",
        started="It had an accepted call run apart",
    ),
}
"""Kind, as in the thread of a session (`SessionKey.kind`), and how it is spoken of."""


def child_kinds() -> tuple[str, ...]:
    """Return the kinds that turns start: their threads are made of the effect's id.

    >>> child_kinds()
    ('branch', 'worker', 'reader', 'sampler', 'errand')
    """
    return tuple(name for name, kind in SESSION_KINDS.items() if kind.started)


def started_kinds() -> tuple[str, ...]:
    """Return the kinds that begin with a start that names who is told their end.

    >>> started_kinds()[-3:]
    ('maintenance', 'mail', 'errand')
    """
    return tuple(name for name, kind in SESSION_KINDS.items() if kind.started or kind.is_due)


def check_session_kind(value: str) -> str:
    """Return a kind, if there is such.

    Raises:
        InvalidInput: no session is of that kind.
    """
    if value in SESSION_KINDS:
        return value
    valid = ", ".join(SESSION_KINDS)
    raise InvalidInput("kind", f"is {value!r}, and no session is of that kind; there is: {valid}")
