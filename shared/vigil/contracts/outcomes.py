"""What other services write: claims, receipts, tries, schedules, dead letters."""

from __future__ import annotations

from typing import Literal

from .base import SOCKET, VERSION_1, Instant, Record
from .events import Attachment, TimerKind
from .vocabulary import ReceiptOutcome


class Said(Record, frozen=True, kw_only=True):
    """A claim of a send, which is the message itself. `id` is the effect's."""

    id: str
    session_key: str
    text: str
    at: Instant
    caused_by: str
    turn_seq: int
    tag: str | None = None
    is_autonomous: bool = False
    channel: str = SOCKET
    is_tainted: bool = False
    asks: str = ""
    """The id of the request that it shows whole, which its person may decide by a button."""
    is_urgent: bool = False
    """Whether it's said louder, by a channel that can."""
    attachments: tuple[Attachment, ...] = ()
    """Files that go with it, by a channel that can."""
    v: int = VERSION_1


class Receipt(Record, frozen=True, kw_only=True):
    """How a send ended, where the claim itself doesn't tell."""

    effect_id: str
    session_key: str
    outcome: ReceiptOutcome
    at: Instant
    reason: str = ""
    sent: tuple[str, ...] = ()
    """The messages of a chat network that came of it, each as channel, room and its id there; by
    them a reply to one is known."""
    v: int = VERSION_1


class Dispatch(Record, frozen=True, kw_only=True):
    """An order to carry what was said over another channel than the socket.

    Its subject holds one for each effect; a person who requeues a dead letter adds another, as does
    a channel that refuses it if there is a next one. The attempts after the newest one are those
    that count.
    """

    effect_id: str
    session_key: str
    channel: str
    said_seq: int
    """Where the claim, which is the message, is in the log."""
    at: Instant
    requeued_by: str | None = None
    """The user who ordered it anew; None: the turn did."""
    otherwise: tuple[str, ...] = ()
    """The channels that follow if this one refuses it for good."""
    instead_of: str = ""
    """The channel that refused it before this one was asked; empty: none did."""
    v: int = VERSION_1


class Attempt(Record, frozen=True, kw_only=True):
    """One try to hand a message to a channel: stored as `begun` before, and with its end after.

    A `begun` without an end is a crash in the middle: whether the receiver has the message is
    not known.
    """

    effect_id: str
    session_key: str
    channel: str
    number: int
    """1 for the first try after the newest dispatch."""
    state: Literal["begun", "refused", "unknown"]
    """`refused`: the receiver surely did not take it; `unknown`: it may have."""
    at: Instant
    reason: str = ""
    status: int | None = None
    """The HTTP status, if there was an answer."""
    next_at: Instant | None = None
    """When it's tried again; None on an end: never, a receipt follows."""
    sent: tuple[str, ...] = ()
    """What a network calls the messages that came, though not all did, as in a receipt."""
    v: int = VERSION_1


class CallClaim(Record, frozen=True, kw_only=True):
    """The claim of a tool call: from here on somebody may be running it (ARCHITECTURE 4).

    The first one is published with expected sequence 0. A claim without a result is a crash in the
    middle. Then an idempotent tool is run again by whoever finds it; the executor claims it anew
    for that, expecting the claim that it found.
    """

    effect_id: str
    session_key: str
    tool: str
    by: str
    """The instance that claimed it; empty: nobody, it was withdrawn before it was run."""
    at: Instant
    task: str = ""
    """The id of the task that its server does it as: whoever finds the claim looks after that."""
    v: int = VERSION_1


class TimerRecord(Record, frozen=True, kw_only=True):
    """A schedule in TIMERS, and what the broker fires when nobody was there."""

    session_key: str
    timer_id: str
    generation: int
    fire_at: Instant
    kind: TimerKind
    caused_by: str
    hours_at: Instant | None = None
    """When the person had last set their clock, as it was planned: once they set it anew, it's
    looked at before `fire_at`."""
    planned_at: Instant | None = None
    """When it was planned, by the clock of that machine; records of older versions don't tell."""
    v: int = VERSION_1


class DeadLetter(Record, frozen=True, kw_only=True):
    """A message that no try could use, with the cause."""

    id: str
    service: str
    stream: str
    subject: str
    seq: int
    cause: str
    data: bytes
    """The stored bytes as they were (base64 in JSON), at most `DEAD_LETTER_BYTES_MAX`."""
    at: Instant
    session_key: str = ""
    effect_id: str | None = None
    """The send that no channel took, if that is what died."""
    v: int = VERSION_1


class DeadLetterEnd(Record, frozen=True, kw_only=True):
    """What a person did with a dead letter. It's no longer listed as open."""

    letter_id: str
    action: Literal["requeued", "discarded"]
    by: str
    at: Instant
    v: int = VERSION_1
