"""Reads the entries of a task, a grant or a memory: the board's revisions, and MEMORIES."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from vigil.board.entries import STREAM, last_of
from vigil.board.kept import BULLETINS, CIRCUITS, FACTS, KeptBoard, Revision
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.goal import GOALS
from vigil.board.kinds.grant import GRANTS, USES
from vigil.board.kinds.preference import PREFERENCES
from vigil.board.kinds.task import TASKS
from vigil.bus.bus import Bus, Message
from vigil.contracts import (
    Approval,
    BoardTask,
    Grant,
    GrantUse,
    KeptEntity,
    TimetableRow,
    decode_board,
    decode_memory,
)
from vigil.contracts.board import BoardAction, BoardGoal, BoardPreference
from vigil.errors import InvalidInput
from vigil.marks import thread_mark
from vigil.subjects import Scope, SessionKey
from vigil.timetable.log import SlotLog

from . import entries, pursuits, stories
from .entries import KeptFact, Written
from .facts import Fact, MissingRecord
from .story import Asking, Story, within

HISTORY_MAX: Final = 64
"""Revisions that the board keeps."""
MEMORY_OPS: Final = ("save", "merge", "replace", "forget", "undo")
"""What becomes of a memory, as far as it's told."""
_UNASKED: Final = (BULLETINS.name, CIRCUITS.name, FACTS.name)
"""Kinds of the board that have names of ours in place of ids."""
Told = tuple[SessionKey, Asking[Story]]
"""Whose it is (without a thread: no session's), and its story."""


async def story_of(bus: Bus, entity: KeptEntity) -> tuple[str, Told] | None:
    """Tell of what the board is the truth of -> what it is, and its story; None: it is gone."""
    whose = Scope(entity.agent, entity.owner)
    if isinstance(entity, BoardTask):
        task = await KeptBoard(bus, TASKS).find([whose], entity.id)
        return None if task is None else ("task", await task_story(bus, task))
    if isinstance(entity, TimetableRow):
        run = await run_story(bus, entity)
        return None if run is None else (run[0].kind, run)
    if isinstance(entity, BoardGoal | BoardPreference | BoardAction):
        return await _pursuit(bus, entity)
    grant = await KeptBoard(bus, GRANTS).find([whose], entity.id)
    return None if grant is None else ("grant", await grant_story(bus, grant))


async def _pursuit(bus: Bus, entity: pursuits.Pursuit) -> tuple[str, Told] | None:
    """Tell of a goal, a preference or an action, from the turn that made it on."""
    whose = Scope(entity.agent, entity.owner)
    kind: str = str(entity.__struct_config__.tag)
    history: Sequence[Revision[Any]] = ()
    kept_facts: Iterable[KeptFact] = ()
    session = "" if isinstance(entity, BoardPreference) else entity.session_key
    if isinstance(entity, BoardGoal):
        goals = KeptBoard(bus, GOALS)
        if (goal := await goals.find([whose], entity.id)) is not None:
            history = await goals.history(goal)
            kept_facts = pursuits.of_goal(_written(history), is_whole=len(history) < HISTORY_MAX)
    elif isinstance(entity, BoardPreference):
        preferences = KeptBoard(bus, PREFERENCES)
        if (known := await preferences.find([whose], entity.id)) is not None:
            history = await preferences.history(known)
            kept_facts = pursuits.of_preference(_written(history))
    else:
        actions = KeptBoard(bus, ACTIONS)
        if (action := await actions.find([whose], entity.id)) is not None:
            history = await actions.history(action)
            kept_facts = pursuits.of_action(_written(history))
    if not history:
        return None
    made = None
    if session and (cause := history[0].change.cause):
        maker = SessionKey.parse(session)
        made = within(maker, stories.of_effect(maker, cause))
    key = SessionKey.parse(session) if session else SessionKey(entity.owner, entity.agent, "")
    facts = _facts([one.number for one in history], kept_facts)
    gone = await deleted_fact(bus, session, history[0].at)
    return kind, (key, stories.of_entries(entity.id, kind, [*gone, *facts], made))


