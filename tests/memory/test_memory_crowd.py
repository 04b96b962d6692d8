"""Many people at once, while everything dies and every index is damaged: nothing lost, nothing seen
by another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pytest

from services.memory.store.store import FILE
from tests.chaos.processes import Processes
from tests.support.examples import repeats
from tests.support.memories import Asking, asking, records, until
from tests.support.stack import Stack
from vigil.contracts import MemorySaved
from vigil.errors import Unavailable, VigilError
from vigil.memory.operations.save import Save, Saved
from vigil.subjects import Scope

PEOPLE: Final = repeats(200, fast=12)
TOLD: Final = ("The gate opens with {}", "{} is the word for the alarm")
KILLS: Final = repeats(9, fast=3)
AT_ONCE: Final = 40


async def _persistently(person: Asking, content: str) -> str:
    """Save until it is acknowledged, as a client with an idempotency key does."""
    asked = Save(content=content, by=f"user:{person.scope.owner}", key=content)
    while True:
        try:
            saved: Saved = await person.ask(asked, timeout_s=1.0)
            return saved.id
        except Unavailable:
            await asyncio.sleep(0.05)


async def _until_whole(person: Asking) -> None:
    async def is_whole() -> bool:
        try:
            stats = await person.stats()
        except VigilError:
            return False
        return stats.rebuild is None and stats.vectors_position >= stats.position

    await until(is_whole, "memory is whole again", within_s=120)


def _secret(number: int) -> str:
    return f"code{number:03}x{number * 7919 % 1000:03}"


def _engines(folder: Path) -> list[psutil.Process]:
    """Return the engines of a service that is a process of its own: they are its children."""
    named = str(folder / "vectors")
    return [one for one in psutil.process_iter(["cmdline"]) if named in (one.info["cmdline"] or ())]


def _no_database(path: Path) -> None:
    path.write_bytes(b"this was never a database" * 1000)


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _deleted(path: Path) -> None:
    path.unlink()


def _damage_all(folder: Path, damage: Callable[[Path], None]) -> None:
    """Damage the database, and every file that the vectors' engine keeps."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (path.name == FILE or "vectors" in path.parts):
            damage(path)


@pytest.mark.repeated
@pytest.mark.usefixtures("own_broker")
async def test_a_crowd_keeps_its_secrets_through_kills_and_damages(bare: Stack) -> None:
    """M-2, M-9, S13, X-5: a crowd saves while memory, the broker and the vectors' engine are
    killed in turn; then all of memory's files are damaged. Each finds their own, once, and nobody
    anything of another's."""
    one = await asking(bare)
    people = [Asking(one.bus, Scope("vigil", f"person{n:03}")) for n in range(PEOPLE)]
    told = {
        (number, at): text.format(_secret(number))
        for at, text in enumerate(TOLD)
        for number in range(PEOPLE)
    }
    ids: dict[str, str] = {}
    todo = iter(told.items())
    folder = bare.settings.memory / "0"

    async def save() -> None:
        for (number, _), content in todo:
            ids[content] = await _persistently(people[number], content)

    async def kill(processes: Processes) -> None:
        for number in range(1, KILLS + 1):
            while len(ids) < number * len(told) // (KILLS + 1):
                await asyncio.sleep(0.01)
            if number % 3 == 1:
                assert processes.kill("memory")
            elif number % 3 == 2:
                bare.broker.kill()
            else:
                for engine in _engines(folder):
                    engine.kill()

    bare.broker.watch()
    processes = Processes(bare.settings.home, {"NATS_URL": bare.broker.url})
    try:
        processes.start("memory")
        await asyncio.gather(kill(processes), *(save() for _ in range(AT_ONCE)))
        await _until_whole(people[0])
        await _each_finds_their_own(people, ids)
        for damage in (_no_database, _half, _deleted)[: repeats(3, fast=1)]:
            assert processes.kill("memory", for_good=True)
            await until(lambda: _is_gone(folder), "the engine ended with its service")
            _damage_all(folder, damage)
            processes.start("memory")
            await _until_whole(people[0])
            await _each_finds_their_own(people, ids)
    finally:
        await processes.stop()
    logged = [r for r in await records(await bare.bus("admin")) if isinstance(r, MemorySaved)]
    assert Counter(r.memory.id for r in logged) == Counter(ids.values())


async def _is_gone(folder: Path) -> bool:
    return not _engines(folder)


async def _each_finds_their_own(people: list[Asking], ids: dict[str, str]) -> None:
    """Everybody asks for what everybody was told, and for the next one's own secret."""

    async def look(number: int) -> None:
        person = people[number]
        own = {text.format(_secret(number)) for text in TOLD}
        assert Counter(await person.listed()) == Counter(own)
        stranger = _secret((number + 1) % PEOPLE)
        for mode in ("hybrid", "text", "vector"):
            hits = (await person.recall("gate alarm word", mode=mode, counts=False)).hits
            assert {hit.memory.id for hit in hits} == {ids[content] for content in own}, mode
            found = await person.found(f"gate alarm {stranger}", mode=mode, counts=False)
            assert set(found) <= own, mode

    for start in range(0, PEOPLE, AT_ONCE):
        await asyncio.gather(*map(look, range(start, min(start + AT_ONCE, PEOPLE))))
