"""Accounts with Slack, Discord, Telegram and Matrix, all connected at once: what they cost while
nothing comes, what saying something costs over the bare HTTP client (of Apprise, over the library),
and how much memory each takes, also of the kinds that only go out. Against servers of our own in
this process, whose part isn't taken out."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import ClientSession, web
from apprise import Apprise

from bench.chats import IDLE_S, SENDS, SETTLED_S, cpu_s, said_of
from bench.numbers import report
from tests.support.chats import pair
from tests.support.discord_server import TOKEN, DiscordServer
from tests.support.scripted_matrix import OWN as MATRIX_OWN
from tests.support.scripted_matrix import TOKEN as MATRIX_TOKEN
from tests.support.scripted_matrix import ScriptedMatrix
from tests.support.slack_server import BOT_TOKEN, SlackServer
from tests.support.stack import Stack, running_stack
from tests.support.telegram_server import BOT, TelegramServer
from tests.support.telegram_server import TOKEN as TELEGRAM_TOKEN
from vigil.channels import kinds
from vigil.channels.answers import Taken
from vigil.channels.contract import ChannelContext, Sender
from vigil.clock import SystemClock

HERS: Final = {
    "slack": ("U0ANN", "D0ANN"), "discord": ("77", "177"), "telegram": ("77", "77"),
    "matrix": ("@ann:a.example", "!hers"),
}  # fmt: skip
MODULES: Final = {
    **{kind: f"vigil.channels.{kind}.listener, vigil.channels.{kind}.sender" for kind in HERS},
    "desktop": "vigil.channels.notices.desktop_sender",
    "ntfy": "vigil.channels.notices.ntfy_sender",
    "apprise": "vigil.channels.notices.apprise_sender",
}
"""Of each kind, what is imported where it's configured."""
MEMORY: Final = """
import resource
import sys
from pathlib import Path

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

sys.modules["aiohttp"] = None  # which nats-py imports where it can
import vigil.channels.kinds, services.gateway.app, services.delivery.handlers
del sys.modules["aiohttp"]
begun = resident_mb()
import {modules}
print(resident_mb() - begun)
"""


class Networks(msgspec.Struct, frozen=True):
    slack: SlackServer
    discord: DiscordServer
    telegram: TelegramServer
    matrix: ScriptedMatrix

    @property
    def sections(self) -> dict[str, dict[str, Any]]:
        telegram = {"kind": "telegram", "bot": BOT, "token": TELEGRAM_TOKEN}
        return {
            "slack": self.slack.section(),
            "discord": self.discord.section(),
            "telegram": telegram | {"api_url": self.telegram.url},
            "matrix": self.matrix.section() | {"sync_s": 30.0},
        }


