"""The arguments of cron and cron_list, and what each is for."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from vigil.contracts.arguments import Arguments
from vigil.contracts.board import ChainOn
from vigil.contracts.tools import Aim
from vigil.facts.shape import FACTS_MAX
from vigil.timetable.bounds import GRACE_S_MAX, NAME_LENGTH_MAX, PROMPT_LENGTH_MAX
from vigil.timetable.instants.cron import EXPRESSION_LENGTH_MAX
from vigil.watching.watched import COMMAND_LENGTH_MAX

WATCH_LENGTH_MAX: Final = COMMAND_LENGTH_MAX + 10
_AIMED: Final[dict[Aim, str]] = {
    "who": "target watch watch_pointer watch_arguments",
    "which": "action row skill after",
    "content": "name prompt facts",
    "detail": "cron interval_s soonest_s latest_s at after_on calendar event before_s zone misfire"
    " grace_s active_hours runs_once is_stateful timeout_s",
}
"""What says when steers nothing else, also where it's an event's time that is meant."""
AIMS: Final[dict[str, Aim]] = {name: aim for aim, names in _AIMED.items() for name in names.split()}

_AFTER: Final = "Name or id of a job; with after_on change JOB.FACT, or hook:NAME.FACT"
_CALENDAR: Final = "Name of one of the person's: due before its events begin, and moved as they are"
_EVENT: Final = "Id of one, as calendar_list has it; absent: each event that has a time"
After = Annotated[str, msgspec.Meta(max_length=200, description=_AFTER)]
Short = Annotated[str, msgspec.Meta(max_length=200)]
Prompt = Annotated[str, msgspec.Meta(max_length=PROMPT_LENGTH_MAX)]


class Cron(Arguments, frozen=True, kw_only=True):
    """Keep work that you do for the person again and again: create, update, pause, resume, run or
    remove a job.

    Which means: a reminder with a fixed text at one time is schedule_followup with message and
    keep; a look of your own later in this conversation is schedule_followup without message; work
    that recurs ("every weekday at nine", "once an hour") is a job: cron; "tell me when that page
    changes" is a watcher: a job with watch, which runs only if that has changed; "when the backup
    has failed, look why" is a job after another, which is shown what that one came to.

    A run knows nothing but its prompt: write down all that it needs. What it says last is told to
    the person; nothing, if that is empty. Set is_stateful if it must know what earlier runs found:
    briefings, "what is new". Give one of cron, interval_s, at, after and calendar; with interval_s
    also soonest_s and latest_s, if its runs are to choose when the next is; with calendar also
    event and before_s. `row` is the name or id of the job that is not new.
    """

    action: Literal["create", "update", "pause", "resume", "run", "remove"] = "create"
    row: Short | None = None
    name: Annotated[str, msgspec.Meta(max_length=NAME_LENGTH_MAX)] | None = None
    prompt: Prompt | None = None
    skill: Annotated[str, msgspec.Meta(max_length=64, description="By which it is done")] | None = (
        None
    )
    cron: (
        Annotated[
            str,
            msgspec.Meta(max_length=EXPRESSION_LENGTH_MAX, description="Five fields: 0 9 * * 1-5"),
        ]
        | None
    ) = None
    interval_s: int | None = None
    soonest_s: int | None = None
    latest_s: int | None = None
    at: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=40, description="2026-12-01T09:00 on the clocks of zone; or with offset"
            ),
        ]
        | None
    ) = None
    after: After | None = None
    after_on: ChainOn | None = None
    calendar: Annotated[str, msgspec.Meta(max_length=32, description=_CALENDAR)] | None = None
    event: Annotated[str, msgspec.Meta(max_length=100, description=_EVENT)] | None = None
    before_s: int | None = None
    zone: (
        Annotated[str, msgspec.Meta(max_length=100, description="IANA name; absent: the person's")]
        | None
    ) = None
    misfire: Literal["skip", "latest", "all"] | None = None
    grace_s: Annotated[int, msgspec.Meta(ge=0, le=GRACE_S_MAX)] | None = None
    active_hours: Annotated[str, msgspec.Meta(description="08:00-18:00")] | None = None
    runs_once: bool | None = None
    is_stateful: bool | None = None
    target: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=200,
                description="Channel that the result is sent to, or USER:AGENT:THREAD",
            ),
        ]
        | None
    ) = None
    timeout_s: int | None = None
    watch: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=WATCH_LENGTH_MAX,
                description="https://PAGE, feed:https://FEED, files:notes/*.md of your workspace, "
                "command:COMMAND whose output counts, mcp:SERVER__TOOL that only reads; none",
            ),
        ]
        | None
    ) = None
    watch_pointer: (
        Annotated[str, msgspec.Meta(description="What of a JSON page or answer counts: /a/0")]
        | None
    ) = None
    watch_arguments: Annotated[dict[str, Any], msgspec.Meta(description="Of the tool")] | None = (
        None
    )
    facts: (
        Annotated[
            list[Annotated[str, msgspec.Meta(max_length=1000)]],
            msgspec.Meta(
                max_length=FACTS_MAX,
                description="What runs tell in a closed form: ci=one_of[passing, failing], "
                "open=count[0..999], is_up=yes_no, since=instant, due=day, latest=version; "
                "`open=count news +10` if only so much more is news",
            ),
        ]
        | None
    ) = None


class CronList(Arguments, frozen=True, kw_only=True):
    """List the jobs of the person and you: what recurs, when, and whether it is paused."""
