"""Backup and restore of an installation: all streams, and the files that it needs (SPEC X-9).

Snapshots are taken one after another while everything runs, so they are of different moments.
The order makes that harmless: SESSIONS, which is the truth, comes after what is made of it. What
is older than it lacks the newest changes, which are found again from SESSIONS or by a repeat; the
other way round a cursor or an idempotency key could point to what isn't there any more. MEMORIES
comes last: a turn that is acknowledged in SESSIONS has what it saved in there. Before SESSIONS
comes SYSTEM: what a worker of it has told is in SESSIONS. Only the other way round is there a gap,
and it has an end: a worker or a job that SYSTEM lacks is missed at its deadline.

    EVENTS     taken in again, and known as a repeat
    TIMERS     schedules that it lacks are made again (`rearm`); those that are over are stale
    CURSORS    a client gets the last messages once more
    SIGNALS    those of the last moments are projected again
    BOARD      what changed in the last moments is taken from the turns (`board`)
    MEMORIES   has what turns saved that SESSIONS lacks; done again, it's the same memory

Workspaces and the folders of MCP servers are copied after all streams: a tool may write there while
they are read, so a file may be newer than what a session knows of it. Plain files only, no links.

The files of memory services aren't in it: they are made of MEMORIES. A restored MEMORIES is another
log than the one that a file was made of, so what was there is made anew.

A restore is begun by a file `restoring` in the home and ended by its removal: until then
`vigil up` refuses to start, and the same restore may be run again. The file names the broker and
each stream before that is made, and a repeat deletes those and no other: a stream that was there
before is somebody's, often that of the installation which the backup is of.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from .. import __version__
from ..broker.process import Broker
from ..broker.provision import provision
from ..bus.bus import Bus, BusError
from ..bus.replies import ERR_STREAM_NOT_FOUND
from ..errors import ConfigError, VigilError
from ..layout import LOG, LogLayout
from ..local.home import RESTORING, connect_admin
from ..local.runfile import Lock
from ..settings import config
from ..settings.config import Settings
from ..settings.credentials import write_private
from ..topology import BUCKETS, STREAMS
from ..upgrade import store_format
from . import board, rearm, snapshots, workspaces
from .archive import Archive, ArchiveError, Manifest, Report, Writer
from .snapshots import Snapshot, StreamState

STREAM_PREFIX: Final = "streams/"
HOME_PREFIX: Final = "home/"
FILES: Final = (store_format.FILE, "vigil.toml", "token", "nkeys", "push.pem", "agents", "skills")
"""What of a home is kept, beside the streams and the workspaces."""
_OF_A_START: Final = frozenset({store_format.FILE, "run", "logs", "memory", "reserve", RESTORING})
"""What a home may hold and still be empty; memory services make theirs of the log, and executors
set room aside."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """How far a restore came: what the file `restoring` holds."""

    broker: str | None = None
    """Its URL, or "" for the embedded one; None: no broker was touched."""
    streams: tuple[str, ...] = ()
    """Those that it made there, whole or in part."""


def stream_names(layout: LogLayout) -> list[str]:
    """Return the streams of a backup, in the order in which they are taken."""
    buckets = [f"KV_{bucket.name}" for bucket in BUCKETS if bucket.storage == "file"]
    # Signals before all that they tell of, of which DEAD comes before what is requeued from it.
    # Files after the messages that name them; the ledger, too: a run whose end it doesn't have yet
    # would be lost, though it is there.
    truths = ("SYSTEM", LOG, "MEMORIES", "SLOTS", "FILES")
    first = "SIGNALS"
    others = (one.name for one in STREAMS if one.name not in (first, *truths))
    return [*buckets, *(one for name in (first, *others, *truths) for one in layout.streams(name))]


# ---------------------------------------------------------------- backup


async def save(bus: Bus, settings: Settings, path: Path, now: datetime, report: Report) -> Manifest:
    """Write a backup of what `bus` and the home hold now.

    Raises:
        OSError: it can't be written; nothing is left of it.
        VigilError: the broker refused, or fell silent.
    """
    writer = Writer(path, now)
    try:
        floors = await board.floors(bus)
        taken: dict[str, Snapshot] = {}
        for name in stream_names(await bus.layout()):
            part = writer.part(STREAM_PREFIX + name)

            def write(chunk: bytes, name: str = name, part: Any = part) -> None:
                part.write(chunk)
                report(name, part.size)

            taken[name] = await snapshots.save(bus, name, write)
            writer.add(part)
        for file in home_files(settings.home):
            name = file.relative_to(settings.home).as_posix()
            writer.add_bytes(HOME_PREFIX + name, file.read_bytes())
        for file in workspaces.files(settings.home):
            name = file.relative_to(settings.home).as_posix()
            report(name, 0)
            opened = workspaces.open_plain(settings.home, file)
            if opened is not None:
                writer.add_file(HOME_PREFIX + name, opened)
        return writer.finish(
            vigil=__version__, nats_server=bus.version, streams=taken, floors=floors
        )
    finally:
        writer.abort()


def home_files(home: Path) -> Iterator[Path]:
    """Yield the files of a home that a backup keeps, in a stable order."""
    for name in FILES:
        path = home / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in found if file.is_file() and not file.is_symlink())


def stream_bytes(infos: dict[str, StreamState]) -> int:
    """Return about how much there is to read."""
    return sum(info.bytes for info in infos.values())


async def states(bus: Bus) -> dict[str, StreamState]:
    """Return what each stream of a backup holds now."""
    found = {}
    for name in stream_names(await bus.layout()):
        info = await bus.api(f"STREAM.INFO.{name}", {})
        found[name] = msgspec.convert(info["state"], StreamState)
    return found


# ---------------------------------------------------------------- restore


def check_empty(home: Path) -> None:
    """Refuse a home that something would be lost of. Raises: ConfigError."""
    if not home.exists() or (home / RESTORING).exists():
        return
    found = sorted(p.name for p in home.iterdir() if p.name not in _OF_A_START)
    if found == ["workspaces"] and not any((home / "workspaces").iterdir()):
        return
    if found:
        raise ConfigError(
            f"{home} is not empty ({', '.join(found[:4])}): restore into a new home, "
            "VIGIL_HOME=DIR vigil restore FILE"
        )


async def restore(
    archive: Archive, home: Path, load_settings: Callable[[], Settings], report: Report
) -> dict[str, StreamState]:
    """Make an empty home, and the streams, what they were; return what each stream holds.

    Args:
        load_settings: reads the configuration anew, once its file is there.

    Raises:
        ConfigError: the home isn't empty, or the broker has streams that no restore into this
            home made.
        AlreadyRunning: Vigil runs in that home.
        OSError, VigilError: it stopped in the middle; repeat it.
    """
    check_empty(home)
    _make_home(home)  # before the lock makes it, for everybody
    lock = Lock(load_settings().run_file)
    lock.acquire()
    try:
        write_files(archive, home)
        settings = load_settings()
        async with contextlib.AsyncExitStack() as stack:
            bus = await _broker(settings, stack)
            found = await _streams(archive, bus, settings, report)
            await provision(bus, settings.config.retention, settings.config.nats)
            period = settings.config.preferences.period
            await board.catch_up(bus, archive.manifest.floors, period)
            await rearm.request(bus)
        (home / RESTORING).unlink()
        return found
    finally:
        lock.release()


def write_files(archive: Archive, home: Path) -> None:
    """Write the files of the home. It counts as restored in part until all is done.

    Raises: ConfigError, a newer Vigil made the backup; nothing is written.
    """
    for part in archive.manifest.parts:
        if part.name == HOME_PREFIX + store_format.FILE:
            store_format.check(b"".join(archive.chunks(part.name)), "the backup")
    _make_home(home)
    _note(home, _begun(home))
    for part in archive.manifest.parts:
        if part.name.startswith(HOME_PREFIX):
            path = home / _safe(part.name.removeprefix(HOME_PREFIX))
            _write_file(path, archive.chunks(part.name), is_executable=part.is_executable)
            workspaces.give(home, path, part.uid)


def _write_file(path: Path, chunks: Iterator[bytes], *, is_executable: bool) -> None:
    """Write a file that only its owner may read. Repeated, it is written anew."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    mode = 0o700 if is_executable else 0o600
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(descriptor)


