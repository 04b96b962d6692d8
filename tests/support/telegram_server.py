"""A Bot API on loopback, which refuses what the published one doesn't take (Bot API 10.1).

Nothing of Telegram's is here: it knows of the methods that the channel calls their fields, types
and limits, as core.telegram.org/bots/api tells them, and keeps updates as it tells of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import html.parser
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from aiohttp import web

from tests.support.on_loopback import served
from tests.support.pauses import pauses
from tests.support.sent_files import SentFiles

TOKEN: Final = "4711:AAE-secret_of-the-bot"
BOT: Final = "@vigil_bot"
BOT_ID: Final = 4711
FIELDS: Final[dict[str, dict[str, tuple[str, bool]]]] = {
    "getUpdates": {
        "offset": ("int", False),
        "limit": ("int", False),
        "timeout": ("int", False),
        "allowed_updates": ("json", False),
    },
    "sendMessage": {
        "chat_id": ("int", True),
        "text": ("str", True),
        "parse_mode": ("str", False),
        "link_preview_options": ("json", False),
        "reply_parameters": ("json", False),
        "reply_markup": ("json", False),
    },
    "sendPhoto": {"chat_id": ("int", True), "photo": ("file", True)},
    "sendDocument": {"chat_id": ("int", True), "document": ("file", True)},
    "sendMessageDraft": {
        "chat_id": ("int", True),
        "draft_id": ("int", True),
        "text": ("str", True),
    },
    "sendChatAction": {"chat_id": ("int", True), "action": ("str", True)},
    "answerCallbackQuery": {"callback_query_id": ("str", True), "text": ("str", False)},
    "getFile": {"file_id": ("str", True)},
    "editMessageReplyMarkup": {
        "chat_id": ("int", True),
        "message_id": ("int", True),
        "reply_markup": ("json", False),
    },
}
TAGS: Final = frozenset({"b", "i", "u", "s", "code", "pre", "a", "blockquote"})
ENTITY: Final = re.compile(r"&(?!(?:lt|gt|amp|quot|#\d+|#x[0-9a-f]+);)", re.I)


class Refused(Exception):
    """What the Bot API doesn't take."""


