"""History: what the model sees of a session."""

from __future__ import annotations

from typing import Any, Literal

from .base import Instant, Record
from .board import KnownFact
from .events import Attachment, ExternalPayload


class FollowUp(Record, frozen=True, kw_only=True):
    """An open timer of a session. A timer event counts only if its generation is here."""

    generation: int
    fire_at: Instant
    reason: str = ""
    message: str | None = None
    """A fixed text: said as it is when the timer fires, with no model call."""
    keep: bool = False
    """A reminder that the person asked for: only cancelling ends it."""
    held_from: Instant | None = None
    """When it was first due, if quiet hours or a pause hold it back."""
    is_tainted: bool = False
    """Planned by a loop that descends from untrusted content."""
    channel: str | None = None
    """Over which channel the fixed text goes; None: where autonomous messages of the person go."""


class TextBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="text"):
    text: str


class ToolUseBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]
    malformed: str = ""
    """What is wrong with the arguments as the model wrote them: such a call has none, and is
    answered and not run."""


class ToolResultBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    tool_use_id: str
    content: str
    is_error: bool = False


class OpaqueBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="opaque"):
    """A block of the provider's that must go back to it unchanged (thinking, say)."""

    data: dict[str, Any]


class TimerBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="timer"):
    """A follow-up that came due, as a fact; the prompt puts it into words."""

    timer_id: str
    follow_up: FollowUp


class ExternalBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="external"):
    """An event from outside, as a fact; the prompt puts it into words, behind bars."""

    event_id: str
    event: ExternalPayload
    """What came in, its content cut to what a model is shown. The event itself is whole in the
    log."""
    left_out: int = 0
    """How many characters of the content were cut off."""


class TaskBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="task"):
    """What became of a call or a child that no loop waited for, as a fact; the prompt puts it into
    words, behind bars if it is tainted."""

    call_id: str
    tool: str
    title: str
    content: str
    is_error: bool = False
    is_tainted: bool = False
    facts: tuple[KnownFact, ...] = ()
    """What its source says in a closed form: it's shown in the envelope, too."""


class AttachmentBlock(Record, frozen=True, kw_only=True, tag_field="type", tag="attachment"):
    """A file that a model is shown, by its hash: the bytes are read when it is asked. It belongs to
    whom `Row.by` names, else to whom the session belongs."""

    file: Attachment
    is_trusted: bool = False
    """Whether what it shows is from a source that may be trusted, as a tool; a person is none."""


Block = (
    TextBlock
    | ToolUseBlock
    | ToolResultBlock
    | OpaqueBlock
    | TimerBlock
    | ExternalBlock
    | TaskBlock
    | AttachmentBlock
)


class LetterHead(Record, frozen=True, kw_only=True):
    """What people are told of a letter: what later loops of its session see closed (FLOW F-1)."""

    handle: str
    what: str
    """What it is, in the words of its envelope."""
    source: str = ""
    """What it is from, as a person may trust it (`vigil.trust`); empty: nothing that has a name."""
    size: int
    """The length in characters; 0: it's a file."""
    digest: str = ""
    """The hash of the letter's text, or of the file: who vouches for the letter vouches for
    that."""
    at: Instant


class TakenBack(Record, frozen=True, kw_only=True):
    """Turns that are no part of the history any more, since the person said something else in the
    place of a message. They stay in the log, as an older version of the conversation."""

    first: int
    """Ordinal of the first of these turns."""
    last: int
    """Ordinal of the last; less than `first`: there is none."""
    event_id: str
    """The message that was taken back."""
    said_from: int
    """Stream sequence of that message: what was said from it on is taken back."""
    turns_after: int
    """Stream sequence of the turn before the first of these; 0: there is none."""
    by: int
    """Stream sequence of the message that took its place."""

    def has_turn(self, ordinal: int) -> bool:
        """Whether the turn of that ordinal is one of these."""
        return self.first <= ordinal <= self.last


class Row(Record, frozen=True, kw_only=True):
    """One message of the history. `at` is when it was decided."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    at: Instant
    source: Literal["person", "agent", "timer", "tool", "external", "system", "task"]
    by: str = ""
    """The member of the team who said it, in a session of theirs."""