async def task_story(bus: Bus, found: Revision[BoardTask]) -> Told:
    """Tell who put a task on the board, what was done to it, and what its newest worker did."""
    task = found.entity
    history = await KeptBoard(bus, TASKS).history(found)
    kept_facts = entries.of_task(_written(history), is_whole=len(history) < HISTORY_MAX)
    made = None
    if task.session_key and (cause := history[0].change.cause):
        maker = SessionKey.parse(task.session_key)
        made = within(maker, stories.of_effect(maker, cause))
    worked = None
    if task.worker:
        worker = SessionKey.parse(task.worker)
        worked = within(worker, stories.of_session(worker, task.id, "task"))
    facts = _facts([one.number for one in history], kept_facts)
    whose = task.worker or task.session_key
    key = SessionKey.parse(whose) if whose else SessionKey(task.owner, task.agent, "")
    gone = await deleted_fact(bus, task.session_key, history[0].at)
    return key, stories.of_entries(task.id, "task", [*gone, *facts], made, worked)


async def run_story(bus: Bus, row: TimetableRow) -> Told | None:
    """Tell of the newest run of a row of the timetable; None: it had none."""
    async for entry in SlotLog(bus).newest(Scope(row.agent, row.owner), row.id):
        if entry.session:
            key = SessionKey.parse(entry.session)
            return key, stories.of_session(key, row.id, key.kind)
    return None


async def grant_story(bus: Bus, found: Revision[Grant]) -> Told:
    """Tell who allowed it and why, and each use that the board still has."""
    grant = found.entity
    whose = Scope(grant.agent, grant.owner)
    revisions: list[Revision[Grant] | Revision[GrantUse]] = []
    revisions += await KeptBoard(bus, GRANTS).history(found)
    uses = KeptBoard(bus, USES)
    used = await uses.find([whose], grant.id)
    if used is not None:
        revisions += await uses.history(used)
    revisions.sort(key=lambda one: one.number)
    facts = _facts([one.number for one in revisions], entries.of_grant(_written(revisions)))
    made = await _request(bus, whose, grant.cause) if grant.made_by == "approval" else None
    key = SessionKey(grant.owner, grant.agent, "")
    return key, stories.of_entries(grant.id, "grant", facts, made)


async def _request(bus: Bus, whose: Scope, id_: str) -> Asking[Story] | None:
    """Tell of the request that a grant was made of, if it's still there."""
    message = await last_of(bus, [whose], "approval", id_)
    if message is None:
        return None
    try:
        entity = decode_board(message.data).entity
    except InvalidInput:
        return None
    if not isinstance(entity, Approval):
        return None
    key = SessionKey.parse(entity.session_key)
    return within(key, stories.of_request(key, id_))


async def deleted_fact(bus: Bus, session: str, since: datetime) -> list[Fact]:
    """Return that the conversation behind a thing was deleted, if it was.

    Args:
        since: when the thing was made; what was deleted before was an earlier one of that name.
    """
    mark = await thread_mark.find(bus, SessionKey.parse(session)) if session else None
    if mark is None or mark.asked_at < since:
        return []
    what = f"the conversation {session}, which was deleted at {mark.asked_at:%Y-%m-%d %H:%M} UTC"
    return [Fact(seq=0, stream=STREAM, body=MissingRecord(what=what))]


def memory_fact(message: Message, id_: str) -> Fact | None:
    """Return what a record of MEMORIES tells of a memory; None: nothing."""
    try:
        entry = entries.of_memory(decode_memory(message.data), id_)
    except InvalidInput:
        return None
    return None if entry is None else _fact("MEMORIES", message.seq, entry)


def ids(message: Message) -> tuple[str, ...]:
    """Return the ids of what a record of the board or of MEMORIES is about."""
    if message.stream == STREAM:
        *_, kind, id_ = message.subject.split(".")
        return () if kind in _UNASKED else (id_,)
    try:
        return entries.memory_ids(decode_memory(message.data))
    except InvalidInput:
        return ()


def is_saved(fact: Fact) -> bool:
    """Whether a memory began there."""
    return isinstance(fact.body, KeptFact) and fact.body.name == entries.SAVED


def origin(fact: Fact) -> tuple[str, str]:
    """Return the session that saved a memory, and the event that led to it, as far as known."""
    fields = fact.body.fields if isinstance(fact.body, KeptFact) else {}
    return fields.get(entries.SESSION, ""), fields.get(entries.MADE_OF, "")


def _written(revisions: Iterable[Revision[Any]]) -> list[Written[Any]]:
    return [Written(entity=one.entity, at=one.at, change=one.change) for one in revisions]


def _facts(numbers: Sequence[int], kept_facts: Iterable[KeptFact]) -> list[Fact]:
    return [_fact(STREAM, seq, entry) for seq, entry in zip(numbers, kept_facts, strict=True)]


def _fact(stream: str, seq: int, entry: KeptFact) -> Fact:
    return Fact(seq=seq, stream=stream, body=entry)
