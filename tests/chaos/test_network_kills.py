"""Services killed at random while a person writes and is answered in three networks at once.

The networks outlive the services, fail now and then, and are the judges: what ann said is heard
once, in the order in which it stands there; what is said to her stands there once if its receipt
says so, never twice, and in the order of the log. What nobody knows of is told: `ambiguous`.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos.ended import SETTLED_S, all_settled, records, texts_heard, toml_of
from tests.chaos.killable import killable, steps_of
from tests.support import telegram_server
from tests.support.chat_network import as_usual, cut, in_trouble, too_many
from tests.support.chats import pair
from tests.support.discord_server import DiscordServer
from tests.support.on_loopback import half
from tests.support.pauses import pauses
from tests.support.pictures import png
from tests.support.sent_files import whole
from tests.support.slack_server import SlackServer
from tests.support.telegram_server import TelegramServer
from vigil.attachments import store
from vigil.bus.bus import Bus
from vigil.channels.discord.composition import texts_of
from vigil.channels.slack.composition import composed as composed_for_slack
from vigil.channels.telegram.composition import composed as composed_for_telegram
from vigil.contracts import (
    Said,
    UserMessage,
    decode_dispatch,
    decode_event,
    decode_said,
)

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("halved_times")]

SERVICES: Final = ("gateway", "delivery", "cortex")
POINTS: Final = ("chat.heard", "chat.place")
"""At which the gateway ends, too, at first."""
FILE_POINTS: Final = ("attachment.noted", "attachment.named", "attachment.copied")
"""In the long form also at these, as it keeps a file."""
SETTINGS: Final = {
    "VIGIL_PORT": "0",
    "VIGIL_HEALTH__CIRCUIT_OPEN_S": "0.5",
    "VIGIL_HEALTH__CIRCUIT_OPEN_S_MAX": "1",
}
TERMS: Final = {"attempts_max": 100, "backoff_base_s": 0.5, "backoff_cap_s": 1.0, "timeout_s": 5.0}
CAT: Final = png(6, 5)
TROUBLES: Final = (
    as_usual, half, in_trouble(is_stored=True), in_trouble(is_stored=False), cut(is_stored=True),
    cut(is_stored=False), too_many(1),
)  # fmt: skip


class Network(ABC):
    """A network in which ann writes, and what stands there."""

    def __init__(self, name: str, who: str, room: str) -> None:
        self.name = name
        self.who = who
        self.room = room

    @property
    @abstractmethod
    def section(self) -> dict[str, Any]: ...

    @abstractmethod
    def running(self) -> contextlib.AbstractAsyncContextManager[None]: ...

    @abstractmethod
    async def write(self, text: str, *, has_file: bool) -> None:
        """Ann writes, also with a picture."""

    @abstractmethod
    def trouble(self, dice: random.Random) -> None:
        """Have the next call that says something fail, or not."""

    @abstractmethod
    def said(self) -> list[str]:
        """Return what the bot said to ann, as it was sent."""

    @abstractmethod
    def meant(self, said: Said) -> list[str]:
        """Return the parts of what was to be said."""


class Modern(Network):
    """Slack or Discord."""

    def __init__(self, name: str, who: str, server: SlackServer | DiscordServer) -> None:
        super().__init__(name, who, server.direct(who))
        self._server = server
        self._server.files.ways["cat"] = whole(CAT)

    @property
    def section(self) -> dict[str, Any]:
        return self._server.section()

    def running(self) -> contextlib.AbstractAsyncContextManager[None]:
        return self._server.running()

    async def write(self, text: str, *, has_file: bool) -> None:
        url = f"{self._server.url}/sent/cat"
        field = "files" if isinstance(self._server, SlackServer) else "attachments"
        files = [{"url": url, "url_private": url}] if has_file else []
        await self._server.write(self.who, text, **{field: files})

    def trouble(self, dice: random.Random) -> None:
        self._server.behaviours.append(dice.choice(TROUBLES))
        if isinstance(self._server, SlackServer) and dice.random() < 0.2:
            # It was told three times, and isn't any more.
            self._server.unacknowledged.clear()

    def said(self) -> list[str]:
        field = "text" if isinstance(self._server, SlackServer) else "content"
        return [one.given[field] for one in self._server.said if one.room == self.room]

    def meant(self, said: Said) -> list[str]:
        if isinstance(self._server, SlackServer):
            return [one.text for one in composed_for_slack(said, "")[0]]
        return list(texts_of(said, "").texts)


class Telegram(Network):
    def __init__(self) -> None:
        super().__init__("telegram", "77", "77")
        self._server = TelegramServer()
        self._server.files.ways["cat"] = whole(CAT)

    @property
    def section(self) -> dict[str, Any]:
        server = telegram_server
        return {
            "kind": "telegram", "bot": server.BOT, "token": server.TOKEN,
            "api_url": self._server.url, "poll_s": 2.0,
        }  # fmt: skip

    def running(self) -> contextlib.AbstractAsyncContextManager[None]:
        return self._server.running()

    async def write(self, text: str, *, has_file: bool) -> None:
        if has_file:
            photo = [{"file_id": "cat"}]
            self._server.write(int(self.who), "", caption=text, photo=photo)
        else:
            self._server.write(int(self.who), text)

    def trouble(self, dice: random.Random) -> None:
        server = telegram_server
        ways = (half, server.in_trouble(is_stored=True), server.cut, server.too_many(1))
        self._server.behaviours.append(dice.choice(ways))

    def said(self) -> list[str]:
        return [one.source for one in self._server.said]

    def meant(self, said: Said) -> list[str]:
        return [one.html or one.text for one in composed_for_telegram(said, "")[0]]


def text_of(name: str, which: int) -> str:
    """Return what ann says: also what takes more than one message to answer."""
    more = ("", f"\n\n{'long ' * 900}end", "\n\nGrüße 🙂")
    return f"{name} {which}{more[which % len(more)]}"


def check_said(network: Network, several: list[Said], ends: dict[str, str]) -> None:
    """Check what stands in a network: each part once at most, in order, and all of what counts as
    delivered."""
    there, at = network.said(), 0
    for one in several:
        parts, begun = network.meant(one), at
        for part in parts:
            at += at < len(there) and there[at] == part
        arrived = at - begun
        is_whole = arrived == len(parts)
        assert is_whole or ends[one.id] != "delivered", (network.name, one.text[:40], ends[one.id])
        assert ends[one.id] in ("delivered", "ambiguous") or not arrived, ends[one.id]
    assert at == len(there), (network.name, there[at][:40])


async def check_files(bus: Bus) -> None:
    """Check that what was sent with a picture has it, and that it's kept."""
    events = [decode_event(one.data) for one in await records(bus, "in.said.user")]
    for one in events:
        assert isinstance(one, UserMessage)
        number = int(one.payload.text.split()[1])
        assert len(one.payload.attachments) == (number % 2 == 0), one.payload.text[:20]
        for file in one.payload.attachments:
            assert await store.is_kept(bus, "ann", file.hash)
            assert await store.read(bus, "ann", file) == CAT