def _make_home(home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)


def _safe(name: str) -> PurePosixPath:
    """Return a path that stays in the home. Raises: ArchiveError."""
    path = PurePosixPath(name)
    if (
        path.is_absolute()
        or ".." in path.parts
        or path.parts[0] not in (*FILES, *workspaces.FOLDERS)
    ):
        raise ArchiveError(f"{name} is no file of a home")
    return path


def _begun(home: Path) -> Begun:
    """Return how far the restore came; what can't be read counts as nothing done."""
    try:
        return msgspec.json.decode((home / RESTORING).read_bytes(), type=Begun)
    except (OSError, msgspec.MsgspecError):
        return Begun()


def _note(home: Path, begun: Begun) -> None:
    write_private(home / RESTORING, msgspec.json.encode(begun))


async def _broker(settings: Settings, stack: contextlib.AsyncExitStack) -> Bus:
    url = settings.config.nats.url
    if not url:
        _clear_store(settings)
        broker = Broker(settings.config.nats, home=settings.home)
        stack.push_async_callback(broker.stop)
        await broker.start()
        url = broker.url
    bus = await connect_admin(settings, url)
    stack.push_async_callback(bus.close)
    return bus


def _clear_store(settings: Settings) -> None:
    """Remove what an interrupted restore stored, and nothing else. Raises: ConfigError."""
    home = settings.home
    if _begun(home).broker == "":
        shutil.rmtree(home / "nats", ignore_errors=True)
    elif settings.broker_store.exists():
        raise ConfigError(f"{settings.broker_store} holds streams already: is NATS_URL missing?")
    _note(home, Begun(broker=""))


