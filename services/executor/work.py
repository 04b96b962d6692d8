"""What a turn gives the executor to do, the records that come of it, and what a claim means. Pure.

Two kinds of things. What is quick is carried out in the order in which it was decided: a session to
be started or told something, a call that nobody waits for any more, a change of the board. Calls of
tools take their time and are claimed, so that none runs twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec

from vigil.contracts import (
    RISKS,
    BoardChange,
    BoardEntry,
    CallClaim,
    CallTool,
    CancelCall,
    ChildStatus,
    Control,
    ControlPayload,
    Grant,
    SendVerdict,
    SpawnSession,
    Start,
    TellParent,
    TellPerson,
    ToldEvent,
    ToldPayload,
    Tool,
    ToolResultEvent,
    Turn,
)
from vigil.contracts.board import AskedEntity
from vigil.contracts.effects import RaiseBudget
from vigil.errors import InvalidInput
from vigil.minds import is_mind
from vigil.subjects import PART, SessionKey, check_part, token_of
from vigil.teams import TEAM, Teams, may_act
from vigil.worker import turns

from .tools.source import Call, CallTask

SERVICE: Final = "executor"
TAGS: Final = (
    b'"type":"call_tool"',
    b'"type":"spawn_session"',
    b'"type":"cancel_call"',
    b'"type":"tell_parent"',
    b'"type":"tell_person"',
    b'"type":"send_verdict"',
    b'"type":"board_change"',
    b'"type":"raise_budget"',
)
LETTER: Final = "x"
"""The executor's in the header of a turn."""
NOBODY: Final = ""
"""In a claim: whose call was withdrawn before anybody ran it. It never is."""

Said = TellParent | TellPerson | SendVerdict | RaiseBudget
Quick = SpawnSession | CancelCall | Said | BoardChange
Work = Quick | CallTool


def read_turn(subject: str, data: bytes) -> tuple[SessionKey, Turn]:
    """Decode a turn and the session that it was stored under. Raises: InvalidInput."""
    return turns.read_turn(subject, data, work_of)


def work_of(turn: Turn) -> list[Work]:
    """Return what the executor has to do for a turn, in order."""
    return [*quick_of(turn), *calls_of(turn)]


def calls_of(turn: Turn) -> list[CallTool]:
    """Return the calls of the executor's tools, in order."""
    return [e for e in turn.effects if isinstance(e, CallTool) and e.payload.service == SERVICE]


def quick_of(turn: Turn) -> list[Quick]:
    """Return what is done at once, in order.

    Of several changes of an approval or a job the last one stands for all: each has it whole.
    """
    found = [e for e in turn.effects if isinstance(e, Quick)]
    newest = {_place_of(e): e.id for e in found if isinstance(e, BoardChange)}
    return [
        e
        for e in found
        if not isinstance(e, BoardChange) or newest[_place_of(e)] == e.id or is_asked(e)
    ]


def is_asked(change: BoardChange) -> bool:
    """Whether a loop asked for it: each is answered by itself."""
    return isinstance(change.payload.entity, AskedEntity)


def _place_of(change: BoardChange) -> tuple[str, str]:
    entity = change.payload.entity
    return str(entity.__struct_config__.tag), entity.id


# ---------------------------------------------------------------- a call that was claimed before

Owner = Literal["ours", "alive", "gone", "nobody"]
"""Who claimed a call: this replica; one that lives; one that is gone; who withdrew it."""
Next = Literal["leave", "run", "wait", "answer"]
"""What to do with a claimed call: nothing; run it; look again later; say that nobody knows whether
it ran."""


def next_of(*, owner: Owner, is_unrun: bool, is_answered: bool, is_idempotent: bool) -> Next:
    """Decide what becomes of a call that was claimed before, that nobody here runs, and that its
    session still waits for.

    Args:
        is_unrun: the claim is ours and surely was never followed by a run.
        is_answered: whether a result of it is stored, which the session hasn't taken in yet.

    >>> next_of(owner="gone", is_unrun=False, is_answered=False, is_idempotent=False)
    'answer'
    """
    if owner == "nobody" or is_answered:
        return "leave"
    if owner == "alive":
        return "wait"
    return "run" if is_unrun or is_idempotent else "answer"


