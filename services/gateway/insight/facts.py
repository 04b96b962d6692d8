"""/api/facts: what sources outside told in a closed form, and how many of a day's bits (F-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fastapi import Response

from vigil.board.kept import FACTS, ROWS, KeptBoard
from vigil.board.kinds.goal import GOALS
from vigil.calendars import facts as calendar_facts
from vigil.calendars.facts import sources_for
from vigil.contracts import TimetableRow
from vigil.contracts.board import BoardGoal, SourceFacts
from vigil.facts.hooked import hooks_for, read_hooked, session_of_hook, source_id
from vigil.facts.shown import called, goals_for, lines, wanted_of, wanted_of_goal
from vigil.facts.taken import HUNDREDTHS
from vigil.facts.views import FactView, views_of
from vigil.facts.wanted import WantedFact
from vigil.subjects import Scope, SessionKey
from vigil.zones.database import zone_named

from ..access import listed
from ..callers import Caller, Shared, User
from ..http.json import Json
from ..http.wire import Answer
from ..state.edge import Edge


class FactSourceView(Answer, frozen=True, kw_only=True):
    """A row of the timetable, a goal, a hook or a calendar, and its facts."""

    id: str
    source: str
    """As `cron briefing`, `watch prices`, `hook ci` or `calendar work`."""
    owner: str
    agent_id: str
    facts: tuple[FactView, ...]
    bits: float
    """What it may have told by them this UTC day."""
    bits_max: int
    is_full: bool
    """Whether it told so much that no more is taken until 00:00 UTC."""


class FactListing(Answer, frozen=True, kw_only=True):
    """Sources of facts, by owner, agent and name."""

    sources: tuple[FactSourceView, ...]


async def list_facts(edge: Shared, caller: Caller, user: User = None) -> Response:
    """List what rows, hooks and calendars told in a closed form, each for whom it is."""
    found: list[FactSourceView] = []
    for whose in listed(caller, user):
        known = {one.entity.id: one.entity for one in await KeptBoard(edge.bus, FACTS).all(whose)}
        rows = [one.entity for one in await KeptBoard(edge.bus, ROWS).all(whose)]
        goals = [one.entity for one in await KeptBoard(edge.bus, GOALS).all(whose)]
        found += [
            _view(edge, of, source, known.get(source.id))
            for of, source in (
                *_rows(rows),
                *_goals(goals),
                *_hooks(edge, whose),
                *_calendars(edge, whose),
            )
        ]
    found.sort(key=lambda one: (one.owner, one.agent_id, one.source, one.id))
    return Json(FactListing(sources=tuple(found)))


class _Source(NamedTuple):
    """What tells facts, and which."""

    called: str
    id: str
    facts: Mapping[str, WantedFact]


def _rows(rows: list[TimetableRow]) -> Iterator[tuple[Scope, _Source]]:
    for row in rows:
        if not row.is_removed and (facts := wanted_of(row)):
            yield Scope(row.agent, row.owner), _Source(called(row), row.id, facts)


def _goals(goals: list[BoardGoal]) -> Iterator[tuple[Scope, _Source]]:
    there = {one.id: one for one in goals}
    for source in goals_for(goals):
        goal = there[source.id]
        facts = wanted_of_goal(goal)
        yield Scope(goal.agent, goal.owner), _Source(source.called, source.id, facts)


def _hooks(edge: Edge, whose: Scope) -> Iterator[tuple[Scope, _Source]]:
    for name, hook in edge.context.settings.config.hooks.items():
        session = session_of_hook(hook.user, hook.agent, hook.thread)
        facts = read_hooked(hook.facts)
        if facts and whose.covers(session):
            yield session.scope, _Source(f"hook {name}", source_id(name, session), facts)


def _calendars(edge: Edge, whose: Scope) -> Iterator[tuple[Scope, _Source]]:
    wanted = {
        name: WantedFact(shape, "", calendar_facts.NO_NEWS[name])
        for name, shape in calendar_facts.SHAPES.items()
    }
    for name, one in edge.context.settings.config.calendars.items():
        if whose.covers(SessionKey(one.user, one.agent, "")):
            id_ = calendar_facts.source_id(name, one)
            yield one.scope, _Source(f"calendar {name}", id_, wanted)


def _view(edge: Edge, of: Scope, source: _Source, known: SourceFacts | None) -> FactSourceView:
    today = edge.clock.now().date().isoformat()
    is_today = known is not None and known.day == today
    return FactSourceView(
        id=source.id,
        source=source.called,
        owner=of.owner,
        agent_id=of.agent,
        facts=views_of(source.facts, known, edge.zone_of(of.owner), edge.clock.now()),
        bits=known.spent / HUNDREDTHS if known is not None and is_today else 0.0,
        bits_max=edge.context.settings.config.cortex.fact_bits_per_day,
        is_full=known is not None and is_today and known.is_full,
    )


async def fact_lines(edge: Edge, whose: Scope) -> tuple[str, ...]:
    """Return what is known of an owner and agent, a line each, as prompts have it."""
    rows = [one.entity for one in await KeptBoard(edge.bus, ROWS).all(whose)]
    known = [one.entity for one in await KeptBoard(edge.bus, FACTS).all(whose)]
    config = edge.context.settings.config
    goals = [one.entity for one in await KeptBoard(edge.bus, GOALS).all(whose)]
    calendars = sources_for(config.calendars, whose)
    others = (*hooks_for(config.hooks, whose), *calendars, *goals_for(goals))
    return lines(rows, others, known, zone_named(edge.zone_of(whose.owner)), edge.clock.now())
