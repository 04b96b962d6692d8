"""The circumstances that a turn was decided in: the person's clock, and what was looked up."""

from __future__ import annotations

from datetime import time

from ..base import Instant, Record
from ..board import Approval, BoardGoal, BoardPreference, BoardTask
from ..board.grant import Grant


class SeenHours(Record, frozen=True, kw_only=True):
    """A person's clock."""

    zone: str
    quiet: tuple[time, time] | None = None
    digest: time
    pause: Instant | None = None


class SeenGrant(Record, frozen=True, kw_only=True):
    """A grant as it stood on the board."""

    grant: Grant
    revision: int
    uses: int = 0
    last_used_at: Instant | None = None


class SeenTask(Record, frozen=True, kw_only=True):
    """A task as it stood on the board."""

    task: BoardTask
    revision: int


class SeenGoal(Record, frozen=True, kw_only=True):
    """A goal as it stood on the board."""

    goal: BoardGoal
    revision: int


class SeenBook(Record, frozen=True, kw_only=True):
    """Whom the person knew, of those whom the calls named."""

    addresses: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """What they are called, and the address that this stands for."""


class SeenMoment(Record, frozen=True, kw_only=True):
    """The circumstances of a decision."""

    now: Instant
    hours: SeenHours | None = None
    """None: those of a person who set nothing."""
    hours_at: Instant | None = None
    is_paused: bool = False
    present: str | None = None
    """The channel of the person's newest message, wherever they wrote it; None: nobody looked."""
    is_history_swayed: bool = False
    """Whether untrusted content stood in what the model was shown."""
    unsaid: tuple[str, ...] = ()
    grants: tuple[SeenGrant, ...] = ()
    tasks: tuple[SeenTask, ...] = ()
    goals: tuple[SeenGoal, ...] = ()
    habits: tuple[BoardPreference, ...] = ()
    approvals: tuple[Approval, ...] = ()
    asked: tuple[str, ...] = ()
    known: SeenBook | None = None
    """None: there were no lists of contacts."""