async def _streams(
    archive: Archive, bus: Bus, settings: Settings, report: Report
) -> dict[str, StreamState]:
    streams, nats = archive.manifest.streams, settings.config.nats
    begun = _begun(settings.home)
    if begun.broker != nats.url:
        begun = Begun(broker=nats.url)
    await _make_room(bus, list(streams), begun.streams)
    found = {}
    for name, snapshot in streams.items():
        begun = msgspec.structs.replace(begun, streams=(*begun.streams, name))
        _note(settings.home, begun)
        chunks = _reported(archive, name, report)
        await snapshots.load(bus, name, snapshot, chunks, replicas=nats.replicas)
        found[name] = await _compare(bus, name, snapshot)
    return found


def _reported(archive: Archive, name: str, report: Report) -> Iterator[bytes]:
    done = 0
    for chunk in archive.chunks(STREAM_PREFIX + name):
        yield chunk
        done += len(chunk)
        report(name, done)


async def _make_room(bus: Bus, names: Sequence[str], begun: Sequence[str]) -> None:
    """Refuse a broker that has streams of ours, but for those of an interrupted restore.

    All are looked at before the first is deleted.
    """
    there = [name for name in names if await _is_there(bus, name)]
    if foreign := [name for name in there if name not in begun]:
        raise ConfigError(
            f"the broker has a stream {foreign[0]} already: restore into an empty one, NATS_URL "
            "says which"
        )
    for name in there:
        await bus.api(f"STREAM.DELETE.{name}", {})


async def _is_there(bus: Bus, name: str) -> bool:
    try:
        await bus.api(f"STREAM.INFO.{name}", {})
    except BusError as error:
        if error.code == ERR_STREAM_NOT_FOUND:
            return False
        raise
    return True


async def _compare(bus: Bus, name: str, snapshot: Snapshot) -> StreamState:
    """Check that the broker has what the snapshot had. Raises: VigilError."""
    for _ in range(50):
        info = await bus.api(f"STREAM.INFO.{name}", {})
        now, before = msgspec.convert(info["state"], StreamState), snapshot.summary
        if _is_whole(snapshot, now):
            return now
        await asyncio.sleep(0.1)
    raise VigilError(f"{name}: {before.messages} messages were saved, {now.messages} are there")


def _is_whole(snapshot: Snapshot, now: StreamState) -> bool:
    """Whether a stream holds all that it held, but for what became too old or due since."""
    before = snapshot.summary
    if snapshot.config.get("allow_msg_schedules"):
        return now.messages == before.messages and now.last_seq >= before.last_seq
    is_less = now.messages < before.messages and bool(snapshot.config.get("max_age"))
    return now.last_seq == before.last_seq and (now.messages == before.messages or is_less)


def settings_loader(home: Path) -> Callable[[], Settings]:
    return lambda: config.load(home=home)
