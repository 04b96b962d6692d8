"""What the mind's decisions do (SPEC G-4, G-5). Pure.

Each is carried out by what exists for it: the tools that loops have for the board, the executor's
tools under authority and grants, the person's home. Each is an entry of the log of actions, with
how it ended. Below the confidence that its risk wants the person is asked first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, assert_never

import msgspec

from vigil.actions.log import DESCRIPTION_LENGTH_MAX
from vigil.contracts import (
    BoardChange,
    BoardChangePayload,
    CallTool,
    OpenCall,
    Risk,
    Task,
    ToolUseBlock,
)
from vigil.contracts.board import BoardAction
from vigil.contracts.board.action import ActionOutcome
from vigil.goals import lifecycle
from vigil.memory.operation import tools as memory_tools
from vigil.minds import KIND
from vigil.subjects import SessionKey, token_of

from ..draft import Draft
from ..draft.kinds import starters
from ..pending.tasks import shortened
from ..sway import Sway
from ..tools import calls
from ..tools.declaration import declared
from ..work import detached
from ..work.routing import route
from .decisions import (
    AnyDecision,
    CallDecision,
    GoalDecision,
    LearnDecision,
    MindDecision,
    NoActionDecision,
    PursuitDecision,
    RespondDecision,
    SplitDecision,
    TaskDecision,
)

GATE: Final[dict[Risk, float]] = {"read": 0.3, "write": 0.5, "external": 0.7, "destructive": 0.9}
"""So sure a decision has to be (SPEC G-4). An unknown tool isn't called at all."""
TITLE_LENGTH_MAX: Final = 300
FACTS_NUMBERED: Final = 1_000
"""So much is added to the number of a decision that tells facts, too: they are two actions."""
UNKNOWN: Final = "unknown"
"""The type of an action whose tool isn't offered: its name is what a model wrote."""
UNSURE: Final = "I'm only {confidence:.0%} sure of it"
DOUBT: Final = (
    "I'm not sure enough ({confidence:.0%}) to do this by myself: {what}. Why I thought of it: "
    "{because}. If it's right, tell me."
)


def carry_out(draft: Draft, decisions: Iterable[AnyDecision]) -> None:
    """Do what a look decided, in its order; but goals are split first, as they were read: whatever
    else changes one would come between."""
    for number, one in enumerate(
        sorted(decisions, key=lambda one: not isinstance(one, SplitDecision))
    ):
        draft.acting_for = one.goal if one.goal in draft.state.mind.goals else ""
        _carry_out(draft, one, number)
    draft.acting_for = ""


def _carry_out(draft: Draft, one: AnyDecision, number: int) -> None:
    if isinstance(one, GoalDecision | PursuitDecision) and (hasty := _hasty(draft, one)):
        tool = "goal_create" if isinstance(one, GoalDecision) else "goal_update"
        log(draft, _id(draft, number), tool, hasty, "failed", one=one)
        return
    match one:
        case NoActionDecision():
            draft.note("look_decided", f"nothing: {one.because}")
        case RespondDecision():
            _respond(draft, one, number)
        case CallDecision():
            _call(draft, one, number)
        case GoalDecision():
            _on_board(draft, one, number, "goal_create", _given(one), one.description)
        case PursuitDecision():
            given = _given(one) | {"id": one.goal, "is_checked": True, "why": one.because}
            given.pop("facts", None)
            what = f"goal {one.goal[:8]}: {_changes(given)}"
            if facts := one.given_facts():
                arguments = {"id": one.goal, "facts": facts}
                _on_board(draft, one, number, "goal_report", arguments, f"goal {one.goal[:8]}")
                number += FACTS_NUMBERED
            _on_board(draft, one, number, "goal_update", given, what)
        case SplitDecision():
            parts = [msgspec.to_builtins(part) for part in one.parts]
            given = {"id": one.goal, "parts": parts, "why": one.because}
            _on_board(draft, one, number, "goal_split", given, f"goal {one.goal[:8]}")
        case LearnDecision():
            given = _given(one) | {"because": one.because}
            what = f"{one.key}: {one.value}"
            _on_board(draft, one, number, "learn_preference", given, what)
        case TaskDecision():
            _on_board(draft, one, number, "task_create", _given(one), one.title)
        case _:
            assert_never(one)


