"""Goals that looks leave as due as before: `why` shows it, and the person is told once.

Pure. How such looks become fewer is in `vigil.goals.pace`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vigil.contracts.board import BoardGoal
from vigil.contracts.board.approval import short_name
from vigil.contracts.board.goal import LookedGoal
from vigil.goals import lifecycle, pace
from vigil.words.amounts import about

from .. import sway as sways
from ..draft import Draft
from ..pending.tasks import shortened
from . import deeds

TOLD_AT: Final = 3
"""After so many looks that left a goal as due as before the person is told, and not again."""
LEFT: Final = (
    "{name} is as due as before {looks} looks; it begins the next in {wait} at the soonest"
)
SAID: Final = (
    "I looked at this several times, and can't put down that I did, so I look at it less and less "
    "often: {what}. `vigil goals show {name}` has what is known of it, `vigil why {look}` how I "
    "looked."
)
SHOWN_LENGTH_MAX: Final = 200


def looked(draft: Draft) -> dict[str, LookedGoal]:
    """Return how often each goal was looked at while it was due, with the look that ends."""
    mind, now = draft.state.mind, draft.moment.now
    there = {one.goal.id: one.goal for one in draft.moment.goals}
    found = {id_: one for id_, one in mind.looked.items() if id_ in there}
    for goal in (there[id_] for id_ in mind.goals if id_ in there):
        due_at, before = lifecycle.next_check_at(goal, now), found.pop(goal.id, None)
        if due_at is None:
            continue
        is_left = before is not None and before.due_at == due_at
        looks = 1 + (before.looks if before is not None and is_left else 0)
        found[goal.id] = LookedGoal(due_at=due_at, looks=looks)
        if looks > 1:
            _tell(draft, goal, looks)
    return found


def _tell(draft: Draft, goal: BoardGoal, looks: int) -> None:
    wait = pace.later(timedelta(seconds=draft.policy.mind_tick_s), looks)
    name = short_name(goal.id, "g")
    text = LEFT.format(name=name, looks=looks, wait=about(wait.total_seconds()))
    draft.note("look_left", text, goal.id)
    if looks == TOLD_AT:
        is_quotable = draft.is_for_one and not sways.of(goal).is_outside
        what = " ".join(goal.description.split()) if is_quotable else "a goal"
        what = shortened(what, SHOWN_LENGTH_MAX)
        said = SAID.format(what=what, name=name, look=draft.loop.cause.id)
        deeds.notify(draft, said, what="goal")
