"""The board: what outlives a session, or is listed, one subject each (ARCHITECTURE 2, LOOPS L-15).

What becomes of approvals and jobs is decided in the session that they belong to; its state is the
truth, and the board is written from its turns. So a list may be a moment behind, and a decision
never is. Of all else the board is the truth: it changes by compare-and-set, and each
revision tells who changed it and why.
"""

from __future__ import annotations

from typing import Literal

from ..base import VERSION_1, Instant, Record
from .action import BoardAction
from .approval import DECIDED, QUESTION, SHORT_NAME, Approval, Settled, Verdict, short_name
from .bulletin import BoardBulletin, BulletinBasis, MadeText
from .circuit import Circuit, CircuitState
from .cycle import CycleLedger, CycleReport, Recheck
from .fact import (
    ADay,
    AnInstant,
    BoundedNumber,
    FactFill,
    FactShape,
    IdOf,
    KnownFact,
    OneOf,
    SourceFacts,
    VersionNumber,
    YesNo,
)
from .goal import BoardGoal, LookedGoal
from .grant import Address, AnyConstraint, Argv, Equal, Exact, Folder, Grant, GrantUse
from .job import Job, Plan, Step, StepRun
from .preference import BoardPreference
from .row import (
    AfterSchedule,
    AutonomyWork,
    BulletinWork,
    ChainOn,
    ChosenSchedule,
    CronSchedule,
    CronWork,
    EventSchedule,
    EverySchedule,
    MailWork,
    MaintenanceWork,
    MindWork,
    Misfire,
    OnceSchedule,
    RowMaker,
    Schedule,
    TimetableRow,
    Watched,
    WatchedCommand,
    WatchedFeed,
    WatchedFiles,
    WatchedTool,
    WatchedUrl,
    Work,
    is_asked_first,
    is_watch_only,
    kind_of,
    watch_of,
)
from .slot import Delivery, LastSeen, Ledger, OpenRun, SlotEntry, SlotRun, SlotState
from .summary import SUMMARIES_MAX, MergedSummary
from .task import BoardTask, TaskMaker, TaskPriority, TaskResult

BoardEntity = Approval | Job
"""What turns put there."""
KeptEntity = (
    Grant
    | GrantUse
    | BoardTask
    | TimetableRow
    | BoardGoal
    | BoardPreference
    | BoardAction
    | Circuit
    | BoardBulletin
    | SourceFacts
)
"""What the board is the truth of."""
AskedEntity = BoardTask | BoardGoal | BoardPreference
"""The entities for which a loop may ask for a change, and is told what came of it."""
BoardKind = Literal[
    "approval",
    "job",
    "grant",
    "use",
    "task",
    "row",
    "goal",
    "preference",
    "action",
    "circuit",
    "bulletin",
    "facts",
]


class Change(Record, frozen=True, kw_only=True):
    """Who made a revision of what the board is the truth of."""

    by: str
    """A person, or a service."""
    why: str = ""
    cause: str = ""
    """The id of what led to it: a request, a call; empty: the person's own word."""


class BoardEntry(Record, frozen=True, kw_only=True):
    """One state of an entity on the board, as it is stored."""

    entity: BoardEntity | KeptEntity
    turn_seq: int
    """The turn that decided it, in its session's stream; an older one never follows a newer. 0: no
    turn did."""
    at: Instant
    change: Change | None = None
    v: int = VERSION_1


__all__ = [
    "DECIDED",
    "QUESTION",
    "SHORT_NAME",
    "SUMMARIES_MAX",
    "ADay",
    "Address",
    "AfterSchedule",
    "AnInstant",
    "AnyConstraint",
    "Approval",
    "Argv",
    "AskedEntity",
    "AutonomyWork",
    "BoardAction",
    "BoardBulletin",
    "BoardEntity",
    "BoardEntry",
    "BoardGoal",
    "BoardKind",
    "BoardPreference",
    "BoardTask",
    "BoundedNumber",
    "BulletinBasis",
    "BulletinWork",
    "ChainOn",
    "Change",
    "ChosenSchedule",
    "Circuit",
    "CircuitState",
    "CronSchedule",
    "CronWork",
    "CycleLedger",
    "CycleReport",
    "Delivery",
    "Equal",
    "EventSchedule",
    "EverySchedule",
    "Exact",
    "FactFill",
    "FactShape",
    "Folder",
    "Grant",
    "GrantUse",
    "IdOf",
    "Job",
    "KeptEntity",
    "KnownFact",
    "LastSeen",
    "Ledger",
    "LookedGoal",
    "MadeText",
    "MailWork",
    "MaintenanceWork",
    "MergedSummary",
    "MindWork",
    "Misfire",
    "OnceSchedule",
    "OneOf",
    "OpenRun",
    "Plan",
    "Recheck",
    "RowMaker",
    "Schedule",
    "Settled",
    "SlotEntry",
    "SlotRun",
    "SlotState",
    "SourceFacts",
    "Step",
    "StepRun",
    "TaskMaker",
    "TaskPriority",
    "TaskResult",
    "TimetableRow",
    "Verdict",
    "VersionNumber",
    "Watched",
    "WatchedCommand",
    "WatchedFeed",
    "WatchedFiles",
    "WatchedTool",
    "WatchedUrl",
    "Work",
    "YesNo",
    "is_asked_first",
    "is_watch_only",
    "kind_of",
    "short_name",
    "watch_of",
]
