"""The numbers the core decides by, and the moment it decides in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from functools import lru_cache
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from vigil.contracts import SOCKET, Approval, Start, Tool
from vigil.contracts.base import NEVER
from vigil.contracts.board import BoardPreference
from vigil.facts.shown import NamedSource
from vigil.goals.lifecycle import ReadGoal
from vigil.grants.rule import Standing
from vigil.settings.hours import UNENDING
from vigil.tasks.lifecycle import ReadTask
from vigil.teams import Teams
from vigil.texts import excerpt
from vigil.words.rule import Book
from vigil.zones.database import zone_named
from vigil.zones.wall import instant_of

from .kinds import profile_of
from .profile import Profile
from .sight import Sight

Authority = Literal["off", "observe", "suggest", "act"]
AUTHORITIES: Final[tuple[Authority, ...]] = ("off", "observe", "suggest", "act")
"""The levels, the least first."""
_INSTANTS_MAX: Final = 256
"""How many instants the person's clock is remembered for: all who ask within a second ask for the
same."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and switches. The defaults are SPEC's; the configuration overrides them."""

    autonomy_enabled: bool = False
    max_consecutive: int = 3
    cooldown_ms: int = 15_000
    ordered_per_hour: int = 12
    clear_policy: Literal["autonomous", "all"] = "autonomous"
    follow_ups_max: int = 100
    follow_up_bytes_max: int = 128 * 1024
    """Text of all open follow-ups together: they travel in every turn."""
    calls_max: int = 10
    retries_max: int = 5
    retry_base_s: float = 2.0
    retry_cap_s: float = 120.0
    fallback: str = ""
    """The model that is asked instead of one that fails; empty: none, or it is the same."""
    fallback_after: int = 2
    fallback_pause_s: float = 300.0
    queue_max: int = 1000
    tool_calls_max: int = 20
    """Tool calls in one answer; more are refused to the model."""
    tool_timeout_s: float = 30.0
    """How long a loop waits for the tools that other services run."""
    caller_timeout_s: float = 600.0
    """How long a loop waits for what the program of the caller is to run."""
    result_length_max: int = excerpt.SHOWN_LENGTH_MAX
    """Characters of a result that the model sees: some 4,000 tokens, as much as of an event from
    outside."""
    sight: Sight = Sight()
    """What the model is shown of files."""
    attempts_max: int = 5
    """Takeovers of one step before it is given up (ARCHITECTURE 3)."""
    double_text: Literal["enqueue", "interrupt", "coalesce"] = "enqueue"
    """What a user message does that comes while another is worked on (SPEC S-13)."""
    coalesce_ms: int = 500
    channels: tuple[str, ...] = ()
    """Names of the ways out beside the socket."""
    mind_tick_s: int = 30
    """Shortest time between two looks of a mind."""
    has_mind: bool = False
    """Whether the agent has one that is on."""
    pause_s: int = 0
    """After so long without a word the model is asked what to remember; 0: never."""
    route: str = SOCKET
    """The channel of autonomous messages, unless the model names another; empty: that of the
    person's newest message."""
    profile: Profile = msgspec.field(default_factory=lambda: profile_of("channel"))
    """The profile of this kind of session; a conversation's, unless said."""
    authority: Authority = "suggest"
    """What the agent may do on its own without asking."""
    depth_max: int = 3
    fan_out_max: int = 20
    """Sessions that may descend from one event."""
    status_every_s: float = 30.0
    """How often a session tells its parent how it goes, at most."""
    timeouts_s: dict[str, float] = {}
    steps_of: dict[str, int] = {}
    """Model calls of each kind that is started, where they are configured."""
    approval_expires_s: float = 86400.0
    approvals_max: int = 20
    """Open requests of one session."""
    steps_max: int = 20
    note_days: int = 7
    """How long a job's note is kept."""
    tasks_need_approval: bool = True
    """Whether a task that the agent makes waits for the person."""
    mind_confidence_min: float = 0.3
    """How sure the mind must be of a decision; of one less sure the person is asked first."""
    findings_shown: int = 15
    """Findings of earlier runs of its row that a run of the timetable is shown: the newest."""
    extracted_max: int = 5
    """Memories that such a run keeps beside its result, by one more question; 0: it isn't asked."""
    recalled_max: int = 10
    """Findings of earlier cycles that a cycle is shown, the newest, and as many memories of since
    the one before."""
    goals_max: int = 50
    """Active goals of a person's."""
    preference_days: int = 30
    """Without a confirmation, that take a little of how sure the agent is of a preference."""
    home_thread: str = "main"
    """The thread of the person's home, which is told what belongs to no other conversation."""

    homes: tuple[str, ...] = ()
    """The homes of a team's members, which are told instead of `home_thread`."""
    teams: Teams = {}
    """Who the members are of agents' teams."""
    others: tuple[str, ...] = ()
    """Other agents of the person's, which may be given tasks and told things."""
    urls: frozenset[str] = frozenset()
    """Addresses that the configuration names: fetching one tells nobody anything."""
    book: Book = Book()
    """Whom the person knows."""
    is_book_enough: bool = False
    """Whether whom the book has may be sent what others worded (FLOW F-6, 4)."""
    letters_open_s: int = 1800
    """How long after an exchange what the person says next goes on from it, with its letters."""
    fact_sources: tuple[NamedSource, ...] = ()
    """Hooks of the person and agent that tell facts."""
    interests: frozenset[str] = frozenset()
    """What the configuration has a cycle keep up with; in other sessions there is none."""

    @property
    def preference_period(self) -> timedelta:
        """`preference_days`, as a length of time."""
        return timedelta(days=self.preference_days)

    @property
    def is_reply_voidable(self) -> bool:
        """Whether a newer message voids an answer, too."""
        return self.clear_policy == "all"


