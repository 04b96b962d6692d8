"""The records on the bus: frozen, versioned, and the same for every language.

Facts are forever: a stored record is never edited. Each carries `v`; a new meaning is a new
version and a small function in `LIFTS` that turns the old one into the new one. A file of
every version ever written lies in ``tests/golden`` and is decoded by the tests for good.

This module does no I/O. Instants are aware UTC; durations name their unit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from .errors import InvalidInput

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
TIMER_ID_LENGTH_MAX: Final = 128
TEXT_BYTES_MAX: Final = 64 * 1024
TURN_BYTES_MAX: Final = 512 * 1024
"""A turn is one message; larger content belongs in an object store (ARCHITECTURE 2)."""
DEAD_LETTER_BYTES_MAX: Final = 512 * 1024
"""More of a message isn't kept: in base64 it would exceed the broker's limit of 1 MiB."""

EventType = Literal["user_message", "timer", "tool_result", "tick", "external", "control"]
SOCKET: Final = "socket"
"""The channel that is always there: the transcript itself, followed by WebSockets."""
AGENT_FOLLOW_UP: Final = "Agent follow-up"
"""The tag of a message that a timer caused (SPEC S-9)."""


def _one() -> int:
    return 1


VERSION_1: Any = msgspec.field(default_factory=_one)
"""A default that `omit_defaults` doesn't omit: the version is always written out."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what is stored."""


# ---------------------------------------------------------------- events: what comes in


class Envelope(Record, frozen=True, kw_only=True, tag_field="type"):
    """What every event carries. Its `seq` is the stream's, so it's not in the body."""

    id: str
    session_key: str
    created_at: Instant
    caused_by: str | None = None
    v: int = VERSION_1


class UserMessagePayload(Record, frozen=True, kw_only=True):
    text: str
    is_keyed: bool = False
    """Whether the id derives from a key the client chose, so that a repeat has the same id."""


class UserMessage(Envelope, frozen=True, kw_only=True, tag="user_message"):
    payload: UserMessagePayload


TimerKind = Literal["follow_up", "deadline"]


class TimerPayload(Record, frozen=True, kw_only=True):
    timer_id: str
    generation: int
    fire_at: Instant
    kind: TimerKind = "follow_up"


class TimerFired(Envelope, frozen=True, kw_only=True, tag="timer"):
    payload: TimerPayload


class ToolResultPayload(Record, frozen=True, kw_only=True):
    call_id: str
    content: str
    is_error: bool = False


class ToolResultEvent(Envelope, frozen=True, kw_only=True, tag="tool_result"):
    payload: ToolResultPayload


class TickPayload(Record, frozen=True, kw_only=True):
    slot: Instant | None = None


class Tick(Envelope, frozen=True, kw_only=True, tag="tick"):
    payload: TickPayload


class ExternalPayload(Record, frozen=True, kw_only=True):
    """What another system told, in the terms of CloudEvents 1.0."""

    source: str
    """Who let it in, stamped by the gateway: ``api:{user}``, ``hook:{name}``, ``bus:{name}``."""
    content: str
    """The data as text: JSON as it came, or what the event's media type says."""
    kind: str = ""
    """The CloudEvents attribute `type`; empty: unknown."""
    origin: str = ""
    """The CloudEvents attribute `source`, as the sender claims it."""
    origin_id: str = ""
    """The sender's own id of the event."""
    occurred_at: Instant | None = None
    is_trusted: bool = False
    """Untrusted, the default: a decision that descends from it is marked tainted (SPEC X-3)."""


class External(Envelope, frozen=True, kw_only=True, tag="external"):
    payload: ExternalPayload


ControlOp = Literal["stop", "clear_follow_ups", "cancel_timer"]


class ControlPayload(Record, frozen=True, kw_only=True):
    op: ControlOp
    timer_id: str | None = None
    reason: str = ""


class Control(Envelope, frozen=True, kw_only=True, tag="control"):
    payload: ControlPayload


Event = UserMessage | TimerFired | ToolResultEvent | Tick | External | Control


class Cause(Record, frozen=True, kw_only=True):
    """A pointer to an event in the log."""

    id: str
    seq: int
    type: EventType


# ---------------------------------------------------------------- history: what the model sees


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
    """With its content cut to what a model is shown. The event itself is whole in the log."""
    left_out: int = 0
    """How many characters of the content were cut off."""


Block = TextBlock | ToolUseBlock | ToolResultBlock | OpaqueBlock | TimerBlock | ExternalBlock


class Row(Record, frozen=True, kw_only=True):
    """One message of the history. `at` is when it was decided."""

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    at: Instant
    source: Literal["person", "agent", "timer", "tool", "external", "system"]


