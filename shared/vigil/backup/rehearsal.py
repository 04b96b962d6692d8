"""What an upgrade would do to a home, tried on a copy; the home is only read.

The steps are taken in a copy, with the writes that they'd be taken with, and the configuration is
read there. Then every record that has a version is read: of a broker that runs over its bus, else
of one that runs on a copy of the store.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from ..broker.process import Broker
from ..bus.bus import Bus
from ..contracts import codec
from ..errors import ConfigError, InvalidInput
from ..local import runfile
from ..local.home import RESTORING, check_whole, connect_admin
from ..settings.config import Settings
from ..upgrade import migrate
from ..upgrade.records import record_at
from ..upgrade.steps import STEPS, UpgradeStep
from .backup import FILES, settings_loader, stream_names

LEFT_OUT = ("logs", "run", "reserve", "memory", "nats", "workspaces", RESTORING)
"""Of a home, in the copy: what steps don't touch, and what is made of other things."""


class Rehearsed(msgspec.Struct, frozen=True, kw_only=True):
    """What an upgrade would come to."""

    steps: tuple[str, ...]
    changed: tuple[str, ...]
    """Files."""
    records: dict[str, int]
    """How many of each were read, by the codec's names."""


async def rehearse(settings: Settings, steps: Sequence[UpgradeStep] = STEPS) -> Rehearsed:
    """Try it.

    Args:
        settings: where the home is; what it configures is read once the steps are taken.

    Raises:
        ConfigError: it would fail: which step or record, and why.
        Unavailable: the broker can't be reached.
        OSError: there is no room for a copy.
    """
    home = settings.home
    check_whole(home)
    # Beside the home, if it may be: what is kept for a while may have no room for a store.
    beside = home.parent if os.access(home.parent, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=".vigil-rehearsal-", dir=beside) as place:
        copy = Path(place) / "home"
        _copy(home, copy)
        names = tuple(step.name for step in migrate.pending(copy, steps))
        before = _held(copy)
        migrate.bring_up(copy, steps)
        after = _held(copy)
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        tried = settings_loader(copy)()
        async with _bus(settings, tried, copy) as bus:
            records = await _read(bus)
        return Rehearsed(steps=names, changed=tuple(sorted(changed)), records=records)


def _copy(home: Path, copy: Path) -> None:
    skipped = shutil.ignore_patterns(*LEFT_OUT)

    def ignored(folder: str, names: list[str]) -> set[str]:
        return skipped(folder, names) if Path(folder) == home else set()

    shutil.copytree(home, copy, symlinks=True, ignore=ignored)


def _held(home: Path) -> dict[str, bytes]:
    found = (path for name in FILES for path in (home / name, *(home / name).rglob("*")))
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in found
        if path.is_file() and path != home / "format"
    }


@contextlib.asynccontextmanager
async def _bus(settings: Settings, tried: Settings, copy: Path) -> AsyncIterator[Bus | None]:
    """Connect to what holds the records; None: nothing was ever stored."""
    async with contextlib.AsyncExitStack() as stack:
        run = runfile.running(settings.run_file)
        url = tried.config.nats.url or (run.nats_url if run else "")
        if not url:
            if not settings.broker_store.exists():
                yield None
                return
            lock = runfile.Lock(settings.run_file)
            lock.acquire()  # nobody writes while it is copied
            try:
                shutil.copytree(settings.home / "nats", copy / "nats")
            finally:
                lock.release()
            broker = Broker(tried.config.nats, home=copy, retention=tried.config.retention)
            stack.push_async_callback(broker.stop)
            await broker.start()
            url = broker.url
        bus = await connect_admin(tried, url)
        stack.push_async_callback(bus.close)
        yield bus


async def _read(bus: Bus | None) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for stream in stream_names(await bus.layout()) if bus else ():
        follower = await bus.follow(stream, [">"], 1) if bus else None
        if follower is None:
            continue
        try:
            for _ in range(follower.waiting):
                message = await follower.next_within(10.0)
                if message is None:
                    break
                name = record_at(message.subject)
                if name and message.data:
                    _decode(name, message.data, message.subject)
                    counted[name] += 1
                if message.pending == 0:
                    break
        finally:
            await follower.close()
    return dict(sorted(counted.items()))


def _decode(name: str, data: bytes, subject: str) -> None:
    try:
        codec.decode(name, data)
    except InvalidInput as error:
        raise ConfigError(f"a record of this home can't be read: {subject}: {error}") from error