NEXT_RUN: Final = "next_look"
"""The tool by which a run of the timetable says when the next is, where its row lets it."""
REPORT_FACTS: Final = "report_facts"
"""The tool by which it tells the facts that its row names."""


def limited(policy: Policy, start: Start | None) -> Policy:
    """Return a policy with what a session was started with: limits, and a choice of its own."""
    if start is None:
        return policy
    if start.slot is not None:
        more: tuple[str, ...] = (NEXT_RUN,) if start.slot.choice is not None else ()
        more += (REPORT_FACTS,) if start.slot.facts else ()
        if more:
            profile = policy.profile
            first = (*profile.first, *more) if profile.first else ()
            profile = msgspec.structs.replace(profile, tools=(*profile.tools, *more), first=first)
            policy = msgspec.structs.replace(policy, profile=profile)
    if start.tokens_max:
        profile = msgspec.structs.replace(policy.profile, max_tokens=start.tokens_max)
        policy = msgspec.structs.replace(policy, profile=profile)
    if start.steps:
        policy = msgspec.structs.replace(policy, calls_max=min(policy.calls_max, start.steps))
    if start.limits is None:
        return policy
    limits = start.limits
    return msgspec.structs.replace(
        policy,
        calls_max=limits.calls_max,
        tasks_need_approval=limits.tasks_need_approval,
        profile=msgspec.structs.replace(policy.profile, children_max=limits.children_max),
    )


class Hours(msgspec.Struct, frozen=True, kw_only=True):
    """A person's clock: their zone, their quiet hours, the hour of their digest, their pause."""

    zone: ZoneInfo = zone_named("UTC")
    quiet: tuple[time, time] | None = None
    digest: time = time(8)
    pause: datetime | None = None
    """When the pause ends that the person made; None: there is none."""

    def quiet_until(self, at: datetime) -> datetime | None:
        """Return the end of the quiet hours that `at` lies in, or None."""
        if self.quiet is None:
            return None
        return quiet_until(at.replace(microsecond=0), self.quiet, self.zone)

    def paused_until(self, at: datetime) -> datetime | None:
        """Return the end of the person's pause, if `at` lies in it; `UNENDING`: it has none."""
        return self.pause if self.pause is not None and at < self.pause else None

    def held_until(self, at: datetime) -> datetime | None:
        """Return when what is due at `at` comes, if a pause or quiet hours hold it back."""
        until = self.paused_until(at)
        if until is None or until >= UNENDING:
            return until or self.quiet_until(at)
        return self.quiet_until(until) or until

    def digest_after(self, at: datetime) -> datetime:
        """Return when the person is next told together what could wait."""
        return next_at(at.replace(microsecond=0), self.digest, self.zone)


