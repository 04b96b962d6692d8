"""Slack's Web API and Socket Mode on loopback, which refuse what the published ones don't take.

Nothing of Slack's is here: it knows of the methods that the channel calls their fields, types and
limits, as docs.slack.dev tells them, and tells events in envelopes until they're acknowledged.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, Final

from aiohttp import WSMsgType, web

from tests.support.chat_network import ChatNetwork, Refused, Said

BOT_TOKEN: Final = "xoxb-4711-secret-of-the-bot"
APP_TOKEN: Final = "xapp-1-secret-of-the-app"
OWN: Final = "U0VIGIL"
HISTORY: Final = {
    "channel": str, "oldest": str, "latest": str, "inclusive": bool, "limit": int, "cursor": str,
    "include_all_metadata": bool,
}  # fmt: skip
FIELDS: Final[dict[str, dict[str, type]]] = {
    "auth.test": {},
    "apps.connections.open": {},
    "conversations.open": {"users": str},
    "conversations.history": HISTORY,
    "conversations.replies": HISTORY | {"ts": str},
    "chat.postMessage": {
        "channel": str, "text": str, "blocks": list, "thread_ts": str, "unfurl_links": bool,
        "unfurl_media": bool, "metadata": dict,
    },
    "files.getUploadURLExternal": {"filename": str, "length": int},
    "files.completeUploadExternal": {"files": list, "channel_id": str, "thread_ts": str},
    "chat.update": {"channel": str, "ts": str, "text": str, "blocks": list},
}  # fmt: skip
BLOCKS: Final = {
    "section": {"type", "text"},
    "actions": {"type", "elements"},
    "context": {"type", "elements"},
}
LINK: Final = re.compile(r"<(https?://[^|<>\s]+)(\|[^<>]*)?>")


class SlackServer(ChatNetwork):
    """A workspace with one app, and what people do in it."""

    secret = BOT_TOKEN

    def __init__(self) -> None:
        super().__init__()
        self.may_send_files = True
        """Whether the app has the right `files:write`."""
        self.kept: dict[str, tuple[str, bytes]] = {}
        """Files that were sent, by their ids: name and bytes; nobody sees them yet."""
        self.sent_files: list[tuple[str, str, bytes]] = []
        """Where, under which name, and its bytes."""
        self.unacknowledged: dict[str, dict[str, Any]] = {}
        self.told: list[dict[str, Any]] = []
        """What was told."""
        self.is_telling = True
        """Whether events are told; else they are only stored in their conversations."""
        self._messages: dict[str, list[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    def section(self) -> dict[str, Any]:
        return {
            "kind": "slack", "bot_token": BOT_TOKEN, "app_token": APP_TOKEN,
            "api_url": f"{self.url}/api",
        }  # fmt: skip

    # ------------------------------------------------------------ people

    async def write(self, who: str, text: str, *, channel: str = "", **more: Any) -> str:
        ts = self._now()
        of = channel or self.direct(who)
        message = {"type": "message", "user": who, "text": text, "ts": ts} | more
        self._messages.setdefault(of, []).append(message)
        kind = "im" if of.startswith("D") else "channel"
        await self.happen(message | {"channel": of, "channel_type": kind})
        return ts

    async def press(self, who: str, said: Said, value: str, *, channel: str = "") -> None:
        """Somebody presses a button, or sends what looks like it."""
        action = {"type": "button", "action_id": "accept", "value": value, "action_ts": self._now()}
        await self.tell(
            "interactive",
            {
                "type": "block_actions",
                "user": {"id": who, "username": "ann"},
                "container": {"type": "message", "message_ts": said.place,
                              "channel_id": channel or said.room},
                "message": {"text": said.text, "blocks": said.given.get("blocks", [])},
                "actions": [action],
            },
        )  # fmt: skip

    async def happen(self, event: dict[str, Any]) -> None:
        if self.is_telling:
            told = {"type": "event_callback", "event_id": f"Ev{next(self._numbers)}"}
            await self.tell("events_api", told | {"event": event})

    async def tell(self, kind: str, payload: dict[str, Any]) -> None:
        self.told.append(payload)
        id_ = f"env{next(self._numbers)}"
        self.unacknowledged[id_] = {"type": kind, "envelope_id": id_, "payload": payload}
        await self.send(self.unacknowledged[id_])

    async def tell_again(self) -> None:
        """Tell all that nobody acknowledged."""
        for one in list(self.unacknowledged.values()):
            await self.send(one)

    def direct(self, who: str) -> str:
        return f"D{who[1:]}"

    def _now(self) -> str:
        # Of the future, so that it's after the app's first start whatever the clock says.
        return f"{4_000_000_000 + next(self._numbers)}.{next(self._numbers):06}"

    # ------------------------------------------------------------ the API

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/{method}", self._answer),
            web.get("/link", self._socket),
            web.post("/upload/{id}", self._keep),
        ]

    async def _keep(self, request: web.Request) -> web.Response:
        name, _ = self.kept[request.match_info["id"]]
        if "Authorization" in request.headers:
            self.refused.append("a token where a file is sent")
        self.kept[request.match_info["id"]] = name, await request.read()
        return web.Response(text="OK")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        token = APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN
        if request.headers.get("Authorization") != f"Bearer {token}" or self.is_revoked:
            return failed("token_revoked" if self.is_revoked else "invalid_auth")
        try:
            given = _checked(method, dict(await request.post()))
            self.calls.append((method, given))
            if method == "chat.postMessage":
                return await self.says(request, given)
            return self.taken(self._done(method, given))
        except Refused as error:
            self.refused.append(f"{method}: {error}")
            return failed(str(error))

    def _done(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"user_id": OWN}
            case "apps.connections.open":
                return {"url": f"{self.url.replace('http', 'ws')}/link?ticket=1"}
            case "files.getUploadURLExternal":
                if not self.may_send_files:
                    raise Refused("missing_scope")
                id_ = f"F{next(self._numbers)}"
                self.kept[id_] = given["filename"], b""
                return {"upload_url": f"{self.url}/upload/{id_}", "file_id": id_}
            case "files.completeUploadExternal":
                for one in given["files"]:
                    self.sent_files.append((given["channel_id"], *self.kept.pop(one["id"])))
            case "conversations.open":
                return {"channel": {"id": self.direct(given["users"])}}
            case "conversations.history" | "conversations.replies":
                return self._history(given, of=given.get("ts", ""))
        return {}

    def _history(self, given: dict[str, Any], *, of: str) -> dict[str, Any]:
        found = [
            one if given.get("include_all_metadata") else _without(one, "metadata")
            for one in self._messages.get(given["channel"], [])
            if (of in (one["ts"], one.get("thread_ts", "")) if of else "thread_ts" not in one)
            and float(given.get("oldest", 0)) <= float(one["ts"])
            and float(one["ts"]) <= float(given.get("latest", 1e12))
        ]
        newest_first = found[::-1]
        at, limit = int(given.get("cursor", "0")), given.get("limit", 100)
        is_more = at + limit < len(newest_first)
        cursor = {"next_cursor": str(at + limit)} if is_more else {}
        page = newest_first[at : at + limit]
        return {"messages": page, "has_more": is_more, "response_metadata": cursor}

    def store(self, given: dict[str, Any]) -> dict[str, Any]:
        ts = self._now()
        message = {"type": "message", "user": OWN, "bot_id": "B1", "ts": ts} | given
        self._messages.setdefault(given["channel"], []).append(message)
        self.said.append(Said(ts, given["channel"], seen(given["text"]), given))
        return {"channel": given["channel"], "ts": ts, "message": message}

    def taken(self, result: dict[str, Any]) -> web.Response:
        return web.json_response({"ok": True} | result)

    def too_many(self, wait_s: float) -> web.Response:
        told = {"ok": False, "error": "ratelimited"}
        return web.json_response(told, status=429, headers={"Retry-After": f"{wait_s:.0f}"})

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self.sockets.append(socket)
        await self.tell_again()
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                self.unacknowledged.pop(json.loads(message.data)["envelope_id"], None)
        return socket


def _without(message: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != name}


def seen(text: str) -> str:
    """Return a text as people see it, if it's marked as Slack wants it. Raises: Refused."""
    bare = LINK.sub(lambda found: (found[2] or found[1]).removeprefix("|"), text)
    if re.search(r"[<>]|&(?!(?:lt|gt|amp);)", re.sub(r"^> ", "", bare, flags=re.M)):
        raise Refused("not_escaped")
    return bare.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _checked(method: str, form: dict[str, Any]) -> dict[str, Any]:
    fields = FIELDS.get(method)
    if fields is None:
        raise Refused("unknown_method")
    if unknown := set(form) - set(fields):
        raise Refused(f"invalid_arguments {unknown}")
    given = {
        name: value if fields[name] is str else json.loads(value) for name, value in form.items()
    }
    if wrong := [name for name, value in given.items() if not isinstance(value, fields[name])]:
        raise Refused(f"invalid_arguments {wrong}")
    if method.startswith("chat."):
        if not 1 <= len(given["text"]) <= 4_000:
            raise Refused("msg_too_long")
        for block in given.get("blocks", []):
            _check_block(block)
    return given


def _check_block(block: dict[str, Any]) -> None:
    if set(block) != BLOCKS.get(block["type"], set()):
        raise Refused("invalid_blocks")
    if block["type"] == "section" and not 1 <= len(block["text"]["text"]) <= 3_000:
        raise Refused("invalid_blocks")
    if block["type"] == "actions":
        for button in block["elements"]:
            named = len(button["action_id"]) <= 255 and len(button["value"]) <= 2_000
            if not named or button["text"]["type"] != "plain_text":
                raise Refused("invalid_blocks")


def failed(error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error})
