"""The ledger of the timetable: what became of each instant at which a row was due (SPEC J-4)."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..base import VERSION_1, Instant, Record
from .cycle import CycleLedger, CycleReport
from .fact import FactFill, FactShape
from .row import ChosenSchedule

SlotState = Literal["running", "ran", "late", "coalesced", "skipped", "missed", "failed"]
"""All but ``running`` are final, and each slot has exactly one final entry."""
Delivery = Literal["", "silent", "told"]
"""Of a run's result: nothing yet, or of no run; there was nothing to say; handed to who is to
know, whose log has what became of it there."""


class SlotRun(Record, frozen=True, kw_only=True):
    """What a session runs: it is in its first event, and in the effect that tells its end."""

    row: str
    name: str
    """Of the row, when it began."""
    due_at: Instant
    is_by_hand: bool = False
    is_stateful: bool = False
    target: str = ""
    """Session key of the conversation that is told the result, or the name of a channel; empty:
    the owner's home."""
    timeout_s: int
    is_ordered: bool = False
    choice: ChosenSchedule | None = None
    """The limits within which it may choose when it is run next; None: it may not."""
    facts: dict[str, FactShape] = msgspec.field(default_factory=dict)
    """What it is to tell in a closed form, by name."""
    looked: dict[str, FactShape] = msgspec.field(default_factory=dict)
    """What looks tell of its row's facts, and no run."""
    news: dict[str, str] = msgspec.field(default_factory=dict)
    """Which changes of them are news, where the row says."""
    told_seq: int = 0
    """Of a run by hand that reads what is new: up to there it did, once it ended well; 0: it reads
    nothing that others are told, too."""


class LastSeen(Record, frozen=True, kw_only=True):
    """What a watcher saw when it last looked."""

    what: str
    """What tells one watched thing from another: of another one it tells nothing."""
    etag: str = ""
    modified: str = ""
    """Both as the server gave them."""
    digest: str = ""
    """SHA-256 of all that was seen; empty: it never saw any."""
    text: str = ""
    """The beginning of it."""
    parts: dict[str, str] = msgspec.field(default_factory=dict)
    """Of what has parts: of a feed the entries that are known, of files what each is known by."""
    failures: int = 0
    """Looks that failed since the last good one."""
    retry_at: Instant | None = None
    """After a failure: it isn't looked again before."""


class OpenRun(Record, frozen=True, kw_only=True):
    """A run that hasn't ended."""

    due_at: Instant
    at: Instant
    """When it was begun."""
    session: str
    is_by_hand: bool = False
    is_late: bool = False
    """Whether it was begun late: then its good end is ``late``."""
    change: str = ""
    """What a watcher saw change, or what is new for a cycle."""
    is_trusted: bool = False
    """Whether what changed counts as trusted, by the configuration."""
    told_seq: int = 0
    """Of a row of the system: `CycleLedger.told_seq` if it fails."""
    looks: tuple[str, ...] = ()
    """Of a cycle: what it was told to look at because it was time."""
    follows: str = ""
    """Of a row that follows another: the session whose end made it due."""
    followed_fact: int = 0
    """Of a row that follows facts: the place on the board where the change is that made it due."""


class Ledger(Record, frozen=True, kw_only=True):
    """What the entries of a row come to."""

    through: Instant | None = None
    """All slots up to that instant are decided; None: none yet."""
    running: tuple[OpenRun, ...] = ()
    """The oldest first."""
    runs: int = 0
    """Runs that have begun, those by hand not counted."""
    failures: int = 0
    """Runs that failed since the last good one, those by hand not counted."""
    seen: LastSeen | None = None
    """Of a watcher; None: it never looked."""
    cycles: CycleLedger | None = None
    """Of a row of the system; None: nothing was new for it yet."""
    followed: int = 0
    """Of a row that follows another: the place of that one's newest end that is decided about."""
    followed_fact: int = 0
    """Of a row that follows facts: the place on the board up to which they are decided about."""
    ended_at: Instant | None = None
    """When its newest run ended, those by hand not counted; None: none did."""
    next_s: int = 0
    """After how long that run wants the next; 0: it said nothing."""
    ran_from: Instant | None = None
    """After the clock was set back: the first instant ahead that was run by it before."""
    ran_through: Instant | None = None
    """The last of those; what lies between the two isn't run again."""


class SlotEntry(Record, frozen=True, kw_only=True):
    """An entry: a slot of a row, or a range of them that ended in the same way.

    A slot that is run has two entries, ``running`` and its end; they have the same `due_at`.
    """

    row: str
    kind: str = ""
    """Of the row; empty in entries of older versions."""
    due_at: Instant
    """Of a range the last. Of a run by hand: when it was asked for."""
    state: SlotState
    reason: str = ""
    at: Instant
    """When it was decided."""
    count: int = 1
    first_at: Instant | None = None
    """Of a range the first."""
    is_by_hand: bool = False
    """A person had it run: it is no slot of the schedule."""
    session: str = ""
    """The session that runs it."""
    is_late: bool = False
    change: str = ""
    """Why a watcher has it run, or what is new for a cycle."""
    is_trusted: bool = False
    """Whether what changed counts as trusted, by the configuration."""
    told_seq: int = 0
    """Of a row of the system: of SIGNALS all up to it is told to the run that begins, or needs
    none; 0: as before."""
    looks: tuple[str, ...] = ()
    """Of a cycle that begins: what it is told to look at because it is time."""
    report: CycleReport | None = None
    """Of a cycle that ended: what came of it."""
    followed: int = 0
    """Of a row that follows another: the place of the end that made it due; of a range of the
    last."""
    follows: str = ""
    """The session whose end that is, of one that is run."""
    followed_fact: int = 0
    """Of a row that follows facts: the place on the board where the change is that made it due."""
    next_s: int = 0
    """Of an end: after how long the run wants the next; 0: it said nothing."""
    tokens: int = 0
    """Of an end: what the run's own calls of models took, without what it started."""
    micro_usd: int = 0
    """What that cost, as far as there are prices."""
    delivery: Delivery = ""
    told: str = ""
    """The effect by which the result was told: the id of the event of whoever was."""
    told_to: str = ""
    """The session key of who was told; empty: nobody, or several members of a team."""
    facts: FactFill | None = None
    """Of an end: what came of the facts that its row names."""
    set_back_from: Instant | None = None
    """The clock was set back, and this is no slot: up to then all had been decided by it. What was
    run stays so, and the rest is decided by the clock as it is now."""
    ran_from: Instant | None = None
    """Of such an entry: the first instant ahead that was run."""
    ran_through: Instant | None = None
    """Of such an entry: the last."""
    ledger: Ledger = Ledger()
    """All entries of the row up to this one: who reads the newest needs no other."""
    before: int = 0
    """Place in the stream of the row's entry before; 0: there is none."""
    v: int = VERSION_1
