"""Places at work, shared among people: pure orders of events, and a second person who is quiet."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from services.executor.places import SharedPlaces, part_of
from tests.support.executing import call, has_begun, open_gate, session_of
from tests.support.stack import Stack
from vigil.subjects import SessionKey

BOB = SessionKey("bob", "vigil", "t1")


class Scene:
    """Shares, and who got a place in which order."""

    def __init__(self, places: int, per_person: int) -> None:
        self.shares = SharedPlaces(places, per_person)
        self.order: list[str] = []
        self.at_work: Counter[str] = Counter()
        self.tasks: list[asyncio.Task[None]] = []
        self._ends: list[tuple[str, asyncio.Event]] = []

    async def ask(self, *people: str) -> None:
        for person in people:
            self.tasks.append(asyncio.create_task(self._work(person)))
        await self.settle()

    async def _work(self, person: str) -> None:
        async with self.shares.place(person):
            self.order.append(person)
            self.at_work[person] += 1
            end = asyncio.Event()
            self._ends.append((person, end))
            try:
                await end.wait()
            finally:
                self.at_work[person] -= 1

    async def end(self, person: str = "") -> None:
        """End the oldest that works, of that person."""
        found = next(one for one in self._ends if person in ("", one[0]))
        self._ends.remove(found)
        found[1].set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_nobody_has_more_than_their_part() -> None:
    scene = Scene(4, 2)
    await scene.ask(*"aaaaaaaa")
    assert scene.at_work == {"a": 2}
    await scene.ask("b")
    assert scene.at_work == {"a": 2, "b": 1}
    await scene.close()


async def test_who_waits_is_served_in_turns() -> None:
    """Not in the order of calls: twenty of one person are one turn of each other's wait."""
    scene = Scene(2, 2)
    await scene.ask(*"aaaaaa", *"bbb", "c")
    for _ in range(8):
        await scene.end()
    assert "".join(scene.order) == "aaabcababa"
    await scene.close()


async def test_places_come_back_whatever_happens() -> None:
    """Random asks, ends and cancellations: never more than there are, never one lost."""
    seeded = random.Random(7)
    scene = Scene(5, 3)
    for _ in range(400):
        match seeded.choice(("ask", "ask", "end", "cancel")):
            case "ask":
                await scene.ask(seeded.choice("abcd"))
            case "end" if scene._ends:
                await scene.end(seeded.choice(scene._ends)[0])
            case "cancel" if scene.tasks:
                seeded.choice(scene.tasks).cancel()
                await scene.settle()
        scene._ends = [one for one in scene._ends if not one[1].is_set()]
        assert sum(scene.at_work.values()) <= 5
        assert max(scene.at_work.values(), default=0) <= 3
    await scene.close()
    fresh = len(scene.order)
    await scene.ask(*"abcdab")
    assert len(scene.order) - fresh == 5
    await scene.close()
    assert scene.shares._free == 5
    assert not scene.shares._waiting


def test_one_person_never_has_all() -> None:
    assert [part_of(places, 16) for places in (1, 2, 8, 16, 32)] == [1, 1, 7, 15, 16]


async def test_a_second_person_works_beside_one_who_takes_all_there_is(
    bare: Stack, limits: None
) -> None:
    """Twenty calls that don't end held all the places, for everybody."""
    await bare.start("executor")
    ann, bob = await session_of(bare), await session_of(bare, BOB)
    held = [call("count", n, gate="gate", text=str(n)) for n in range(40)]
    await ann.turn(*held)
    await has_begun(bare, held[0])
    for number in range(5):
        one = call("count", 100 + number, key=BOB, text="quick")
        await bob.turn(one)
        assert (await bob.result(one)).payload.content == "count quick"
    open_gate(bare)
    for one in held:
        await ann.result(one)
