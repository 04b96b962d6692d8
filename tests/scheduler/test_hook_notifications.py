"""Notifications of a hook's facts, at home, by the scheduler (FLOW F-10)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Final

from services.scheduler.notifications.hooks import HookNotifier
from tests.support.pauses import pauses
from tests.support.stack import Stack
from tests.support.world import StoppedClock
from vigil.board.kept import FACTS, KeptBoard
from vigil.contracts import Change, ToldEvent, decode_event
from vigil.contracts.board import SourceFacts
from vigil.facts.hooked import read_hooked, source_id
from vigil.facts.taken import taken
from vigil.facts.wanted import rules_of_wanted, shapes_of_wanted
from vigil.settings.config import Config
from vigil.settings.sections import Hook, Person
from vigil.subjects import SessionKey

NAMED: Final = {"ci": "one_of[passing, failing] at /ci news to failing", "open": "count at /open"}
HOOKS: Final = {
    name: Hook(user=user, thread="ci", secrets=("x",), facts=NAMED)
    for name, user in {"build": "ann", "docs": "ben", "old": "gone"}.items()
}


class Hooked:
    """A hook whose events tell facts, as the gateway takes them."""

    def __init__(self, board: KeptBoard[SourceFacts], clock: StoppedClock, name: str) -> None:
        self._board, self._clock = board, clock
        user = HOOKS[name].user
        id_ = source_id(name, SessionKey(user, "vigil", "ci"))
        self.source = SourceFacts(id=id_, owner=user, agent="vigil")
        self.count = self._number = 0

    async def tell(self, bits_max: int = 512, **given: Any) -> None:
        self.count += 1
        wanted, now = read_hooked(NAMED), self._clock.now()
        self.source = taken(
            self.source, shapes_of_wanted(wanted), given, now, bits_max=bits_max,
            cause=f"e{self.count}", rules=rules_of_wanted(wanted), is_event=True,
        )  # fmt: skip
        change = Change(by="hook")
        stored = await self._board.replace(self._number, self.source, change, now)
        self._number = stored.number


async def test_news_is_told_once_whoever_was_the_scheduler_and_old_news_is_none(
    bare: Stack,
) -> None:
    bus, admin = await bare.bus("scheduler"), await bare.bus("admin")
    clock, board = StoppedClock(), KeptBoard(admin, FACTS)
    config = Config(hooks=HOOKS, person=Person(timezone="Asia/Tokyo"))
    context: Any = SimpleNamespace(bus=bus, clock=clock, settings=SimpleNamespace(config=config))
    pause: Any = SimpleNamespace(
        zone_of=lambda _: "Asia/Tokyo", is_erasing=lambda user: user == "gone"
    )
    build, docs, old = (Hooked(board, clock, name) for name in HOOKS)

    async def told(user: str) -> list[str]:
        home = SessionKey(user, "vigil", "main")
        events = [decode_event(one.data) for one in await admin.read("SESSIONS", [home.in_all])]
        assert all(isinstance(one, ToldEvent) for one in events)
        payloads = [one.payload for one in events if isinstance(one, ToldEvent)]
        assert not any(one.is_tainted or one.urgency != "low" for one in payloads)
        return [one.text for one in payloads]

    async def term() -> list[str]:
        """Be the scheduler until what is there was read; return all that Ann was told."""
        before = len(await told("ben"))
        for ci in ("passing", "failing"):  # what comes last tells that all else was read
            await docs.tell(ci=ci)
        task = asyncio.create_task(HookNotifier(context, pause).run())
        async with asyncio.timeout(20):
            pause_s = pauses()
            while len(await told("ben")) == before:
                await asyncio.sleep(next(pause_s))
        task.cancel()
        await asyncio.wait((task,))
        return await told("ann")

    await build.tell(ci="failing", open=3)
    await old.tell(ci="failing")
    at = clock.now() + timedelta(hours=9)
    first = f"ci: failing since {at:%H:%M} (hook build)"
    assert await term() == [first]
    assert await term() == [first], "the next scheduler finds the same there"
    assert await told("gone") == []
    await build.tell(ci="passing")  # that it passes again is no news, as named
    assert await term() == [first]
    await build.tell(ci="failing")
    clock.move(2 * 86_400)
    assert await term() == [first], "two days later it may be otherwise"
    await build.tell(bits_max=1, ci="failing", open=9)
    full = "The facts of hook build changed so much today that no more are taken until 00:00 UTC "
    assert [one.startswith(full) for one in await term()] == [False, True]
    await build.tell(bits_max=1, ci="passing")
    assert len(await term()) == 2, "once a day"
