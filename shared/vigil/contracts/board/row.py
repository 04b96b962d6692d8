"""Rows of the timetable: what recurs, when, and what it does (LOOPS L-1)."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from ..base import Instant, Record
from .fact import FactShape

Misfire = Literal["skip", "latest", "all"]
"""What becomes of instants that were missed: nothing, the newest is run, or each is."""
RowMaker = Literal["person", "agent", "system"]


class CronSchedule(Record, frozen=True, kw_only=True, tag_field="kind", tag="cron"):
    """The instants of a cron expression, on the clocks of a zone."""

    expression: str
    """Five fields, or six with seconds first; see `vigil.timetable.schedule`."""
    zone: str
    """IANA name."""


class EverySchedule(Record, frozen=True, kw_only=True, tag_field="kind", tag="every"):
    """Every so many seconds since the schedule holds; a new row begins at once."""

    interval_s: int


class OnceSchedule(Record, frozen=True, kw_only=True, tag_field="kind", tag="at"):
    """One instant."""

    at: Instant
    wall: str = ""
    """The time on clocks that was meant, as `2026-12-01T09:00:00`, if one was; then `at` is what
    that came to when it was set, and it is reckoned anew wherever it counts."""
    zone: str = ""
    """IANA name of the zone of those clocks."""


class ChosenSchedule(Record, frozen=True, kw_only=True, tag_field="kind", tag="chosen"):
    """As its runs say: each may choose when the next is, within limits, counted from its end."""

    interval_s: int
    """How long after a run's end the next is due if the run chose nothing."""
    soonest_s: int
    latest_s: int


ChainOn = Literal["success", "failure", "any", "change"]
"""Which ends of a run make another row due; ``change``: not an end, but that a fact is another than
before, if that is news."""


class AfterSchedule(Record, frozen=True, kw_only=True, tag_field="kind", tag="after"):
    """Each end of a run of another row, by hand or not, of the same person and agent; or each
    change of a fact of such a row, or of a hook, that is news."""

    row: str
    """The id of the row that is followed; for a hook, the id of its facts (`facts.hooked`)."""
    on: ChainOn = "success"
    fact: str = ""
    """The name of the fact whose changes count, where `on` is ``change``; empty: any fact."""
    hook: str = ""
    """The hook that it follows, by its name; empty: it follows a row."""


class EventSchedule(Record, frozen=True, kw_only=True, tag_field="kind", tag="event"):
    """So long before events of a calendar of the person's begin. Whoever keeps the calendar says
    when that is next, and moves it as the event is moved."""

    calendar: str
    """The calendar's name in the configuration."""
    event: str = ""
    """The event, by the 8 digits that its id has in lists; empty: each that isn't of whole days."""
    before_s: int = 0
    at: Instant | None = None
    """When it's due next, as far as is known; None: nothing of it is ahead."""
    of: str = ""
    """The instance of the event that `at` belongs to."""


Schedule = (
    CronSchedule | EverySchedule | OnceSchedule | ChosenSchedule | AfterSchedule | EventSchedule
)


class WatchedUrl(Record, frozen=True, kw_only=True, tag_field="kind", tag="url"):
    """A page or document that is looked at without a model."""

    url: str
    pointer: str = ""
    """JSON pointer (RFC 6901) of what counts in a JSON document; empty: all of it."""


class WatchedFeed(Record, frozen=True, kw_only=True, tag_field="kind", tag="feed"):
    """A feed, RSS or Atom: what changes is that it has new entries."""

    url: str


class WatchedFiles(Record, frozen=True, kw_only=True, tag_field="kind", tag="files"):
    """Files of the owner's workspace: added, changed, removed."""

    glob: str
    """A pattern such as `notes/**/*.md`, relative to the workspace."""


class WatchedCommand(Record, frozen=True, kw_only=True, tag_field="kind", tag="command"):
    """What a command writes, in the sandbox and the owner's workspace."""

    command: str


class WatchedTool(Record, frozen=True, kw_only=True, tag_field="kind", tag="mcp"):
    """What a tool of an MCP server answers, of class ``read``."""

    tool: str
    """The tool's name as agents see it: SERVER__TOOL."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    pointer: str = ""
    """JSON pointer of what counts in a JSON answer; empty: all of it."""


Watched = WatchedUrl | WatchedFeed | WatchedFiles | WatchedCommand | WatchedTool
"""What is looked at without a model; a new kind is a struct of its own, and one of this union."""


class CronWork(Record, frozen=True, kw_only=True, tag_field="kind", tag="cron"):
    """A prompt that an agent works on, each time in a session of its own."""

    prompt: str
    """May be empty if there is a skill."""
    skill: str = ""
    """The name of a skill by which it is done; empty: none."""
    is_stateful: bool = False
    """Whether it is shown what earlier runs found, and what it finds is kept for later ones."""
    target: str = ""
    """Session key of the conversation that is told the result, or the name of a channel through
    which the owner's home says it; ``mind``: the agent's mind; empty: the home."""
    timeout_s: int = 120
    model: str = ""
    """Who answers its runs, as settings name models; empty: as with others of their kind."""
    daily_tokens: int = 0
    """What its runs, with all that they start, may take a day; 0: as configured."""
    watch: Watched | None = None
    """It is run only if that has changed, and is shown the difference."""
    facts: dict[str, FactShape] = msgspec.field(default_factory=dict)
    """What its runs, and looks at what it watches, tell in a closed form, by name (FLOW F-9)."""
    looked: dict[str, str] = msgspec.field(default_factory=dict)
    """The facts among `facts` that a look tells without a model -> where it finds them."""
    news: dict[str, str] = msgspec.field(default_factory=dict)
    """Which changes of facts are news, by the fact's name, as `vigil.facts.news` says; those that
    aren't named: as usual."""