OnBoard = Literal["tasks", "goals", "habits"]
"""What a tool may need to know of the board: fields of a `Moment`."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a decision, all that it may know of the world."""

    now: datetime
    quiet_until: datetime | None = None
    """When the person's quiet hours end, if they are on."""
    paused_until: datetime | None = None
    """When the pause ends that the person made, if they did; `UNENDING`: it has no end."""
    hours_at: datetime = NEVER
    """When the person last changed their clock."""
    digest_at: datetime | None = None
    """When the person is next told together what could wait; None: a day from now."""
    hours: Hours = Hours()
    """The clock by which `quiet_until` and `digest_at` were told; it also says when what is planned
    will come."""
    is_paused: bool = False
    """Whether everything is paused that is done unasked, for everybody."""
    tools: Mapping[str, Tool] = {}
    """What the executor offers at present, by name."""
    grants: tuple[Standing, ...] = ()
    """What the person allowed this agent beforehand: read when a model called for tools, or when a
    job goes on with its steps."""
    tasks: tuple[ReadTask, ...] = ()
    """What is on the board for the person and agent: read when a model called for it."""
    goals: tuple[ReadGoal, ...] = ()
    """The goals on the board, read as `tasks` are."""
    habits: tuple[BoardPreference, ...] = ()
    """Preferences that were taught again and again in the last days, read as `tasks` are."""
    approvals: tuple[Approval, ...] = ()
    """Open requests of the owner's, in other sessions, too, that the message names: read when it's
    a verdict in words."""
    asked: tuple[str, ...] = ()
    """The calls, by `requests.digest_of`, among those that a model made, for which the person was
    asked lately, in whatever session."""
    known: Book | None = None
    """Whom the person knows of those whom the model's calls name, by their lists of contacts, too.
    None: there are no lists, and the policy has all."""
    is_history_tainted: bool = False
    """Whether untrusted content stands in the history that the model is shown."""
    present: str | None = None
    """The channel of the person's newest message with this agent, in whatever thread; empty: a
    client of the API. None: it wasn't looked at, and that of this thread counts."""

    unsaid: frozenset[str] = frozenset()
    """The sends, among those that a user message may void, that were not said before this one."""

    @property
    def now_ms(self) -> int:
        return int(self.now.timestamp() * 1000)


@lru_cache(maxsize=_INSTANTS_MAX)
def quiet_until(now: datetime, hours: tuple[time, time] | None, zone: ZoneInfo) -> datetime | None:
    """Return the end of the quiet hours that `now` lies in, or None.

    The start is part of them, the end isn't; they may wrap midnight; equal ends mean always
    awake. Where the clocks skip their end it is when they have gone on.

    >>> from datetime import UTC
    >>> at = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)
    >>> quiet_until(at, (time(22), time(7)), zone_named("UTC")).isoformat()
    '2026-01-06T07:00:00+00:00'
    """
    if hours is None or hours[0] == hours[1]:
        return None
    start, end = hours
    local = now.astimezone(zone)
    wall = local.time().replace(tzinfo=None)
    if start < end:
        is_quiet = start <= wall < end
        day = local.date()
    else:
        is_quiet = wall >= start or wall < end
        day = local.date() + timedelta(days=1) if wall >= start else local.date()
    if not is_quiet:
        return None
    ends_at = instant_of(datetime.combine(day, end), zone).astimezone(now.tzinfo)
    return ends_at if ends_at > now else None


@lru_cache(maxsize=_INSTANTS_MAX)
def next_at(now: datetime, wall: time, zone: ZoneInfo) -> datetime:
    """Return the next instant at which the person's clocks show a time; `now` doesn't count.

    >>> from datetime import UTC
    >>> at = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
    >>> next_at(at, time(8), zone_named("UTC")).isoformat()
    '2026-01-06T08:00:00+00:00'
    """
    today = now.astimezone(zone).date()
    days = (today + timedelta(days=ahead) for ahead in (0, 1, 2))
    instants = (
        instant_of(datetime.combine(day, wall), zone).astimezone(now.tzinfo) for day in days
    )
    return next(at for at in instants if at > now)
