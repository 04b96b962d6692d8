"""Files of its workspace that an agent has go with what it says, where a network takes them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from services.cortex.core.tools.calls import ATTACHED_MAX, NOT_ATTACHED
from services.delivery.channels import WithoutFiles
from tests.acceptance.test_openai_tools import results
from tests.support.agent import ask, ask_in_steps
from tests.support.chat_network import as_usual
from tests.support.chats import pair
from tests.support.discord_server import DiscordServer
from tests.support.mailing import until_told
from tests.support.on_loopback import half
from tests.support.pictures import pdf, png
from tests.support.slack_server import SlackServer
from tests.support.telegram_server import BOT, TOKEN, TelegramServer, too_many
from tests.support.world import World, running_world
from vigil.channels.answers import Taken
from vigil.channels.telegram.sender import file_call
from vigil.clock import SystemClock
from vigil.contracts import Attachment, Said

TELEGRAM: Final = "tele"
SLACK: Final = "slack"
ANN: Final = 77
CHART: Final = png(5, 4)
PLAN: Final = pdf(2)
BOTH: Final = ask_in_steps(
    [("attach_file", {"path": "chart.png"})], [("attach_file", {"path": "my plan.pdf"})]
)


def workspace(world: World) -> Path:
    found = world.stack.settings.workspaces / "vigil" / "ann"
    found.mkdir(parents=True, exist_ok=True)
    (found / "chart.png").write_bytes(CHART)
    (found / "my plan.pdf").write_bytes(PLAN)
    (found / "notes.bin").write_bytes(b"None of it.\0")
    return found


@contextlib.asynccontextmanager
async def running(
    home: Path, monkeypatch: pytest.MonkeyPatch, **channels: dict[str, Any]
) -> AsyncIterator[World]:
    sections: dict[str, Any] = {"channels": channels, "health": {"circuit_open_s": 0.05}}
    async with running_world(home, monkeypatch, SystemClock(), has_hands=True, **sections) as it:
        for name in channels:
            await until_told(it, "gateway", "hears", name, "listening")
        yield it


async def test_files_go_with_the_next_message_and_where_none_can_it_says_that_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-1, D-2: a photo and a document in Telegram, once, with what is said next and with nothing
    after it; a channel that carries none names them."""
    telegram, slack = TelegramServer(), SlackServer()
    async with telegram.running(), slack.running():
        bot = {
            "kind": "telegram", "bot": BOT, "token": TOKEN, "api_url": telegram.url,
            "backoff_base_s": 0.05, "poll_s": 2.0,
        }  # fmt: skip
        channels = {TELEGRAM: bot, SLACK: slack.section()}
        async with running(tmp_path, monkeypatch, **channels) as world:
            folder = workspace(world)
            await pair(world.admin, "ann", f"{ANN}", channel=TELEGRAM)
            await pair(world.admin, "ann", "U0ANN", slack.direct("U0ANN"), channel=SLACK)
            talk = world.talk("ann:vigil:main")
            telegram.behaviours.append(too_many(1))  # it waits, and nothing comes twice
            telegram.write(ANN, BOTH)
            await talk.until(lambda: len(talk.receipts) == 1)
            assert [one.text for one in telegram.said] == ["Done."]
            assert telegram.sent_files == [
                ("sendPhoto", ANN, "chart.png", CHART),
                ("sendDocument", ANN, "my plan.pdf", PLAN),
            ]
            assert telegram.refused == []
            assert [one.name for one in talk.said[0].attachments] == ["chart.png", "my plan.pdf"]
            hers = await world.gate.person("ann")
            shown = (await hers.get("/api/sessions/ann:vigil:main")).json()["messages"][-1]
            files = [one["hash"] for one in shown["attachments"]]
            assert (await hers.get(f"/api/attachments/{files[0]}")).content == CHART
            his = await world.gate.person("bob")
            assert (await his.get(f"/api/attachments/{files[0]}")).status_code == 404

            # No more with the message after that; and what is no file that may go isn't one.
            wrong = [("attach_file", {"path": path}) for path in ("notes.bin", "../x", "none.png")]
            telegram.write(ANN, ask(*wrong))
            await talk.until(lambda: len(talk.receipts) == 2)
            assert talk.said[1].attachments == ()
            told = " ".join(results(world.agent.requests[-1]))
            assert "must be a PNG, JPEG, GIF or WebP image, a PDF file, or text" in told
            many = [("attach_file", {"path": f"{n}.png"}) for n in range(ATTACHED_MAX + 1)]
            for number in range(ATTACHED_MAX + 1):
                (folder / f"{number}.png").write_bytes(png(5, 4, fill=b"%d" % number))
            slack.may_send_files = False
            await slack.write("U0ANN", ask_in_steps(many[:6], many[6:]))
            lines = (await slack.until(1))[0].text.splitlines()
            assert lines[0] == "Done."
            assert all(
                one.startswith("[") and one.endswith(".png, 5x4 pixels, 1 kB: in the conversation]")
                for one in lines[2:]
            )
            assert len(set(lines)) == len(lines) == 2 + ATTACHED_MAX
            assert results(world.agent.requests[-1]).count(NOT_ATTACHED) == 1
            slack.refused.clear()

            # Slack has them before anything is said, and shows them behind it.
            slack.may_send_files = True
            await slack.write("U0ANN", BOTH)
            await talk.until(lambda: len(talk.receipts) == 4)
            own = slack.direct("U0ANN")
            assert slack.said[1].text == "Done."
            assert slack.sent_files == [(own, "chart.png", CHART), (own, "my plan.pdf", PLAN)]
            assert (slack.refused, slack.kept) == ([], {})


