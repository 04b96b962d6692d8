"""What a session may start yet, and what of its own it hands down to each (SPEC C-1). Pure.

The numbers are in `lent`; here they are read from a draft, and counted there.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from vigil.subjects import SessionKey

from .. import loops
from ..allowance import lent
from ..draft import Draft
from ..draft.kinds import profile_of
from ..draft.profile import Profile
from ..pending import tasks

FEW_STEPS: Final = "Too few steps are left for that; do it yourself, or say what you have."


class Share(NamedTuple):
    """What one that is started is given."""

    sessions: int = 0
    """How many may descend from it."""
    steps: int = 0
    """Calls of its model, out of those of who starts it; 0: it has its own."""


def under_way(draft: Draft) -> list[str]:
    """Return the ids of the children that have not told their end."""
    found = draft.state.tasks.items()
    return [id_ for id_, task in found if task.kind != "call" and not task.told_seq]


def depth(draft: Draft) -> int:
    """Return how deep the session is below the first one."""
    return 0 if draft.state.start is None else draft.state.start.depth


def obstacle(draft: Draft, kind: Profile) -> str | None:
    """Return why none of that kind can be started as things are, whoever asks; None: one can."""
    policy, count = draft.policy, len(under_way(draft))
    if depth(draft) >= policy.depth_max:
        return f"This is {depth(draft)} deep already; do it yourself."
    if count >= policy.profile.children_max:
        return f"{count} are under way already; wait for their results, or do it yourself."
    if draft.state.loop is None:
        return None
    if policy.profile.lends_steps:
        return None if share(draft, kind).steps else FEW_STEPS
    if _left(draft) < 1:
        return f"{_sessions(draft)} were started for this already; do it yourself."
    return None


def share(draft: Draft, kind: Profile) -> Share:
    """Return what one of that kind is given of what the session has left."""
    policy = draft.policy
    if draft.state.loop is not None and policy.profile.lends_steps:
        free = policy.profile.children_max - len(under_way(draft))
        calls_max = policy.steps_of.get(kind.name, kind.calls_max)
        return Share(steps=lent.steps_for(loops.steps_left(draft), calls_max, free))
    most = 0 if kind.lends_steps else kind.children_max
    return Share(sessions=lent.sessions_for(_left(draft), most))


def count(draft: Draft, root_id: str, given: Share) -> None:
    """Count in the open loop what it gave away, so that none of it is given twice."""
    if draft.policy.profile.lends_steps:
        draft.update_loop(lent=draft.loop.lent + given.steps)
        return
    spawned = draft.loop.spawned + 1 + given.sessions
    draft.update_loop(spawned=spawned)
    tasks.count_spawned(draft, root_id, spawned)


def due_at(draft: Draft, kind: str) -> datetime:
    """Return when one of that kind counts as lost, if it tells nothing from now on."""
    now = draft.moment.now
    at = now + _timeout(draft, kind)
    return lent.due_within(at, now, _lost_at(draft)) if draft.policy.profile.lends_steps else at


def _lost_at(draft: Draft) -> datetime | None:
    """Return when the session counts as lost itself, if it tells nothing; None: never."""
    start, now = draft.state.start, draft.moment.now
    if start is None or not start.parent:
        return None
    told_at = datetime.fromtimestamp(draft.state.told_ms / 1000, now.tzinfo)
    return told_at + _timeout(draft, SessionKey.parse(draft.key).kind)


def _timeout(draft: Draft, kind: str) -> timedelta:
    return timedelta(seconds=draft.policy.timeouts_s.get(kind, profile_of(kind).timeout_s))


def _sessions(draft: Draft) -> int:
    """Return how many sessions may descend from what the open loop is about."""
    start = draft.state.start
    is_first = start is None or draft.state.job is not None
    return draft.policy.fan_out_max if is_first or start is None else start.allowance


def _left(draft: Draft) -> int:
    loop = draft.state.loop
    return _sessions(draft) - (0 if loop is None else loop.spawned)
