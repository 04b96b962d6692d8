"""What goes over the wire: bodies of requests, answers, and frames of the socket.

Requests refuse unknown fields, so that a typing mistake is an error and not a silence. Where a
name is camelCase, the public contract has it so (SPEC P-5).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from vigil.contracts import Attachment, Instant
from vigil.fields import bodies, schema
from vigil.observe.health import Health
from vigil.observe.warmth import Lacked, Warmth
from vigil.settings.switches import Paused
from vigil.subjects import PartText

from .decide import KEY_LENGTH_MAX

_OWN = "[A-Za-z0-9-][A-Za-z0-9_-]{0,63}"
PART_SCHEMA: Final = {"pattern": f"^{schema.PART}$"}
KEY_SCHEMA: Final = schema.SESSION_KEY
OWN_KEY_SCHEMA: Final = {"pattern": f"^{schema.PART}:{schema.PART}:{_OWN}$"}
ID_SCHEMA: Final = {"pattern": "^[0-9a-f]{32}$"}
"""For parameters that FastAPI describes; functions check them."""
# What the schema says of these is checked by functions, whose words are better.
SaidText = Annotated[
    str,
    msgspec.Meta(extra_json_schema={"pattern": r"^[^\u0000]*[^\s\u0000-\u001f\u0085][^\u0000]*$"}),
]
KeyedBy = Annotated[
    str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": KEY_LENGTH_MAX})
]
FileHash = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
Attached = Annotated[
    tuple[FileHash, ...], msgspec.Meta(extra_json_schema={"maxItems": 10, "uniqueItems": True})
]
OwnThread = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^{_OWN}$"})]
OwnKey = Annotated[str, msgspec.Meta(extra_json_schema=OWN_KEY_SCHEMA)]
"""A session that a person may say something in."""
RequestBody = bodies.RequestBody
Answer = bodies.Answer
CursorValue = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


# ---------------------------------------------------------------- HTTP


class PostMessage(RequestBody, frozen=True, kw_only=True):
    """Say something in a session."""

    text: SaidText
    idempotency_key: KeyedBy | None = None
    """A name of yours for this message: repeating it is harmless for a day."""
    attachments: Attached = ()
    """Hashes of files that you uploaded: 10 at most."""
    reply_to: PartText | None = None
    """The id of what the agent said here that this replies to: a letter is opened by that."""


class Accepted(Answer, frozen=True, kw_only=True):
    """It's stored. `seq` is its place in the log."""

    event_id: str
    seq: int


class ChatRequest(
    RequestBody,
    frozen=True,
    kw_only=True,
    rename={
        "user_id": "userId",
        "thread_id": "threadId",
        "agent_id": "agentId",
        "reply_to": "replyTo",
    },
):
    """Say something and wait for the answer."""

    message: SaidText
    user_id: PartText
    thread_id: OwnThread | None = None
    """Absent: a new thread. Those that begin with `_` are the agent's own."""
    agent_id: PartText = "vigil"
    attachments: Attached = ()
    """Hashes of files that you uploaded: 10 at most."""
    reply_to: PartText | None = None
    """The id of what the agent said here that this replies to: a letter is opened by that."""


class ChatMessage(Answer, frozen=True, kw_only=True):
    """One thing the agent said."""

    id: str
    text: str
    at: Instant
    tag: str | None = None


class ChatAnswer(Answer, frozen=True, kw_only=True, rename={"thread_id": "threadId"}):
    """All that was said because of the message; `response` joins the texts."""

    response: str
    messages: tuple[ChatMessage, ...]
    session_key: str
    thread_id: str
    event_id: str
    seq: int


class ChatPending(Answer, frozen=True, kw_only=True, rename={"thread_id": "threadId"}):
    """No answer yet; it will follow on the session."""

    event_id: str
    seq: int
    session_key: str
    thread_id: str


