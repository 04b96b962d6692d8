"""Erasing a person of whom there is one of every kind of record (SPEC X-8, S17)."""

from __future__ import annotations

import asyncio
import random
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.keeping.test_erase import canaries
from tests.support import every_kind
from tests.support.cli import Cli
from tests.support.examples import repeats
from tests.support.stack import Stack, running_broker
from vigil import crash, topology
from vigil.backup import reach
from vigil.bus.batches import BATCH_ID, TTL
from vigil.bus.bus import Bus, Message
from vigil.contracts.codec import VERSIONS
from vigil.crash import POINTS
from vigil.erasure.scrub import scrub
from vigil.erasure.theirs import filters_of
from vigil.layout import filter_in
from vigil.settings import config
from vigil.settings.sections import Nats

USER, TEXT = "CANARYuser", "CANARYtext"
OTHER = "bob"
KILLS = repeats(20, fast=2)
NEWEST = 2
"""Of each stream, that stay when the rest goes as its age would have it go."""
OFTEN = {"erase.message.after": 40, "erase.again": 20, "erase.filled": 5, "erase.scrubbed": 5}
"""Steps that come more than once, and how often at most."""
WITHOUT_PEOPLE = {"CONSOLE"}
"""Holds hashes, and is forgotten within days."""


async def _home(home: Path) -> None:
    """Leave two of each kind of two people, and of one of them most removed by the broker."""
    now = datetime.now(UTC)
    async with running_broker(home, Nats()) as broker:
        admin = await broker.admin()
        for user, text in ((OTHER, "theirs"), (USER, TEXT)):
            await every_kind.store(admin, user, text, now)
        for name in ("SESSIONS", "SYSTEM", "SLOTS", "MEMORIES", "SIGNALS", "DEAD"):
            for stream in (await admin.layout()).streams(name):
                for one in filters_of(USER)[name]:
                    request = {"filter": filter_in(stream, one), "keep": NEWEST}
                    await admin.api(f"STREAM.PURGE.{stream}", request)
        await admin.close()


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("kinds") / "home"
    home.mkdir()
    asyncio.run(_home(home))
    return home


@pytest.fixture
def rested(seed: Path, tmp_path: Path) -> Cli:
    """A copy of that home; nothing runs in it."""
    subprocess.run(["cp", "-a", str(seed), str(tmp_path / "home")], check=True)
    return Cli(tmp_path / "home")


async def of_another(cli: Cli) -> dict[str, list[bytes]]:
    """Return what is stored of somebody else, by subject."""
    found: dict[str, list[bytes]] = {}
    async with reach.admin(config.load({}, home=cli.home)) as reached:
        layout = await reached.bus.layout()
        for name, filters in filters_of(OTHER).items():
            for stream in layout.streams(name):
                for message in await reached.bus.read(stream, filters):
                    found.setdefault(message.subject, []).append(message.data)
    # Of an entity's states only the newest is kept.
    return {k: v[-1:] if k.startswith("board.") else v for k, v in found.items()}


async def test_there_is_one_of_every_kind(bare: Stack) -> None:
    """X-8: a kind that the contracts get later has a place here, or this fails."""
    assert every_kind.PLACES.keys() == VERSIONS.keys()
    admin = await bare.bus("admin")
    await every_kind.store(admin, USER, TEXT, datetime.now(UTC), times=1)
    filled = set()
    for one in (*topology.STREAMS, *(f"KV_{bucket.name}" for bucket in topology.BUCKETS)):
        name = one if isinstance(one, str) else one.name
        for stream in (await admin.layout()).streams(name):
            if (await admin.api(f"STREAM.INFO.{stream}", {}))["state"]["messages"]:
                filled.add(name.removeprefix("KV_"))
    everywhere = {one.name for one in (*topology.STREAMS, *topology.BUCKETS)}
    assert filled == everywhere - WITHOUT_PEOPLE


async def test_what_was_written_in_a_batch_is_stored_again(bare: Stack) -> None:
    """X-8: alone, with its life-time, and not as a part of the batch that it came in."""
    admin = await bare.bus("admin")
    await every_kind.store(admin, OTHER, "theirs", datetime.now(UTC))
    before = {m.subject: m for m in await budgets(admin)}
    assert all(BATCH_ID in m.headers for m in before.values())
    await scrub(admin, "KV_BUDGETS", lambda step, done: None)
    after = {m.subject: m for m in await budgets(admin)}
    assert {k: m.data for k, m in before.items()} == {k: m.data for k, m in after.items()}
    assert not any(BATCH_ID in m.headers for m in after.values())
    lives = [{k: m.headers.get(TTL) for k, m in each.items()} for each in (before, after)]
    assert lives[0] == lives[1]
    assert set(lives[1].values()) == {None, "72h"}


async def budgets(bus: Bus) -> list[Message]:
    return await bus.read("KV_BUDGETS", ["$KV.BUDGETS.>"])


@pytest.mark.repeated
def test_killed_anywhere_nothing_of_any_kind_is_left(rested: Cli, tmp_path: Path) -> None:
    """X-8, X-9, S17: one erasure, killed again and again; then a backup is made, without them."""
    before = asyncio.run(of_another(rested))
    dice, points = random.Random(20), [one for one in POINTS if one.startswith("erase.")]
    killed = 0
    while killed < KILLS:
        point = dice.choice(points)
        at = f"{point}:{dice.randint(1, OFTEN.get(point, 1))}"
        done = rested("erase", "--user", USER, "--yes", code=None, VIGIL_CRASH_AT=at)
        assert done.returncode in (0, crash.EXIT_CODE), f"{at}: {done.stdout}{done.stderr}"
        killed += done.returncode == crash.EXIT_CODE
    outcome = rested.json("erase", "--user", USER, "--yes")
    assert outcome["files"] == "clean", outcome
    assert canaries(rested.home) == []
    assert asyncio.run(of_another(rested)) == before
    backup = tmp_path / "b.tar"
    rested("backup", str(backup))
    assert b"CANARY" not in backup.read_bytes()