class Kept:
    """A way out that keeps what is sent."""

    def __init__(self) -> None:
        self.said: list[Said] = []

    async def send(self, said: Said, seq: int) -> Taken:
        self.said.append(said)
        return Taken()

    async def close(self) -> None: ...


async def test_a_channel_that_carries_none_names_them() -> None:
    file = Attachment(hash="0a", name="a.png", type="image/png", size=9_000, width=8, height=6)
    said = Said(
        id="e", session_key="ann:vigil:main", text="Look.", at=SystemClock().now(), caused_by="m",
        turn_seq=1,
    )  # fmt: skip
    way = Kept()
    for one in (said, replace(said, attachments=(file,))):
        await WithoutFiles(way).send(one, 1)
    lines = ["Look.", "Look.\n\n[a.png, 8x6 pixels, 9 kB: in the conversation]"]
    assert [one.text for one in way.said] == lines
    assert not any(one.attachments for one in way.said)


async def test_files_come_into_a_channel_of_discord_once_though_an_answer_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-1, D-2: a message of its own, which Discord knows when it's sent again."""
    discord = DiscordServer()
    async with contextlib.AsyncExitStack() as ends:
        await ends.enter_async_context(discord.running())
        channels = {"discord": discord.section()}
        world = await ends.enter_async_context(running(tmp_path, monkeypatch, **channels))
        workspace(world)
        own = discord.direct(f"{ANN}")
        await pair(world.admin, "ann", f"{ANN}", own, channel="discord")
        discord.behaviours[:] = [as_usual, half]
        await discord.write(f"{ANN}", BOTH)
        talk = world.talk("ann:vigil:main")
        await talk.until(lambda: len(talk.receipts) == 1)
        assert talk.receipts[0].outcome == "delivered"
        assert discord.sent_files == [(own, "chart.png", CHART), (own, "my plan.pdf", PLAN)]
        assert [one.text for one in discord.said] == ["Done.", "", ""]
        assert discord.refused == []


@pytest.mark.parametrize(
    ("type_", "sides", "method"),
    [
        ("image/png", (5, 4), "sendPhoto"),
        ("image/jpeg", (5_000, 5_000), "sendPhoto"),
        ("image/jpeg", (5_000, 5_001), "sendDocument"),
        ("image/png", (2_001, 100), "sendDocument"),
        ("image/png", (0, 0), "sendDocument"),
        ("image/gif", (5, 4), "sendDocument"),
        ("application/pdf", (0, 0), "sendDocument"),
    ],
)
def test_telegram_shows_a_picture_where_it_can(
    type_: str, sides: tuple[int, int], method: str
) -> None:
    file = Attachment(hash="0a", name="x", type=type_, size=1, width=sides[0], height=sides[1])
    assert file_call(file, b"x", "7").__api_method__ == method
