"""The mind: one session of a person and agent that looks after goals and what comes in.

What stood in earlier looks is shown to no later one: each has a report that is made anew from the
board, so content from outside sways the look that it is in, and no other.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from vigil.contracts import Row
from vigil.memory.operation import tools as memory_tools
from vigil.minds import KIND

from ..core.draft import Draft
from ..core.draft.kinds import starters
from ..core.draft.profile import (
    MCP,
    MEMORY,
    Inquiry,
    ModelQuestion,
    OpenSession,
    Profile,
    TemplateRow,
)
from ..core.mind import look, report
from ..core.mind.decisions import DECISIONS_MAX, SCHEMA
from ..core.tools import formed_answer
from ..core.tools.declaration import declared, offers
from ..model import ToolSpec

TOOLS_MAX: Final = 40
"""That a look is shown, those of memory and ours first."""


async def question(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask what is to be done, with a report. None: what the look took is stored first."""
    if draft.is_dirty:
        return None
    rows = [row for row in session.newest() if row.at >= draft.loop.begun_at]
    again = formed_answer.refused_rows(rows)
    taken: list[Row] = rows[: len(rows) - len(again)]
    values = report.values(await session.board(), draft.state.mind.goals, taken, draft)
    first = TemplateRow(template="mind_report.md.j2", values=values, at=draft.loop.begun_at)
    asked = Inquiry(
        purpose=KIND,
        profile=draft.policy.profile,
        prompt=PROFILE.prompt,
        values={"tools": _tools(session, draft), "decisions_max": DECISIONS_MAX},
        rows=(first, *again),
        schema=SCHEMA,
    )
    return ModelQuestion(partial(session.ask, draft, asked), look.conclude, look.fail)


def _tools(session: OpenSession, draft: Draft) -> list[dict[str, Any]]:
    offered = draft.inputs.began.tools  # what the model is shown decides nothing here
    fit = [spec for spec in session.specs() if _may_call(spec, draft, offered)]
    return [
        {
            "name": spec.name,
            "description": spec.description,
            "schema": json.dumps(spec.input_schema, ensure_ascii=False),
        }
        for spec in fit[:TOOLS_MAX]
    ]


def _may_call(spec: ToolSpec, draft: Draft, offered: Any) -> bool:
    if spec.name in declared():
        return False  # of what those do there are decisions
    tool = offered.get(spec.name)
    is_there = tool is not None or spec.name in memory_tools() or spec.name in starters()
    return is_there and offers(draft.policy.profile, spec.name, tool)


PROFILE = Profile(
    name=KIND,
    purpose=KIND,
    prompt="mind.md.j2",
    begins={"external": look.receive, "told": look.receive, "tick": look.receive},
    question=question,
    conclude=look.conclude,
    take=look.take,
    hear_end=look.hear_end,
    reads=("goals", "habits"),
    tools=(
        *(MEMORY, MCP, "http_get", "shell", "read_file", "write_file"),
        *("skill_read", "skill_copy", "research"),
    ),
    children_max=3,
    calls_max=formed_answer.ASKED_MAX,
    tier="cheap",
    max_tokens=4096,
    settings={"max_tokens": "mind.max_tokens_per_tick"},
    source="cortex:mind",
    is_thread_shown=False,
    asks_again=False,
)