async def test_each_message_is_heard_once_and_said_once_whatever_is_killed(
    tmp_path: Path, is_long: bool, seed: int
) -> None:
    """D-2, D-3: 40 kills in the long form, with all three."""
    kills, dice = 40 if is_long else 3, random.Random(seed)
    points = (*POINTS, *FILE_POINTS) if is_long else POINTS
    plan = {"gateway": points, "delivery": (), "cortex": ()}
    networks: list[Network] = [
        Modern("slack", "U0ANN", SlackServer()),
        Modern("discord", "77", DiscordServer()),
        *([Telegram()] if is_long else []),  # its library takes a second to import, each time
    ]
    async with contextlib.AsyncExitStack() as running:
        for one in networks:
            await running.enter_async_context(one.running())
        sections = [toml_of(one.name, TERMS | one.section) for one in networks]
        (tmp_path / "vigil.toml").write_text("\n".join(sections))
        async with killable(tmp_path, steps_of(plan), SETTINGS) as (stack, processes):
            bus = await stack.bus("admin")
            for one in networks:
                await pair(bus, "ann", one.who, one.room, channel=one.name)
            async with asyncio.timeout(60):
                places = "$KV.CONFIG.mail.place.>"
                pause_s = pauses()
                while len(await bus.read("KV_CONFIG", [places])) < len(networks):
                    await asyncio.sleep(next(pause_s))

            async def converse(network: Network) -> None:
                for which in range(max(kills // 2, 2)):
                    await network.write(text_of(network.name, which), has_file=which % 2 == 0)
                    network.trouble(dice)
                    await asyncio.sleep(dice.uniform(0.0, 0.3))

            writing = asyncio.gather(*map(converse, networks))
            killed: Counter[str] = Counter()
            while killed.total() < kills:
                await asyncio.sleep(dice.uniform(0.05, 0.8))
                name = dice.choice(SERVICES)
                killed[name] += processes.kill(name)
            await writing

            wanted = [
                [text_of(one.name, which) for which in range(max(kills // 2, 2))]
                for one in networks
            ]
            async with asyncio.timeout(SETTLED_S):
                while not {text for each in wanted for text in each} <= set(await texts_heard(bus)):
                    processes.check()
                    await asyncio.sleep(0.1)
            await processes.plans_over(SETTLED_S)  # who ended at the last begins anew
            ends = await all_settled(bus)
            heard = await texts_heard(bus)
            for one, texts in zip(networks, wanted, strict=True):
                assert [text for text in heard if text.startswith(one.name)] == texts
            await check_files(bus)
            several = [decode_said(one.data) for one in await records(bus, "out.said.*")]
            orders = [decode_dispatch(one.data) for one in await records(bus, "send.*")]
            over = {one.effect_id: one.channel for one in orders}
            for one in networks:
                check_said(one, [each for each in several if over[each.id] == one.name], ends)
            crashed = {one.crash_at.partition(":")[0] for one in processes.exits if one.is_crash}
            assert crashed == set(points)
            assert not [fault for fault in processes.faults() if "Traceback" in fault]
            print(f"killed {dict(killed)}, seed {seed}: {Counter(ends.values())}")
