"""aiogram without building its models: all that we use of it, for whoever imports this first.

All of Telegram's Bot API are Pydantic models, some 400, and each is built with all that it refers
to: 3 s of CPU and 100 MB. Built once they are used, as the few are that we use, it's 0.8 s (aiogram
3.31, pydantic 2.13). What their fields name only the package as a whole knows, and builds them
with; it's kept for that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

_PACKAGE: Final = "aiogram."
_build: Final = BaseModel.__dict__["model_rebuild"]


@contextlib.contextmanager
def _unbuilt() -> Iterator[dict[str, Any]]:
    """Let no model of the package be built meanwhile; give the names that it would build them with,
    once it's over: none if all were built before."""
    names: dict[str, Any] = {}

    def build_later(
        model: type[BaseModel],
        /,
        *,
        _types_namespace: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> bool | None:
        if _types_namespace is None or not model.__module__.startswith(_PACKAGE):
            built: bool | None = _build.__func__(model, _types_namespace=_types_namespace, **how)
            return built
        names.update(_types_namespace)
        return None

    BaseModel.model_rebuild = classmethod(build_later)  # type: ignore[assignment]
    try:
        yield names
    finally:
        BaseModel.model_rebuild = _build  # type: ignore[method-assign]


with _unbuilt() as _names:
    from aiogram import Bot
    from aiogram.client.context_controller import BotContextController
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer
    from aiogram.exceptions import (
        ClientDecodeError,
        RestartingTelegram,
        TelegramAPIError,
        TelegramConflictError,
        TelegramNetworkError,
        TelegramNotFound,
        TelegramRetryAfter,
        TelegramServerError,
        TelegramUnauthorizedError,
    )
    from aiogram.methods import (
        AnswerCallbackQuery,
        EditMessageReplyMarkup,
        SendChatAction,
        SendDocument,
        SendMessage,
        SendMessageDraft,
        SendPhoto,
        TelegramMethod,
    )
    from aiogram.methods.base import Response
    from aiogram.types import (
        BufferedInputFile,
        InlineKeyboardButton,
        InlineKeyboardMarkup,
        LinkPreviewOptions,
        ReplyParameters,
    )


def _build_when_used(model: type[BaseModel], /, **how: Any) -> bool | None:
    built: bool | None = _build.__func__(model, **how | {"_types_namespace": _names})
    return built


if _names:
    for _base in (BotContextController, Response):
        _base.model_rebuild = classmethod(_build_when_used)  # type: ignore[assignment]

__all__ = [
    "AiohttpSession",
    "AnswerCallbackQuery",
    "Bot",
    "BufferedInputFile",
    "ClientDecodeError",
    "EditMessageReplyMarkup",
    "InlineKeyboardButton",
    "InlineKeyboardMarkup",
    "LinkPreviewOptions",
    "ReplyParameters",
    "RestartingTelegram",
    "SendChatAction",
    "SendDocument",
    "SendMessage",
    "SendMessageDraft",
    "SendPhoto",
    "TelegramAPIError",
    "TelegramAPIServer",
    "TelegramConflictError",
    "TelegramMethod",
    "TelegramNetworkError",
    "TelegramNotFound",
    "TelegramRetryAfter",
    "TelegramServerError",
    "TelegramUnauthorizedError",
]
