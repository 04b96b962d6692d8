"""A job: the model plans it once, and a machine runs the steps (SPEC J-1). Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from vigil.contracts import Job, Row, TextBlock

from ..core.draft import Draft
from ..core.draft.job_record import is_named, may_use
from ..core.draft.profile import (
    MCP,
    MEMORY,
    Inquiry,
    ModelQuestion,
    OpenSession,
    Profile,
    TemplateRow,
)
from ..core.tools.declaration import offers
from ..core.work import jobs, steps
from ..model import ToolSpec

PURPOSE: Final = "plan"
NAMED_MAX: Final = 200
"""Tools that the schema of an answer names; with more of them it takes any name."""


async def question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask for the plan. None: the draft is to be committed first, or there is one already."""
    job = draft.state.job
    if draft.is_dirty or job is None:
        return None  # that it runs is to be seen at once, not when it's planned
    if job.plan is not None:
        steps.advance(draft)
        return None
    tries = [row for row in session.newest() if row.at >= draft.loop.begun_at]
    offered = draft.inputs.began.tools  # what the model is shown decides nothing here
    tools = [
        spec
        for spec in session.specs()
        if offers(draft.policy.profile, spec.name, offered.get(spec.name))
        and may_use(job, spec.name)
    ]
    asked = Inquiry(
        purpose=PURPOSE,
        profile=PROFILE,
        prompt=PROFILE.prompt,
        values=_values(job, tools, draft.policy.steps_max),
        rows=job_rows(job, tries, draft.moment.now),
        schema=schema_of(tools),
    )
    return ModelQuestion(partial(session.ask, draft, asked), steps.conclude)


def _values(job: Job, tools: Sequence[ToolSpec], steps_max: int) -> dict[str, Any]:
    shown = [
        {
            "name": tool.name,
            "description": tool.description,
            "schema": json.dumps(tool.input_schema, ensure_ascii=False),
        }
        for tool in tools
    ]
    missing = [name for name in job.tools if not any(is_named(name, t.name) for t in tools)]
    return {"tools": shown, "missing": missing, "steps_max": steps_max}


def job_rows(job: Job, tries: Sequence[Row], at: datetime) -> tuple[Row | TemplateRow, ...]:
    """Return the job, and after it what was tried: answers, and what is wrong with each."""
    first = TemplateRow(template="plan_job.md.j2", values={"job": job}, at=at)
    return (first, *(row if row.role == "assistant" else _again(row) for row in tries))


def _again(row: Row) -> TemplateRow:
    reason = "".join(block.text for block in row.blocks if isinstance(block, TextBlock))
    return TemplateRow(template="plan_again.md.j2", values={"reason": reason}, at=row.at)


def schema_of(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Return the JSON Schema of an answer.

    A provider that holds a model to a schema wants every object closed, which the arguments of
    unknown tools can't be: so they are a string that holds an object.
    """
    tool: dict[str, Any] = {"type": "string"}
    if 0 < len(tools) <= NAMED_MAX:
        tool["enum"] = [spec.name for spec in tools]
    step = {
        "type": "object",
        "properties": {
            "tool": tool,
            "input": {"type": "string", "description": "The arguments: a JSON object as a string"},
        },
        "required": ["tool", "input"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            "steps": {"type": "array", "items": step},
        },
        "required": ["reasoning", "steps"],
        "additionalProperties": False,
    }


PROFILE = Profile(
    name="planner",
    purpose=PURPOSE,
    prompt="plan.md.j2",
    begins={"start": jobs.begin},
    question=question,
    conclude=steps.conclude,
    keep_up=steps.keep_up,
    tools=(MEMORY, MCP, "research"),
    calls_max=2,
    children_max=1,
    source="job:{id}",
    is_thread_shown=False,
    asks_again=False,
)