class AutonomyWork(Record, frozen=True, kw_only=True, tag_field="kind", tag="autonomy"):
    """A cycle in which an agent keeps up with the world by itself (SPEC C-7). What it is told is
    made of what is new, of what earlier ones left, and of the configuration."""

    timeout_s: int = 1800
    model: str = ""
    daily_tokens: int = 0
    """What its runs, with all that they start, may take a day; 0: as configured."""
    facts: dict[str, FactShape] = msgspec.field(default_factory=dict)
    """What cycles tell in a closed form of looks, as these are configured."""
    news: dict[str, str] = msgspec.field(default_factory=dict)
    """Which changes of facts are news, by the fact's name, as in `CronWork`."""


class MindWork(Record, frozen=True, kw_only=True, tag_field="kind", tag="mind"):
    """A look of the agent's mind at the goals that are due; its time is computed from them, and
    nobody sets it (SPEC G-1)."""

    timeout_s: int = 1800
    model: str = ""
    daily_tokens: int = 0
    """What its runs, with all that they start, may take a day; 0: as configured."""


class BulletinWork(Record, frozen=True, kw_only=True, tag_field="kind", tag="bulletin"):
    """A look at what is known of a person, and the text of their bulletin, if that changed (SPEC
    C-2)."""

    timeout_s: int = 600
    model: str = ""
    daily_tokens: int = 0
    """What its runs, with all that they start, may take a day; 0: as configured."""


class MaintenanceWork(Record, frozen=True, kw_only=True, tag_field="kind", tag="maintenance"):
    """The texts of summaries that memory merged since the last time, written anew (SPEC M-6)."""

    timeout_s: int = 600
    model: str = ""
    daily_tokens: int = 0
    """What its runs, with all that they start, may take a day; 0: as configured."""


class MailWork(Record, frozen=True, kw_only=True, tag_field="kind", tag="mail"):
    """Reading what is new in a person's mailbox and no rule sorted out, by a model without tools
    (ADR 51)."""

    mailbox: str
    """NAME of ``[mailboxes.NAME]``."""
    timeout_s: int = 600
    model: str = ""
    daily_tokens: int = 0
    """What its runs, with all that they start, may take a day; 0: as configured."""
    facts: dict[str, FactShape] = msgspec.field(default_factory=dict)
    """What is told of it in a closed form, by name."""
    looked: dict[str, str] = msgspec.field(default_factory=dict)
    """The facts among `facts` that whoever follows the mailbox tells without a model -> where they
    are found."""
    news: dict[str, str] = msgspec.field(default_factory=dict)
    """Which changes of facts are news, by the fact's name, as in `CronWork`."""


Work = CronWork | AutonomyWork | MindWork | BulletinWork | MaintenanceWork | MailWork
"""What a row does; a new kind of row is a struct of its own, and one of this union."""


def kind_of(work: Work) -> str:
    """Return what kind of row that makes, which is the kind of the sessions that run it.

    >>> kind_of(CronWork(prompt="What is new?"))
    'cron'
    """
    return str(work.__struct_config__.tag)


def is_asked_first(work: Work) -> bool:
    """Whether it is looked first if there is anything new to run for."""
    return not isinstance(work, CronWork) or work.watch is not None


def watch_of(work: Work) -> Watched | None:
    """Return what has to have changed before that is run; None: nothing."""
    return work.watch if isinstance(work, CronWork) else None


def is_watch_only(work: Work) -> bool:
    """Whether nothing is ever run for it: it watches, and its facts are all that comes of it."""
    return isinstance(work, CronWork) and bool(work.looked) and not (work.prompt or work.skill)


class TimetableRow(Record, frozen=True, kw_only=True, tag_field="kind", tag="row"):
    """A row of the timetable, of one person and agent."""

    id: str
    """32 hex digits."""
    owner: str
    agent: str
    name: str
    """How a person calls it: unique among their rows."""
    work: Work
    schedule: Schedule
    misfire: Misfire = "latest"
    grace_s: int | None = None
    """How late the newest missed one is still run; None: half a period, 2 min to 2 h."""
    active_hours: str = ""
    """``HH:MM-HH:MM`` in `zone`: outside them nothing is run. Empty: always."""
    zone: str = "UTC"
    """IANA name: of the active hours."""
    has_owners_zone: bool = False
    """Whether nobody named a zone for it: it goes by its owner's, whatever that becomes."""
    jitter_s: int = 0
    """Each instant is put off by up to so much, always the same for the same instant."""
    may_overlap: bool = False
    runs_once: bool = False
    """Whether it is over with the first run."""
    is_enabled: bool = True
    is_removed: bool = False
    made_by: RowMaker = "person"
    session_key: str = ""
    """The session that made it; empty: a person did, by themselves."""
    is_ordered: bool = False
    """Whether a person made or ordered it: then they are behind what it does."""
    made_at: Instant
    scheduled_at: Instant
    """Since when the schedule holds: when it was made, last changed, or enabled again."""

    @property
    def is_of_system(self) -> bool:
        """Whether nobody made it: it follows from the configuration."""
        return self.made_by == "system"


OTHER_NAMES: Final = {
    "timezone": "zone",
    "interval_secs": "interval_s",
    "delivery_target": "target",
    "run_once": "runs_once",
    "stateful": "is_stateful",
}
"""Names of what is given for a row that are taken, too (SPEC P-5), and the documented ones."""