async def measure(home: Path) -> None:
    """Report what they cost."""
    networks = Networks(
        SlackServer(), DiscordServer(), TelegramServer(held_s=30.0), ScriptedMatrix()
    )
    networks.matrix.members["!hers"] = (HERS["matrix"][0], MATRIX_OWN)
    async with contextlib.AsyncExitStack() as running:
        for one in (networks.slack, networks.discord, networks.telegram, networks.matrix):
            await running.enter_async_context(one.running())
        bare = await _idle(home / "bare", {})
        all_of_them = await _idle(home / "all", networks.sections)
        more, count = (all_of_them - bare) * 100, len(HERS)
        report("channel_idle_cpu_pct", more, "% of a core", aim="< 0.5", networks=count)
        await _measure_sends(home / "sends", networks)
    await _measure_notices(home)
    for kind, modules in MODULES.items():
        told = subprocess.run(
            [sys.executable, "-c", MEMORY.replace("{modules}", modules)],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        report("channel_memory_mb", float(told), "MB in each of two services", kind=kind)


async def _idle(home: Path, channels: dict[str, dict[str, Any]]) -> float:
    """Return the part of a core that the gateway takes as it waits."""
    home.mkdir()
    async with running_stack(home, ("gateway",), SystemClock(), channels=channels) as stack:
        await _until_heard(stack, len(channels))
        await asyncio.sleep(SETTLED_S)
        begun, begun_at = cpu_s(), time.monotonic()
        await asyncio.sleep(IDLE_S)
        return (cpu_s() - begun) / (time.monotonic() - begun_at)


async def _until_heard(stack: Stack, count: int) -> None:
    facts = stack.contexts["gateway"].facts
    while [one["state"] for one in facts.get("hears", {}).values()] != ["listening"] * count:
        await asyncio.sleep(0.05)


async def _measure_sends(home: Path, networks: Networks) -> None:
    home.mkdir()
    async with running_stack(home, (), SystemClock()) as stack, ClientSession() as client:
        bus = await stack.bus("admin")
        for name, section in kinds.read(networks.sections).items():
            address, room = HERS[name]
            await pair(bus, "ann", address, room, channel=name)
            context = ChannelContext(name=name, home=home, clock=SystemClock(), bus=bus)
            sender = section.sender(context)
            bare = _bare_of(name, client, networks)
            await _compare(name, sender, bare, networks)


async def _compare(
    kind: str, sender: Sender, bare: Callable[[], Awaitable[None]], networks: Networks | None = None
) -> None:
    """Report what a sender costs over what says the same barely."""
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(SENDS):
        theirs.append(await _timed(bare))
        ours.append(await _timed(lambda: _say(sender, number)))  # noqa: B023
        if networks is not None:
            networks.discord.limit_left = 4  # its pauses are no cost of ours
    await sender.close()
    over = (statistics.median(ours) - statistics.median(theirs)) * 1000
    bare_ms = round(statistics.median(theirs) * 1000, 2)
    report("channel_send_overhead_ms", over, "ms", kind=kind, bare_ms=bare_ms)


async def _measure_notices(home: Path) -> None:
    """Report what ntfy costs over the HTTP client, and Apprise over the library."""
    async with _receiving() as url, ClientSession() as client:
        (home / "apprise.url").write_text(url.replace("http://", "json://"))
        (home / "apprise.url").chmod(0o600)
        ways = Apprise()
        ways.add(url.replace("http://", "json://"))

        async def by_http() -> None:
            told = {"topic": "ann-4fZ0q", "message": "It freezes tonight."}
            async with client.post(url, json=told) as answer:
                await answer.read()

        async def by_library() -> None:
            assert await asyncio.to_thread(ways.notify, body="It freezes tonight.")

        sections = {
            "ntfy": {"url": url, "topic": "ann-4fZ0q", "user": "ann", "allow_private": True},
            "apprise": {"url_file": "apprise.url", "user": "ann"},
        }
        bare = {"ntfy": by_http, "apprise": by_library}
        for kind, section in sections.items():
            context = ChannelContext(name=kind, home=home, clock=SystemClock())
            (found,) = kinds.read({kind: section | {"kind": kind}}).values()
            await _compare(kind, found.sender(context), bare[kind])


@contextlib.asynccontextmanager
async def _receiving() -> AsyncIterator[str]:
    """Take whatever is posted; yields where."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _bare_of(name: str, client: ClientSession, networks: Networks) -> Callable[[], Awaitable[None]]:
    """Return what says something by the HTTP client alone."""
    method, place = "PUT" if name == "matrix" else "POST", "/rooms/!hers/send/m.room.message"
    numbers = itertools.count()
    url, headers, given = {
        "slack": (
            f"{networks.slack.url}/api/chat.postMessage",
            {"Authorization": f"Bearer {BOT_TOKEN}"},
            {"data": {"channel": "D0ANN", "text": "It freezes tonight."}},
        ),
        "discord": (
            f"{networks.discord.url}/api/channels/177/messages",
            {"Authorization": f"Bot {TOKEN}", "User-Agent": "DiscordBot (x, 1)"},
            {"json": {"content": "It freezes tonight.", "allowed_mentions": {"parse": []}}},
        ),
        "telegram": (
            f"{networks.telegram.url}/bot{TELEGRAM_TOKEN}/sendMessage",
            {},
            {"data": {"chat_id": "77", "text": "It freezes tonight."}},
        ),
        "matrix": (
            f"{networks.matrix.url}/_matrix/client/v3{place}",
            {"Authorization": f"Bearer {MATRIX_TOKEN}"},
            {"json": {"msgtype": "m.text", "body": "It freezes tonight."}},
        ),
    }[name]

    async def say() -> None:
        to = f"{url}/{next(numbers)}" if method == "PUT" else url
        async with client.request(method, to, headers=headers, **given) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()

    return say


async def _say(sender: Sender, number: int) -> None:
    assert isinstance(await sender.send(said_of(number), 1), Taken)


async def _timed(call: Callable[[], Awaitable[None]]) -> float:
    begun = time.perf_counter()
    await call()
    return time.perf_counter() - begun
