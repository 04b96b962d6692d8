"""GET /asyncapi.json: what is on the bus, for machines (SPEC P-7). Public, as /openapi.json is."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
from fastapi import Response

from services.gateway.documents import bus as asyncapi
from vigil import __version__


class AsyncApi(msgspec.Struct, frozen=True, kw_only=True):
    """An AsyncAPI document; its own specification tells the rest."""

    asyncapi: str
    info: dict[str, Any]
    channels: dict[str, Any]
    operations: dict[str, Any]
    components: dict[str, Any]


@functools.cache
def _document() -> bytes:
    return asyncapi.encoded(__version__)


async def get_asyncapi() -> Response:
    """Describe the bus: subjects, records and operations, as AsyncAPI 3.0."""
    return Response(_document(), media_type="application/json")
