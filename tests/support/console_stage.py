"""A person whose pages of the console all have something to show, made as it would come about.

Talk, follow-ups, requests, a row of the timetable and a channel that doesn't answer are real; what
would take days, or a real model's bill, is written as the services would write it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from tests.support.agent import ask, follow_up, tell
from tests.support.channels import channel_of
from tests.support.gateway import until
from tests.support.goal_records import action_of
from tests.support.hands_records import SHELF
from tests.support.mailing import CHANNEL, pair
from tests.support.receiver import running_receiver, status
from tests.support.remembering import save
from tests.support.world import Person, World, running_world
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.bus.kv import KeyValue
from vigil.clock import SystemClock
from vigil.contracts import Change, DeadLetter, encode
from vigil.contracts.costs import CostRow, DayOfCosts
from vigil.subjects import Scope, SessionKey, token_of

KEY: Final = SessionKey("ann", "vigil", "plants")
MAILS: Final = SessionKey("ann", "vigil", "mails")
"""A thread that outside content came into, so that what it leads to needs leave."""
TIERS: Final = (("main", "claude-sonnet", 310_000), ("cheap", "claude-haiku", 21_000))
DAYS: Final = 14


class Stage:
    """Ann, in a running world."""

    def __init__(self, world: World, ann: Person) -> None:
        self.world = world
        self.ann = ann
        self.api: httpx2.AsyncClient = ann.http
        self.turn = 0
        """Sequence of the turn of the last answer."""
        self.said = ""
        """The id of that answer."""
        self.ids: dict[str, str] = {}

    async def _made(self, what: str, path: str, **body: Any) -> None:
        answer = await self.api.post(path, json=body)
        assert answer.status_code == 201, answer.text
        self.ids[what] = answer.json()["id"]

    def below(self) -> Iterator[str]:
        """Yield the paths of pages of one thing."""
        talk = f"/conversations/{KEY}"
        yield from (talk, f"{talk}/timeline", f"{talk}/records/{self.turn}")
        yield f"/prompts/{KEY}/{self.turn}"
        yield from (f"/tasks/{self.ids['task']}", f"/goals/{self.ids['goal']}")
        yield f"/timetable/{self.ids['row']}"
        yield from ("/contacts", "/calendars", "/networks", "/notifications", "/agents/vigil")
        yield from ("/networks?add=telegram", "/find?q=bruno")
        yield from (f"/memories/{self.ids['memory']}?agentId=vigil", "/memories/graph")
        yield f"/inbox/{self.ids['request']}"
        yield f"/why?id={self.said}&session={KEY}"

    async def fill(self) -> None:
        """Let everything come about."""
        await self._talk()
        await self._plan()
        await self._remember()
        await self._write_down()

    async def _talk(self) -> None:
        say = self.ann.exchange
        await say("My basil is called Bruno. It stands at the kitchen window.")
        await say(ask(follow_up("water", 3600, keep=True, reason="Is Bruno's soil dry?")))
        await say(ask(("memory_recall", {"query": "basil"})))
        await say(ask(tell("The heating is on: Bruno may need more water.", "phone")))
        last = (await self.ann.transcript())[-1]
        self.turn, self.said = last["turn_seq"], last["id"]
        home = await self.world.person("ann:vigil:main", has_socket=False)
        news = "It freezes tonight: bring Bruno in from the balcony."
        await home.exchange(ask(follow_up("frost", 1, news, keep=True)))
        await self.world.until(lambda: home.followed_up)
        self.ids["request"] = await self.asks("df -h /var")

    async def asks(self, command: str) -> str:
        """Have the agent want to run a command that needs leave; return the id of its request."""
        mails, found = self.world.talk(str(MAILS)), list[str]()
        await mails.ended(await mails.outside(ask(("shell", {"command": command}))))
        await self.world.at_rest()

        async def is_asked() -> bool:
            open_ones = (await self.api.get("/api/approvals")).json()["approvals"]
            found.extend(one["id"] for one in open_ones if one["input"] == {"command": command})
            return bool(found)

        await until(is_asked, "it asks for leave")
        return found[0]

    async def _plan(self) -> None:
        await self._made("task", "/api/tasks", title="Repot Bruno", description="Bigger pot, soil")
        other = {"title": "Ask the neighbour about the balcony", "status": "backlog"}
        await self._made("other", "/api/tasks", description="", **other)
        await self._made("goal", "/api/goals", description="Keep every plant alive over winter")
        row = {"name": "Morning weather", "cron": "0 7 * * *"}
        await self._made("row", "/api/cron", prompt="Can the plants stay outside?", **row)
        await self.api.post(f"/api/cron/{self.ids['row']}/runs")
        soil = {"category": "workflow", "key": "soil", "value": "without peat"}
        await self._made("preference", "/api/preferences", **soil)
        grant = {"tool": "shell", "constraints": [{"kind": "argv", "argv": ["df", "-h"]}]}
        await self._made("grant", "/api/grants", **grant)

    async def _remember(self) -> None:
        basil = await save(self.api, "Ann's basil is called Bruno", type="fact", source="notes")
        window = await save(self.api, "Bruno stands at the kitchen window", source="chat:plants")
        await save(self.api, "Ann waters her plants in the evening", type="preference")
        self.ids["memory"] = basil
        link = {"from_id": window, "to_id": basil, "relation": "part_of"}
        await self.api.post("/api/memories/associate", json=link)

    async def _write_down(self) -> None:
        """Write what would take days, or a model with a price."""
        admin, now = self.world.admin, datetime.now(UTC)
        bus = await self.world.stack.bus("cortex")
        for back in range(DAYS):
            rows = tuple(
                CostRow(agent="vigil", cause="plants", tier=tier, model=model,
                        calls=(back * 7) % 11 + 1, micro_usd=micro * ((back * 5) % 7 + 1),
                        input_tokens=9_000, cache_read_tokens=41_000, output_tokens=2_100)
                for tier, model, micro in TIERS
            )  # fmt: skip
            costs = DayOfCosts(user="ann", rows=rows)
            name = f"{(now - timedelta(days=back)).date()}.costs.{token_of('ann')}"
            await KeyValue(bus, "BUDGETS").put(name, msgspec.json.encode(costs))
        await KeyValue(admin, "TOOLS").put("files", encode(replace(SHELF, source="files")))
        board = KeptBoard(admin, ACTIONS)
        for number, what in enumerate(("Looked whether it freezes tonight", "Turned the lamp on")):
            action = action_of(id=f"{number}" * 32, description=what, created_at=now)
            await board.create(lambda _, made=action: made, Scope("vigil", "ann"),
                               Change(by="vigil"), now)  # fmt: skip
        letter = DeadLetter(
            id="cortex-SESSIONS-9", service="cortex", stream="SESSIONS", subject=KEY.in_user, seq=9,
            cause="the message could not be read", at=now, data=b"{",
        )  # fmt: skip
        await admin.publish(KEY.dead("cortex"), encode(letter))


def accounts(home: Path) -> dict[str, dict[str, Any]]:
    """Return sections of what is elsewhere: a mail server that doesn't answer, lists of contacts,
    a calendar."""
    mail = {
        "kind": "mail", "address": "vigil@a.example", "smtp_host": "127.0.0.1", "smtp_port": 9,
        "smtp_security": "none", "imap_host": "127.0.0.1", "imap_port": 9, "imap_security": "none",
        "password": "x", "authserv_id": "mx.a.example", "attempts_max": 1,
    }  # fmt: skip
    (home / "work.ics").write_text("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n")
    return {
        "channels": {CHANNEL: mail},
        "contacts": {
            "friends": {"user": "ann", "people": ["Ben Ray <ben@example.org>", "Ada <ada@b.org>"]},
            "phone": {"user": "ann", "file": "gone.vcf"},
        },
        "calendars": {"work": {"kind": "file", "user": "ann", "file": str(home / "work.ics")}},
    }


async def set_up(world: World) -> Stage:
    """Return Ann, with something on every page."""
    stage = Stage(world, await world.person(str(KEY), has_socket=False))
    await pair(world.admin, "ann", "ann@b.example")
    await stage.fill()

    async def is_memory_there() -> bool:
        return bool((await stage.api.get("/api/memories")).json()["memories"])

    await until(is_memory_there, "memories are there")
    return stage


@contextlib.asynccontextmanager
async def staged(home: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """All services; Ann has something on every page, and her phone doesn't answer."""
    async with running_receiver(status(400, "No")) as receiver:
        options = accounts(home)
        options["channels"] |= {"phone": channel_of(receiver), "push": {"kind": "push"}}
        options["autonomy"] = {"cooldown_ms": 0}
        async with running_world(home, patch, SystemClock(), has_hands=True, **options) as world:
            yield await set_up(world)