def may_run(call: CallTool, tool: Tool) -> bool:
    """Whether the tool is still no more dangerous than what the call was let through as.

    The configuration may have changed since; then the core decides anew, by what it is now.
    """
    return RISKS.index(tool.risk) <= RISKS.index(call.payload.risk)


def call_of(
    key: SessionKey,
    effect: CallTool,
    tool: Tool,
    grant: Grant | None = None,
    task: CallTask | None = None,
) -> Call:
    """Return what a source is to run."""
    payload = effect.payload
    return Call(
        id=effect.id,
        key=key,
        tool=tool,
        input=payload.input,
        due_at=payload.due_at,
        is_tainted=payload.is_tainted,
        may_replace=payload.is_named or bool(payload.approval_id) or not payload.is_tainted,
        grant=grant,
        answered=payload.answered,
        task=task,
    )


def withdrawn(key: SessionKey, cancel: CancelCall, *, now: datetime) -> CallClaim:
    """Build the claim that keeps a call from ever being run."""
    payload = cancel.payload
    return CallClaim(
        effect_id=payload.call_id,
        session_key=str(key),
        tool=payload.tool[:200],
        by=NOBODY,
        at=now,
    )


# ---------------------------------------------------------------- sessions


def child_of(key: SessionKey, effect: SpawnSession) -> SessionKey:
    """Return the session that is to be started. Raises: InvalidInput."""
    child = key.of_kind(effect.payload.kind, effect.id)
    check_part("threadId", child.thread)
    return child


def start_of(key: SessionKey, effect: SpawnSession, turn_seq: int, *, now: datetime) -> Control:
    """Build the first event of a session that is started.

    Args:
        key: who starts it.
        turn_seq: stream sequence of the turn that decided it.
    """
    payload = effect.payload
    start = Start(
        prompt=payload.prompt,
        parent="" if payload.call is not None else str(key),
        call_id=effect.id,
        parent_turn=turn_seq,
        root_id=payload.root_id,
        root=payload.root,
        depth=payload.depth,
        allowance=payload.allowance,
        steps=payload.steps,
        tokens_max=payload.tokens_max,
        source=payload.source,
        is_ordered=payload.is_ordered,
        is_tainted=payload.is_tainted,
        call=payload.call,
        row=payload.row,
        row_tokens=payload.row_tokens,
        goal=payload.goal,
    )
    return Control(
        id=f"start-{effect.id}",
        session_key=str(child_of(key, effect)),
        created_at=now,
        caused_by=payload.caused_by,
        payload=ControlPayload(op="start", start=start),
    )


def relative_of(key: SessionKey, text: str) -> SessionKey:
    """Parse the key of a parent or child: a session of the same person and agent.

    Raises:
        InvalidInput: it is no key, or somebody else's.
    """
    other = SessionKey.parse(text)
    if (other.user, other.agent) != (key.user, key.agent):
        raise InvalidInput("session_key", f"{text!r} is not of the same person and agent")
    return other


def home_of(key: SessionKey, text: str, teams: Teams, *, is_for_agent: bool = False) -> SessionKey:
    """Parse the key of a home: of the same person and agent, or of a member of the team; or that of
    the agent's mind for the same person.

    Args:
        is_for_agent: it may be another agent's of the same person, neither of them a team's.

    Raises:
        InvalidInput: it is no key, no conversation, or somebody else's.
    """
    home = SessionKey.parse(text)
    is_others = home.user == key.user and not {home.agent, key.agent} & teams.keys()
    if is_for_agent and is_others and not home.is_system:
        return home
    is_of_team = key.user == TEAM and home.user != TEAM
    if not (is_of_team and may_act(home.user, key.user, key.agent, teams)):
        home = relative_of(key, text)
    if home.is_system and not is_mind(home):
        raise InvalidInput("home", f"{home} is no conversation, and not the agent's mind")
    return home