# ---------------------------------------------------------------- effects: what goes out


class EffectEnvelope(Record, frozen=True, kw_only=True, tag_field="type"):
    """What every effect carries. `id` is the dedupe key (:func:`effect_id`)."""

    id: str
    ordinal: int


class SendPayload(Record, frozen=True, kw_only=True):
    text: str
    caused_by: str
    """The id of the event that began the loop."""
    fence: int
    """The stream sequence of the last user message folded when the loop began; 0: none yet."""
    previous: str | None = None
    """The id of the session's send before this one, which must be settled first."""
    is_autonomous: bool = False
    is_voidable: bool = False
    """Whether a newer user message voids it: every autonomous send, and with
    ``clear_policy = "all"`` a direct reply too."""
    tag: str | None = None
    channel: str = SOCKET
    is_tainted: bool = False
    """Descends from untrusted content (SPEC X-3): show its links, never follow them."""


class SendMessage(EffectEnvelope, frozen=True, kw_only=True, tag="send_message"):
    payload: SendPayload


class ScheduleTimerPayload(Record, frozen=True, kw_only=True):
    timer_id: str
    generation: int
    fire_at: Instant
    kind: TimerKind = "follow_up"


class ScheduleTimer(EffectEnvelope, frozen=True, kw_only=True, tag="schedule_timer"):
    payload: ScheduleTimerPayload


class CancelTimerPayload(Record, frozen=True, kw_only=True):
    timer_id: str
    generation: int


class CancelTimer(EffectEnvelope, frozen=True, kw_only=True, tag="cancel_timer"):
    payload: CancelTimerPayload


Effect = SendMessage | ScheduleTimer | CancelTimer
EffectType = Literal["send_message", "schedule_timer", "cancel_timer"]


def canonical(payload: Any) -> bytes:
    """Encode with sorted keys, so that equal payloads have equal bytes."""
    return msgspec.json.encode(payload, order="sorted")


def effect_id(
    session_key: str,
    event_seq: int,
    ordinal: int,
    effect_type: EffectType,
    payload: Any,
    destination: str,
) -> str:
    """Return the dedupe key of an effect: 32 hex digits, never of a clock (SPEC S-5).

    `ordinal` counts the effects of the session's whole life, so two equal sends in one loop
    are two effects, and the same decision replayed is the same effect.
    """
    digest = hashlib.sha256()
    for part in (session_key, str(event_seq), str(ordinal), effect_type, destination):
        digest.update(part.encode())
        digest.update(b"\0")
    digest.update(canonical(payload))
    return digest.hexdigest()[:32]


# ---------------------------------------------------------------- state and turns


class Counters(Record, frozen=True, kw_only=True):
    """The autonomy counters that the gates read (SPEC S-7). Instants are epoch ms."""

    consecutive: int = 0
    last_autonomous_ms: int | None = None
    ordered_ms: tuple[int, ...] = ()
    """When the sends that the person ordered in the last hour were decided."""


class Retry(Record, frozen=True, kw_only=True):
    """A model call that failed and waits for its deadline."""

    attempt: int
    generation: int
    due_at: Instant
    reason: str


class Loop(Record, frozen=True, kw_only=True):
    """An exchange in the making: one event, up to N model calls, what was said so far."""

    cause: Cause
    fence: int
    begun_at: Instant
    is_direct: bool
    """Whether a user message began it."""
    is_ordered: bool = False
    """Whether the person ordered it (a kept reminder): exempt from cap and cooldown."""
    tag: str | None = None
    calls: int = 0
    sends: int = 0
    unsaid: str = ""
    """Text that came with a tool call: said at the end if nothing else is."""
    retries: int = 0
    """Failed attempts at the present step."""
    retry: Retry | None = None
    timer_id: str | None = None
    """The timer that began it, if one did, and what it stood for."""
    follow_up: FollowUp | None = None
    is_tainted: bool = False
    """Whether untrusted content, or a plan made of it, began it."""
    joined: tuple[str, ...] = ()
    """Ids of the messages that it answers together with the one that began it (`coalesce`)."""


class Queued(Record, frozen=True, kw_only=True, array_like=True):
    """An event folded while a loop was open, waiting for its turn to be answered."""

    seq: int
    type: EventType


class Gathering(Record, frozen=True, kw_only=True):
    """User messages that wait in the queue for more of them (`coalesce`, SPEC S-13)."""

    generation: int
    """Of the deadline that ends it."""
    due_at: Instant
    """When they are answered, if no further one comes."""
    latest_at: Instant
    """When they are answered, whatever comes."""


