"""One request, answered at the same instant at four doors: a page of the console on a phone, a room
of Matrix, a button in Telegram and the command. One verdict counts; everybody is told which, and by
whom (SPEC X-2, D-1)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from services.gateway.state.intake import Intake
from tests.support import chromium
from tests.support.agent import ask
from tests.support.chats import CHANNEL as ROOM
from tests.support.chats import Chat, pair, section, until
from tests.support.chromium import Tab
from tests.support.cli import Cli
from tests.support.console import link_of
from tests.support.mailing import until_told
from tests.support.matrix_server import Correspondent, running_matrix_server
from tests.support.telegram_server import BOT, TOKEN, TelegramServer
from tests.support.world import World, running_world
from vigil.clock import SystemClock
from vigil.contracts import Approval, BoardChange, CallTool, Control, Event, UserMessage, short_name

pytestmark = pytest.mark.skipif(chromium.binary() is None, reason="there is no Chromium here")
TELEGRAM: Final = "tele"
PHONE: Final = "phone"
COMMAND: Final = "command"
DOORS: Final = (PHONE, ROOM, TELEGRAM, COMMAND)
ANN: Final = 77
WIDTH: Final = 390
"""Of the phone, in pixels."""
SAID_BY_COMMAND: Final = "by the command"
OF_A_VERDICT: Final = ("Too late: ", "Nothing to ", "Accepted: ", "Rejected: ")
DONE: Final = {"accept": "Accepted", "reject": "Rejected"}


class Doors:
    """Verdicts that came in at the gateway, each held until it is let through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._came: dict[str, asyncio.Event] = {}
        self._let: dict[str, asyncio.Event] = {}
        self._stored: dict[str, asyncio.Event] = {}
        self._id = ""
        store_really = Intake._store

        async def store(intake: Intake, subject: str, event: Event, *args: Any, **of: Any) -> Any:
            door = self._door_of(event)
            if not door:
                return await store_really(intake, subject, event, *args, **of)
            self._came[door].set()
            await self._let[door].wait()
            try:
                return await store_really(intake, subject, event, *args, **of)
            finally:
                self._stored[door].set()

        monkeypatch.setattr(Intake, "_store", store)

    def hold(self, id_: str) -> None:
        """Hold verdicts on that request from now on."""
        self._id = id_
        for held in (self._came, self._let, self._stored):
            held.update({door: asyncio.Event() for door in DOORS})

    async def all_came(self) -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(one.wait() for one in self._came.values()))

    async def let(self, *doors: str) -> None:
        """Let verdicts through, and wait until they are stored or turned down."""
        for door in doors:
            self._let[door].set()
        async with asyncio.timeout(60):
            await asyncio.gather(*(self._stored[door].wait() for door in doors))

    def _door_of(self, event: Event) -> str:
        match event:
            case UserMessage() if self._names(event.payload.text):
                return event.payload.channel
            case Control() if (told := event.payload.decision) and told.approval_id == self._id:
                return COMMAND if told.text == SAID_BY_COMMAND or told.input else PHONE
        return ""

    def _names(self, text: str) -> bool:
        return bool(self._id) and (self._id in text or short_name(self._id) in text)


