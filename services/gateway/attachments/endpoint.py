"""/api/attachments: files that messages may name; each person's are theirs alone."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Path, Query, Request, Response

from vigil.attachments import store
from vigil.attachments.examine import NAME_LENGTH_MAX, examined
from vigil.bus.bus import Bus
from vigil.contracts.events import Attachment
from vigil.errors import InvalidInput

from ..callers import Caller, Shared
from ..http import body
from ..http.decide import TooLarge
from ..http.json import Json
from ..http.problem import erasing
from .keep import unknown

PATH: Final = "/api/attachments"
HASH_SCHEMA: Final = {"pattern": "^[0-9a-f]{64}$"}
Hash = Annotated[str, Path(alias="hash", description="SHA-256", json_schema_extra=HASH_SCHEMA)]
DESCRIBED: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "description": "The bytes of a PNG, JPEG, GIF or WebP image, a PDF file, or text in UTF-8, "
        "whatever `Content-Type` says.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def upload_attachment(
    request: Request,
    edge: Shared,
    caller: Caller,
    name: Annotated[
        str, Query(description="Of the file", json_schema_extra={"maxLength": NAME_LENGTH_MAX})
    ] = "attachment",
) -> Response:
    """Upload an image, a PDF file or a text. It's kept for a day, and once a message names it for
    good."""
    if edge.switches.is_erasing(caller.user):
        raise erasing()
    edge.intake.room.check_disk()
    bytes_max = edge.config.attachment_bytes_max
    try:
        data = await body.read(request.scope, request.receive, bytes_max)
    except TooLarge as error:
        raise TooLarge("file", error.reason) from None
    about = await asyncio.to_thread(examined, name, data)
    try:
        await edge.quota.check(caller.user, about)
    except InvalidInput as error:
        raise TooLarge(error.field, error.reason) from None
    await store.upload(edge.bus, caller.user, about, data)
    return Json(about, 201)


async def get_attachment(edge: Shared, caller: Caller, hash_: Hash) -> Response:
    """Download a file of one's own."""
    about = await _find(edge.bus, caller.user, hash_)
    data = await store.read(edge.bus, caller.user, about)
    if data is None:
        raise unknown("hash")
    headers = {
        # Never shown in the place of a page of ours, whatever is in it.
        "content-disposition": f"attachment; filename*=UTF-8''{quote(about.name, safe='')}",
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox; default-src 'none'",
        "cache-control": "no-store",
    }
    return Response(data, headers=headers, media_type=about.type)


async def _find(bus: Bus, user: str, hash_: str) -> Attachment:
    about = await store.find(bus, user, hash_)
    if about is None:
        raise unknown("hash")
    return about
