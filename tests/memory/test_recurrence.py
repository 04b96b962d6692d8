"""What comes up again and again becomes an observation, without a model (SPEC C-6)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.memory.rules import recurrence
from services.memory.rules.recurrence import Remark, observations
from services.memory.store.fold import Entry
from services.memory.store.store import Store
from services.memory.upkeep.passes import Passes
from tests.memory.test_passes import NOW, World, _Away
from tests.support.memory_records import ANN, BOB, DAY, associated, edge, forgotten, saved, undone
from vigil.contracts import MemorySaved
from vigil.memory.operations.list import ListMemories


def told(seq: int, content: str, day: int, thread: str = "main", **fields: Any) -> Entry:
    """A memory of a conversation, so many days before now."""
    return saved(
        seq, content, occurred_at=NOW - day * DAY, thread=thread, source=f"chat:{thread}", **fields
    )


async def _made(world: World) -> list[str]:
    found = await world.store.list(
        ANN, ListMemories(source=recurrence.SOURCE, limit=50), world.clock.time
    )
    return [one.content for one in found.memories]


async def test_what_comes_up_on_three_occasions_is_observed_once(tmp_path: Path) -> None:
    """C-6: with its members; made anew when it came up twice as often; forgotten with a member."""
    store = await Store.open(tmp_path / "0")
    world = World(store, _Away())  # type: ignore[arg-type]
    world.passes = Passes(store, world.index, world.append, world.clock)
    await world.apply(
        told(1, "My back hurts after running", 9),
        told(2, "The back hurts again after the run", 5),
        told(3, "Same evening: still hurts", 5),
        associated(4, edge(2, 1), edge(3, 2)),
    )
    assert (await world.passes.maintain([ANN])).observed == 0  # two occasions
    await world.apply(
        told(10, "Ran 5 km; my back hurts", 1, "t2"),
        told(11, "Ran, says a page", 2, "t3", is_tainted=True),
        told(12, "Ran, says a worker", 2, "_worker-1"),
        saved(13, "Ran long ago", occurred_at=NOW - 40 * DAY, thread="t4"),
        saved(14, "Somebody else ran", scope=BOB, thread="t1"),
        associated(15, edge(10, 2), edge(11, 1), edge(12, 1), edge(13, 1)),
    )
    done = await world.passes.maintain([ANN, BOB])
    assert (done.observed, done.message) == (1, "1 observation made.")
    days = [f"{NOW - n * DAY:%Y-%m-%d}" for n in (9, 1)]
    text = f"Came up 3 times from {days[0]} to {days[1]}: Ran 5 km; my back hurts"
    assert await _made(world) == [text]
    (record,) = [one for one in world.written if isinstance(one, MemorySaved)]
    assert (record.by, record.memory.type, len(record.memory.provenance)) == (
        "maintenance", "observation", 4,
    )  # fmt: skip
    assert (await world.passes.maintain([ANN, BOB])).observed == 0

    again = [told(20 + n, f"Back, {n}", 2 + n, f"s{n}") for n in range(3)]
    await world.apply(*again, associated(30, edge(20, 10), edge(21, 20), edge(22, 21)))
    assert (await world.passes.maintain([ANN])).observed == 1
    assert len(await _made(world)) == 2

    # Whoever forgets what it quotes forgets it, and it isn't made again; nor what is undone.
    await world.apply(forgotten(40, 10))
    assert await _made(world) == []
    assert (await world.passes.maintain([ANN])).observed == 0
    await world.apply(undone(41, 1))
    await store.close()


async def test_one_whose_member_went_meanwhile_is_void(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "0")
    world = World(store, _Away())  # type: ignore[arg-type]
    await world.apply(
        *(told(n, "Tea again", n, f"t{n}") for n in (1, 2, 3)),
        associated(4, edge(2, 1), edge(3, 2)),
    )
    append, held = world.append, []

    async def hold(scope: Any, record: Any) -> int:
        held.append(record)
        return 0

    world.passes = Passes(store, world.index, hold, world.clock)
    assert (await world.passes.maintain([ANN])).observed == 1
    await world.apply(forgotten(5, 2))
    await append(ANN, held[0])
    assert await _made(world) == []
    await store.close()


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 29)), max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20),
)
def test_an_observation_is_of_three_occasions_and_made_once(
    drawn: list[tuple[int, int]], pairs: list[tuple[int, int]]
) -> None:
    said = [
        Remark(id=f"{n:032x}", num=n, thread=f"t{thread}", content="x", at=NOW - day * timedelta(1))
        for n, (thread, day) in enumerate(drawn)
    ]
    near = [(f"{one:032x}", f"{other:032x}") for one, other in pairs]
    made = observations(said, near, [], NOW)
    by_id = {one.id: one for one in said}
    for memory in made:
        occasions = {by_id[i].occasion for i in memory.provenance}
        assert len(occasions) >= recurrence.OCCASIONS_MIN
    assert observations(said[::-1], near[::-1], [], NOW) == made
    assert observations(said, near, [one.provenance for one in made], NOW) == []