class Ann:
    """Somebody with a phone, a room, Telegram and a terminal."""

    def __init__(
        self, chat: Chat, telegram: TelegramServer, tab: Tab, cli: Cli, who: Correspondent
    ) -> None:
        self.world = chat.world
        self.talk = chat.world.talk("ann:vigil:main")
        self._chat = chat
        self._telegram = telegram
        self._tab = tab
        self._cli = cli
        self._who = who
        self._room = ""
        self._begun: dict[str, int] = {}

    async def come_in(self) -> None:
        """Make the room, and sign in with the phone."""
        await pair(self.world.admin, "ann", self._who.user)
        self._room = await self._chat.room_of(self._who)
        await pair(self.world.admin, "ann", f"{ANN}", channel=TELEGRAM)
        await self._tab.look(width=WIDTH)
        link = await link_of(self.world.gate, await self.world.gate.token("ann"))
        await self._tab.go(f"http://127.0.0.1:{self.world.gate.port}{link}")
        await self._tab.press("form button")

    async def is_asked(self, command: str) -> Approval:
        """Have the agent ask for leave to run a command, where she has it come; return that."""
        before = len(self._telegram.said)
        known = {one.id for one in self._requests()}
        await self.talk.outside(ask(("shell", {"command": command})))
        await self._telegram.until(before + 1)
        await self.talk.until(lambda: {one.id for one in self._requests()} - known)
        self._begun = {ROOM: len(self._said_in_room()), TELEGRAM: before}
        return self._requests()[-1]

    def _requests(self) -> list[Approval]:
        return [one for one in self.on_board() if one.state == "open"]

    def on_board(self) -> list[Approval]:
        """Return the states of all requests, as the log has them."""
        return [
            effect.payload.entity
            for turn in self.talk.turns
            for effect in turn.effects
            if isinstance(effect, BoardChange) and isinstance(effect.payload.entity, Approval)
        ]

    def runs(self, id_: str) -> int:
        """Return how many calls a request let run."""
        return sum(
            isinstance(effect, CallTool) and effect.payload.approval_id == id_
            for turn in self.talk.turns
            for effect in turn.effects
        )

    async def decide(self, asked: Approval, verdicts: dict[str, str]) -> asyncio.Task[Any]:
        """Say a verdict at each door; returns the command as it runs."""
        button = next(one for one in reversed(self._telegram.said) if one.buttons)
        data = [f"{verdicts[TELEGRAM]}:{asked.id}"]
        assert data[0] in [one["callback_data"] for one in button.buttons]
        self._telegram.press(ANN, button, data[0])
        words = f"{verdicts[ROOM]} {asked.name}"
        await asyncio.to_thread(self._who.say, self._room, words)
        running = asyncio.create_task(self._by_command(asked, verdicts[COMMAND]))
        await self._by_phone(asked, verdicts[PHONE])
        return running

    async def _by_phone(self, asked: Approval, verdict: str) -> None:
        await self._tab.go(f"http://127.0.0.1:{self.world.gate.port}/console/inbox")
        button = f"#a-{asked.id} button[value={verdict}]"
        if verdict == "accept":
            await self._tab.press(button)
            button = "#sure button"
        await self._tab.press_here(button)

    async def _by_command(self, asked: Approval, verdict: str) -> str:
        given = {"accept": ("edit", "--input", '{"command": "true"}'), "reject": ("reject",)}
        name, *options = given[verdict]
        text = [SAID_BY_COMMAND] if verdict == "reject" else []
        told = await asyncio.to_thread(
            self._cli, "approvals", name, asked.id, *text, *options, code=None
        )
        return told.stdout + told.stderr

    # ------------------------------------------------------------ what she is told

    def _said_in_room(self) -> list[str]:
        found = self._who.messages(self._room)
        return [one["content"]["body"] for one in found if one["sender"] == self._chat.agent.user]

    def _of_verdicts(self, said: list[str]) -> list[str]:
        return [one for one in said if one.startswith(OF_A_VERDICT)]

    async def told(self, door: str, words: str) -> list[str]:
        """Wait until something with these words was said of a verdict at a door; return all that
        was."""

        def look() -> list[str]:
            said = self._said_in_room() if door == ROOM else [m.text for m in self._telegram.said]
            found = self._of_verdicts(said[self._begun[door] :])
            return found if any(words in one for one in found) else []

        return await until(look)

    async def shown(self, words: str) -> str:
        """Wait until the phone shows these words; return what it shows."""
        await self._tab.until(f"document.body.innerText.includes({words!r})")
        return await self._tab.text()

    async def is_wide(self) -> bool:
        """Return whether the phone's page would have to be moved sideways."""
        return bool(await self._tab.run("document.documentElement.scrollWidth > innerWidth"))


