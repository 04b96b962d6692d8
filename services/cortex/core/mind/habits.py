"""Goals that nobody set in words: habits of the person, and how they are told of them (SPEC G-3).

Pure. Whether something is a habit is counted, not guessed; a goal that is made of one, or that the
agent set itself, is told with its reason and a word that stops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from vigil.contracts import BoardChangePayload, Cause, Task
from vigil.contracts.board import BoardGoal, BoardPreference
from vigil.contracts.board.approval import short_name
from vigil.goals import lifecycle
from vigil.preferences import habits
from vigil.preferences.confidence import taught
from vigil.preferences.shown import described
from vigil.subjects import Scope

from .. import sway as sways
from ..draft import Draft
from ..sway import Sway
from ..tools import calls, lesson
from ..work import detached
from . import deeds
from .decisions import AnyDecision, LearnDecision

GOAL: Final = "goal_create"
WHY: Final = f"seen {habits.TIMES} times within a week, and sure"
SET: Final = "I go after this from now on: {what}. To end it, say: stop {name}"
PROPOSED: Final = (
    "I would go after this: {what}. It waits for you: `vigil goals resume {id}` lets me."
)


def after(draft: Draft, decided: Iterable[AnyDecision]) -> tuple[BoardPreference, ...]:
    """Return the habits as they will be with what a look has just learned."""
    known = {one.key: one for one in draft.moment.habits}
    for one in decided:
        before = known.get(one.key) if isinstance(one, LearnDecision) else None
        if isinstance(one, LearnDecision) and before is not None:
            new = lesson.taught_by(draft, one.category, one.key, one.value, because=one.because)
            known[one.key] = taught(before, new, draft.policy.preference_period)
    return tuple(known.values())


def pursue(draft: Draft, cause: Cause, preferences: Sequence[BoardPreference]) -> None:
    """Make a goal of each habit that isn't one yet. It's pursued if the agent may decide that."""
    there = {one.goal.id for one in draft.moment.goals}
    there |= set(draft.state.tasks) | set(_made(draft))
    for one in preferences:
        is_habit = habits.is_habit(one, draft.moment.now, draft.policy.preference_period)
        if not is_habit or habits.goal_id(one) in there:
            continue
        goal = _goal(draft, one)
        effect_id = draft.ask_board(BoardChangePayload(entity=goal, why=WHY))
        title = f"{goal.description} (because {WHY})"
        task = Task(
            tool=GOAL,
            title=title,
            due_at=calls.due_at(draft, None),
            generation=draft.ordinal,
            caused_by=cause.id,
        )
        detached.open(draft, effect_id, task)
        deeds.log(draft, effect_id, GOAL, title, "pending", sway=Sway.NONE)
        draft.note("habit_pursued", f"{one.key}: {WHY}", effect_id)


def _made(draft: Draft) -> Iterable[str]:
    """Yield the goals that this very turn makes."""
    for effect in draft.effects:
        entity = getattr(effect.payload, "entity", None)
        if isinstance(entity, BoardGoal):
            yield entity.id


def _goal(draft: Draft, habit: BoardPreference) -> BoardGoal:
    return lifecycle.begun(
        habits.goal_id(habit),
        Scope(habit.agent, habit.owner),
        draft.moment.now,
        {},
        description=f"Do what you are used to without being asked: {described(habit)}",
        origin="inferred",
        status="active" if draft.policy.authority in ("suggest", "act") else "paused",
        session_key=draft.key,
    )


def notify_of_goal(draft: Draft, task: Task, content: str) -> None:
    """Tell the person of a goal that the mind set, once it is on the board.

    Args:
        content: what the executor says of it; it begins with the goal's id.
    """
    id_, _, rest = content.partition(" ")
    form = SET if rest.startswith("is active") else PROPOSED if rest.startswith("is paused") else ""
    if form:
        what = "something from outside led to it" if sways.of(task).is_outside else task.title
        if not draft.is_for_one:  # what members wrote orders nothing in another's own conversation
            what = f"`vigil goals show {id_[:8]}`"
        text = form.format(what=what, name=short_name(id_, "g"), id=id_[:8])
        draft.notify_home("goal", text, is_ordered=False)
