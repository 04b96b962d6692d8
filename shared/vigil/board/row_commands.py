"""Rows of the timetable at a terminal: what is typed for one, and what is shown of it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET

from ..contracts.board import Watched
from ..errors import InvalidInput
from ..facts.wanted import read_typed
from ..texts.columns import Column, history
from ..watching.watched import wanted_watch, words_of
from ..words.amounts import count_of, span_of
from ..zones.database import zone_named
from .commands import SHORT_ID, Command, CommandGroup, Given, Shown

NAME_LENGTH_MAX: Final = 40


def _state(one: Shown) -> str:
    """Say what a row is at.

    >>> _state({"is_removed": False, "is_enabled": True, "running": 1, "failures": 0})
    'running'
    """
    if one["is_removed"]:
        return "removed"
    if not one["is_enabled"]:
        return "paused"
    if one["running"]:
        return "running"
    return f"failed {count_of(one['failures'], 'time')}" if one["failures"] else "on"


def _next(one: Shown) -> str:
    """Say when a row is due next, on the clocks of its zone.

    >>> _next({"zone": "Europe/Berlin", "next_at": ["2026-11-24T08:00:00Z"]})
    'Tue 2026-11-24 09:00:00 (Europe/Berlin)'
    """
    zone = zone_named(one["zone"])
    found = [datetime.fromisoformat(at).astimezone(zone) for at in one["next_at"]]
    days = ", ".join(f"{at:%a %Y-%m-%d %H:%M:%S}" for at in found)
    return f"{days} ({one['zone']})" if days else ""


def _watched(one: Shown) -> str:
    """Say what a row watches, as `--watch` takes it.

    >>> _watched({"watch": {"kind": "files", "glob": "*.md"}})
    'files:*.md'
    """
    if one["watch"] is None:
        return "nothing"
    return words_of(msgspec.convert(one["watch"], Watched))


def _sentence(one: Shown) -> str:
    """Repeat in words when a row is due."""
    following, is_following = _next(one), one["schedule"]["kind"] == "after"
    ahead = f"; next: {following}" if following else "; nothing is due ahead"
    return f"{one['name']!r} is {_state(one)}: {one['when']}{'' if is_following else ahead}."


def _built(typed: dict[str, Any]) -> dict[str, Any]:
    """Return a body, with the options of what is watched made into that. Raises: InvalidInput."""
    if typed.get("after") == "":  # nothing is followed where something else says when
        raise InvalidInput("--after", "must name a row")
    rest = {name: one for name, one in typed.items() if name not in ("pointer", "arguments")}
    what, pointer, arguments = map(typed.get, ("watch", "pointer", "arguments"))
    if what is None:
        if (pointer or arguments) is not None:
            raise InvalidInput("--watch", "must say what, if --pointer or --arguments do")
        return rest
    try:
        given = arguments and msgspec.json.decode(arguments, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise InvalidInput("--arguments", f"must be a JSON object: {error}") from error
    wanted = wanted_watch(what, pointer, given or None)
    return rest | {"watch": wanted if wanted is UNSET else msgspec.to_builtins(wanted)}


OF_SOURCE: Final = (
    Column("FACT", "name"),
    Column("IS", lambda one: one["text"].partition(": ")[2] or "not known yet"),
    Column("TOLD", "at", is_instant=True),
    Column("SHAPE", "shape"),
)
"""Of a fact that a source names."""
_OPTIONS: Final = (
    Given("cron", "As `0 9 * * 1-5`, or @daily.", "--cron", metavar="EXPRESSION"),
    Given("interval_s", "As 90s, 5m or 1d; and at once.", "--every", time="span"),
    Given("soonest_s", "Its runs may choose the next: not before.", "--soonest", time="span"),
    Given("latest_s", "The same: and not after.", "--latest", time="span"),
    Given(
        "at",
        "Once, on the clocks of --zone: tomorrow 9:00, 2026-12-01T09:00; or 2d.",
        "--at",
        metavar="WHEN",
        time="at",
    ),
    Given(
        "after",
        "With the result of each run of that row.",
        "--after",
        metavar="ROW",
        names="rows",
    ),
    Given("after_on", "Which ends of its runs --after means. Default: success.", "--on"),
    Given(
        "on_fact",
        "When that fact is another: of a row or hook, as build.status, hook:build.status.",
        "--on-fact",
        metavar="SOURCE.FACT",
    ),
    Given("before_s", "So long before events of --calendar, as 10m.", "--before", time="span"),
    Given("calendar", "As its events begin; moved as they are.", "--calendar", metavar="NAME"),
    Given("event", "Of these the one. Default: each with a time.", "--event", metavar="ID"),
    Given("skill", "By which it's done, as `vigil skills`.", "--skill", metavar="NAME"),
    Given("zone", "Time zone, as Europe/Berlin. Default: yours.", "--zone"),
    Given("misfire", "What of what was missed is run. Default: latest.", "--misfire"),
    Given("active_hours", "It is run in these alone.", "--hours", metavar="HH:MM-HH:MM"),
    Given(
        "target",
        "Where the result goes. Default: your home.",
        "--target",
        metavar="KEY|CHANNEL|mind",
    ),
    Given("timeout_s", "Default: 120.", "--timeout", metavar="SECONDS"),
    Given("model", "Who answers, as `vigil models`.", "--model", metavar="NAME"),
    Given("daily_tokens", "What all of it may take a day. 0: as configured.", "--tokens"),
    Given(
        "watch",
        "It is run only if that has changed: https://PAGE, feed:https://FEED, "
        "files:notes/*.md of the workspace, command:LINE, mcp:SERVER__TOOL; or none.",
        "--watch",
        metavar="WHAT",
        kind=str,
    ),
    Given("pointer", "What of watched JSON counts.", "--pointer", metavar="/KEY/0", kind=str),
    Given("arguments", "Of a watched tool.", "--arguments", metavar="JSON", kind=str),
    Given(
        "facts",
        "What runs tell in a closed form, as `ci=one_of[passing, failing]`; may be repeated. "
        "Others: yes_no, count[0..999], number[0.0..9.5 %], instant, day, version, "
        "id_of[A-1, A-2]. Behind it `news to failing`, `news +10`, `news never` or `news always`: "
        "which changes are told and start others. Or none.",
        "--fact",
        metavar="NAME=SHAPE",
        kind=list[str],
        read=read_typed,
    ),
)
COMMANDS: Final = CommandGroup(
    help="What an agent does again and again: list, show, add, edit, pause, resume, run, remove, "
    "history, doctor, export, link, links, unlink. Default: list.",
    list_text="List the rows of your timetable, and when each is due next.",
    choice=Given("all", "Those that the system keeps up, too.", "--all", kind=bool),
    id_help="Of a row, as `vigil cron` lists: its name, or its id or how that begins.",
    empty="Nothing recurs. `vigil cron list --all` has what the system keeps up.",
    chosen=(True,),
    columns=(
        SHORT_ID,
        Column("NAME", "name", length_max=NAME_LENGTH_MAX),
        Column("STATE", _state),
        Column("WHEN", "when"),
        Column("NEXT", lambda one: next(iter(one["next_at"]), None), is_instant=True),
    ),
    show_text="Show one: what it says, when it is due, and who changed it.",
    fields=(
        Column("name", "name"),
        Column("id", "id"),
        Column("owner", "owner"),
        Column("agent", "agent_id"),
        Column("state", _state),
        Column("when", "when"),
        Column("next", _next),
        Column("what was missed", "misfire"),
        Column("hours", "active_hours"),
        Column("told to", lambda one: one["target"] or "home"),
        Column("remembers", lambda one: "yes" if one["is_stateful"] else "no"),
        Column("watches", _watched),
        Column("timeout", lambda one: span_of(one["timeout_s"])),
        Column("skill", lambda one: one["skill"] or "none"),
        Column("model", lambda one: one["model"] or "as others"),
        Column("tokens a day", lambda one: one["daily_tokens"] or "as configured"),
        Column("runs", "runs"),
        Column("made", "made_at", is_instant=True),
        Column("made by", lambda one: f"{one['made_by']} {one['session_key']}".strip()),
        Column("revision", "revision"),
    ),
    first_parts={"facts": OF_SOURCE},
    documents={"prompt": "prompt"},
    parts={
        "history": history(
            Column("WHEN", "when"),
            Column("ON", lambda one: "no" if one["is_removed"] or not one["is_enabled"] else "yes"),
        )
    },
    words="name",
    is_named=True,
    offered="when",
    commands=(
        Command(
            "add",
            "Have something done by --cron, --every, --at, --after another, --on-fact or "
            "--calendar.",
            "make",
            gives=(
                Given("name", "What you call it."),
                Given("prompt", "What to do, each time.", default=""),
                *_OPTIONS,
                Given("is_stateful", "Each run knows what those before found.", "--stateful"),
                Given("runs_once", "It is over with its first run.", "--once"),
            ),
            builds=_built,
            summary=lambda one: f"{_sentence(one)} Its id is {one['id'][:8]}.",
        ),
        Command(
            "edit",
            "Change a row. A run that has begun doesn't notice.",
            "change",
            gives=(
                Given("name", "What you call it.", "--name"),
                Given("prompt", "What is to be done.", "--prompt"),
                *_OPTIONS,
            ),
            builds=_built,
            summary=_sentence,
        ),
        Command(
            "pause",
            "Pause a row: what comes due meanwhile is skipped.",
            "change",
            always={"is_enabled": False},
            summary=_sentence,
        ),
        Command(
            "resume",
            "Let a row that was paused go on.",
            "change",
            always={"is_enabled": True},
            summary=_sentence,
        ),
        Command(
            "remove",
            "Remove a row. A run that has begun goes on.",
            "end",
            summary=lambda one: f"{one['name']!r} is removed.",
        ),
    ),
)
