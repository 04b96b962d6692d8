"""What a server of Matrix may tell that Synapse does not: gaps, odd times, refused answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from tests.support.chats import CHANNEL, pair
from tests.support.on_loopback import served
from tests.support.stack import running_stack
from vigil.channels.contract import ChannelContext, Inbound
from vigil.channels.matrix.listener import MatrixListener
from vigil.channels.matrix.section import MatrixAccount
from vigil.clock import SystemClock
from vigil.contracts import Attachment

OWN: Final = "@vigil:a.example"
ANN: Final = "@ann:a.example"
MAL: Final = "@mal:evil.example"
ROOM: Final = "!r:a.example"


class ScriptedServer:
    """Answers /sync by a script, and then no more; of rooms it knows who is in them."""

    def __init__(self, *synced: dict[str, Any]) -> None:
        self.synced = [{"next_batch": "s0"}, *synced]
        self.left_out: list[dict[str, Any]] = []
        self.members = [web.json_response({"errcode": "M_FORBIDDEN"}, status=403), (OWN, ANN)]
        """What is answered to who is in a room, the last of it for good."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        async with served(app) as url:
            yield url

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        what = request.path.rpartition("/")[2]
        if what == "sync":
            if not self.synced:
                await asyncio.Event().wait()
            return web.json_response(self.synced.pop(0))
        if what == "joined_members":
            found = self.members.pop(0) if len(self.members) > 1 else self.members[0]
            if isinstance(found, web.Response):
                return found
            return web.json_response({"joined": {one: {} for one in found}})
        if what == "messages":
            self.members = [(OWN, ANN, MAL)]
            return web.json_response({"chunk": self.left_out})
        return web.json_response({"user_id": OWN})


class Heard:
    """An ear that keeps what it hears."""

    text_bytes_max = 1_000
    file_bytes_max = 10_000
    hears_speech = False

    def __init__(self) -> None:
        self.all: list[Inbound] = []
        self.has_heard = asyncio.Event()

    async def hear(self, heard: Inbound) -> None:
        self.all.append(heard)
        self.has_heard.set()

    async def writing(self, user: str, agent: str, thread: str) -> AsyncGenerator[str]:
        raise AssertionError("Matrix can't show that")
        yield

    async def check_file(self, user: str, file: Attachment) -> None:
        pass

    async def words_of(self, user: str, sound: bytes) -> str:
        raise AssertionError("nobody speaks")

    async def settle(self, *_: object) -> None:
        raise AssertionError("nobody tells that")

    def show(self, state: str, problem: str, counts: Mapping[str, int]) -> None:
        pass


def text(id_: str, body: str, sender: str = ANN, at_ms: int = 1) -> dict[str, Any]:
    return {
        "type": "m.room.message", "event_id": id_, "sender": sender, "origin_server_ts": at_ms,
        "content": {"msgtype": "m.text", "body": body},
    }  # fmt: skip


def moved(who: str) -> dict[str, Any]:
    return {
        "type": "m.room.member", "event_id": f"$in-{who}", "sender": who, "state_key": who,
        "origin_server_ts": 1, "content": {"membership": "join"},
    }  # fmt: skip


def synced(mark: str, *events: dict[str, Any], room: str = ROOM, **more: Any) -> dict[str, Any]:
    timeline = {"events": list(events)} | more
    return {"next_batch": mark, "rooms": {"join": {room: {"timeline": timeline}}}}


async def test_who_came_unseen_makes_a_room_one_of_several_and_no_answer_makes_it_nothing(
    tmp_path: Path,
) -> None:
    """Who is in a room is asked again after a refusal, and after a gap in what was told of it: a
    stranger may have come in it. A time beyond all calendars holds nothing up."""
    server = ScriptedServer(
        synced("s1", text("$0", "unknown whose room it is")),
        synced("s2", text("$1", "alone")),
        synced("s3", text("$2", "in front of others"), limited=True, prev_batch="p"),
        synced("s4", moved(OWN), text("$3", f"{OWN}: a time of no calendar", at_ms=10**30)),
        synced("s5", text("$4", f"{OWN}: last")),
    )
    server.left_out = [moved(MAL)]
    ear = Heard()
    async with server.running() as url, running_stack(tmp_path, services=()) as stack:
        bus = await stack.bus("gateway")
        await pair(await stack.bus("admin"), "ann", ANN, ROOM)
        account = MatrixAccount(homeserver=url, user_id=OWN, access_token="t", sync_s=1.0)
        context = ChannelContext(name=CHANNEL, home=tmp_path, clock=SystemClock(), bus=bus)
        listening = asyncio.create_task(MatrixListener(account, context).listen(ear))
        try:
            while not ear.all or ear.all[-1].text != "last":
                ear.has_heard.clear()
                waiting = asyncio.create_task(ear.has_heard.wait())
                await asyncio.wait((waiting, listening), return_when="FIRST_COMPLETED")
                waiting.cancel()
                if listening.done():
                    listening.result()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    assert [(one.text, one.thread != "") for one in ear.all] == [
        ("alone", False),
        ("a time of no calendar", True),
        ("last", True),
    ]