def cancel_of(child: SessionKey, effect: CancelCall, *, now: datetime) -> Control:
    """Build the event that ends a child. Its id is the same for every try."""
    return Control(
        id=f"cancel-{effect.id}",
        session_key=str(child),
        created_at=now,
        caused_by=effect.payload.call_id,
        payload=ControlPayload(op="cancel", reason=effect.payload.reason),
    )


def report_of(
    parent: SessionKey, effect: TellParent, *, now: datetime
) -> Control | ToolResultEvent:
    """Build what a parent is told: its call's result, or a status. Ids are the same for every try.

    >>> from vigil.contracts import TellParentPayload
    >>> payload = TellParentPayload(parent="a:b:c", call_id="1f", state="done", content="42")
    >>> effect = TellParent(id="2e", ordinal=1, payload=payload)
    >>> report_of(SessionKey("a", "b", "c"), effect, now=datetime(2026, 1, 1)).payload.content
    '42'
    """
    payload = effect.payload
    match payload.state:
        case "done" | "failed":
            return turns.result_of(
                "session",
                parent,
                payload.call_id,
                payload.content,
                now=now,
                is_error=payload.state == "failed",
                is_tainted=payload.is_tainted,
                steps=payload.steps,
            )
        case "running" | "asking":
            status = ChildStatus(
                call_id=payload.call_id,
                state=payload.state,
                text=payload.content,
                is_tainted=payload.is_tainted,
                until=payload.until,
                approval_id=payload.approval_id,
            )
            return Control(
                id=f"status-{token_of(SERVICE, effect.id)}",
                session_key=str(parent),
                created_at=now,
                caused_by=payload.call_id,
                payload=ControlPayload(op="status", status=status),
            )


def notification_of(
    home: SessionKey, effect_id: str, message: ToldPayload, *, now: datetime
) -> ToldEvent:
    """Build the notification of a person in a conversation. Its id is the same for every try."""
    return ToldEvent(
        id=f"told-{token_of(SERVICE, effect_id)}",
        session_key=str(home),
        created_at=now,
        caused_by=effect_id,
        payload=message,
    )


def verdict_of(asker: SessionKey, effect: SendVerdict, *, now: datetime) -> Control:
    """Build what a session that asked is told of the person's verdict. Its id is the same for every
    try."""
    return Control(
        id=f"verdict-{token_of(SERVICE, effect.id)}",
        session_key=str(asker),
        created_at=now,
        caused_by=effect.id,
        payload=ControlPayload(op="approval", decision=effect.payload.decision),
    )


# ---------------------------------------------------------------- the board


def board_subject(key: SessionKey, change: BoardChange) -> str:
    """Return where an entity stands on the board. Raises: InvalidInput."""
    kind, id_ = _place_of(change)
    return key.board(kind, check_part("entity.id", id_))


def entry_of(change: BoardChange, turn_seq: int, *, now: datetime) -> BoardEntry:
    """Build what is stored of a change that the turn `turn_seq` decided."""
    return BoardEntry(entity=change.payload.entity, turn_seq=turn_seq, at=now)


def is_newer(entry: BoardEntry, stored: BoardEntry | None) -> bool:
    """Whether a change is to be stored: a repeat, or one that was overtaken, isn't."""
    return stored is None or entry.turn_seq > stored.turn_seq


# ---------------------------------------------------------------- withdrawing, told to all replicas


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent to `EXECUTOR_CANCEL`."""

    call_id: str
    session_key: str


encode_withdrawal: Final = msgspec.json.Encoder().encode
decode_withdrawal: Final = msgspec.json.Decoder(Withdrawal).decode


def check_call_id(call_id: str) -> str:
    """Return the id of a call that may be part of a subject. Raises: InvalidInput."""
    if not PART.fullmatch(call_id):
        raise InvalidInput("call_id", f"{call_id[:100]!r} is not the id of an effect")
    return call_id
