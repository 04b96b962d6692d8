"""Where a tool call of the model goes: each gives a result at once, or a call that is waited for.

The core answers its own tools in the same turn; memory and the executor run theirs; a call beyond
what the loop may do goes to a person first, unless a standing grant of theirs covers it.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from vigil.contracts import QUESTION, Approval, OpenCall, Risk, Tool, ToolUseBlock
from vigil.grants.rule import Standing, Wanted, match
from vigil.memory.operation import tools as memory_tools
from vigil.subjects import SessionKey
from vigil.watching.interests import TOOL

from ..context.letters import PAGE
from ..draft import Draft
from ..draft.kinds import starters
from ..pending import requests
from ..tools import arguments, authority, callers, calls, own_words
from ..tools.declaration import Answer, OwnCall, OwnTool, Result, declared, offers
from ..tools.own_words import Cleared
from ..tools.search import is_first, kept
from . import approvals, children, spoken

RESEARCH: Final = "research"
ONLY_THE_PERSON: Final = (
    "Only the person may ask for that, in a message of theirs; once content from outside had a "
    "part, in nothing but their own words. They can do it themselves: `vigil me`, `vigil cron`."
)
NOW_SHOWN: Final = "It's among your tools now: call again, as its schema says."
MALFORMED: Final = (
    "This call was not run: its arguments can't be read, {problem}\n"
    "Call again, with the arguments as one complete JSON object."
)


def may_ask(tool: Tool | None, name: str) -> bool:
    """Whether a person may be asked before a call of that name runs, whoever calls it."""
    if tool is not None:
        return tool.risk != "read" or tool.is_open
    starter = starters()[name].starter if name in starters() else None
    if starter is not None:
        return starter.risk_swayed != "read"
    return name == QUESTION or (name in declared() and declared()[name].leave is not None)


def route(draft: Draft, use: ToolUseBlock, doubt: str = "") -> Answer:
    """Carry out one tool call of the open loop, or ask for it.

    Args:
        doubt: why a call of the executor's is asked for in any case, whatever was granted.
    """
    if use.malformed:
        return MALFORMED.format(problem=use.malformed), True
    asked = _asked(draft, use)
    answer = _routed(draft, use, doubt)
    is_done = isinstance(answer, OpenCall) or not answer[1]
    if asked is not None and is_done:
        # In the person's own words now, or by a grant: there is nothing left to decide.
        requests.withdraw(draft, asked, "the same was ordered since")
        whose = "on your word" if draft.loop.is_direct else "without being asked for"
        spoken.say_withdrawn(draft, asked, f"the same runs now {whose}")
    return answer


def _asked(draft: Draft, use: ToolUseBlock) -> Approval | None:
    """Return the open request of this conversation for the same call."""
    if not (draft.state.approvals and draft.policy.profile.is_conversation):
        return None
    tool = draft.moment.tools.get(use.name)
    given = use.input if tool is None else arguments.fitted(tool, use.input)[0]
    return requests.of_call(draft, use.name, given)


def _routed(draft: Draft, use: ToolUseBlock, doubt: str) -> Answer:
    name = use.name
    theirs = callers.tool_of(draft.loop, name)
    if theirs is not None:
        return _caller(draft, use, theirs)
    tool = draft.moment.tools.get(name)
    if not offers(draft.policy.profile, name, tool):
        return _unknown(name)
    if name in memory_tools():
        return _memory(draft, use)
    if name in starters():
        return _starter(draft, use)
    if name in declared():
        return _own(draft, use, declared()[name])
    return _unknown(name) if tool is None else _executor(draft, use, tool, doubt)


def _own(draft: Draft, use: ToolUseBlock, own: OwnTool) -> Answer:
    given, loop, leave = own.read(use.input), draft.loop, own.leave
    if isinstance(given, str):
        return _misfit(draft, use.name, given)
    cleared = own_words.own(draft, own.arguments, use.input, own.aims)
    call = OwnCall(use=use, sway=cleared.sway, asked_at=draft.moment.now)
    is_the_persons = call.sway.is_outside and leave is not None and leave.is_needed(given, draft)
    if leave is None or not is_the_persons:
        problem = own.obstacle(given, call, draft)
        return own.function(given, call, draft) if problem is None else (problem, True)
    if loop.is_direct or loop.is_ordered:
        problem = own.obstacle(given, call, draft)
    else:
        problem = leave.refusal
    problem = problem or calls.refusal(draft, use.input)
    if problem is not None:
        return problem, True
    reasons = (cleared.others, authority.SWAYED_BY, leave.loss(given, draft))
    return approvals.ask(draft, use, own.risk, "; ".join(filter(None, reasons)))


def _starter(draft: Draft, use: ToolUseBlock) -> Answer:
    starter = starters()[use.name].starter
    if starter is None:
        raise AssertionError(f"{use.name} starts nothing")
    cleared = own_words.own(draft, starter.arguments, use.input, {})
    is_free = cleared.is_theirs or _is_interest(draft, use)
    risk = "read" if is_free else starter.risk_swayed
    reason = None if risk == "read" else _reason_to_ask(draft, risk, cleared)
    if reason is None:
        return children.spawn(draft, use, cleared.sway)
    problem = calls.refusal(draft, use.input) or children.obstacle(draft, use.name, use.input)
    return (problem, True) if problem is not None else approvals.ask(draft, use, risk, reason)


def _unknown(name: str) -> Result:
    return f"There is no tool named {name!r}.", True


def _memory(draft: Draft, use: ToolUseBlock) -> Answer:
    problem, tool = calls.refusal(draft, use.input), memory_tools()[use.name]
    if problem is not None:
        return problem, True
    try:
        msgspec.convert(use.input, tool.arguments)
    except msgspec.ValidationError as error:
        return _misfit(draft, use.name, str(error))
    cleared = own_words.own(draft, tool.arguments, use.input, tool.aims)
    return calls.call(draft, use, cleared.sway)


def _misfit(draft: Draft, name: str, problem: str) -> Result:
    """Refuse arguments; a tool that was called without having been shown is shown from now on."""
    text = f"The arguments don't fit the schema: {problem}"
    if is_first(draft.policy.profile, name) or name in draft.state.found:
        return text, True
    draft.update(found=kept(draft.state.found, (name,)))
    return f"{text}\n{NOW_SHOWN}", True


def _executor(draft: Draft, use: ToolUseBlock, tool: Tool, doubt: str) -> Answer:
    problem = calls.refusal(draft, use.input)
    if problem is not None:
        return problem, True
    given, problem = arguments.fitted(tool, use.input)
    if problem is not None:
        return _misfit(draft, use.name, problem)
    use = replace(use, input=given)
    cleared = own_words.foreign(draft, tool, use.input)
    if tool.is_personal and not (cleared.is_theirs and draft.loop.is_direct):
        why = f" Not theirs: {cleared.others}." if cleared.others else ""
        return f"{ONLY_THE_PERSON}{why}", True
    is_free = use.name in draft.policy.profile.free and tool.risk != "destructive"
    is_named = _is_configured(draft, use) or _is_named_tool(draft, use, tool)
    risk: Risk = "external" if tool.risk == "read" and _is_reaching(draft, tool) else tool.risk
    risk = "read" if is_named else risk
    reason = doubt or (None if is_free else _reason_to_ask(draft, risk, cleared))
    if reason is None:
        return calls.call(draft, use, cleared.sway, tool, is_named=cleared.is_ordered)
    leave = None if doubt else _leave(draft, use, tool)
    if leave is None:
        return approvals.ask(draft, use, tool.risk, reason)
    text = (
        f"{use.name}: {leave.grant.name} (revision {leave.revision}) allows it, although {reason}"
    )
    draft.note("granted", text, leave.grant.id)
    return calls.call(draft, use, cleared.sway, tool, leave)


def _caller(draft: Draft, use: ToolUseBlock, tool: Tool) -> Answer:
    """Ask the program that brought the tool along; no request waits for a person's leave here,
    since only the program could run what is let run."""
    problem = calls.refusal(draft, use.input)
    if problem is not None:
        return problem, True
    given, problem = arguments.fitted(tool, use.input)
    if problem is not None:
        return f"The arguments don't fit the schema: {problem}", True
    cleared = own_words.foreign(draft, tool, given)
    reason = _reason_to_ask(draft, callers.risk_of(draft, tool), cleared)
    if reason is not None:
        return callers.NOT_CALLED.format(reason=reason), True
    return callers.ask(draft, replace(use, input=given))


def _is_reaching(draft: Draft, tool: Tool) -> bool:
    """Whether looking may tell somebody what an outsider wants to know: by the address."""
    return tool.is_open and draft.sway.is_outside


def _is_configured(draft: Draft, use: ToolUseBlock) -> bool:
    """Whether a call fetches an address that the configuration names, to the letter, and content
    from outside has no part in it: then nothing is in the address that a model put there."""
    url = use.input.get("url")
    is_fetch = use.name == PAGE and isinstance(url, str)
    return is_fetch and url in draft.policy.urls and not draft.sway.is_outside


def _is_interest(draft: Draft, use: ToolUseBlock) -> bool:
    """Whether a reader is to look at what the configuration names, to the letter: nothing is in
    its task that a model put there, whatever that read before."""
    task = use.input.get("task")
    return use.name == RESEARCH and isinstance(task, str) and task in draft.policy.interests


def _is_named_tool(draft: Draft, use: ToolUseBlock, tool: Tool) -> bool:
    """Whether a call is of a tool that the configuration has a cycle look at. What a model put
    into its arguments may carry something out, once content from outside had a part in it."""
    is_named = f"{TOOL}{use.name}" in draft.policy.interests and tool.risk in ("read", "external")
    return is_named and not (use.input and draft.sway.is_outside)


def _reason_to_ask(draft: Draft, risk: Risk, cleared: Cleared) -> str | None:
    """Return why the person has to be asked: first which value wasn't theirs (FLOW F-8)."""
    loop = draft.loop
    reason = authority.reason_to_ask(
        risk,
        draft.sway,
        is_ordered=loop.is_direct or loop.is_ordered,
        authority=draft.policy.authority,
        is_theirs=cleared.is_ordered,
    )
    is_swayed = reason == authority.SWAYED_BY and cleared.why_not
    return f"{cleared.why_not}; {reason}" if is_swayed else reason


def _leave(draft: Draft, use: ToolUseBlock, tool: Tool) -> Standing | None:
    """Return the standing grant that covers a call for which a person would be asked."""
    wanted = Wanted(
        key=SessionKey.parse(draft.key),
        tool=use.name,
        risk=tool.risk,
        input=use.input,
        is_outside=draft.sway.is_outside,
        now=draft.moment.now,
        row=draft.timetable_row,
        goal=draft.goal,
    )
    return match(draft.moment.grants, wanted).standing
