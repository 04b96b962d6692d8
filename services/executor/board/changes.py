"""Tasks, goals, preferences and actions on the board, changed for loops that ask (LOOPS L-15).

A change is a compare-and-set on the revision that the loop read; something new is stored if there
is room; a lesson is added to what is known. Whatever comes of it is the result of the loop's call,
a conflict, too, so that it decides anew. What nobody waits for holds whatever came between. The
revision that a change made names the effect, so a repeat finds it in the history.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from vigil import crash
from vigil.actions import log as actions
from vigil.board import goals
from vigil.board.kept import KeptBoard, KeptKind, Revision
from vigil.board.kinds.action import ACTIONS
from vigil.board.kinds.goal import goals_of
from vigil.board.kinds.preference import preferences_of
from vigil.board.kinds.task import TASKS
from vigil.contracts import BoardChange, BoardChangePayload, BoardTask, Change, encode
from vigil.contracts.board import AskedEntity, BoardAction, BoardGoal, BoardPreference, FactFill
from vigil.errors import InvalidInput, WrongLastSequence
from vigil.facts.taken import NOT_TOLD
from vigil.goals import lifecycle
from vigil.observe import trace
from vigil.preferences.confidence import confidence_at, level_of
from vigil.runtime import Context
from vigil.subjects import SessionKey
from vigil.tasks.check import admitted
from vigil.teams import Teams, holding
from vigil.worker import turns

from .fact_notifications import FactNotifier
from .facts import FactStore, slot_of_goal
from .made import made_by
from .receivers import reaches_one

BOARD: Final = "board"
CONFLICT: Final = (
    "Not changed: it was changed since you read it, and is {status} now. Look again, and decide."
)


class BoardChanges:
    """Changes what a loop asks for."""

    def __init__(self, context: Context) -> None:
        self._bus = context.bus
        self._clock = context.clock
        self._goals = goals_of(context.settings.config)
        self._config = context.settings.config
        self._period = context.settings.config.preferences.period
        self._facts, self._notifier = FactStore(context), FactNotifier(context)

    async def change(self, key: SessionKey, effect: BoardChange, entity: AskedEntity) -> None:
        """Make or change an entity, and tell the loop what came of it; may be repeated.

        Raises:
            InvalidInput: it's somebody else's.
            Unavailable: try again later.
        """
        kind = str(entity.__struct_config__.tag)
        for one in (entity, *effect.payload.parts):
            if (one.owner, one.agent) != (key.user, key.agent) and not is_handed(
                key, effect.payload, self._config.teams
            ):
                raise InvalidInput(kind, f"{one.id} is not of the same person and agent")
        try:
            text, is_error = await self._done(key, effect, entity), False
        except InvalidInput as error:
            text, is_error = f"Not {'changed' if effect.payload.expect else 'made'}: {error}.", True
        except WrongLastSequence:
            text, is_error = "", True
            if not effect.payload.is_silent:
                text = await self._conflict(key, entity)
            elif isinstance(entity, BoardGoal):
                await self._store_anyway(key, effect, entity)
        crash.point("executor.asked.changed")
        if effect.payload.is_silent:
            return
        event = turns.result_of(
            BOARD, key, effect.id, text, now=self._clock.now(), is_error=is_error
        )
        await self._bus.publish(
            key.in_event("tool_result"), encode(event), _headers(), msg_id=event.id
        )

    async def note(self, key: SessionKey, effect: BoardChange, action: BoardAction) -> None:
        """Note an action, or how it ended: what was told first of its end holds. May be repeated.

        Raises:
            InvalidInput: it's somebody else's.
            Unavailable: try again later.
        """
        if (action.owner, action.agent) != (key.user, key.agent):
            raise InvalidInput("action", f"{action.id} is not of the same person and agent")
        board, now = KeptBoard(self._bus, ACTIONS), self._clock.now()
        change = Change(by=key.agent, why=effect.payload.why, cause=effect.id)
        await board.create(lambda _: action, holding(key.user, key.agent), change, now)
        await board.revise(
            [key.scope],
            action.id,
            lambda known: actions.ended(known, action.outcome, now),
            change,
            now,
        )
        crash.point("executor.asked.changed")

    async def _done(self, key: SessionKey, effect: BoardChange, entity: AskedEntity) -> str:
        """Return what the loop is told. Raises: WrongLastSequence, InvalidInput, Unavailable."""
        now, payload = self._clock.now(), effect.payload
        change = Change(by=key.agent, why=payload.why, cause=effect.id)
        match entity:
            case BoardTask():
                task = await self._stored(TASKS, key, entity, payload.expect, change, now)
                return described_task(task.entity)
            case BoardPreference():
                board = KeptBoard(self._bus, preferences_of(self._period))
                known = await board.add(entity, change, now)
                return described_preference(known.entity, now, self._period)
            case BoardGoal() if payload.facts:
                return await self._take_facts(key, effect, entity)
            case BoardGoal() if payload.parts:
                await self._check_whole(key, entity, payload)
                made = await goals.split(self._bus, self._goals, entity, payload.parts, change, now)
                return "\n".join(described_goal(one.entity) for one in made)
            case BoardGoal():
                goal = await self._stored(self._goals, key, entity, payload.expect, change, now)
                return described_goal(goal.entity)

    async def _take_facts(self, key: SessionKey, effect: BoardChange, entity: BoardGoal) -> str:
        """Take what was told of a goal, by the shapes that it names now. Raises: InvalidInput."""
        found = await KeptBoard(self._bus, self._goals).find([key.scope], entity.id)
        goal = None if found is None else found.entity
        if goal is None or goal.status not in lifecycle.HELD or not goal.facts:
            raise InvalidInput("facts", "the goal has ended, or names none any more")
        known = await self._facts.take_goal(key, effect.id, goal, effect.payload.facts)
        slot = slot_of_goal(goal)
        if reaches_one(self._config, key, slot):
            await self._notifier.notify(key, effect.id, slot, known, is_told=False)
        fill = FactFill(cause="") if known.newest is None else known.newest
        said = ", ".join(f"{name} = {value}" for name, value in fill.values.items())
        full = {why for why in fill.left_out.values() if why != NOT_TOLD}
        left = "; ".join(filter(None, (effect.payload.why, *full)))
        return f"Noted: {said or 'nothing'}.{f' Left out: {left}.' if left else ''}"

    async def _check_whole(
        self, key: SessionKey, whole: BoardGoal, payload: BoardChangePayload
    ) -> None:
        """Raises: WrongLastSequence: what is to be split isn't as it was read."""
        board = KeptBoard(self._bus, self._goals)
        if await board.find([key.scope], payload.parts[0].id) is not None:
            return  # it was split by this, or partly
        found = await board.find([key.scope], whole.id)
        if found is None or found.number != payload.expect:
            raise WrongLastSequence(f"{whole.id}: revision {payload.expect} is not the newest")

    async def _stored(
        self,
        kind: KeptKind[Any],
        key: SessionKey,
        entity: BoardTask | BoardGoal,
        expect: int,
        change: Change,
        now: datetime,
    ) -> Revision[Any]:
        """Return the revision that the effect makes, or made. Raises: WrongLastSequence."""
        board = KeptBoard(self._bus, kind)
        if not expect:
            among = holding(key.user, key.agent)
            return await board.create(
                lambda others: _new(_at(entity, now), others), among, change, now
            )
        found = await board.find([key.scope], entity.id)
        made = None if found is None else await made_by(board, change.cause, found)
        if made is not None:
            return made
        if found is None or found.number != expect:
            raise WrongLastSequence(f"{entity.id}: revision {expect} is not the newest")
        entity = _at(entity, now) if entity.status != found.entity.status else entity
        return await board.change(found, entity, change, now)

    async def _store_anyway(self, key: SessionKey, effect: BoardChange, goal: BoardGoal) -> None:
        """Store what is told of a goal that was changed since it was read: nobody would decide
        anew, and its person may have been told that it ended."""
        now = self._clock.now()
        change = Change(by=key.agent, why=effect.payload.why, cause=effect.id)
        revised = partial(lifecycle.joined, said=goal, now=now)
        await KeptBoard(self._bus, self._goals).revise([key.scope], goal.id, revised, change, now)

    async def _conflict(self, key: SessionKey, entity: AskedEntity) -> str:
        kind: KeptKind[Any] = TASKS if isinstance(entity, BoardTask) else self._goals
        found = await KeptBoard(self._bus, kind).find([key.scope], entity.id)
        return CONFLICT.format(status="gone" if found is None else found.entity.status)


