"""Autonomy: how agents keep up by themselves, what their cycles found, and the bulletin."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from vigil.teams import DEFAULT_AGENT, TEAM

from ....board.bulletins import BulletinListing
from ....http.wire import PauseState
from ....insight.status import paused_agents
from ....timetable.autonomy import AutonomyView
from ...second_thoughts import Confirmation
from ...visit import Visit


async def show(visit: Visit) -> dict[str, Any]:
    autonomy, found = await asyncio.gather(
        visit.api.get(AutonomyView, "/api/autonomy"),
        visit.api.get(BulletinListing, "/api/bulletin", history=1),
    )
    return {
        "autonomy": autonomy,
        "bulletins": found.bulletins,
        "switches": switches_of(visit, [one.agent_id for one in autonomy.cycles]),
    }


class AgentSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """The two switches of an agent: for the reader, and for everybody."""

    agent: str
    mine: PauseState | None
    """Its pause for the reader alone."""
    all: PauseState | None
    may_all: bool
    """Whether the reader may set the second."""


def switches_of(visit: Visit, known: Iterable[str]) -> list[AgentSwitch]:
    """Return the switches of the agents that a page may name.

    Args:
        known: agents beside the usual one, those of the reader's teams, and those that are paused.
    """
    paused = {(one.agent, one.user is None): one for one in paused_agents(visit.edge, visit.reader)}
    teams = {one.agent for one in visit.reader.reach if one.owner == TEAM}
    names = {DEFAULT_AGENT, *teams, *known, *(agent for agent, _ in paused if agent)}
    return [
        AgentSwitch(
            agent=name,
            mine=paused.get((name, False)),
            all=paused.get((name, True)),
            may_all=visit.reader.is_admin or visit.reader.may_reach(TEAM, name),
        )
        for name in sorted(names)
        if name != "*"
    ]


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before something is paused for everybody."""
    is_pause = visit.form.get("whose") == "all" and visit.form.get("to") == "on"
    is_off = visit.form.get("enabled") == "off"
    if not (is_pause or (is_off and visit.reader.is_admin)):
        return None
    what = f"Pause {visit.wanted('agent')} for everybody?" if is_pause else "Switch autonomy off?"
    return Confirmation(
        title=what,
        text="Nothing is said or begun unasked then, for nobody, until somebody ends that. "
        "Answers to people go on.",
        yes="Pause it" if is_pause else "Switch it off",
    )


async def act(visit: Visit) -> str:
    """Switch it on or off, or set the interval, for all; or pause one agent, or let it go on.
    Raises: Problem, 403: an admin may."""
    if "agent" in visit.form:
        query = {"agent": visit.form["agent"]}
        if visit.wanted("whose") == "mine":
            query["mine"] = "true"
        is_on = visit.wanted("to") == "on"
        await visit.api.send("PUT" if is_on else "DELETE", "/api/pause", query=query)
        return "/autonomy"
    change: dict[str, Any] = {}
    if "enabled" in visit.form:
        change["autonomy_enabled"] = visit.form["enabled"] == "on"
    if "interval" in visit.form:
        change["autonomy_interval_secs"] = visit.number("interval")
    revision = visit.number("revision")
    await visit.api.send("PATCH", "/api/autonomy", change, revision=revision)
    return "/autonomy"
