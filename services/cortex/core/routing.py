"""Where a tool call of the model goes: each gives a result at once, or a call that is waited for.

The core answers its own tools in the same turn; memory and the executor run theirs; a call beyond
what the loop may do goes to a person first.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vigil.contracts import OpenCall, Tool, ToolUseBlock
from vigil.memory.tools import TOOLS as MEMORY_TOOLS

from ..profiles import starters
from ..thought.tools import SERVED, TOOLS
from . import approvals, arguments, authority, calls, children, schedule
from .draft import Draft
from .profile import offers
from .schedule import Result


def route(draft: Draft, use: ToolUseBlock) -> Result | OpenCall:
    """Carry out one tool call of the open loop, or ask for it."""
    name = use.name
    tool = draft.moment.tools.get(name)
    if not offers(draft.policy.profile, name, tool):
        return _unknown(name)
    if name in SERVED:
        return _memory(draft, use)
    if name in starters():
        return children.spawn(draft, use)
    if name == "ask_user":
        return approvals.ask_user(draft, use)
    if name in TOOLS:
        return _own(draft, use)
    return _unknown(name) if tool is None else _executor(draft, use, tool)


def _own(draft: Draft, use: ToolUseBlock) -> Result | OpenCall:
    wish = schedule.read(use.name, use.input)
    if isinstance(wish, str):
        return wish, True
    problem = schedule.refusal(draft, wish)
    if problem is None and not schedule.is_the_persons(draft, wish):
        return schedule.carry_out(draft, wish)
    problem = problem or calls.refusal(draft, use.input)
    if problem is not None:
        return problem, True
    return approvals.ask(draft, use, schedule.risk_of(wish), schedule.reason_to_ask(draft, wish))


def _unknown(name: str) -> Result:
    return f"There is no tool named {name!r}.", True


def _memory(draft: Draft, use: ToolUseBlock) -> Result | OpenCall:
    problem = calls.refusal(draft, use.input) or _misfit(use.name, use.input)
    return (problem, True) if problem is not None else calls.call(draft, use)


def _misfit(name: str, given: dict[str, Any]) -> str | None:
    try:
        msgspec.convert(given, MEMORY_TOOLS[name])
    except msgspec.ValidationError as error:
        return f"The arguments don't fit the schema: {error}"
    return None


def _executor(draft: Draft, use: ToolUseBlock, tool: Tool) -> Result | OpenCall:
    problem = calls.refusal(draft, use.input)
    if problem is not None:
        return problem, True
    problem = arguments.problem(tool, use.input)
    if problem is not None:
        return f"The arguments don't fit the schema: {problem}", True
    loop = draft.loop
    reason = authority.reason_to_ask(
        tool.risk,
        draft.sway,
        is_ordered=loop.is_direct or loop.is_ordered,
        authority=draft.policy.authority,
    )
    if reason is not None:
        return approvals.ask(draft, use, tool.risk, reason)
    return calls.call(draft, use, tool)