class JsonRpc(msgspec.Struct, frozen=True, kw_only=True):
    """A message of JSON-RPC 2.0, as the Model Context Protocol has it; `id` names a request."""

    jsonrpc: Literal["2.0"]
    id: int | str | None = None
    method: str | None = None
    params: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Forked(Answer, frozen=True, kw_only=True):
    """What a conversation was forked from."""

    session_key: str
    turn: int
    """Sequence of the last turn of that conversation whose history this one began with."""


class SessionSummary(Answer, frozen=True, kw_only=True):
    """A session that exists. `messages` counts what the person said."""

    session_key: str
    messages: int
    last_at: Instant | None
    """When the person last said something; of a session of the agent's own, its last turn."""
    kind: str = "channel"
    """`channel`: a conversation; `branch`, `worker`, `planner`: one of the agent's own."""
    fork_of: Forked | None = None
    """Of a conversation that was forked from another."""
    title: str = ""
    """What you call it, or its first words; empty: it has none."""
    is_archived: bool = False
    """You put it away."""
    is_unread: bool = False
    """The agent said something after what you read or anybody wrote last."""
    said_at: Instant | None = None
    """When the agent last said something."""


class SessionList(Answer, frozen=True, kw_only=True):
    """A page of sessions. `next_after` continues it; null: that was all."""

    sessions: tuple[SessionSummary, ...]
    next_after: str | None


class TranscriptMessage(Answer, frozen=True, kw_only=True):
    """One line of the transcript. `caused_by` is the event that an answer is about."""

    id: str
    seq: int
    role: Literal["user", "assistant"]
    text: str
    at: Instant
    caused_by: str | None
    tag: str | None = None
    by: str = ""
    """Who of a team said it."""
    attachments: tuple[Attachment, ...] = ()
    """Files of whom said it."""
    turn_seq: int | None = None
    """Sequence of the turn that decided what the agent said: a fork may go on from it."""
    reply_to: str | None = None
    """Of what a person said as a reply: the id of what the agent said."""
    is_tainted: bool = False
    """Of what the agent said: outside content had a part in it. Of what was imported: nobody
    vouches for it."""
    replaces: str | None = None
    """Of what a person said in the place of an earlier message: the id of that."""
    imported_from: str = ""
    """Of what was said before the conversation was imported: `vigil`, or another agent's name."""
    taken_back_by: int | None = None
    """Sequence of the message that took its place, or that of what it came from: it's no part of
    the conversation any more, but of an older version."""


class Transcript(Answer, frozen=True, kw_only=True):
    """What was said, oldest first. `next_after` continues it; null: that was all for now."""

    session_key: str
    messages: tuple[TranscriptMessage, ...]
    next_after: int | None
    fork_of: Forked | None = None
    """Of a conversation that was forked from another."""


class TimelineRecord(Answer, frozen=True, kw_only=True):
    """A record as it's stored. `kind` is what its subject says: "turn", "in.timer", ..."""

    seq: int
    kind: str
    data: Any
    trace: str | None = None
    """The trace context that it was written under (W3C traceparent)."""


class Timeline(Answer, frozen=True, kw_only=True):
    """Every record of a session, oldest first."""

    session_key: str
    records: tuple[TimelineRecord, ...]
    next_after: int | None


class TimerView(Answer, frozen=True, kw_only=True):
    """An open timer. `keep`: the person asked for it, and only cancelling ends it."""

    timer_id: str
    fire_at: Instant
    reason: str
    keep: bool
    generation: int
    message: str | None = None
    held_from: Instant | None = None
    """When it was first due, if quiet hours or a pause hold it back."""


class TimerList(Answer, frozen=True, kw_only=True):
    """The open timers of a session, soonest first."""

    session_key: str
    timers: tuple[TimerView, ...]


class TicketRequest(RequestBody, frozen=True, kw_only=True):
    """Ask for a ticket that opens one socket."""

    session: OwnKey


class Ticket(Answer, frozen=True, kw_only=True):
    """Works once, for the session it was made for."""

    ticket: str
    expires_in_s: int


