"""Calls of the tools that a program brought along, which runs them itself (ADR 64). Pure.

The program is asked by the answer that it gets, and comes back with another request, or never. So
the loop waits as for a service, with a deadline of its own; a message of the person's ends the
exchange. What the program gives back is from outside, as what any server gives is. Its own calls
may be made of that, since it showed them to nobody else; what came from elsewhere may get into
them only if the values are the person's own words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from vigil.contracts import Cause, Control, Loop, OpenCall, Risk, Tool, ToolUseBlock, canonical

from .. import sway as sways
from ..draft import Draft
from ..sway import Sway
from . import calls

SERVICE: Final = "caller"
ONE_BY_ONE: Final = (
    "The program runs one of its tools at a time: call this one again when it has answered."
)
NOT_CALLED: Final = (
    "It was not called: {reason}. Say what you would call it with; the person can ask for it in "
    "words of theirs."
)
LEFT: Final = "the person wrote again before their program told what came of {tools}"


def tool_of(loop: Loop, name: str) -> Tool | None:
    """Return the tool of that name that the loop's program brought along."""
    if loop.caller is None:
        return None
    return next((one for one in loop.caller.tools if one.name == name), None)


def risk_of(draft: Draft, tool: Tool) -> Risk:
    """Return as what a call counts: for looking only, if nothing from elsewhere has a part in it.
    The program itself decides whether it runs what it is asked for."""
    return tool.risk if sways.beside_caller(draft.loop).is_outside else "read"


def may_ask(loop: Loop, use: ToolUseBlock, asked: Iterable[OpenCall]) -> bool:
    """Whether a call may be asked for beside those of the same answer."""
    if loop.caller is None or not loop.caller.is_one_by_one or tool_of(loop, use.name) is None:
        return True
    return all(call.service != SERVICE for call in asked)


def ask(draft: Draft, use: ToolUseBlock) -> OpenCall:
    """Ask the program for a call; what has to hold before is looked at by `routing`."""
    # The turn and the use name it: no other call of the session has this id.
    name = canonical([draft.key, draft.ordinal, use.id, use.name, use.input])
    return OpenCall(
        effect_id=hashlib.sha256(name).hexdigest()[:32],
        tool_use_id=use.id,
        tool=use.name,
        service=SERVICE,
    )


def open_calls(loop: Loop | None) -> tuple[OpenCall, ...]:
    """Return the calls that the loop waits for its program to answer."""
    waiting = None if loop is None else loop.waiting
    return () if waiting is None else tuple(c for c in waiting.calls if c.service == SERVICE)


def receive(draft: Draft, cause: Cause, event: Control) -> None:
    """Fold what a program gave back; the first result of a call counts, while its loop waits."""
    draft.ended.append(cause.id)
    for given in event.payload.results:
        call = calls.find(draft.state.loop, given.call_id)
        if call is None or call.service != SERVICE:
            text = "no call is open that this result could belong to"
            draft.note("late_result", text, given.call_id)
            continue
        draft.update_loop(caller_taint=sways.taint(Sway.OUTSIDE))
        calls.answer(draft, call, given.content, Sway.NONE)
