"""Backup of a running system, restore into an empty home (SPEC X-9)."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx2
import pytest

from services.executor.workspace.disk import Disk
from tests.support import timers
from tests.support.cli import Cli
from tests.support.examples import repeats
from tests.support.gateway import Gate
from tests.support.pauses import pauses
from tests.support.stack import Stack, settings_of
from tests.support.world import SERVICES, StoppedClock, World, running_world
from vigil.backup import backup, rearm, snapshots
from vigil.backup.archive import Archive, ArchiveError, Writer
from vigil.broker.process import Broker
from vigil.bus.bus import Bus
from vigil.errors import ConfigError
from vigil.layout import LOG, name_of
from vigil.local.home import check_whole
from vigil.portable.bundle import BundleWriter
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey

SESSIONS = repeats(20, fast=4)
NOTHING: Any = lambda name, done: None  # noqa: E731


async def save(bus: Bus, settings: Any, path: Path) -> None:
    await backup.save(bus, settings, path, datetime.now(UTC), NOTHING)


async def restored(path: Path, home: Path) -> None:
    load = lambda: settings_of(home)  # noqa: E731
    await backup.restore(Archive.open(path), home, load, NOTHING)


@pytest.fixture
async def small(bare: Stack, tmp_path: Path) -> Path:
    """A backup with a few records."""
    admin = await bare.bus("admin")
    for n in range(20):
        await admin.publish(f"session.vigil.ann.t{n}.in.control", b"x" * 3000)
    await admin.publish("$KV.TOKENS.abc", b"{}")
    path = tmp_path / "small.tar"
    await save(admin, bare.settings, path)
    return path


# ---------------------------------------------------------------- the whole way


@pytest.mark.repeated
async def test_a_running_system_comes_back_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-9: sessions talk while the backup is made. What it holds comes back: transcripts, open
    follow-ups and reminders; and they fire once, also those that TIMERS had lost."""
    clock = StoppedClock()
    file, home = tmp_path / "all.tar", tmp_path / "new"
    async with running_world(tmp_path / "old", monkeypatch, clock, False) as world:
        people = [await world.person(f"u{n}:vigil:t", has_socket=False) for n in range(SESSIONS)]
        for n, person in enumerate(people):
            await person.exchange("remind me in 60 seconds to drink water")
            await person.exchange(f"check back in {30 + n} seconds about the oven")
        before = {p.key: await p.timers() for p in people}
        assert all(len(open_) == 2 for open_ in before.values())
        talking = [asyncio.create_task(chatter(p.http, f"{p.key}2")) for p in people]
        await until_spoken(world, talking)
        await save(world.admin, world.stack.settings, file)
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        said = {k: await transcript(p.http, k) for p in people for k in (p.key, f"{p.key}2")}
        tokens = {p.key: p.token for p in people}
    archive = Archive.open(file)
    assert archive.manifest.nats_server[:2] == "2."
    last_seq = archive.manifest.streams["SESSIONS"].summary.last_seq
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert last_seq > SESSIONS * 4
    await restored(file, home)
    await lose_timers(home)

    settings = settings_of(home)
    broker = Broker(Nats(), home=home)
    await broker.start()
    stack = Stack(broker, settings, clock)
    gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
    try:
        await stack.start("gateway")
        https = {key: await gate.http(token) for key, token in tokens.items()}
        for key, http in https.items():
            assert await transcript(http, key) == said[key]
            part = await transcript(http, f"{key}2")
            assert part == said[f"{key}2"][: len(part)]
            assert (await http.get(f"/api/sessions/{key}/timers")).json()["timers"] == list(
                before[key].values()
            )
        await stack.start("cortex", "scheduler", "delivery")
        clock.move(120)
        fired = await timers.until_fired(gate.admin, 3 * SESSIONS - SESSIONS, timeout_s=20)
        await timers.until_settled(gate.admin)
        by_key = {(e.session_key, e.payload.timer_id) for e in fired}
        assert by_key == {(key, id_) for key, open_ in before.items() for id_ in open_}
        assert len(await timers.fired(gate.admin)) == 2 * SESSIONS
        assert await rearm.requested(gate.admin) is None
    finally:
        await gate.close()
        await stack.close()
        await broker.stop()