@contextlib.asynccontextmanager
async def somebody(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ann]:
    """All services, with a real Synapse, a Bot API of ours, and a real Chromium."""
    telegram = TelegramServer()
    with running_matrix_server() as synapse:
        agent = await asyncio.to_thread(synapse.account, "vigil")
        who = await asyncio.to_thread(synapse.account, "ann")
        async with telegram.running(), chromium.opened(home / "profile") as tab:
            bot = {
                "kind": "telegram", "bot": BOT, "token": TOKEN, "api_url": telegram.url,
                "backoff_base_s": 0.05, "poll_s": 2.0,
            }  # fmt: skip
            sections: dict[str, dict[str, Any]] = {
                "channels": {ROOM: section(synapse, agent), TELEGRAM: bot},
                "person": {"channel": TELEGRAM},
                "autonomy": {"enabled": True, "max_consecutive": 100, "cooldown_ms": 0},
            }
            async with running_world(
                home / "vigil", monkeypatch, SystemClock(), has_hands=True, **sections
            ) as world:
                for name in (ROOM, TELEGRAM):
                    await until_told(world, "gateway", "hears", name, "listening")
                yield await _ann(world, synapse, agent, who, telegram, tab, home)


async def _ann(
    world: World,
    synapse: Any,
    agent: Correspondent,
    who: Correspondent,
    telegram: TelegramServer,
    tab: Tab,
    home: Path,
) -> Ann:
    (home / "command").mkdir()
    cli = Cli(
        home / "command",
        VIGIL_URL=f"http://127.0.0.1:{world.gate.port}",
        VIGIL_TOKEN=await world.gate.token("ann"),
    )
    ann = Ann(Chat(world, synapse, agent), telegram, tab, cli, who)
    await ann.come_in()
    return ann


@pytest.mark.long
async def test_of_four_verdicts_at_once_one_counts_and_all_are_told_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-2, D-1: each door wins once; and once more with the agent away, so that no verdict is known
    to it before all are stored."""
    doors = Doors(monkeypatch)
    async with somebody(tmp_path, monkeypatch) as ann:
        rounds = [(door, False) for door in DOORS] + [(PHONE, True), (ROOM, True)]
        for number, (winner, is_away) in enumerate(rounds):
            asked = await ann.is_asked(f"ls at{number}")
            counts = ("accept", "reject")[number % 2]
            other = "reject" if counts == "accept" else "accept"
            doors.hold(asked.id)
            verdicts = {door: counts if door == winner else other for door in DOORS}
            running = await ann.decide(asked, verdicts)
            await doors.all_came()
            if is_away:
                await ann.world.stack.stop("cortex")
            await doors.let(winner)
            await doors.let(*(door for door in DOORS if door != winner))
            if is_away:
                await ann.world.stack.start("cortex")
            await check(ann, asked, winner, counts, await running, is_away=is_away)


async def check(
    ann: Ann, asked: Approval, winner: str, counts: str, printed: str, *, is_away: bool
) -> None:
    """Check what was decided, and what was said of it at each door."""
    by = f"by ann over {winner}" if winner in (ROOM, TELEGRAM) else "by ann"
    state = "edited" if (winner, counts) == (COMMAND, "accept") else f"{counts}ed"
    word = "accepted with other arguments" if state == "edited" else state
    became = f"{asked.name} was {word} {by}"
    await ann.talk.until(lambda: [one for one in ann.on_board() if one.id == asked.id][1:])
    for door in (ROOM, TELEGRAM):
        words = DONE[counts] if door == winner else f"Too late: {became} at "
        assert len(await ann.told(door, words)) == 1, "once"
    shown = await ann.shown(f"was {word} {by}")
    assert shown.count(f"was {word} {by}") == 1
    assert not await ann.is_wide()
    if winner == COMMAND:
        assert printed.startswith(DONE[counts])
    elif not is_away:
        assert f"it was {word} {by}" in printed
    await ann.world.at_rest()
    ends = [one for one in ann.on_board() if one.id == asked.id]
    assert [(one.state, one.decided_by) for one in ends] == [("open", ""), (state, "ann")]
    assert ann.runs(asked.id) == (counts == "accept")
    for door in (ROOM, TELEGRAM):
        assert len(await ann.told(door, "")) == 1, "and no more when all is done"
