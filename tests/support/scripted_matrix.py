"""A server of Matrix that tells whatever it's given, also what Synapse never would."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import web

from tests.support.chat_network import Said
from tests.support.on_loopback import served

TOKEN: Final = "t-secret"
OWN: Final = "@vigil:a.example"
SYNC_S: Final = 0.2


class ScriptedMatrix:
    """Rooms, who is in them, and what happens there."""

    secret = TOKEN

    def __init__(self) -> None:
        self.url = ""
        self.said: list[Said] = []
        self.is_revoked = False
        self.members: dict[str, tuple[str, ...]] = {}
        self._happened: list[tuple[str, dict[str, Any]]] = []
        self._is_new = asyncio.Event()
        self._transactions: set[str] = set()

    def section(self) -> dict[str, Any]:
        return {"kind": "matrix", "homeserver": self.url, "user_id": OWN, "access_token": TOKEN,
                "sync_s": SYNC_S}  # fmt: skip

    def happen(self, room: str, sender: str, content: dict[str, Any], **more: Any) -> str:
        """Something happens in a room; returns its id."""
        id_ = f"${len(self._happened)}"
        event = {"type": "m.room.message", "event_id": id_, "sender": sender, "content": content,
                 "origin_server_ts": 4_000_000_000_000}  # fmt: skip
        self._happened.append((room, event | more))
        self._is_new.set()
        return id_

    def tell_again(self) -> None:
        """Tell all of it once more, from the first mark on."""
        self._happened += self._happened
        self._is_new.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        async with served(app) as self.url:
            yield

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}" or self.is_revoked:
            return web.json_response({"errcode": "M_UNKNOWN_TOKEN"}, status=401)
        way = [unquote(one) for one in request.raw_path.partition("?")[0].split("/")[4:]]
        match way:
            case ["sync"]:
                return web.json_response(await self._sync(request.query))
            case ["rooms", room, "joined_members"]:
                joined: dict[str, Any] = {one: {} for one in self.members.get(room, ())}
                return web.json_response({"joined": joined})
            case ["rooms", room, "send", _, id_]:
                if id_ not in self._transactions:
                    given = await request.json()
                    self.said.append(Said(id_, room, given["body"], given))
                self._transactions.add(id_)
                return web.json_response({"event_id": f"$said-{len(self.said)}"})
            case ["account", "whoami"]:
                return web.json_response({"user_id": OWN})
            case _:
                return web.json_response({"errcode": "M_NOT_FOUND"}, status=404)

    async def _sync(self, asked: Mapping[str, str]) -> dict[str, Any]:
        since = asked.get("since", "")
        at = int(since.removeprefix("s") or 0)
        if since and at == len(self._happened):
            self._is_new.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(int(asked.get("timeout", "0")) / 1000):
                    await self._is_new.wait()
        rooms: dict[str, Any] = {}
        for room, event in self._happened[at:]:
            timeline = rooms.setdefault(room, {"timeline": {"events": []}})["timeline"]
            timeline["events"].append(event)
        return {"next_batch": f"s{len(self._happened)}", "rooms": {"join": rooms}}