async def chatter(http: httpx2.AsyncClient, key: str) -> None:
    for n in range(10_000):
        answer = await http.post(f"/api/sessions/{key}/messages", json={"text": f"hello {n}"})
        if answer.status_code == 429:
            await asyncio.sleep(0.05)


async def until_spoken(world: World, talking: list[asyncio.Task[None]]) -> None:
    keys = [SessionKey(f"u{n}", "vigil", "t2") for n in range(SESSIONS)]
    await world.until(lambda: all(world.talk(str(key)).said for key in keys))
    assert not any(task.done() for task in talking)


async def transcript(http: httpx2.AsyncClient, key: str) -> list[dict[str, Any]]:
    answer = await http.get(f"/api/sessions/{key}")
    return list(answer.json()["messages"]) if answer.status_code == 200 else []


async def lose_timers(home: Path) -> None:
    """Take schedules away, as if TIMERS had been saved before they were made."""
    broker = Broker(Nats(), home=home)
    await broker.start()
    admin = await broker.admin()
    try:
        held = await timers.pending(admin)
        assert len(held) >= 2 * SESSIONS
        for message in held[::2]:
            await admin.api("STREAM.MSG.DELETE.TIMERS", {"seq": message.seq})
    finally:
        await admin.close()
        await broker.stop()


# ---------------------------------------------------------------- files that aren't whole


