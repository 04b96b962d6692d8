"""/api/catalogue: MCP servers that a registry publishes, for admins: found, and told with what each
would run, see and want, as `vigil mcp search` and `vigil mcp add --from` tell it.

What stands in it is written by whoever publishes there. It's added by /api/servers, as it was seen.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import msgspec
from fastapi import Query, Response

from vigil.errors import ConfigError, Unavailable
from vigil.local import catalogue
from vigil.local.catalogue import CatalogueOffer, Published
from vigil.local.registry import REGISTRY, servers_of

from ..callers import Admin, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Answer
from ..written_settings import read_settings

FOUND_MAX: Final = 30
Words = Annotated[
    str, Query(description="All of them stand in its name or text", min_length=1, max_length=200)
]


class Need(Answer, frozen=True, kw_only=True):
    """A variable or header that whoever adds a server gives it."""

    name: str
    description: str
    is_required: bool
    is_secret: bool


class FoundServer(Answer, frozen=True, kw_only=True):
    """A server of the catalogue, and how it would be added."""

    name: str
    version: str
    description: str
    problem: str = ""
    """Why it can't be added by its name; empty: it can."""
    told: tuple[str, ...] = ()
    """What it would be, see and reach, in lines."""
    command: tuple[str, ...] = ()
    """The program that would run, and its arguments."""
    url: str = ""
    """Where it would be asked, instead."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    needs: tuple[Need, ...] = ()


class FoundServers(Answer, frozen=True, kw_only=True):
    """What a catalogue has for some words, by name."""

    registry: str
    servers: tuple[FoundServer, ...]
    more: int
    """How many more there are than are listed."""


async def search_catalogue(edge: Shared, _: Admin, words: Words) -> Response:
    """Search the catalogue of MCP servers for words. Needs an admin token."""
    registry = (await read_settings(edge)).config.gateway.registry or REGISTRY
    try:
        first = next(iter(words.split()), "")  # what a registry searches for is one text
        listed = await asyncio.to_thread(servers_of, registry, first)
    except (ConfigError, Unavailable) as error:
        raise Problem(503, str(error), field="words") from error
    found = catalogue.found(listed, words)
    shown = tuple(map(_view, found[:FOUND_MAX]))
    return Json(FoundServers(registry=registry, servers=shown, more=len(found) - len(shown)))


def _view(one: Published) -> FoundServer:
    problem, offer = "", CatalogueOffer()
    try:
        offer = catalogue.offer_of(one, {})
    except ConfigError as error:
        problem = str(error)
    return FoundServer(
        name=one.name,
        version=one.version,
        description=one.description,
        problem=problem,
        told=() if problem else tuple(offer.lines),
        command=offer.command,
        url=offer.url,
        env=offer.env,
        headers=offer.headers,
        needs=msgspec.convert(offer.wants, tuple[Need, ...], from_attributes=True),
    )


ENDPOINTS: Final = (
    Endpoint("GET", "/api/catalogue", search_catalogue, {200: FoundServers}, (403, 422, 503)),
)
