"""A sign-in that a person ends: its tokens are taken back where they were given (RFC 7009), and
kept here no more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import httpx2
from pydantic import ValidationError

from ..errors import VigilError
from ..net.client import FAILURES
from . import kept, outlet
from .bearer import provider_of

_HEADERS = {"content-type": "application/x-www-form-urlencoded"}


async def sign_out(
    home: Path, name: str, url: str, *, allow_private: bool, ports_never: Collection[int] = ()
) -> bool:
    """Keep a sign-in no more -> whether its tokens were taken back where they were given.

    Args:
        ports_never: that nothing is taken back at: the broker's.

    Raises: OSError.
    """
    seen = await asyncio.to_thread(kept.read, home, name, url)
    await asyncio.to_thread(kept.forget, home, name)
    where = "" if seen is None else str(seen.server.get("revocation_endpoint", ""))
    if seen is None or not where:
        return False
    try:
        context = provider_of(seen).context
        is_done = True
        async with outlet.client(allow_private=allow_private, ports_never=ports_never) as client:
            for kind in ("refresh_token", "access_token"):
                if token := seen.tokens.get(kind):
                    given = {"token": str(token), "token_type_hint": kind}
                    given["client_id"] = str(seen.client.get("client_id", ""))
                    data, headers = context.prepare_token_auth(given, dict(_HEADERS))
                    answer = await client.send(
                        httpx2.Request("POST", where, data=data, headers=headers)
                    )
                    is_done = is_done and answer.status_code == 200
    except (*FAILURES, VigilError, ValidationError):
        return False
    return is_done
