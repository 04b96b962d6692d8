"""The board: approvals and jobs, one subject each, for whoever lists them (ARCHITECTURE 2).

What becomes of them is decided in the session that they belong to; its state is the truth, and the
board is written from its turns. So a list may be a moment behind, and a decision never is.
"""

from __future__ import annotations

from typing import Any, Literal

from .base import VERSION_1, Instant, Record
from .tools import Risk
from .vocabulary import ApprovalState, JobStatus

Verdict = Literal["accept", "edit", "answer", "reject"]


class Approval(Record, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """A call that waits for a person, or a question to them (SPEC X-2)."""

    id: str
    """32 hex digits."""
    session_key: str
    """The session that asks: a conversation, or a worker behind one."""
    tool: str
    """`ask_user`: a question, to which only `answer` and `reject` fit."""
    input: dict[str, Any]
    """The exact arguments. A verdict holds for these and no others."""
    digest: str
    """SHA-256 over session, tool and canonical arguments, in hex: a verdict names it."""
    risk: Risk
    reason: str
    """Why it has to wait, in words."""
    asked_at: Instant
    expires_at: Instant
    caused_by: str
    """The id of the event that began the loop."""
    generation: int = 0
    """Of the deadline that ends it."""
    is_tainted: bool = False
    is_ordered: bool = False
    """Whether the person began or ordered what asks: then what comes of it is theirs, too."""
    state: ApprovalState = "open"
    decided_at: Instant | None = None
    edited: dict[str, Any] | None = None
    """The arguments that the person put in their place."""
    text: str = ""
    """The person's answer, or why they rejected it."""
    call_id: str = ""
    """The effect that ran it, once it was accepted or edited."""


class Step(Record, frozen=True, kw_only=True):
    """A step of a plan: one call of a tool."""

    tool: str
    input: dict[str, Any] = {}  # noqa: RUF012 - msgspec gives each its own


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
    is_vouched: bool = False
    """Whether who handed it in vouches for its input; else that is material, and orders nothing."""


BoardEntity = Approval | Job
BoardKind = Literal["approval", "job"]


class BoardEntry(Record, frozen=True, kw_only=True):
    """One state of an entity on the board, as it is stored."""

    entity: BoardEntity
    turn_seq: int
    """The turn that decided it, in its session's stream; an older one never follows a newer."""
    at: Instant
    v: int = VERSION_1
