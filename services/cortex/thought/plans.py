"""Asking the model for the plan of a job: the shell of `core.jobs`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from vigil.contracts import Job, Row
from vigil.subjects import SessionKey

from .. import core
from ..core import Draft, Policy
from ..core.job_record import may_use
from ..core.profiles import offers
from .model import ModelError, ToolSpec
from .reflection import Question
from .thinker import Thinker
from .tools import SPECS

NAMED_MAX: Final = 200
"""Tools that the schema of an answer names; with more of them it takes any name."""


class Planner:
    """What the session of a job needs to plan it."""

    def __init__(self, key: SessionKey, *, thinker: Thinker, policy: Policy, timezone: str) -> None:
        self._key = key
        self._thinker = thinker
        self._policy = policy
        self._timezone = timezone

    def question(
        self,
        draft: Draft,
        rows: Iterable[Row],
        fail: Callable[[Draft, ModelError], None],
        parent: str,
    ) -> Question | None:
        """Return the question for the plan. None: the draft is to be committed first.

        Args:
            rows: the newest of the session; those of this run hold the first try and its error.
        """
        job = draft.state.job
        if draft.is_dirty or job is None:
            return None  # that it runs is to be seen at once, not when it's planned
        if job.plan is not None:
            core.advance_job(draft)
            return None
        tries = [row for row in rows if row.at >= draft.loop.begun_at]
        tools = self._tools(draft, job)
        asking = self._thinker.plan(
            self._key,
            draft.state,
            job,
            tries,
            tools=tools,
            schema=schema_of(tools),
            timezone=self._timezone,
            policy=self._policy,
            parent=parent,
        )
        return Question(asking, core.conclude_plan, fail)

    def _tools(self, draft: Draft, job: Job) -> list[ToolSpec]:
        """Return what the plan may use, of what there is at present."""
        served = [spec for spec in SPECS if spec.name not in draft.moment.tools]
        found = [
            *served,
            *(
                ToolSpec(name=t.name, description=t.description, input_schema=t.input_schema)
                for t in draft.moment.tools.values()
            ),
        ]
        profile = self._policy.profile
        return [spec for spec in found if offers(profile, spec.name) and may_use(job, spec.name)]


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