class Me(Answer, frozen=True, kw_only=True):
    """Who the token speaks for."""

    user: str
    is_admin: bool
    home_thread: str
    """The thread that is told what belongs to no other conversation; `vigil chat` opens it."""
    teams: tuple[str, ...] = ()
    """Agents of teams that the user is in: their sessions are `team:AGENT:THREAD`."""


class PauseState(Answer, frozen=True, kw_only=True):
    """Whether everything proactive is paused, or of one agent, since when and by whom."""

    paused: Paused | None
    agent: str | None = None
    """null: all of them."""
    user: str | None = None
    """For whom that agent is; null: for everybody."""


class Status(Answer, frozen=True, kw_only=True):
    """Every replica that answered, and the switches."""

    services: tuple[Health, ...]
    paused: Paused | None
    paused_agents: tuple[PauseState, ...]
    """Agents that are paused by themselves: for everybody, or for you."""
    model: Any | None
    """What the cortex says about the model in use."""
    warmth: Warmth
    """How far memory is after a start: what begins unasked waits until it's warm or degraded."""
    bulletins_owed: int
    """People whose first bulletin isn't written yet; it's before their first cycle."""
    cold_sessions: dict[Lacked, int]
    """Sessions whose first answer lacked the whole `memory`, or a first `bulletin`, since each
    replica's start."""
    at: datetime


class Readiness(Answer, frozen=True, kw_only=True):
    """Whether a message would be answered: the bus and one ready replica of each service."""

    ready: bool
    checks: dict[str, bool]
    warnings: tuple[str, ...] = ()
    """What services can't do all the same, commands on a full disk, say."""
    warmth: Warmth
    """How far memory is after a start."""
    bulletins_owed: int
    """People whose first bulletin isn't written yet."""


# ---------------------------------------------------------------- socket: from the client


class ClientMessage(RequestBody, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """Say something. `id` is a name of yours: repeating it is harmless, and it's confirmed."""

    text: SaidText
    id: KeyedBy | None = None
    attachments: Attached = ()
    """Hashes of files that you uploaded: 10 at most."""
    reply_to: PartText | None = None
    """The id of what the agent said here that this replies to: a letter is opened by that."""


class ClientAck(RequestBody, frozen=True, kw_only=True, tag_field="type", tag="ack"):
    """Everything up to `cursor` arrived and needn't be sent again to this client."""

    cursor: CursorValue


ClientFrame = ClientMessage | ClientAck


# ---------------------------------------------------------------- socket: from the server


class LiveToken(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of an answer in the making, as the cortex publishes it."""

    turn: int | str
    attempt: int
    text: str
    before: str | msgspec.UnsetType | None = msgspec.UNSET
    """What was written before it; null: it isn't told with this one; left out: never, by a cortex
    of an older version."""


class TokenFrame(Answer, frozen=True, kw_only=True, tag_field="type", tag="token"):
    """A piece of an answer in the making. A new attempt discards the old one."""

    turn: int | str
    attempt: int
    text: str


class ProgressFrame(Answer, frozen=True, kw_only=True, tag_field="type", tag="progress"):
    """How far a call of a tool is, of those that tell it: the newest state is what counts."""

    call_id: str
    tool: str
    text: str
    """In a line; what follows the amount is its server's word, in no markup."""
    is_over: bool = False
    """It ended: nothing is to be shown of it any more."""


class MessageFrame(Answer, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """What the agent said, for good. Acknowledge `cursor`."""

    id: str
    text: str
    cursor: int
    caused_by: str
    at: Instant
    tag: str | None = None


class AcceptedFrame(Answer, frozen=True, kw_only=True, tag_field="type", tag="accepted"):
    """Your message with that id is stored."""

    id: str
    event_id: str
    seq: int


class ErrorFrame(Answer, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """A frame of yours could not be used. The socket stays open."""

    detail: str
    status: int
    field: str | None = None
    id: str | None = None


ServerFrame = TokenFrame | ProgressFrame | MessageFrame | AcceptedFrame | ErrorFrame
