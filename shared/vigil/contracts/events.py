"""Events: what comes into a session."""

from __future__ import annotations

from typing import Literal

from .base import VERSION_1, EventType, Instant, Record


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
    """The id of the effect that asked for the call."""
    content: str
    is_error: bool = False
    is_tainted: bool = False
    """Holds untrusted content: what the loop decides from here on descends from it (SPEC X-3)."""


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
