"""A disk that is full under a memory service: it stays, answers what it can, and catches up."""

from __future__ import annotations

from pathlib import Path

import httpx2

from tests.support.gateway import until
from tests.support.remembering import (
    MEMORIES,
    contents,
    look,
    running_memories,
    save,
    until_vectors,
)
from vigil.doctor import glance as doctor
from vigil.settings.config import Settings


def fill(disk: Path) -> Path:
    """Take all the room there is; return the file that has it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 1024 * 1024
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
    return ballast


async def is_told(ann: httpx2.AsyncClient, settings: Settings) -> None:
    """Every way to ask says that something is missing, and what is there is no `nothing`."""
    for query in ({"q": "harbour"}, {"q": "harbour", "mode": "text"}, {}):
        assert "newest" in (await look(ann, **query))["degraded"]
    unread = await ann.post(MEMORIES, json={"content": "The harbour is closed"})
    assert unread.status_code == 201
    shown = await ann.get(f"{MEMORIES}/{unread.json()['id']}")
    assert (shown.status_code, shown.json()["detail"][:14]) == (503, "what was saved")

    async def is_warned() -> bool:  # health is kept for a second
        warnings = (await ann.get("/readyz")).json().get("warnings", ())
        return any("isn't found yet" in one and "full" in one for one in warnings)

    await until(is_warned, "readyz warns")
    found = doctor.disk(settings)
    assert found.state == "fail"
    assert "not found until there is room" in str(found)


async def test_a_full_disk_is_waited_for(tmp_path: Path, small_disk: Path) -> None:
    """X-5, X-6: SQLite can't write; nobody's recall fails, and nothing acknowledged is lost."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "memory").symlink_to(small_disk)  # the broker, and so the truth, is elsewhere
    async with running_memories(home) as gate:
        ann = await gate.person("ann")
        context = gate.stack.contexts["memory"]
        await save(ann, "The boat is called Marigold")

        async def is_known() -> bool:
            return contents(await look(ann, q="boat")) == ["The boat is called Marigold"]

        await until(is_known, "the first memory is in")
        await until_vectors(ann)
        ballast = fill(small_disk)
        taken = 0

        async def is_stuck() -> bool:
            nonlocal taken
            answer = await ann.post(
                MEMORIES, json={"content": f"Number {taken} of the harbour: " + "words " * 600}
            )
            taken += answer.status_code == 201
            return bool(context.facts.get("stuck"))

        await until(is_stuck, "the projector has met the end of the disk", within_s=30)
        assert taken
        assert await is_known()
        await is_told(ann, gate.stack.settings)
        ballast.unlink()

        async def is_whole() -> bool:
            stats = (await ann.get(f"{MEMORIES}/stats")).json()
            return stats["memories"] == taken + 2 and not context.facts.get("stuck")

        await until(is_whole, "all of the log is in", within_s=30)
        page = await look(ann, q="harbour")
        assert page["degraded"] == []
        assert "The harbour is closed" in contents(page)

        async def is_healed() -> bool:
            warnings = (await ann.get("/readyz")).json().get("warnings", ())
            return not any("found yet" in one for one in warnings)

        await until(is_healed, "readyz tells of nothing")
        assert not gate.stack._tasks["memory"].done()
