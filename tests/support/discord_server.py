"""Discord's REST interface and gateway on loopback, which refuse what the published don't take.

Nothing of Discord's is here: it knows of the calls that the channel makes their fields, types and
limits, as docs.discord.com tells them (v10); a session tells its events again when it's resumed.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from typing import Any, Final

from aiohttp import WSMsgType, web

from tests.support.chat_network import ChatNetwork, Refused, Said
from vigil.channels.discord.happenings import snowflake_at

TOKEN: Final = "MTA0.secret.of-the_bot"
OWN: Final = "4711"
FIELDS: Final[dict[str, type]] = {
    "content": str, "nonce": str, "enforce_nonce": bool, "allowed_mentions": dict, "flags": int,
    "message_reference": dict, "components": list,
}  # fmt: skip
INTENTS: Final = 1 << 9 | 1 << 12


class DiscordServer(ChatNetwork):
    """A bot's channels, and what people do in them."""

    secret = TOKEN

    def __init__(self) -> None:
        super().__init__()
        self.is_telling = True
        """Whether events are told; else messages only stand in their channels."""
        self.opened: list[str] = []
        """`identify` or `resume`, as sockets began."""
        self.limit_left = 5
        self.sent_files: list[tuple[str, str, bytes]] = []
        """Where, under which name, and its bytes."""
        self._messages: dict[str, list[dict[str, Any]]] = {}
        self._by_nonce: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        """Of the session."""
        self._session = ""
        self._numbers = itertools.count(1)

    def section(self) -> dict[str, Any]:
        return {"kind": "discord", "token": TOKEN, "api_url": f"{self.url}/api"}

    # ------------------------------------------------------------ people

    async def write(self, who: str, text: str, *, channel: str = "", **more: Any) -> str:
        of = channel or self.direct(who)
        author = {"id": who, "username": "ann", "global_name": "ann"}
        message = self._message(of, text, author) | more
        message |= {"guild_id": "500"} if channel else {}
        self._messages.setdefault(of, []).append(message)
        if self.is_telling:
            await self.tell("MESSAGE_CREATE", message)
        return str(message["id"])

    async def press(self, who: str, said: Said, value: str, *, guild: str = "") -> None:
        """Somebody presses a button, or sends what looks like it."""
        person = {"member": {"user": {"id": who}}} if guild else {"user": {"id": who}}
        more = {"guild_id": guild} if guild else {}
        about = {
            "id": self._id(), "token": "open-sesame", "type": 3, "channel_id": said.room,
            "data": {"custom_id": value, "component_type": 2}, "message": {"id": said.place},
        }  # fmt: skip
        await self.tell("INTERACTION_CREATE", about | person | more)

    async def tell(self, kind: str, data: dict[str, Any]) -> None:
        self.events.append({"op": 0, "t": kind, "s": len(self.events) + 1, "d": data})
        await self.send(self.events[-1])

    async def close_sockets(self, code: int) -> None:
        for socket in self.sockets:
            if not socket.closed:
                await socket.close(code=code)

    def direct(self, who: str) -> str:
        return f"1{who}"

    def _id(self) -> str:
        return str(int(snowflake_at(time.time())) + next(self._numbers))

    def _message(self, channel: str, text: str, author: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": self._id(), "channel_id": channel, "author": author, "content": text, "type": 0,
            "mentions": [{"id": one} for one in re.findall(r"<@(\d+)>", text)],
            "attachments": [], "edited_timestamp": None,
        }  # fmt: skip

    # ------------------------------------------------------------ REST

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/gateway/bot", self._gateway),
            web.get("/api/users/@me", self._me),
            web.post("/api/users/@me/channels", self._open),
            web.post("/api/channels/{id}/messages", self._post),
            web.get("/api/channels/{id}/messages", self._list),
            web.post("/api/channels/{id}/typing", self._typing),
            web.post("/api/interactions/{id}/{token}/callback", self._callback),
            web.get("/gateway/", self._socket),
        ]

    def _problem(self, request: web.Request) -> web.Response | None:
        if not re.match(r"DiscordBot \(\S+, \S+\)", request.headers.get("User-Agent", "")):
            self.refused.append("no user agent")
        if request.headers.get("Authorization") != f"Bot {TOKEN}" or self.is_revoked:
            told = {"message": "401: Unauthorized", "code": 0}
            return web.json_response(told, status=401)
        return None

    async def _gateway(self, request: web.Request) -> web.Response:
        url = f"{self.url.replace('http', 'ws')}/gateway"
        return self._problem(request) or web.json_response({"url": url, "shards": 1})

    async def _me(self, request: web.Request) -> web.Response:
        return self._problem(request) or web.json_response({"id": OWN, "bot": True})

    async def _open(self, request: web.Request) -> web.Response:
        given = await request.json()
        found = {"id": self.direct(given["recipient_id"]), "type": 1}
        return self._problem(request) or web.json_response(found)

    async def _typing(self, request: web.Request) -> web.Response:
        return self._problem(request) or web.Response(status=204)

    async def _callback(self, request: web.Request) -> web.Response:
        if "Authorization" in request.headers or request.match_info["token"] != "open-sesame":
            self.refused.append("an interaction's token")
        self.calls.append(("callback", await request.json()))
        return web.Response(status=204)

    async def _list(self, request: web.Request) -> web.Response:
        after, limit = int(request.query["after"]), int(request.query["limit"])
        of = self._messages.get(request.match_info["id"], [])
        found = [one for one in of if int(one["id"]) > after][:limit]
        return self._problem(request) or web.json_response(found[::-1])

    async def _post(self, request: web.Request) -> web.StreamResponse:
        if problem := self._problem(request):
            return problem
        given, file = await _form_of(request)
        try:
            _check(given, is_file=file is not None)
        except Refused as error:
            self.refused.append(str(error))
            told = {"message": "Invalid Form Body", "code": 50035}
            return web.json_response(told, status=400)
        channel = request.match_info["id"]
        self.calls.append(("message", given))
        if file is not None:
            if given["nonce"] not in self._by_nonce:
                self.sent_files.append((channel, file.filename, file.file.read()))
            given["content"] = ""
        return await self.says(request, given | {"channel": channel})

    def store(self, given: dict[str, Any]) -> dict[str, Any]:
        nonce = given.get("nonce", "")
        if given.get("enforce_nonce") and nonce in self._by_nonce:
            return self._by_nonce[nonce]
        author = {"id": OWN, "username": "vigil", "bot": True}
        message = self._message(given["channel"], given["content"], author)
        self._messages.setdefault(given["channel"], []).append(message)
        self._by_nonce[nonce] = message
        self.said.append(Said(message["id"], given["channel"], given["content"], given))
        return message

    def taken(self, result: dict[str, Any]) -> web.Response:
        self.limit_left = (self.limit_left - 1) % 5
        headers = {
            "X-RateLimit-Bucket": "b", "X-RateLimit-Limit": "5",
            "X-RateLimit-Remaining": f"{self.limit_left}", "X-RateLimit-Reset-After": "0.05",
        }  # fmt: skip
        return web.json_response(result, headers=headers)

    def too_many(self, wait_s: float) -> web.Response:
        told = {"message": "You are being rate limited.", "retry_after": wait_s, "global": False}
        return web.json_response(told, status=429, headers={"Retry-After": f"{wait_s:.0f}"})

    # ------------------------------------------------------------ the gateway

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if dict(request.query) != {"v": "10", "encoding": "json"}:
            self.refused.append(f"a socket of {dict(request.query)}")
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41_250}, "s": None})
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                await self._told(socket, message.json())
        return socket

    async def _told(self, socket: web.WebSocketResponse, told: dict[str, Any]) -> None:
        data = told["d"]
        if told["op"] == 1:
            await socket.send_json({"op": 11})
            return
        if data["token"] != TOKEN or self.is_revoked:
            await socket.close(code=4004)  # type: ignore[arg-type]
        elif told["op"] == 2:
            if data["intents"] != INTENTS or set(data["properties"]) != {"os", "browser", "device"}:
                self.refused.append(f"identify {data}")
            self.opened.append("identify")
            self._session, self.events = self._id(), []
            self.sockets.append(socket)
            url = f"{self.url.replace('http', 'ws')}/gateway"
            ready = {"session_id": self._session, "resume_gateway_url": url, "user": {"id": OWN}}
            await self.tell("READY", ready)
        elif data["session_id"] != self._session:
            await socket.send_json({"op": 9, "d": False})
        else:
            self.opened.append("resume")
            self.sockets.append(socket)
            for event in self.events[data["seq"] :]:
                await self.send(event)
            await self.tell("RESUMED", {})