def is_handed(key: SessionKey, payload: BoardChangePayload, teams: Teams) -> bool:
    """Whether it's a new task for another agent of the same person's; teams are apart."""
    task = payload.entity
    return (
        isinstance(task, BoardTask)
        and not payload.expect
        and (task.owner, task.session_key) == (key.user, str(key))
        and not {task.agent, key.agent} & teams.keys()
    )


def _new(entity: Any, others: list[Any]) -> Any:
    """Return what may be made beside the owner's open ones. Raises: InvalidInput."""
    return admitted(entity, others) if isinstance(entity, BoardTask) else entity


def _at(entity: Any, now: datetime) -> Any:
    """Return it as it comes into its status now."""
    return replace(entity, moved_at=now)


def _headers() -> dict[str, str]:
    return {trace.HEADER: trace.passed_on(trace.current.get())}


# ---------------------------------------------------------------- what the loop is told


def described_task(task: BoardTask) -> str:
    """Return what a loop is told of a task that it made or changed."""
    if task.status == "pending_approval":
        return (
            f"{task.id} waits for the person: `vigil tasks approve {task.id[:8]}` lets it begin. "
            "Tell them."
        )
    return f"{task.id} is {task.status}, its priority is {task.priority}."


def described_goal(goal: BoardGoal) -> str:
    """Return what a loop is told of a goal that it made or changed."""
    if goal.status == "paused":
        leave = f"`vigil goals resume {goal.id[:8]}` lets it be pursued"
        return f"{goal.id} is paused: {leave}. Tell them."
    return f"{goal.id} is {goal.status}, its priority is {goal.priority} of 5."


def described_preference(known: BoardPreference, now: datetime, period: timedelta) -> str:
    """Return what a loop is told of a preference that it was taught."""
    if known.is_removed:
        return f"{known.key}: the person removed it; it was not learned."
    value = "not that way" if known.is_negative else "as it stands"
    sure = confidence_at(known, now, period)
    return f"{known.key}: known {value}, {level_of(sure)} ({sure:.2f})."
