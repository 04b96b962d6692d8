"""Channels added and removed by an admin, while everything runs.

They are sections of this home's vigil.toml, which the services that use them take in within a
second or two.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Depends, Path, Response

from vigil.channels import pairs
from vigil.edits import channel_sections

from ..callers import Admin, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import PART_SCHEMA, Answer, RequestBody
from ..written_settings import WRITING, read_settings, written

log = structlog.get_logger("vigil.gateway")


class AskedFieldView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """Something that has to be given for a channel of a kind, or may be."""

    name: str
    label: str
    hint: str
    is_secret: bool
    """Kept in a file of its own, and never shown."""
    is_needed: bool


class ChannelKindView(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """A kind of channels, and what it asks for."""

    kind: str
    fields: tuple[AskedFieldView, ...]


class ChannelKindList(Answer, frozen=True, kw_only=True):
    """The kinds that can be added by what they ask for, by name."""

    kinds: tuple[ChannelKindView, ...]


class ChannelWanted(RequestBody, frozen=True, kw_only=True):
    """A channel to be added."""

    kind: str
    name: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """Empty: as its kind, with a number if there is one already."""
    given: dict[str, str] = msgspec.field(default_factory=dict)
    """What the kind asks for, by name."""


class ChannelAdded(Answer, frozen=True, kw_only=True, omit_defaults=False):
    """What was added."""

    name: str
    kind: str
    remark: str
    """What is to be heeded; empty: nothing."""


async def list_channel_kinds(_: Admin) -> Response:
    """List the kinds of channels that can be added, and what each asks for. Needs an admin
    token."""
    kinds = [
        ChannelKindView(
            kind=name,
            fields=tuple(AskedFieldView(**one._asdict()) for one in kind.asked or ()),
        )
        for name, kind in channel_sections.offered().items()
    ]
    return Json(ChannelKindList(kinds=tuple(kinds)))


async def add_channel(
    edge: Shared, caller: Admin, wanted: Annotated[ChannelWanted, Depends(body_of(ChannelWanted))]
) -> Response:
    """Add a channel to vigil.toml; services use it within a second or two. What it is given as a
    secret is kept in a file of its own. Needs an admin token."""
    async with WRITING:
        settings = await read_settings(edge)

        def add() -> tuple[str, str]:
            planned = channel_sections.plan(
                settings.config, wanted.kind, wanted.name, wanted.given, caller.user
            )
            return planned.name, channel_sections.add(settings, planned)

        name, remark = await written(settings, add)
    log.info("channel added", action="gateway.channels", by=caller.user, channel=name)
    return Json(ChannelAdded(name=name, kind=wanted.kind, remark=remark), 201)


async def remove_channel(
    edge: Shared,
    caller: Admin,
    name: Annotated[str, Path(description="Of a channel", json_schema_extra=PART_SCHEMA)],
) -> Response:
    """Take a channel out of vigil.toml, with what was kept for it, and forget who was paired with
    it. Needs an admin token."""
    async with WRITING:
        settings = await read_settings(edge)
        if name not in settings.config.channels:
            raise Problem(404, "there is no such channel")
        await written(settings, lambda: channel_sections.remove(settings, name))
        await pairs.forget_channel(edge.bus, name)
    log.info("channel removed", action="gateway.channels", by=caller.user, channel=name)
    return Response(status_code=204)


_C: Final = "/api/channels"
_ADDING: Final = (403, 409, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", f"{_C}/kinds", list_channel_kinds, {200: ChannelKindList}, (403,)),
    Endpoint("POST", _C, add_channel, {201: ChannelAdded}, _ADDING, ChannelWanted),
    Endpoint("DELETE", f"{_C}/{{name}}", remove_channel, {204: None}, (403, 404, 409, 422, 503)),
)