async def _form_of(request: web.Request) -> tuple[dict[str, Any], web.FileField | None]:
    """Return what a call says, and the file that goes with it."""
    if request.content_type != "multipart/form-data":
        return await request.json(), None
    form: Any = await request.post()
    file = form["files[0]"]
    assert set(form) == {"payload_json", "files[0]"}
    assert isinstance(file, web.FileField)
    return json.loads(form["payload_json"]), file


def _check(given: dict[str, Any], *, is_file: bool) -> None:
    """Raises: Refused."""
    if unknown := set(given) - set(FIELDS):
        raise Refused(f"unknown fields {unknown}")
    if wrong := [name for name, value in given.items() if not isinstance(value, FIELDS[name])]:
        raise Refused(f"wrong fields {wrong}")
    length = len(given.get("content", "").encode("utf-16-le")) // 2
    if length > 2_000 or (length == 0 and not is_file):
        raise Refused("content of another length")
    if len(given.get("nonce", "")) > 25 or given["allowed_mentions"] != {"parse": []}:
        raise Refused("a long nonce, or people are called")
    for row in given.get("components", []):
        if row["type"] != 1 or not 1 <= len(row["components"]) <= 5:
            raise Refused("a row of other components")
        for one in row["components"]:
            if set(one) != {"type", "style", "label", "custom_id"} or len(one["custom_id"]) > 100:
                raise Refused(f"a button of {set(one)}")
