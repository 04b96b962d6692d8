"""What a loop waits for."""

from __future__ import annotations

from typing import Literal

from ..base import Instant, Record
from ..effects import ToolService


class OpenCall(Record, frozen=True, kw_only=True):
    """A tool call that a service was asked for and has not answered yet."""

    effect_id: str
    """The id of the call's effect; for a call that waits for a person, the id of the approval."""
    tool_use_id: str
    tool: str
    service: ToolService | Literal["session", "person", "board", "caller"] = "memory"
    """Who will answer: a service, a session that was started, a person, the board, the
    program that a message came through."""


class Waiting(Record, frozen=True, kw_only=True):
    """The tool calls of one model answer that the loop waits for."""

    calls: tuple[OpenCall, ...]
    """Those without a result; with the last one the loop goes on."""
    generation: int
    """The generation of the deadline after which the services' calls among them count as failed;
    sessions and people have deadlines of their own. 0: there is none."""
    due_at: Instant
