"""Files of chat networks: at most so many bytes of one, from nowhere else than where it's asked of.

No redirect is followed, no proxy of the environment used, nothing unpacked on the way: what comes
is what was stored, or nothing. Neither the address nor a header is told: both may let somebody in.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

from aiohttp import ClientError, ClientResponse, ClientSession, DummyCookieJar
from yarl import URL

from ..errors import InvalidInput
from ..net.bounded import whole
from .answers import Unclear
from .chats.calls import CALL_S, CallFailed, rate_limited, refused
from .chats.files import too_large
from .network_api import meant

ELSEWHERE: Final = "is said to be elsewhere, which isn't followed"


class Downloads:
    """The way to the files of one network.

    Args:
        tls: whom to trust; None: whom the system trusts.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._session: ClientSession | None = None

    async def get(
        self, url: str, bytes_max: int, *, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Fetch a file.

        Raises:
            InvalidInput: it's too large, or elsewhere.
            CallFailed: the server doesn't hand it out.
        """
        asked = {"Accept-Encoding": "identity", **(headers or {})}
        try:
            async with (
                asyncio.timeout(CALL_S),
                self._opened().get(
                    # As it was told: escapes mean what they meant to whoever made the address.
                    URL(url, encoded=True),
                    headers=asked,
                    allow_redirects=False,
                    ssl=self._tls or True,
                ) as answer,
            ):
                return await _whole(answer, bytes_max)
        except TimeoutError as error:
            raise CallFailed(Unclear(reason=f"not all of it within {CALL_S:g} s")) from error
        except (ClientError, OSError, ValueError) as error:
            raise meant(error) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> ClientSession:
        if self._session is None:
            self._session = ClientSession(auto_decompress=False, cookie_jar=DummyCookieJar())
        return self._session


async def _whole(answer: ClientResponse, bytes_max: int) -> bytes:
    if 300 <= answer.status < 400:
        raise InvalidInput("file", ELSEWHERE)
    if answer.status == 429:
        raise rate_limited(answer.headers.get("Retry-After"))
    if answer.status != 200:
        raise refused(answer.status, "")
    if (answer.content_length or 0) > bytes_max:
        raise too_large(bytes_max)
    found = await whole(answer.content.iter_any(), bytes_max)
    if found is None:
        raise too_large(bytes_max)
    return found
