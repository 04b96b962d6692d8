"""change_settings: what the person said in this conversation that is to hold for them (LOOPS L-11).

The core lets only their own words ask for it (`Tool.is_personal`). It sets what `vigil me` sets, in
the same way, and holds without a restart.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from vigil.board.kept import ROWS, KeptBoard
from vigil.contracts.arguments import Arguments
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.settings import own
from vigil.settings.own import Name
from vigil.teams import TEAM, holding
from vigil.timetable.edit import words_of_move

from ..tools.declaration import ToolContext, tool
from ..tools.source import Call, ToolOutput

TRIES_MAX: Final = 3
"""Somebody else may change them at the same time."""
NO_TEAM: Final = "A team has no settings of its own: each member sets theirs with `vigil me`."

Value = Annotated[str, msgspec.Meta(max_length=100)]


class ChangeSettings(Arguments, frozen=True, kw_only=True):
    """Change what holds for the person everywhere, because they just asked for it.

    Give only what they named. It holds from now on; what was held back by the old hours is looked
    at again.
    """

    timezone: Value | None = None
    """IANA name, as Europe/Vienna."""
    language: Value | None = None
    """Tag of the language to write in, as de-AT."""
    quiet_hours: Value | None = None
    """When nothing is said unasked, local time: 22:00-07:00; empty: never."""
    channel: Value | None = None
    """Where unasked messages also go: socket, or a channel that is configured."""
    digest_at: Value | None = None
    """Local time at which they are told together what could wait: 08:00."""
    pause: Value | None = None
    """Until when you say and begin nothing unasked: an instant as 2026-12-01T08:00, local time;
    on: until they take it back; empty: no longer."""
    reset: tuple[Name, ...] = ()
    """Which of these are to be again as configured."""


@tool(
    risk="write",
    timeout_s=10.0,
    profiles=("channel",),
    is_idempotent=True,
    is_personal=True,
)
async def change_settings(given: ChangeSettings, call: Call, context: ToolContext) -> ToolOutput:
    """Change them; what can't be used is told by its name.

    Raises:
        InvalidInput: a value can't be used.
        Unavailable: it surely did not run.
    """
    if call.key.user == TEAM:
        return ToolOutput(content=NO_TEAM, is_error=True)
    wanted: dict[str, str | None] = dict.fromkeys(given.reset)
    for name in own.NAMES:
        if (value := getattr(given, name)) is not None:
            if name in wanted:
                raise InvalidInput("reset", f"{name} is given, too")
            wanted[name] = value
    if not wanted:
        raise InvalidInput("arguments", f"give at least one of {', '.join(own.NAMES)}")
    for _ in range(TRIES_MAX):
        try:
            return ToolOutput(content=await _change(call, wanted, context))
        except WrongLastSequence:
            continue
    raise Unavailable("the person's settings are being changed elsewhere")


async def _change(call: Call, wanted: dict[str, str | None], context: ToolContext) -> str:
    """Raises: InvalidInput, WrongLastSequence."""
    user, config = call.key.user, context.config
    configured, found = config.person_of(user), await own.find(context.bus, user)
    if own.has_run(found, call.id):
        return "It was set, and may have been changed since."
    if own.is_so(found, wanted):
        return "It is so already."
    changed = own.changed(
        found, wanted, context.clock.now(), str(call.key), configured, config.channels, call.id
    )
    await own.put(context.bus, user, changed, expect=found.revision)
    before, after = own.over(configured, found.own), own.over(configured, changed)
    lines = [_line(name, getattr(before, name), getattr(after, name)) for name in sorted(wanted)]
    rows = await KeptBoard(context.bus, ROWS).all(holding(user, call.key.agent))
    words = words_of_move((one.entity for one in rows), before.timezone, after.timezone)
    lines += [words] if words else []
    return "\n".join([*lines, "This holds from now on, in all conversations."])


def _line(name: str, before: str, after: str) -> str:
    """
    >>> _line("quiet_hours", "", "22:00-07:00")
    'quiet_hours: 22:00-07:00 (before: none)'
    """
    return f"{name}: {after or 'none'} (before: {before or 'none'})"
