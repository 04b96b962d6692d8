"""What a turn set in motion beside messages, timers and calls, reduced. Pure.

Sessions that it started, ended or told something; requests to a person; the steps of a job. A turn
holds each of them whole, so they are cut here as soon as the turn is decoded.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import msgspec

from vigil.contracts import (
    Approval,
    ApprovalState,
    BoardChange,
    BoardTask,
    CancelCall,
    ChildKind,
    Effect,
    Instant,
    Job,
    JobStatus,
    Risk,
    SpawnSession,
    StepRun,
    TellParent,
    TellParentPayload,
    TellPerson,
    Turn,
)
from vigil.contracts.board import BoardAction, BoardGoal, BoardPreference
from vigil.subjects import SessionKey

from .text import clip

RAN_MAX: Final = 5
"""Steps of a job that one turn tells."""


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was started; its thread is made of the effect's id."""

    id: str
    kind: ChildKind
    child: SessionKey
    prompt: str


class CalledOff(msgspec.Struct, frozen=True, kw_only=True):
    """A call, or a session, that nobody waits for any more."""

    id: str
    tool: str
    reason: str
    is_child: bool


Told = Literal["parent", "task", "slot", "again"]
"""Whom a session told how it goes; `again`: its row, which may begin it again."""


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What was told to the session that started this one, or to the task or slot that it works
    on."""

    id: str
    state: Literal["running", "asking", "done", "failed"]
    text: str
    is_tainted: bool
    to: Told = "parent"


class HomeNotified(msgspec.Struct, frozen=True, kw_only=True):
    """What the person is told in another conversation."""

    id: str
    home: str
    text: str
    is_tainted: bool


class Requested(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a person, as it is after the turn."""

    id: str
    tool: str
    text: str
    """The arguments; of one that was edited, those that take their place."""
    risk: Risk
    reason: str
    state: ApprovalState
    expires_at: Instant
    said: str
    """What the person said to it."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a job that ended with the turn, or began with it."""

    number: int
    tool: str
    text: str
    """What it told, or why it failed."""
    is_failed: bool
    is_over: bool


class Working(msgspec.Struct, frozen=True, kw_only=True):
    """A job, as it is after the turn."""

    id: str
    status: JobStatus
    title: str
    text: str
    """How it was planned, or why it failed."""
    steps: int
    """Of its plan; 0: there is none yet."""
    run: int
    """How many of them were begun."""
    failed: int
    ran: tuple[Ran, ...]
    """Those that the turn is about."""
    is_planned: bool
    """Whether the plan is of this turn."""


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """What it wanted made, changed, split or learned on the board."""

    id: str
    kind: Literal["task", "goal", "preference"]
    about: str
    """Its id."""
    title: str
    status: str = ""
    is_new: bool = False
    is_split: bool = False
    is_tainted: bool = False


Deed = Started | CalledOff | Reported | HomeNotified | Requested | Working | Put


def deeds_of(turn: Turn) -> list[Deed]:
    """Return what a turn did of this, in its order."""
    key = SessionKey.parse(turn.session_key)
    found = [_deed(key, effect, turn.created_at) for effect in turn.effects]
    return [deed for deed in found if deed is not None]


def _deed(key: SessionKey, effect: Effect, at: datetime) -> Deed | None:
    match effect:
        case SpawnSession(payload=spawned):
            child = key.of_kind(spawned.kind, effect.id)
            prompt = clip(spawned.prompt)
            return Started(id=effect.id, kind=spawned.kind, child=child, prompt=prompt)
        case CancelCall(payload=off):
            return CalledOff(
                id=off.call_id,
                tool=clip(off.tool, 64),
                reason=clip(off.reason),
                is_child=bool(off.child),
            )
        case TellParent(payload=payload):
            return Reported(
                id=effect.id,
                state=payload.state,
                text=clip(payload.content),
                is_tainted=payload.is_tainted,
                to=_to(payload),
            )
        case TellPerson(payload=asked):
            said, text = asked.told, clip(asked.told.text)
            return HomeNotified(
                id=effect.id, home=asked.home, text=text, is_tainted=said.is_tainted
            )
        case BoardChange():
            return _on_board(effect, at)
        case _:
            return None


def _to(payload: TellParentPayload) -> Told:
    if payload.slot is not None:
        may_again = payload.is_unanswered and payload.slot.again_until is not None
        return "again" if may_again else "slot"
    return "task" if payload.task_id else "parent"


def _on_board(effect: BoardChange, at: datetime) -> Requested | Working | Put | None:
    entity = effect.payload.entity
    match entity:
        case BoardTask():
            return _put(effect, entity, "task", entity.title)
        case BoardGoal():
            return _put(effect, entity, "goal", entity.description)
        case BoardPreference():
            return Put(id=effect.id, kind="preference", about=entity.id, title=entity.key)
        case BoardAction():
            return None  # its note tells of it
        case Job():
            return _working(entity, at)
        case Approval():
            return _requested(entity)


def _put(
    effect: BoardChange, entity: BoardTask | BoardGoal, kind: Literal["task", "goal"], title: str
) -> Put:
    return Put(
        id=effect.id,
        kind=kind,
        about=entity.id,
        title=clip(title, 80),
        status=entity.status,
        is_new=not effect.payload.expect,
        is_split=bool(effect.payload.parts),
        is_tainted=entity.is_tainted,
    )


def _requested(approval: Approval) -> Requested:
    given = approval.input if approval.edited is None else approval.edited
    return Requested(
        id=approval.id,
        tool=clip(approval.tool, 64),
        text=clip(msgspec.json.encode(given).decode()),
        risk=approval.risk,
        reason=clip(approval.reason),
        state=approval.state,
        expires_at=approval.expires_at,
        said=clip(approval.text),
    )


def _working(job: Job, at: datetime) -> Working:
    plan = job.plan
    return Working(
        id=job.id,
        status=job.status,
        title=clip(job.skill or job.goal, 80),
        text=clip(job.error or ("" if plan is None else plan.reasoning)),
        steps=0 if plan is None else len(plan.steps),
        run=len(job.step_runs),
        failed=sum(bool(run.error) for run in job.step_runs),
        ran=tuple(
            _ran(number, run)
            for number, run in enumerate(job.step_runs, start=1)
            if run.completed_at in (None, at)
        )[-RAN_MAX:],
        is_planned=plan is not None and all(run.started_at == at for run in job.step_runs),
    )


def _ran(number: int, run: StepRun) -> Ran:
    return Ran(
        number=number,
        tool=clip(run.tool, 64),
        text=clip(run.error or run.output),
        is_failed=bool(run.error),
        is_over=run.completed_at is not None,
    )


def is_asked_by(turn: Turn, id_: str) -> bool:
    """Tell whether a turn decided the effect of that id, or began the request or job of that id."""
    return any(effect.id == id_ or _begins(effect, id_) for effect in turn.effects)


def _begins(effect: Effect, id_: str) -> bool:
    if not isinstance(effect, BoardChange) or effect.payload.entity.id != id_:
        return False
    entity = effect.payload.entity
    is_begun = isinstance(entity, Job) and entity.plan is None and not entity.step_runs
    return entity.state == "open" if isinstance(entity, Approval) else is_begun


def is_about(turn: Turn, id_: str) -> bool:
    """Tell whether a turn changed the request or the job of that id."""
    return any(
        isinstance(effect, BoardChange) and effect.payload.entity.id == id_
        for effect in turn.effects
    )