def _hasty(draft: Draft, one: GoalDecision | PursuitDecision) -> str:
    """Return why a look may not have looks follow so soon; empty: it may."""
    there = {found.goal.id: found.goal for found in draft.moment.goals}
    before = there.get(one.goal) if isinstance(one, PursuitDecision) else None
    return lifecycle.hasty(lifecycle.said_of(one), before, draft.moment.now)


def _given(one: MindDecision) -> dict[str, Any]:
    """Return what a decision says of its own, as the arguments of the tool that carries it out."""
    own = [name for name in one.__struct_fields__ if name not in MindDecision.__struct_fields__]
    given = {name: getattr(one, name) for name in own}
    return {name: msgspec.to_builtins(value) for name, value in given.items() if value is not None}


def _changes(given: dict[str, Any]) -> str:
    named = [
        f"{name} {given[name]}" for name in ("status", "strategy", "priority") if name in given
    ]
    return ", ".join(named) or "looked at"


def sure_from(draft: Draft, risk: Risk) -> float:
    """Return how sure a decision of that class has to be, so that nobody is asked first."""
    return max(GATE[risk], draft.policy.mind_confidence_min)


# ---------------------------------------------------------------- to the person


def notify(draft: Draft, text: str, *, can_wait: bool = False, what: str = KIND) -> None:
    """Tell the person something where they are, by the gates and hours that hold there.

    To a member's own agent what another member wrote for their team is from outside.
    """
    sway = draft.sway if draft.is_for_one else Sway.OUTSIDE
    urgency: Any = "low" if can_wait else "normal"
    draft.notify_home(what, text, urgency=urgency, is_ordered=False, sway=sway)


def _respond(draft: Draft, one: RespondDecision, number: int) -> None:
    notify(draft, one.text, can_wait=one.can_wait or one.confidence < sure_from(draft, "read"))
    log(draft, _id(draft, number), "respond", one.text, "success", one=one)


def _ask_first(draft: Draft, one: MindDecision, number: int, tool: str, what: str) -> None:
    """Ask about what the mind isn't sure of; the person's word is an order then."""
    text = DOUBT.format(
        confidence=one.confidence, what=f"{tool}, {shortened(what, 200)}", because=one.because
    )
    notify(draft, text, can_wait=True)
    log(draft, _id(draft, number), tool, f"asked first: {what}", "unknown", one=one)


# ---------------------------------------------------------------- tools


def _call(draft: Draft, one: CallDecision, number: int) -> None:
    is_ours = one.tool in memory_tools() or offers_start(draft, one.tool)
    tool = draft.moment.tools.get(one.tool)
    if one.tool in declared() or (tool is None and not is_ours):
        problem = f"There is no tool named {one.tool[:64]!r} here."
        called = one.tool if one.tool in declared() else UNKNOWN
        log(draft, _id(draft, number), called, problem, "failed", one=one)
        return
    risk: Risk = "read" if tool is None else tool.risk
    is_sure = one.confidence >= sure_from(draft, risk)
    doubt = "" if is_sure else UNSURE.format(confidence=one.confidence)
    what = f"{one.tool} {one.input}"
    if doubt and tool is None:
        _ask_first(draft, one, number, one.tool, what)
        return
    use = ToolUseBlock(id=_use_id(draft, number), name=one.tool, input=one.arguments())
    before = draft.state
    answer = route(draft, use, doubt)
    if isinstance(answer, OpenCall):
        _await(draft, answer, one, what)
        return
    asked = [id_ for id_ in draft.state.approvals if id_ not in before.approvals]
    begun = [id_ for id_ in draft.state.tasks if id_ not in before.tasks]
    if asked:
        log(draft, asked[0], one.tool, f"asked for leave: {what}", "pending", one=one)
    elif begun:  # a session, whose end comes as an event of its own
        log(draft, begun[0], one.tool, what, "pending", one=one)
    else:
        log(draft, _id(draft, number), one.tool, f"{what}: {answer[0]}", "failed", one=one)