class State(Record, frozen=True, kw_only=True):
    """The small state of a session, carried whole by every turn."""

    position: int = 0
    """Stream sequence of the last event folded."""
    turns: int = 0
    """Ordinal of the last turn."""
    effects: int = 0
    """How many effects the session has decided in its life."""
    attempt: int = 0
    """How often the next step was taken over after a crash (ARCHITECTURE 3)."""
    fence: int = 0
    """Stream sequence of the last user message folded."""
    last_send: str | None = None
    counters: Counters = Counters()
    follow_ups: dict[str, FollowUp] = {}
    loop: Loop | None = None
    queue: tuple[Queued, ...] = ()
    history_from: int = 0
    """Stream sequence of the oldest turn whose rows are still part of the history."""
    gathering: Gathering | None = None
    """Set while the queue's user messages wait for more; no loop is open then."""
    keyed: tuple[str, ...] = ()
    """Ids of the newest keyed user messages: the lasting truth about repeats."""
    told: tuple[str, ...] = ()
    """Ids of the newest events from outside, for the same; apart from `keyed`, so that no sender
    can make the session forget a person's."""
    is_locked: bool = False
    """The state could not be read once: autonomous sends are refused until a user message."""


class Usage(Record, frozen=True, kw_only=True):
    """What model calls took, in tokens."""

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class Note(Record, frozen=True, kw_only=True):
    """A remark for whoever asks why: a stable code, and a sentence."""

    code: str
    text: str
    subject: str | None = None
    """The timer, effect or event it is about."""


Outcome = Literal[
    "answered",  # the loop ended and something may have been said
    "silent",  # the loop ended with nothing to say
    "continued",  # a model answer asked for tools: the loop goes on
    "queued",  # folded while a loop was open
    "begun",  # the loop's opening, committed because something else came in meanwhile
    "waiting",  # the model failed for now: a deadline will try again
    "blocked",  # the gates refused it
    "held",  # quiet hours or a pause hold it back
    "stopped",  # a person stopped it
    "failed",  # given up, with a dead letter or an apology
    "ignored",  # nothing to do: a repeat, a stale timer, a late result
    "cleared",  # a control event closed follow-ups
    "taken_over",  # another attempt at the next step after a crash
]


class Turn(Record, frozen=True, kw_only=True):
    """One atomic commit: the position, the whole small state, new rows, effects, notes."""

    id: str
    session_key: str
    ordinal: int
    event: Cause | None
    """The event that it folds, or the one whose loop it continues."""
    outcome: Outcome
    state: State
    created_at: Instant
    rows: tuple[Row, ...] = ()
    effects: tuple[Effect, ...] = ()
    notes: tuple[Note, ...] = ()
    usage: tuple[Usage, ...] = ()
    ended: tuple[str, ...] = ()
    """Ids of the events whose exchange is over with this turn."""
    v: int = VERSION_1


# Headers of a turn: they let others skip it, or find its position, without reading it.
POSITION_HEADER: Final = "Vigil-Position"
ORDINAL_HEADER: Final = "Vigil-Turn"
OWES_HEADER: Final = "Vigil-Owes"
"""Present if the session has something to do by itself; its wake isn't acked before."""
EFFECTS_HEADER: Final = "Vigil-Effects"
"""Contains "s" if there is a send, "t" if a timer is scheduled or cancelled; else absent."""


# ---------------------------------------------------------------- what other services write


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
    v: int = VERSION_1


ReceiptOutcome = Literal["said", "sent", "delivered", "failed", "dropped", "ambiguous", "void"]


class Receipt(Record, frozen=True, kw_only=True):
    """How a send ended, where the claim itself doesn't tell."""

    effect_id: str
    session_key: str
    outcome: ReceiptOutcome
    at: Instant
    reason: str = ""
    v: int = VERSION_1


class Dispatch(Record, frozen=True, kw_only=True):
    """An order to carry what was said over another channel than the socket.

    Its subject holds one for each effect; a person who requeues a dead letter adds another, and
    the attempts after the newest one are those that count.
    """

    effect_id: str
    session_key: str
    channel: str
    said_seq: int
    """Where the claim, which is the message, is in the log."""
    at: Instant
    requeued_by: str | None = None
    """The user who ordered it anew; None: the turn did."""
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
    v: int = VERSION_1


class TimerRecord(Record, frozen=True, kw_only=True):
    """A schedule in TIMERS, and what the broker fires when nobody was there."""

    session_key: str
    timer_id: str
    generation: int
    fire_at: Instant
    kind: TimerKind
    caused_by: str
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


# ---------------------------------------------------------------- signals: what others watch


class SignalSource(Record, frozen=True, kw_only=True):
    """The record that a signal was projected from."""

    stream: str
    seq: int