class _Shown(html.parser.HTMLParser):
    """A text with tags, as Telegram reads it: strictly."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self._open: list[str] = []
        if ENTITY.search(source):
            raise Refused("Bad Request: can't parse entities: bare ampersand")
        self.feed(source)
        self.close()
        if self._open:
            raise Refused(f"Bad Request: can't parse entities: {self._open[-1]} isn't closed")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            raise Refused(f"Bad Request: can't parse entities: unsupported start tag {tag}")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            raise Refused(f"Bad Request: can't parse entities: unexpected end tag {tag}")

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(source: str) -> str:
    """Return what people see of a text with tags. Raises: Refused."""
    return _Shown(source).text


class Message:
    """What the bot said in a chat."""

    def __init__(self, number: int, given: dict[str, Any], text: str) -> None:
        self.number = number
        self.chat: int = given["chat_id"]
        self.text = text
        """As people see it."""
        self.source: str = given["text"]
        self.parse_mode = given.get("parse_mode")
        self.reply_to = given.get("reply_parameters", {}).get("message_id")
        self.buttons = [
            button
            for row in given.get("reply_markup", {}).get("inline_keyboard", [])
            for button in row
        ]


Behaviour = Callable[["TelegramServer", web.Request, dict[str, Any]], Any]
"""Answers one call of `sendMessage` otherwise; returns None: as usual."""


class TelegramServer:
    """The bot's chats, and what people do in them.

    Args:
        held_s: for how long it lets a bot wait that asks what is new; a real one as long as it
            asks for.
    """

    def __init__(self, held_s: float = 2.0) -> None:
        self._held_s = held_s
        self.url = ""
        self.said: list[Message] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refused: list[str] = []
        """Of calls that a published schema doesn't know."""
        self.behaviours: list[Behaviour] = []
        self.is_revoked = False
        self.sent_files: list[tuple[str, int, str, bytes]] = []
        """By which call, where, under which name, and its bytes."""
        self.files = SentFiles()
        self.happened: list[dict[str, Any]] = []
        self.behind: list[dict[str, Any]] = []
        """What happens behind answers to who asks what is new, one behind each."""
        self._updates: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()
        self._numbers = itertools.count(100)
        self._update_ids = itertools.count(50_000)

    # ------------------------------------------------------------ people

    def write(
        self, who: int, text: str, *, chat: int | None = None, kind: str = "message", **more: Any
    ) -> int:
        """Somebody writes: to the bot alone, or in a group; returns the message's id."""
        update = self.written(who, text, chat=chat, kind=kind, **more)
        self.happen(update)
        number: int = update[kind]["message_id"]
        return number

    def written(
        self, who: int, text: str, *, chat: int | None = None, kind: str = "message", **more: Any
    ) -> dict[str, Any]:
        """Return what a bot would be told of what somebody writes."""
        of = {"id": who, "type": "private"} if chat is None else {"id": chat, "type": "group"}
        person = {"id": who, "is_bot": False, "first_name": "Ann"}
        message = {"message_id": next(self._numbers), "from": person, "chat": of, "date": 1}
        return {kind: message | {"text": text} | more}

    def press(self, who: int, message: Message, data: str, *, is_group: bool = False) -> None:
        """Somebody presses a button, or sends what looks like it."""
        chat = {"id": message.chat, "type": "group" if is_group else "private"}
        person = {"id": who, "is_bot": False, "first_name": "Ann"}
        on = {"message_id": message.number, "chat": chat, "date": 1}
        pressed = {"id": f"cb{next(self._numbers)}", "from": person, "message": on}
        self.happen({"callback_query": pressed | {"chat_instance": "1", "data": data}})

    def happen(self, update: dict[str, Any]) -> None:
        self._updates.append({"update_id": next(self._update_ids)} | update)
        self.happened.append(update)
        self._arrived.set()

    async def until(self, count: int) -> list[Message]:
        """Wait until the bot said so much; returns all."""
        async with asyncio.timeout(60):
            pause_s = pauses()
            while len(self.said) < count:
                await asyncio.sleep(next(pause_s))
        return self.said

    # ------------------------------------------------------------ the API

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_post("/bot{token}/{method}", self._answer)
        app.router.add_get(f"/file/bot{TOKEN}/documents/{{name}}", self.files.answer)
        async with served(app) as self.url:
            yield

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != TOKEN or self.is_revoked:
            return failed(401, "Unauthorized")
        try:
            given = _checked(method, _with_files(dict(await request.post())))
        except Refused as error:
            self.refused.append(f"{method}: {error}")
            return failed(400, str(error))
        self.calls.append((method, given))
        if method != "sendMessage":
            return _taken(await self._done(method, given))
        if self.behaviours and (special := self.behaviours.pop(0)(self, request, given)):
            answer: web.StreamResponse = await special
            return answer
        try:
            return _taken(self.store(given))
        except Refused as error:
            return failed(400, str(error))

    def _keep(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        """Show a file in a chat."""
        file = given.get("photo") or given["document"]
        self.sent_files.append((method, given["chat_id"], file.filename, file.file.read()))
        chat = {"id": given["chat_id"], "type": "private"}
        return {"message_id": next(self._numbers), "date": int(time.time()), "chat": chat}

    async def _done(self, method: str, given: dict[str, Any]) -> Any:
        if method in ("sendPhoto", "sendDocument"):
            return self._keep(method, given)
        if method == "getFile":
            id_ = given["file_id"]
            return {"file_id": id_, "file_unique_id": "u", "file_path": f"documents/{id_}"}
        return await self._get_updates(given) if method == "getUpdates" else True

    def store(self, given: dict[str, Any]) -> dict[str, Any]:
        """Say something in a chat. Raises: Refused."""
        text = given["text"]
        if given.get("parse_mode"):
            text = shown(text)
        if not 1 <= len(text.encode("utf-16-le")) // 2 <= 4096:
            raise Refused("Bad Request: message is too long")
        number = next(self._numbers)
        self.said.append(Message(number, given, text))
        return {
            "message_id": number,
            "date": int(time.time()),
            "chat": {"id": given["chat_id"], "type": "private"},
            "text": text,
        }

    async def _get_updates(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        offset = given.get("offset", 0)
        if offset < 0:
            self._updates = self._updates[offset:]
        else:
            self._updates = [one for one in self._updates if one["update_id"] >= offset]
        if not self._updates:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(given.get("timeout", 0), self._held_s)):
                    await self._arrived.wait()
        told = self._updates[: given.get("limit", 100)]
        if told and self.behind:
            self.happen(self.behind.pop(0))
        return told


def _with_files(form: dict[str, Any]) -> dict[str, Any]:
    """Return a form whose fields that name a file beside them hold it."""
    files = {name: value for name, value in form.items() if isinstance(value, web.FileField)}
    named = {f"attach://{name}": value for name, value in files.items()}
    return {name: named.get(value, value) for name, value in form.items() if name not in files}


def _checked(method: str, form: dict[str, Any]) -> dict[str, Any]:
    if method not in FIELDS:
        raise Refused(f"there is no method {method}")
    fields = FIELDS[method]
    if unknown := set(form) - set(fields):
        raise Refused(f"unknown fields {unknown}")
    if missing := {name for name, (_, is_needed) in fields.items() if is_needed} - set(form):
        raise Refused(f"missing fields {missing}")
    given: dict[str, Any] = {}
    for name, value in form.items():
        kind = fields[name][0]
        given[name] = (
            int(value) if kind == "int" else json.loads(value) if kind == "json" else value
        )
    if any(
        kind == "file" and not isinstance(given[name], web.FileField)
        for name, (kind, _) in fields.items()
    ):
        raise Refused("a file that isn't there")
    if given.get("parse_mode") not in (None, "HTML", "MarkdownV2"):
        raise Refused("unsupported parse_mode")
    if len(given.get("text", "")) > 200 and method == "answerCallbackQuery":
        raise Refused("text of more than 200 characters")
    for row in given.get("reply_markup", {}).get("inline_keyboard", []):
        for button in row:
            if set(button) != {"text", "callback_data"}:
                raise Refused(f"a button of {set(button)}")
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                raise Refused("callback_data of more than 64 bytes")
    return given


def _taken(result: Any) -> web.Response:
    return web.json_response({"ok": True, "result": result})


def failed(code: int, words: str, **parameters: Any) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": words}
    if parameters:
        body["parameters"] = parameters
    return web.json_response(body, status=code)


# ---------------------------------------------------------------- what may go wrong


def too_many(retry_after: int) -> Behaviour:
    """A limit: try again after so many seconds."""

    async def answer() -> web.Response:
        words = f"Too Many Requests: retry after {retry_after}"
        return failed(429, words, retry_after=retry_after)

    return lambda *_: answer()


def in_trouble(*, is_stored: bool) -> Behaviour:
    """A server that fails, before or after it has the message."""

    async def answer(server: TelegramServer, given: dict[str, Any]) -> web.Response:
        if is_stored:
            server.store(given)
        return failed(502, "Bad Gateway")

    return lambda server, _, given: answer(server, given)


def cut(server: TelegramServer, request: web.Request, given: dict[str, Any]) -> Any:
    """The line is lost once the server has the message."""

    async def answer() -> web.Response:
        server.store(given)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer()
