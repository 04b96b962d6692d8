"""The ledger of the timetable: what became of each instant at which a row was due (SPEC J-4)."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..base import VERSION_1, Instant, Record
from .cycle import CycleLedger, CycleReport
from .fact import FactFill, FactShape
from .row import ChosenSchedule

SlotState = Literal["running", "waiting", "ran", "late", "coalesced", "skipped", "missed", "failed"]
"""All but ``running`` and ``waiting`` are final, and each slot has exactly one final entry."""
Delivery = Literal["", "silent", "told"]
"""What became of a run's result: nothing yet, or it's no run; there was nothing to say; handed to
who is to know, whose log has what became of it there."""


class SlotRun(Record, frozen=True, kw_only=True):
    """What a session runs: it is in its first event, and in the effect that tells its end."""

    row: str
    name: str
    """The row's name when the run began."""
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
    """Which changes of facts are news, by the fact's name, where the row says."""
    again_until: Instant | None = None
    """Until when it may be begun again if no model answers; None: it isn't."""
    tries: int = 0
    """How often it was begun before, and no model answered."""
    told_seq: int = 0
    """The sequence up to which a run by hand has read what is new, once it ended well; 0: it reads
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
    """The parts of what has any, by name: the entries of a feed that are known, what each file is
    known by."""
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
    """What `CycleLedger.told_seq` is if this run, of a row of the system, fails."""
    looks: tuple[str, ...] = ()
    """What a cycle was told to look at because it was time; of a mind, goals by their ids."""
    follows: str = ""
    """The session whose end made the run due, if its row follows another."""
    followed_fact: int = 0
    """The place on the board of the change that made the run due, if its row follows facts."""
    tries: int = 0
    """How often it was begun before, and no model answered."""
    again_at: Instant | None = None
    """When one that waits is to be begun again."""
    again_until: Instant | None = None
    """Until when one that waits may be begun again."""


class Ledger(Record, frozen=True, kw_only=True):
    """What the entries of a row come to."""

    through: Instant | None = None
    """All slots up to that instant are decided; None: none yet."""
    running: tuple[OpenRun, ...] = ()
    """The oldest first."""
    waiting: tuple[OpenRun, ...] = ()
    """Those to be begun again, as no model answered; the oldest first."""
    runs: int = 0
    """Runs that have begun, those by hand not counted, each once."""
    failures: int = 0
    """Runs that failed since the last good one, those by hand not counted."""
    seen: LastSeen | None = None
    """What a watcher saw last; None: it never looked, or the row watches nothing."""
    cycles: CycleLedger | None = None
    """What the runs of a row of the system come to; None: nothing was new for it yet."""
    followed: int = 0
    """The place of the newest end that is decided about, if the row follows another."""
    followed_fact: int = 0
    """The place on the board up to which changes are decided about, if the row follows facts."""
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

    A slot that is run has two entries, ``running`` and its end; they have the same `due_at`. If no
    model answered there are ``waiting`` and another ``running`` between the two.
    """

    row: str
    kind: str = ""
    """The row's kind; empty in entries of older versions."""
    due_at: Instant
    """When the slot was due; of a range, the last slot; for a run by hand, when it was asked
    for."""
    state: SlotState
    reason: str = ""
    at: Instant
    """When it was decided."""
    count: int = 1
    first_at: Instant | None = None
    """When the first slot of a range was due; None: the entry is of one slot."""
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
    """The sequence of SIGNALS up to which a run of the system is told what is new, or needs none of
    it; 0: as before."""
    looks: tuple[str, ...] = ()
    """What a cycle that begins is told to look at because it is time; of a mind, the ids of the
    goals that its look is at."""
    report: CycleReport | None = None
    """What came of a cycle that ended."""
    followed: int = 0
    """The place of the end that made the slot due, if its row follows another; of a range, the last
    such place."""
    follows: str = ""
    """The session whose end `followed` is, if the slot is run."""
    followed_fact: int = 0
    """The place on the board of the change that made the slot due, if its row follows facts."""
    tries: int = 0
    """How often the slot was begun before, and no model answered."""
    again_at: Instant | None = None
    """When one that waits is to be begun again."""
    again_until: Instant | None = None
    """Until when one that waits may be begun again."""
    next_s: int = 0
    """After how long the run that ended wants the next; 0: it said nothing."""
    tokens: int = 0
    """What the own calls of the run that ended took of models, without what it started."""
    micro_usd: int = 0
    """What that cost, as far as there are prices."""
    delivery: Delivery = ""
    told: str = ""
    """The effect by which the result was told: the id of the event of whoever was."""
    told_to: str = ""
    """The session key of who was told; empty: nobody, or several members of a team."""
    facts: FactFill | None = None
    """What came of the facts that the row names, when its run ended."""
    set_back_from: Instant | None = None
    """The clock was set back, and this is no slot: up to then all had been decided by it. What was
    run stays so, and the rest is decided by the clock as it is now."""
    ran_from: Instant | None = None
    """The first instant ahead that had been run when the clock was set back."""
    ran_through: Instant | None = None
    """The last instant ahead that had been run when the clock was set back."""
    ledger: Ledger = Ledger()
    """All entries of the row up to this one: who reads the newest needs no other."""
    before: int = 0
    """Place in the stream of the row's entry before; 0: there is none."""
    v: int = VERSION_1
