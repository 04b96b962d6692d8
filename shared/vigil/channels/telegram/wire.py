"""The Bot API: a call at a time, and whether it surely never got there.

The library builds calls and tells refusals apart. Answers are taken as they are, so that one of a
form that it doesn't know yet isn't lost. An address has the token in it: nothing of an error that
may quote one is told.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import ClientConnectorError, ClientSession

from ...imports.aiogram import (
    AiohttpSession,
    Bot,
    ClientDecodeError,
    RestartingTelegram,
    TelegramAPIError,
    TelegramAPIServer,
    TelegramConflictError,
    TelegramMethod,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from ...texts.trouble import reason_of
from ..answers import NotTaken, Unclear
from ..chats.calls import CallFailed, in_short, rate_limited, token_refused
from ..downloads import Downloads
from ..redirects import NO_REDIRECTS, LedElsewhere

GRACE_S: Final = 10.0


class GetRawUpdates(TelegramMethod[list[Any]]):
    """`getUpdates`, whose result is left as it is."""

    __returning__ = list[Any]
    __api_method__ = "getUpdates"

    offset: int | None = None
    limit: int | None = None
    timeout: int | None = None
    allowed_updates: list[str] | None = None


class WhereFile(TelegramMethod[dict[str, Any]]):
    """`getFile`, whose result is left as it is."""

    __returning__ = dict[str, Any]
    __api_method__ = "getFile"

    file_id: str


class _OwnSession(AiohttpSession):
    """The library's session, which follows no redirects."""

    async def create_session(self) -> ClientSession:
        session = await super().create_session()
        if NO_REDIRECTS not in session.trace_configs:
            session.trace_configs.append(NO_REDIRECTS)
        return session


class BotApi:
    """The way to one bot."""

    def __init__(self, token: str, api_url: str) -> None:
        api = TelegramAPIServer.from_base(api_url)
        session = _OwnSession(api=api)
        self._downloads = Downloads()
        self._files = api.file.format(token=token, path="{path}")
        self._bot = Bot(token, session=session)

    async def call(self, method: TelegramMethod[Any], *, timeout_s: float) -> Any:
        """Make a call. Raises: CallFailed."""
        try:
            async with asyncio.timeout(timeout_s + GRACE_S):
                return await self._bot(method, request_timeout=max(int(timeout_s), 1))
        except TimeoutError as error:
            raise CallFailed(Unclear(reason=f"no answer within {timeout_s:g} s")) from error
        except (TelegramAPIError, ClientDecodeError, OSError, TypeError, ValueError) as error:
            # A TypeError: the library reads the words of a refusal that has none.
            raise meant(error) from error

    async def file(self, path: str, bytes_max: int) -> bytes:
        """Fetch a file. Raises: CallFailed, InvalidInput.

        Args:
            path: where it is; empty: nobody knows.
        """
        if not path:
            raise CallFailed(NotTaken(reason="it isn't said where it is", is_final=True))
        return await self._downloads.get(self._files.format(path=path), bytes_max)

    async def close(self) -> None:
        await self._downloads.close()
        await self._bot.session.close()


def meant(error: Exception) -> CallFailed:
    """Return what an error of the library means for a call."""
    if isinstance(error, TelegramUnauthorizedError | TelegramNotFound):
        return token_refused(_words(error))
    if isinstance(error, TelegramRetryAfter):
        return rate_limited(error.retry_after)
    return CallFailed(_answer(error))


def _answer(error: Exception) -> NotTaken | Unclear:
    if isinstance(error.__cause__, ClientConnectorError):
        return NotTaken(reason=f"can't be reached: {reason_of(error.__cause__)}")
    if isinstance(error.__cause__, LedElsewhere):
        return NotTaken(reason=str(error.__cause__))
    if isinstance(error, RestartingTelegram | TelegramServerError):
        return Unclear(reason=_words(error))
    if isinstance(error, TelegramNetworkError) or not isinstance(error, TelegramAPIError):
        return Unclear(reason=f"no whole answer: {type(error.__cause__ or error).__name__}")
    # Another program that reads the bot's updates may end.
    is_final = not isinstance(error, TelegramConflictError)
    return NotTaken(reason=_words(error), is_final=is_final)


def _words(error: Exception) -> str:
    return in_short(getattr(error, "message", ""))
