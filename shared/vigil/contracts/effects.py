"""Effects: what a turn asks the world to do."""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec

from .base import SOCKET, Instant, Record
from .board import (
    AskedEntity,
    BoardAction,
    BoardEntity,
    BoardGoal,
    CycleReport,
    MadeText,
    SlotRun,
)
from .calls.accepted import AcceptedCall
from .events import Attachment, ChildKind, Decision, TimerKind, ToldPayload
from .memories import MemoryType, Stability
from .tools import Risk, ServerAnswer


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
    otherwise: tuple[str, ...] = ()
    """The channels that follow, in this order, if that one refuses it for good (SPEC G-6)."""
    is_tainted: bool = False
    """Descends from untrusted content (SPEC X-3): show its links, never follow them."""
    asks: str = ""
    """The id of the request that it shows whole, for whoever has buttons; empty: it's none."""
    is_urgent: bool = False
    """Whether it's said louder, by a channel that can: what was told is of urgency `high`."""
    attachments: tuple[Attachment, ...] = ()
    """Files of the person's that go with it, by a channel that can."""


class SendMessage(EffectEnvelope, frozen=True, kw_only=True, tag="send_message"):
    payload: SendPayload


class ScheduleTimerPayload(Record, frozen=True, kw_only=True):
    timer_id: str
    generation: int
    fire_at: Instant
    kind: TimerKind = "follow_up"
    hours_at: Instant | None = None
    """When the person's hours were set that put it off; None: none do."""


class ScheduleTimer(EffectEnvelope, frozen=True, kw_only=True, tag="schedule_timer"):
    payload: ScheduleTimerPayload


class CancelTimerPayload(Record, frozen=True, kw_only=True):
    timer_id: str
    generation: int


class CancelTimer(EffectEnvelope, frozen=True, kw_only=True, tag="cancel_timer"):
    payload: CancelTimerPayload


ToolService = Literal["memory", "executor"]
"""The services that run tools."""


class CallToolPayload(Record, frozen=True, kw_only=True):
    """A tool call of a model, for a service to run. Its result is a `tool_result` event."""

    service: ToolService
    tool: str
    input: dict[str, Any]
    """The arguments as the model gave them: the service checks them against the tool's types."""
    caused_by: str
    """The id of the event that began the loop."""
    due_at: Instant
    """When the session stops waiting for the result."""
    source: str = ""
    """The source of what memory keeps for the call: stamped by the core, never by a model. Empty: a
    conversation of an older version."""
    is_tainted: bool = False
    """Decided by a loop that descends from untrusted content (SPEC X-3)."""
    is_closed: bool = False
    """Whether a memory tool tells by its envelope alone what outside content had a part in (FLOW
    F-4)."""
    is_named: bool = False
    """Whether the person named what it is about, though content from outside had a part in it."""
    risk: Risk = "read"
    """The risk class as which the call was let through."""
    approval_id: str = ""
    """The request that a person accepted; empty: it needed none."""
    grant_id: str = ""
    """The standing grant that let it through without asking; empty: it needed none."""
    grant_revision: int = 0
    """The revision of `grant` when it was read."""
    grant_row: str = ""
    """The row of the timetable that the session came from, if that grant is for one."""
    grant_goal: str = ""
    """The goal that it's done for, if that grant is for one."""
    answered: ServerAnswer | None = None
    """What the person said to what its server wanted of them: the call goes on."""


class CallTool(EffectEnvelope, frozen=True, kw_only=True, tag="call_tool"):
    payload: CallToolPayload


class SaveMemoryPayload(Record, frozen=True, kw_only=True):
    """Something to remember, decided without a tool loop: nobody waits for it."""

    content: str
    type: MemoryType
    source: str = ""
    """Stamped by the core, never by a model."""
    importance: float | None = None
    """None: the type's default."""
    stability: Stability = "stable"
    expires_at: Instant | None = None
    thread: str = ""
    occurred_at: Instant | None = None
    provenance: tuple[str, ...] = ()
    is_tainted: bool = False
    rewrites: str = ""
    """The merged summary whose text this is, written anew: it takes that one's place, and all else
    of it is as it was. Empty: it is a memory by itself."""


class SaveMemory(EffectEnvelope, frozen=True, kw_only=True, tag="save_memory"):
    payload: SaveMemoryPayload


class SpawnSessionPayload(Record, frozen=True, kw_only=True):
    """A session to be started. Its thread is made of this effect's id (`SessionKey.child`)."""

    kind: ChildKind
    prompt: str
    caused_by: str
    """The id of the event that began the loop."""
    root_id: str
    """The id of the event that all of it descends from."""
    root: str = ""
    """The thread of the session that all of it descends from, whose budget it has a part in."""
    depth: int
    """1 for what a conversation starts."""
    allowance: int = 0
    """How many sessions it may start in its turn, theirs included."""
    steps: int = 0
    """Model calls that its parent lends it; 0: as configured for its kind."""
    tokens_max: int = 0
    """The most tokens of each answer of the session's model; 0: as configured for its kind."""
    source: str = ""
    """The source of what the session has memory keep: its parent's."""
    is_ordered: bool = False
    is_tainted: bool = False
    call: AcceptedCall | None = None
    """The accepted call that an errand runs. Nobody waits for its end: the person's home is
    told."""
    row: str = ""
    """The row of the timetable that it all came from."""
    row_tokens: int = 0
    """What that row may take a day; 0: as configured."""
    goal: str = ""
    """The goal that it all is done for, by its id."""