def offers_start(draft: Draft, tool: str) -> bool:
    """Whether a tool starts a session, and the mind may."""
    return tool in starters() and tool in draft.policy.profile.tools


def _on_board(
    draft: Draft, one: MindDecision, number: int, tool: str, given: dict[str, Any], what: str
) -> None:
    """Have something on the board made or changed, as a loop's tool does."""
    if one.confidence < sure_from(draft, "write"):
        _ask_first(draft, one, number, tool, what)
        return
    answer = route(draft, ToolUseBlock(id=_use_id(draft, number), name=tool, input=given))
    if isinstance(answer, OpenCall):
        _await(draft, answer, one, what)
    else:
        text, is_error = answer
        outcome: ActionOutcome = "failed" if is_error else "success"
        log(draft, _id(draft, number), tool, f"{what}: {text}", outcome, one=one)


def _await(draft: Draft, call: OpenCall, one: MindDecision, what: str) -> None:
    """Note what is under way: its end comes as an event of its own."""
    title = shortened(f"{' '.join(what.split())} (because {one.because})", TITLE_LENGTH_MAX)
    open_call(draft, call.effect_id, call.tool, title)
    log(draft, call.effect_id, call.tool, title, "pending", one=one)


def open_call(draft: Draft, effect_id: str, tool: str, title: str) -> None:
    """Have the end of an effect come as an event of its own."""
    due = {e.id: e.payload.due_at for e in draft.effects if isinstance(e, CallTool)}
    task = Task(
        tool=tool,
        title=title,
        due_at=due.get(effect_id, calls.due_at(draft, None)),
        generation=draft.ordinal,
        is_tainted=draft.sway.is_outside,
        caused_by=draft.loop.cause.id,
    )
    detached.open(draft, effect_id, task)


def _use_id(draft: Draft, number: int) -> str:
    return f"mind_{draft.loop.cause.seq}_{number}"


def _id(draft: Draft, number: int) -> str:
    return token_of("action", draft.key, str(draft.ordinal), str(number))


# ---------------------------------------------------------------- the log of actions


def log(
    draft: Draft,
    id_: str,
    tool: str,
    what: str,
    outcome: ActionOutcome,
    *,
    one: MindDecision | None = None,
    sway: Sway | None = None,
) -> None:
    """Have an action noted, or how it ended: whoever told its end first is right.

    Args:
        id_: of the effect, if there is one.
        sway: None: that of the open loop.
    """
    key, now = SessionKey.parse(draft.key), draft.moment.now
    action = BoardAction(
        id=id_,
        owner=key.user,
        agent=key.agent,
        type=tool,
        description=shortened(what.replace("\0", ""), DESCRIPTION_LENGTH_MAX),
        goal=_known(draft, one),
        outcome=outcome,
        session_key=draft.key,
        is_tainted=(sway or draft.sway).is_outside,
        created_at=now,
        ended_at=None if outcome == "pending" else now,
    )
    why = "" if one is None else one.because
    draft.ask_board(BoardChangePayload(entity=action, why=why, is_silent=True))
    if one is not None:
        sure = f"{one.confidence:.0%} sure"
        draft.note("look_decided", f"{tool} ({sure}, {outcome}): {one.because}", id_)


def _known(draft: Draft, one: MindDecision | None) -> str:
    """Return the goal that a decision says it is for, if there is such."""
    there = {found.goal.id for found in draft.moment.goals}
    return one.goal if one is not None and one.goal in there else ""


def mark_checked(draft: Draft, ids: Iterable[str]) -> None:
    """Note on the board that goals were looked at, unless this turn changes them anyway."""
    changes = [effect.payload for effect in draft.effects if isinstance(effect, BoardChange)]
    # Parts of a goal, and its facts, are stored beside it, and leave it as it was.
    changed = {one.entity.id for one in changes if not (one.parts or one.facts)}
    for one in draft.moment.goals:
        goal = one.goal
        if goal.id in ids and goal.id not in changed and goal.status == "active":
            checked = lifecycle.changed(goal, {}, None, draft.moment.now, is_checked=True)
            draft.ask_board(
                BoardChangePayload(
                    entity=checked, expect=one.revision, why="looked at", is_silent=True
                )
            )
