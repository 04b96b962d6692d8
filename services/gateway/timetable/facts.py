"""/api/facts: what sources outside told in a closed form, and how many of a day's bits (F-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fastapi import Response

from vigil.board.kept import FACTS, ROWS, KeptBoard
from vigil.contracts import Instant, TimetableRow
from vigil.contracts.board import FactShape, SourceFacts
from vigil.facts.hooked import read_hooked, session_of_hook, shapes_of_hooked, source_id
from vigil.facts.shape import words_of
from vigil.facts.shown import NamedSource, called, named_of, shapes_of, told
from vigil.facts.taken import HUNDREDTHS
from vigil.subjects import Scope
from vigil.zones.database import zone_named

from ..access import listed
from ..callers import Caller, Shared, User
from ..http.json import Json
from ..http.wire import Answer
from ..state.edge import Edge


class FactView(Answer, frozen=True, kw_only=True):
    """A fact that is named, and what is known of it."""

    name: str
    shape: str
    value: str
    """Empty: nothing is known yet."""
    text: str
    """What it is and was, in words; empty: nothing is known yet."""
    since: Instant | None
    """When it was first told so."""
    at: Instant | None
    """When it was last told so."""


class FactSourceView(Answer, frozen=True, kw_only=True):
    """A row of the timetable, or a hook, and its facts."""

    id: str
    source: str
    """As `cron briefing`, `watch prices` or `hook ci`."""
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
    """List what rows and hooks told in a closed form; a hook's facts for whom its session is."""
    found: list[FactSourceView] = []
    for whose in listed(caller, user):
        known = {one.entity.id: one.entity for one in await KeptBoard(edge.bus, FACTS).all(whose)}
        rows = [one.entity for one in await KeptBoard(edge.bus, ROWS).all(whose)]
        found += [
            _view(edge, of, source, known.get(source.id))
            for of, source in (*_rows(rows), *_hooks(edge, whose))
        ]
    found.sort(key=lambda one: (one.owner, one.agent_id, one.source, one.id))
    return Json(FactListing(sources=tuple(found)))


def _rows(rows: list[TimetableRow]) -> Iterator[tuple[Scope, NamedSource]]:
    for row in rows:
        if not row.is_removed and shapes_of(row):
            source = NamedSource(called(row), row.id, shapes_of(row))
            yield Scope(row.agent, row.owner), source


def _hooks(edge: Edge, whose: Scope) -> Iterator[tuple[Scope, NamedSource]]:
    for name, hook in edge.context.settings.config.hooks.items():
        session = session_of_hook(hook.user, hook.agent, hook.thread)
        shapes = shapes_of_hooked(read_hooked(hook.facts))
        if shapes and whose.covers(session):
            yield session.scope, NamedSource(f"hook {name}", source_id(name, session), shapes)


def _view(edge: Edge, of: Scope, source: NamedSource, known: SourceFacts | None) -> FactSourceView:
    today = edge.clock.now().date().isoformat()
    is_today = known is not None and known.day == today
    return FactSourceView(
        id=source.id,
        source=source.called,
        owner=of.owner,
        agent_id=of.agent,
        facts=views_of(edge, of.owner, source.shapes, known),
        bits=known.spent / HUNDREDTHS if known is not None and is_today else 0.0,
        bits_max=edge.context.settings.config.cortex.fact_bits_per_day,
        is_full=known is not None and is_today and known.is_full,
    )


def views_of(
    edge: Edge, owner: str, shapes: Mapping[str, FactShape], source: SourceFacts | None
) -> tuple[FactView, ...]:
    """Return the facts that a source names, in its order, on its owner's clocks."""
    configured = edge.context.settings.config.person_of(owner)
    zone, now = zone_named(edge.switches.person(owner, configured).timezone), edge.clock.now()
    known = {one.name: one for one in named_of(shapes, source)}
    return tuple(
        FactView(
            name=name,
            shape=words_of(shape),
            value=one.value if one else "",
            text=told(one, zone, now) if one else "",
            since=one.since if one else None,
            at=one.at if one else None,
        )
        for name, shape in shapes.items()
        for one in [known.get(name)]
    )
