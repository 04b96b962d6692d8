"""Jobs, as the board has them."""

from __future__ import annotations

from typing import Any

import msgspec

from ..base import Instant, Record
from ..vocabulary import JobStatus
from .vocabulary import Trigger


class Step(Record, frozen=True, kw_only=True):
    """A step of a plan: one call of a tool."""

    tool: str
    input: dict[str, Any] = msgspec.field(default_factory=dict)


class Plan(Record, frozen=True, kw_only=True):
    """What a planner decided to do for a job (SPEC J-1)."""

    steps: tuple[Step, ...]
    reasoning: str = ""


class StepRun(Record, frozen=True, kw_only=True):
    """What became of a step."""

    tool: str
    input: dict[str, Any]
    started_at: Instant
    completed_at: Instant | None = None
    output: str = ""
    error: str = ""
    """Why it failed; empty: it didn't."""
    is_tainted: bool = False
    """Whether the output holds content from outside."""
    call_id: str = ""


class Job(Record, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """Work that was handed in and runs by itself (SPEC J-1)."""

    id: str
    """32 hex digits; its session is ``_planner-{id}``."""
    session_key: str
    skill: str = ""
    """The name of a file in `skills/`; empty: `goal` alone tells what to do."""
    goal: str = ""
    tools: tuple[str, ...] = ()
    """Those that its plan may use; empty: all that the session may use."""
    input: str = ""
    status: JobStatus = "queued"
    created_at: Instant
    started_at: Instant | None = None
    completed_at: Instant | None = None
    runs: int = 0
    """How often it was run; a job that is queued again runs anew."""
    plan: Plan | None = None
    step_runs: tuple[StepRun, ...] = ()
    error: str = ""
    trigger: Trigger = "manual"
    """What had it begin. Nothing but people and their programs hands jobs in."""
    is_vouched: bool = False
    """Whether who handed it in vouches for its input; else that is material, and orders nothing."""