class Signal(Record, frozen=True, kw_only=True):
    """A record of the log, told at the level of what happened (SPEC C-4).

    Projected, never decided: the log is the truth, and projecting it again gives the same ids.
    """

    id: str
    """``{stream}-{seq}-{kind}``, with ``-{n}`` for the second and later of a kind (n from 2)."""
    kind: str
    """Two words, as in ``message.sent``; `vigil.signals.KINDS` lists and explains them."""
    agent: str
    owner: str
    at: Instant
    """When what it tells of was decided."""
    source: SignalSource
    session_key: str | None = None
    caused_by: str | None = None
    """The id of the event behind it."""
    subject: str | None = None
    """The timer, effect or event it's about: what `vigil why` takes."""
    text: str = ""
    """A sentence for a person."""
    data: dict[str, Any] = {}
    v: int = VERSION_1


# ---------------------------------------------------------------- encoding and lifting

T = TypeVar("T")
Lift = Callable[[dict[str, Any]], dict[str, Any]]

VERSIONS: Final[dict[str, int]] = {
    "event": 1, "turn": 1, "said": 1, "receipt": 1, "timer": 1, "dead_letter": 1,
    "dispatch": 1, "attempt": 1, "dead_letter_end": 1, "signal": 1,
}  # fmt: skip
"""The version that is written today, by record."""

LIFTS: Final[dict[tuple[str, int], Lift]] = {}
"""(record, version) -> the function that lifts that version by one."""

encode: Final = msgspec.json.Encoder().encode
_TYPES: Final[dict[str, Any]] = {
    "event": Event, "turn": Turn, "said": Said, "receipt": Receipt, "timer": TimerRecord,
    "dead_letter": DeadLetter, "dispatch": Dispatch, "attempt": Attempt,
    "dead_letter_end": DeadLetterEnd, "signal": Signal,
}  # fmt: skip
_DECODERS: Final = {name: msgspec.json.Decoder(kind) for name, kind in _TYPES.items()}


def _decode(record: str, data: bytes) -> Any:
    """Decode a stored record of any version.

    Raises:
        InvalidInput: the bytes are no such record, or of a version from the future.
    """
    try:
        version = _version_decoder.decode(data).v
        if version == VERSIONS[record]:
            return _DECODERS[record].decode(data)
        return _lifted(record, version, data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInput(record, str(error)) from error


class _Versioned(msgspec.Struct):
    v: int = 1


_version_decoder: Final = msgspec.json.Decoder(_Versioned)


def _lifted(record: str, version: int, data: bytes) -> Any:
    current = VERSIONS[record]
    if not 1 <= version <= current:
        raise InvalidInput(record, f"version {version} is not known here (up to {current})")
    raw = msgspec.json.decode(data, type=dict[str, Any])
    for v in range(version, current):
        raw = LIFTS[record, v](raw) | {"v": v + 1}
    return msgspec.convert(raw, _TYPES[record])


def decode_event(data: bytes) -> Event:
    """Decode a stored event of any version. Raises: InvalidInput."""
    event: Event = _decode("event", data)
    return event


def decode_turn(data: bytes) -> Turn:
    """Decode a stored turn of any version. Raises: InvalidInput."""
    turn: Turn = _decode("turn", data)
    return turn


def decode_said(data: bytes) -> Said:
    """Decode what the agent said. Raises: InvalidInput."""
    said: Said = _decode("said", data)
    return said


def decode_receipt(data: bytes) -> Receipt:
    """Decode the outcome of a send. Raises: InvalidInput."""
    receipt: Receipt = _decode("receipt", data)
    return receipt


def decode_timer(data: bytes) -> TimerRecord:
    """Decode a schedule. Raises: InvalidInput."""
    timer: TimerRecord = _decode("timer", data)
    return timer


def decode_dead_letter(data: bytes) -> DeadLetter:
    """Decode a dead letter. Raises: InvalidInput."""
    letter: DeadLetter = _decode("dead_letter", data)
    return letter


def decode_dispatch(data: bytes) -> Dispatch:
    """Decode an order to carry a message over a channel. Raises: InvalidInput."""
    dispatch: Dispatch = _decode("dispatch", data)
    return dispatch


def decode_attempt(data: bytes) -> Attempt:
    """Decode one try of a channel. Raises: InvalidInput."""
    attempt: Attempt = _decode("attempt", data)
    return attempt


def decode_dead_letter_end(data: bytes) -> DeadLetterEnd:
    """Decode what a person did with a dead letter. Raises: InvalidInput."""
    end: DeadLetterEnd = _decode("dead_letter_end", data)
    return end


def decode_signal(data: bytes) -> Signal:
    """Decode a signal. Raises: InvalidInput."""
    signal: Signal = _decode("signal", data)
    return signal
