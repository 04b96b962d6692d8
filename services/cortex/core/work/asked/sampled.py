"""A model's answer that an MCP server wants in the middle of a call (sampling).

A session of its own gives it, which knows what the server says and nothing else: no tools, no
memory, no person. It is paid for by whoever made the call, as all that they start. What it answers
goes to the server alone, in a call of its own that goes on with the first one: the loop that waits
is shown the call's result.
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import CallToolPayload, Cause, OpenCall, ToolResultEvent
from vigil.contracts.tools import AskedOfModel, ServerAnswer, ServerQuestion

from ... import loops
from ... import sway as sways
from ...draft import Draft
from ...draft.kinds import profile_of
from ...pending import tasks
from ...sway import Sway
from ...tools import calls
from .. import children, handed

NOT_RUN: Final = "Its server wanted a model's answer before it went on, and it did not: {why}."


def ask(draft: Draft, call: OpenCall, event: ToolResultEvent, question: ServerQuestion) -> None:
    """Have a model answer what the server of a call wants, in the place of the call."""
    offered = draft.moment.tools.get(call.tool)
    if offered is None:
        why = f"{call.tool} is not offered any more"
        calls.answer(draft, call, NOT_RUN.format(why=why), Sway.NONE, is_error=True)
        return
    asked = AskedOfModel(question=question, risk=offered.risk)
    why_not = handed.obstacle(draft, profile_of(children.SAMPLER))
    if why_not is not None:
        draft.note("not_sampled", f"{call.tool}: {why_not}")
        _go_on(draft, call, asked, None)
        return
    child = children.answer_server(draft, call.tool, asked, sways.of(event.payload))
    started = OpenCall(
        effect_id=child, tool_use_id=call.tool_use_id, tool=call.tool, service="session"
    )
    calls.stand_in(draft, call, started)


def receive(draft: Draft, cause: Cause, event: ToolResultEvent) -> bool:
    """Fold the end of a session that answers a server; return whether it is one."""
    payload = event.payload
    call = calls.find(draft.state.loop, payload.call_id)
    task = draft.state.tasks.get(payload.call_id)
    if call is None or task is None or task.asked is None:
        return False
    draft.ended.append(cause.id)
    calls.take_back(draft, payload)
    tasks.close_task(draft, payload.call_id)
    _go_on(draft, call, task.asked, None if payload.is_error else payload.content)
    return True


def _go_on(draft: Draft, call: OpenCall, asked: AskedOfModel, text: str | None) -> None:
    """Have a call go on with what a model answered; None: with nothing, as its server is told."""
    question, tool = asked.question, draft.moment.tools.get(call.tool)
    why = calls.obstacle(draft, call.tool, question.input, asked.risk)
    if tool is None or why is not None:
        calls.answer(draft, call, NOT_RUN.format(why=why), Sway.NONE, is_error=True)
        return
    due_at = calls.due_at(draft, tool)
    effect_id = loops.call_tool(
        draft,
        CallToolPayload(
            service="executor",
            tool=call.tool,
            input=question.input,
            caused_by=draft.loop.cause.id,
            due_at=due_at,
            risk=asked.risk,
            answered=ServerAnswer(
                action="decline" if text is None else "accept",
                name=question.name,
                state=question.state,
                answered=question.answered + 1,
                text=text or "",
            ),
        ),
        draft.sway,
    )
    running = OpenCall(
        effect_id=effect_id, tool_use_id=call.tool_use_id, tool=call.tool, service="executor"
    )
    calls.exchange(draft, call, running, due_at)
    calls.go_on(draft)