class SpawnSession(EffectEnvelope, frozen=True, kw_only=True, tag="spawn_session"):
    payload: SpawnSessionPayload


class CancelCallPayload(Record, frozen=True, kw_only=True):
    """Nobody waits for a call or a child any more: end it, or see that it never begins."""

    call_id: str
    """The effect that asked for it."""
    tool: str
    child: str = ""
    """The child's session key, if it is one."""
    reason: str = ""


class CancelCall(EffectEnvelope, frozen=True, kw_only=True, tag="cancel_call"):
    payload: CancelCallPayload


class TellParentPayload(Record, frozen=True, kw_only=True):
    """What a session tells the one that started it."""

    parent: str
    """The session key of the parent."""
    call_id: str
    """The effect that started this one."""
    task_id: str = ""
    """The task on the board that is told how its worker ended; then there is no parent."""
    slot: SlotRun | None = None
    """The run of the timetable whose ledger is told how it ended; then there is no parent."""
    state: Literal["running", "asking", "done", "failed"]
    """`running`, `asking`: a status; the others are the result, of which there is one."""
    content: str
    is_tainted: bool = False
    report: CycleReport | None = None
    """What came of a cycle."""
    is_over_budget: bool = False
    """Whether a run of the timetable asked no model since a cap was reached."""
    is_interrupted: bool = False
    """Whether a run of the timetable was given up since it had been begun again so often."""
    is_unanswered: bool = False
    """Whether a run of the timetable did nothing since no model answered, and one may later."""
    next_s: int = 0
    """After how long a run of the timetable wants the next; 0: it said nothing."""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """The facts that a run of the timetable told, by name."""
    steps: int = 0
    """How many model calls a session made that was lent steps."""
    bulletin: MadeText | None = None
    """The text of a bulletin, from the session that made one."""
    until: Instant | None = None
    """When there may be more to tell than this status, if the session waits for an instant."""
    approval_id: str = ""
    """The request that a status asks, with all of its arguments."""


class TellParent(EffectEnvelope, frozen=True, kw_only=True, tag="tell_parent"):
    payload: TellParentPayload


class TellPersonPayload(Record, frozen=True, kw_only=True):
    """What is to be said in a person's home: of the same person and agent, or a team's member."""

    home: str
    """Its session key."""
    told: ToldPayload
    once: str = ""
    """What is said once in that home, whoever says it; empty: this effect."""


class TellPerson(EffectEnvelope, frozen=True, kw_only=True, tag="tell_person"):
    payload: TellPersonPayload


class SendVerdictPayload(Record, frozen=True, kw_only=True):
    """What the person decided, by a word, on a request of theirs."""

    session_key: str
    """The session that asked."""
    decision: Decision


class SendVerdict(EffectEnvelope, frozen=True, kw_only=True, tag="send_verdict"):
    payload: SendVerdictPayload


class RaiseBudgetPayload(Record, frozen=True, kw_only=True):
    """The person's own limit is raised for one day, as they said. It never lowers it."""

    day: str
    """The day of the account that is meant: a date of its zone."""
    times: int
    """So often what the limit is, is added to it, in all."""
    by: str


class RaiseBudget(EffectEnvelope, frozen=True, kw_only=True, tag="raise_budget"):
    payload: RaiseBudgetPayload


class BoardChangePayload(Record, frozen=True, kw_only=True):
    entity: BoardEntity | AskedEntity | BoardAction
    """The entity as it is now, whole; for a preference a lesson, which is added to what is
    known."""
    expect: int = 0
    """The revision that was read, of a task or a goal; 0: it's new. The loop waits for the answer.
    An approval and a job are their session's own: of them the newer turn counts."""
    why: str = ""
    """The reason of what a loop asks for."""
    is_silent: bool = False
    """Whether nobody waits for what comes of it; of an action always."""
    parts: tuple[BoardGoal, ...] = ()
    """What a goal is split into; it stays as it was read."""
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """What is told of a goal in the form that it names; it stays as it is. `why` says what of it
    was left out."""


class BoardChange(EffectEnvelope, frozen=True, kw_only=True, tag="board_change"):
    payload: BoardChangePayload


Effect = (
    SendMessage
    | ScheduleTimer
    | CancelTimer
    | CallTool
    | SaveMemory
    | SpawnSession
    | CancelCall
    | TellParent
    | TellPerson
    | SendVerdict
    | RaiseBudget
    | BoardChange
)
EffectType = Literal[
    "send_message",
    "schedule_timer",
    "cancel_timer",
    "call_tool",
    "save_memory",
    "spawn_session",
    "cancel_call",
    "tell_parent",
    "tell_person",
    "send_verdict",
    "raise_budget",
    "board_change",
]


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
    head = f"{session_key}\0{event_seq}\0{ordinal}\0{effect_type}\0{destination}\0"
    return hashlib.sha256(head.encode() + canonical(payload)).hexdigest()[:32]