async def test_one_changed_byte_is_found_and_its_part_named(small: Path) -> None:
    """X-9: wherever it is; within a part, the part is named."""
    data = small.read_bytes()
    archive = Archive.open(small)
    middle = data.index(b"session.vigil.ann") if b"session.vigil.ann" in data else None
    for part in archive.manifest.parts:
        offset, size = archive._offsets[part.name]
        small.write_bytes(flipped(data, offset + size // 2))
        with pytest.raises(ArchiveError, match=part.name):
            Archive.open(small)
    for offset in (*range(0, len(data), 997), middle or 0):
        small.write_bytes(flipped(data, offset))
        with pytest.raises(ArchiveError):
            Archive.open(small)


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]


async def test_a_cut_archive_is_found(small: Path) -> None:
    """X-9: cut anywhere, it isn't whole."""
    data = small.read_bytes()
    for size in range(0, len(data), 1499):
        small.write_bytes(data[:size])
        with pytest.raises(ArchiveError):
            Archive.open(small)


def test_another_file_is_no_backup(tmp_path: Path) -> None:
    path = tmp_path / "no.tar"
    path.write_bytes(b"hello" * 1000)
    with pytest.raises(ArchiveError, match="damaged"):
        Archive.open(path)
    subprocess.run(["tar", "cf", path, "-C", "/etc", "hostname"], check=True)
    with pytest.raises(ArchiveError, match=r"not whole"):
        Archive.open(path)


@pytest.mark.parametrize("failure", [ValueError("no such offset"), OverflowError(), MemoryError()])
def test_a_size_that_cannot_be_is_damage(
    small: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    """Not only what tar calls damage: a header may say that a part has more bytes than there are
    places in a file, or than memory has."""
    monkeypatch.setattr(tarfile, "open", Mock(side_effect=failure))
    with pytest.raises(ArchiveError, match="damaged"):
        Archive.open(small)


# ---------------------------------------------------------------- where it is restored


async def test_a_home_that_holds_something_is_refused(small: Path, tmp_path: Path) -> None:
    """X-9: nothing is ever overwritten."""
    home = tmp_path / "used"
    home.mkdir()
    (home / "vigil.toml").write_text("")
    with pytest.raises(ConfigError, match=r"not empty \(vigil\.toml\)"):
        await restored(small, home)
    assert [path.name for path in home.iterdir()] == ["vigil.toml"]


async def test_a_home_that_services_only_started_in_is_empty(tmp_path: Path) -> None:
    """X-9: what an executor sets aside is nothing that could be lost."""
    home = tmp_path / "started"
    settings = settings_of(home, gateway={"disk_free_bytes_min": 4096})
    Disk(settings)._keep({})
    assert {path.name for path in home.iterdir()} == {"reserve", "workspaces"}
    backup.check_empty(home)
    (home / "workspaces" / "vigil").mkdir()
    with pytest.raises(ConfigError, match=r"not empty \(workspaces\)"):
        backup.check_empty(home)


async def test_an_interrupted_restore_blocks_the_start_and_is_repeated(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-9: ended between two streams: `vigil up` refuses, the same restore again succeeds."""
    home = tmp_path / "new"
    real = snapshots.load

    async def dies(bus: Bus, stream: str, *args: Any, **kwargs: Any) -> None:
        if stream == "DEAD":
            raise asyncio.CancelledError
        await real(bus, stream, *args, **kwargs)

    monkeypatch.setattr(snapshots, "load", dies)
    with pytest.raises(asyncio.CancelledError):
        await restored(small, home)
    monkeypatch.undo()
    done = Cli(home)("up", code=None)
    assert done.returncode == 1
    assert "interrupted" in done.stderr
    await restored(small, home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    check_whole(home)
    assert {p.name for p in home.iterdir()} >= {"nats", "nkeys"}
    assert stat.S_IMODE((home / "nkeys" / "admin.seed").stat().st_mode) == 0o600


async def test_an_external_broker_must_have_no_streams_of_ours(
    small: Path, tmp_path: Path, bare: Stack
) -> None:
    """X-9: NATS_URL, or the `vigil.toml` of the backup itself, leads to a broker in use. It loses
    nothing, however often the restore is repeated, also after `--files-only`."""
    home, archive = tmp_path / "new", Archive.open(small)
    load = lambda: settings_of(home, nats={"url": bare.broker.url})  # noqa: E731
    admin = await bare.bus("admin")
    ack = await admin.publish("session.vigil.ann.t.in.control", b"after the backup")
    backup.write_files(archive, home)
    for _ in range(2):
        with pytest.raises(ConfigError, match="already"):
            await backup.restore(archive, home, load, NOTHING)
    assert await admin.get("SESSIONS", ack.seq) is not None


async def test_a_restore_that_was_interrupted_on_an_external_broker_is_repeated(
    small: Path, tmp_path: Path, bare: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-9: it deletes what it made itself; a stream that came from elsewhere it leaves alone."""
    home, archive = tmp_path / "new", Archive.open(small)
    load = lambda: settings_of(home, nats={"url": bare.broker.url})  # noqa: E731
    admin = await bare.bus("admin")
    for name in archive.manifest.streams:
        await admin.api(f"STREAM.DELETE.{name}", {})
    real = snapshots.load

    async def dies(bus: Bus, stream: str, *args: Any, **kwargs: Any) -> None:
        await real(bus, stream, *args, **kwargs)
        if stream == "TIMERS":
            raise asyncio.CancelledError

    monkeypatch.setattr(snapshots, "load", dies)
    with pytest.raises(asyncio.CancelledError):
        await backup.restore(archive, home, load, NOTHING)
    monkeypatch.undo()
    await admin.api("STREAM.CREATE.DEAD", {"name": "DEAD", "subjects": ["dead.>"]})
    with pytest.raises(ConfigError, match="DEAD already"):
        await backup.restore(archive, home, load, NOTHING)
    await admin.api("STREAM.DELETE.DEAD", {})
    found = await backup.restore(archive, home, load, NOTHING)
    assert found["SESSIONS"].messages == 20


async def test_a_store_that_no_restore_made_is_not_removed(small: Path, tmp_path: Path) -> None:
    """X-9: after `--files-only` a broker of one's own may store in that home."""
    home = tmp_path / "new"
    backup.write_files(Archive.open(small), home)
    theirs = home / "nats" / "data" / "jetstream" / "theirs"
    theirs.mkdir(parents=True)
    with pytest.raises(ConfigError, match="NATS_URL"):
        await restored(small, home)
    assert theirs.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB; needs root on Linux."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_leaves_nothing(bare: Stack, small_disk: Path) -> None:
    """X-9: the error is the system's own, and no half of an archive stays."""
    admin = await bare.bus("admin")
    for _ in range(30):
        await admin.publish("session.vigil.ann.t.in.control", os.urandom(100_000))
    with pytest.raises(OSError, match="No space left"):
        await save(admin, bare.settings, small_disk / "b.tar")
    assert list(small_disk.iterdir()) == []


def fill_archive(path: Path) -> None:
    writer = Writer(path, datetime.now(UTC))
    try:
        part = writer.part("a")
        while True:
            part.write(os.urandom(1000))
    finally:
        writer.abort()


def fill_bundle(path: Path) -> None:
    writer = BundleWriter(path)
    try:
        with writer.part("a") as part:
            while True:
                part.write(os.urandom(1000))
    finally:
        writer.abort()


@pytest.mark.parametrize(
    ("fill", "name"), [(fill_archive, "b.tar"), (fill_bundle, "b.zip"), (fill_bundle, "b")]
)
def test_a_disk_too_full_for_what_is_still_held_leaves_nothing(
    small_disk: Path, fill: Callable[[Path], None], name: str
) -> None:
    """X-9: closing the file fails once more, as it writes what wasn't written."""
    with pytest.raises(OSError, match="No space left"):
        fill(small_disk / name)
    assert list(small_disk.iterdir()) == []


async def test_what_a_killed_backup_left_is_in_nobodys_way(bare: Stack, tmp_path: Path) -> None:
    """X-9: in a container the next one has the same pid."""
    rest = tmp_path / f".b.tar.{os.getpid()}"
    rest.write_bytes(b"secrets")
    await save(await bare.bus("admin"), bare.settings, tmp_path / "b.tar")
    assert not rest.exists()
    Archive.open(tmp_path / "b.tar")


async def test_no_service_may_take_or_give_a_snapshot(bare: Stack) -> None:
    """X-4, CVE-2026-33222: only the admin."""
    for role in (*SERVICES, "operator"):
        bus = await bare.bus(role)
        for call in ("SNAPSHOT", "RESTORE"):
            await bus.send(f"$JS.API.STREAM.{call}.SESSIONS", b"{}", "_INBOX_x")
        await bus.connection.flush()
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            pause_s = pauses()
            while len(bus.violations) < 2:
                await asyncio.sleep(next(pause_s))


# ---------------------------------------------------------------- the commands


def test_the_commands(tmp_path: Path) -> None:
    """P-2, X-9: `backup` of what runs, `--verify`, `restore`, and what they refuse."""
    from tests.support.cli import running_vigil

    file = tmp_path / "b.tar"
    with running_vigil(tmp_path / "old") as cli:
        cli("send", "hello there")
        sessions = cli.json("sessions")
        facts = cli.json("backup", str(file))
        assert messages(facts) >= 3
        assert "exists" in cli("backup", str(file), code=2).stderr
        assert "not empty" in cli("restore", str(file), code=1).stderr
        token = (tmp_path / "old" / "token").read_text()
    new = Cli(tmp_path / "new")
    assert new.json("restore", str(file), "--verify")["streams"] == facts["streams"]
    assert not new.home.exists()
    assert new.json("restore", str(file))["streams"] == facts["streams"]
    data = file.read_bytes()
    file.write_bytes(flipped(data, 600))
    refused = new("restore", str(file), "--verify", code=1).stderr
    assert "damaged: streams/KV_CONFIG is not what was written" in refused
    with running_vigil(new.home) as again:
        assert (new.home / "token").read_text() == token
        assert again.json("sessions") == sessions
        offline = tmp_path / "offline.tar"
    assert messages(new.json("backup", str(offline))) >= 3


def messages(facts: dict[str, Any]) -> int:
    """Return how many messages of the log are in a backup."""
    streams = facts["streams"].items()
    return sum(told["messages"] for name, told in streams if name_of(name) == LOG)
