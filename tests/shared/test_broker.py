"""The embedded broker: provisioning, crashes, a full disk, a stuck process (SPEC X-5, X-6)."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from tests.support.pauses import pauses
from tests.support.stack import Stack, running_broker
from vigil.broker import process as broker_module
from vigil.broker import provision as provision_module
from vigil.broker.process import Broker
from vigil.broker.provision import provision
from vigil.bus.bus import Bus
from vigil.errors import ConfigError, VigilError
from vigil.observe.health import HEALTH, Health
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey
from vigil.topology import BUCKETS, CONSUMERS, OUTSIDE_EVENTS, STREAMS

KEY = SessionKey("ann", "vigil", "t1")


async def test_provisioning_twice_changes_nothing(bare: Stack) -> None:
    admin = await bare.bus("admin")
    before = [await admin.api(f"STREAM.INFO.{s.name}", {}) for s in STREAMS]
    await provision(admin)
    after = [await admin.api(f"STREAM.INFO.{s.name}", {}) for s in STREAMS]
    assert [i["config"] for i in before] == [i["config"] for i in after]
    assert [i["created"] for i in before] == [i["created"] for i in after]
    for bucket in BUCKETS:
        await admin.api(f"STREAM.INFO.KV_{bucket.name}", {})
    for consumer in CONSUMERS:
        await admin.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", {})


async def test_what_an_older_version_counted_today_is_taken_over_once(bare: Stack) -> None:
    """C-9: an upgrade gives nobody a second day's budget."""
    admin = await bare.bus("admin")
    for key in ("tokens.2026-11-23", "tokens.2026-11-22", "tokens.2026-11-23.0a1b"):
        await admin.publish(f"$KV.BUDGETS.{key}", b'{"reserved":40,"used":900}')
    counted = b'{"reserved":0,"used":7}'
    await admin.publish("$KV.BUDGETS.2026-11-22.instance.all", counted)
    for _ in range(2):
        await provision(admin)
    left = {one.subject: one.data for one in await admin.read("KV_BUDGETS", ["$KV.BUDGETS.>"])}
    assert left == {
        "$KV.BUDGETS.2026-11-22.instance.all": counted,
        "$KV.BUDGETS.2026-11-23.instance.all": b'{"reserved":40,"used":900}',
    }


async def test_an_older_stream_is_upgraded(bare: Stack) -> None:
    admin = await bare.bus("admin")
    config = (await admin.api("STREAM.INFO.DEAD", {}))["config"]
    await admin.api("STREAM.UPDATE.DEAD", config | {"max_age": 10**12})
    await admin.publish("dead.cortex.a.b.c", b"kept")
    await provision(admin)
    info = await admin.api("STREAM.INFO.DEAD", {})
    assert info["config"]["max_age"] == 90 * 24 * 3600 * 10**9
    assert info["state"]["messages"] == 1


async def as_before(admin: Bus) -> None:
    """Give EVENTS the configuration that it had before 0.3: kept for days, bounded in all only."""
    config = (await admin.api("STREAM.INFO.EVENTS", {}))["config"]
    await admin.api("STREAM.DELETE.EVENTS", {})
    old = {"retention": "limits", "max_msgs_per_subject": -1, "discard_new_per_subject": False}
    await admin.api("STREAM.CREATE.EVENTS", config | old)
    events = next(one for one in CONSUMERS if one.stream == "EVENTS")
    await provision_module._ensure_consumer(admin, events, "all")


async def take_events(bus: Bus, count: int) -> set[int]:
    """Acknowledge `count` events; return their sequences.

    What was on its way to an earlier taker comes again, later than what is behind it.
    """
    puller, taken = await bus.pull(OUTSIDE_EVENTS), set[int]()
    while len(taken) < count:
        event = await anext(puller)
        await bus.ack(event)
        taken.add(event.seq)
    await puller.close()
    return taken


async def waiting_events(admin: Bus) -> list[int]:
    return [message.seq for message in await admin.read("EVENTS", ["event.>"])]


async def test_an_older_stream_of_events_keeps_what_nobody_has_taken_in(bare: Stack) -> None:
    """What was taken in goes; a bound that would cost what waits comes once it doesn't."""
    admin, gateway = await bare.bus("admin"), await bare.bus("gateway")
    await as_before(admin)
    for number in range(300):
        await admin.publish("event.ann.ci", b"%d" % number)
    published = set(await waiting_events(admin))
    taken = await take_events(gateway, 10)
    async with asyncio.timeout(20):
        while len(await waiting_events(admin)) != 290:
            await provision(admin)
    config = (await admin.api("STREAM.INFO.EVENTS", {}))["config"]
    assert (config["retention"], config["max_msgs_per_subject"]) == ("interest", -1)
    taken |= await take_events(gateway, 200)
    async with asyncio.timeout(20):
        while (await admin.api("STREAM.INFO.EVENTS", {}))["config"]["max_msgs_per_subject"] < 0:
            await provision(admin)
    async with asyncio.timeout(20):  # an acknowledgement takes a moment to be carried out
        pause_s = pauses()
        while len(waiting := await waiting_events(admin)) != 90:
            await asyncio.sleep(next(pause_s))
    assert set(waiting) == published - taken
    config = (await admin.api("STREAM.INFO.EVENTS", {}))["config"]
    assert (config["max_msgs_per_subject"], config["discard_new_per_subject"]) == (256, True)


@pytest.mark.usefixtures("own_broker")
async def test_every_write_is_synced(bare: Stack) -> None:
    """RELIABILITY 0.7: the shipped configuration says so, and listens on loopback only."""
    text = (bare.settings.home / "nats" / "nats.conf").read_text()
    assert '"sync_interval": "always"' in text
    assert '"host": "127.0.0.1"' in text
    assert "no_auth_user" not in text
    seeds = list((bare.settings.home / "nkeys").iterdir())
    assert {path.stat().st_mode & 0o777 for path in seeds} == {0o600}


async def test_what_was_acknowledged_survives_kills(tmp_path: Path) -> None:
    """X-5, for the broker alone."""
    async with running_broker(tmp_path) as broker:
        broker.watch()
        bus = await broker.admin()
        acked: list[str] = []

        async def write(name: int) -> None:
            for i in range(40):
                label = f"{name}-{i}"
                pause_s = pauses()
                while True:
                    try:
                        await bus.publish(KEY.in_user, label.encode(), msg_id=label)
                    except VigilError:
                        await asyncio.sleep(next(pause_s))
                    else:
                        acked.append(label)
                        break

        async def kill() -> None:
            for _ in range(3):
                await asyncio.sleep(0.15)
                broker.kill()

        async with asyncio.timeout(60):
            await asyncio.gather(kill(), *(write(n) for n in range(10)))
            stored = await read_all(bus)
        assert sorted(stored) == sorted(acked)
        assert len(stored) == 400
        await bus.close()


async def read_all(bus: Bus) -> list[str]:
    pause_s = pauses()
    while True:
        try:
            return [m.data.decode() for m in await bus.read("SESSIONS", [KEY.in_all])]
        except VigilError:
            await asyncio.sleep(next(pause_s))


async def fill(bus: Bus, subject: str, bytes_each: int, count_max: int = 1000) -> list[int]:
    """Publish until nobody confirms it; return what was acknowledged."""
    acked: list[int] = []
    for _ in range(count_max):
        try:
            acked.append((await bus.publish(subject, b"x" * bytes_each, timeout=1.0)).seq)
        except VigilError:
            return acked
    raise AssertionError("the disk never filled up")


async def test_a_full_disk_loses_nothing_and_heals_by_itself(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RELIABILITY 0.8: no false ack; once there is room the watch restarts the broker."""
    monkeypatch.setattr(broker_module, "RESTART_PAUSE_S", 0.0)
    async with running_broker(small_disk, Nats(partitions=1, max_file_bytes=1024**3)) as broker:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 8_000_000)
        broker.watch()
        bus = await broker.admin()
        acked = await fill(bus, KEY.in_user, 200_000)
        assert acked
        ballast.unlink()
        async with asyncio.timeout(30):
            while True:
                try:
                    await bus.publish(KEY.in_user, b"after", timeout=1.0)
                    break
                except VigilError:
                    await asyncio.sleep(0.2)
            stored = {m.seq for m in await bus.read("SESSIONS", [KEY.in_all])}
        assert set(acked) <= stored
        await bus.close()


async def test_a_broker_that_answers_is_hardly_written_to_and_a_frozen_one_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write of a probe is a sync of the disk, all day. What was found frozen is written to."""
    monkeypatch.setattr(broker_module, "RESTART_PAUSE_S", 0.0)
    monkeypatch.setattr(broker_module, "PROBE_INTERVAL_S", 0.01)
    # At this pace a busy machine's watch has not connected yet: that is no frozen broker.
    failed_max = broker_module.PROBES_FAILED_MAX
    monkeypatch.setattr(broker_module, "PROBES_FAILED_MAX", 1_000_000)
    asked: list[str] = []
    api = Bus.api

    async def counted(self: Bus, subject: str, *args: Any, **named: Any) -> Any:
        asked.append(subject)
        return await api(self, subject, *args, **named)

    async with running_broker(tmp_path, Nats()) as broker:
        broker.watch()
        bus = await broker.admin()
        monkeypatch.setattr(Bus, "api", counted)
        async with asyncio.timeout(60):
            pause_s = pauses()
            while asked.count("STREAM.INFO.KV_CONFIG") < 20:
                await asyncio.sleep(next(pause_s))
        written = [
            message
            for name in ("CONFIG", "IDEMPOTENCY")
            for message in await bus.read(f"KV_{name}", [f"$KV.{name}.probe"])
        ]
        assert len(written) == 1
        monkeypatch.setattr(broker_module, "PROBES_FAILED_MAX", failed_max)
        before = broker.pid
        assert before is not None
        os.kill(before, signal.SIGSTOP)
        async with asyncio.timeout(60):
            pause_s = pauses()
            while broker.pid == before:
                await asyncio.sleep(next(pause_s))
            while not (await health_of(bus)).ready:
                pass
        await bus.close()


STREAM_SUBJECTS = {
    "SESSIONS": KEY.in_user,
    "SYSTEM": "system.vigil.ann.t1.turn",
    "BOARD": "board.vigil.ann.job.j",
    "MEMORIES": "memory.vigil.ann.m",
    "SIGNALS": "signal.said.ann.vigil.t1",
    "KV_CURSORS": "$KV.CURSORS.a",
}


async def health_of(bus: Bus) -> Health:
    """Return what the watch tells of the broker."""
    while not (answers := await bus.ask_all(HEALTH, b"", count=1, timeout=5.0)):
        pass
    return msgspec.json.decode(answers[0], type=Health)


async def test_every_stream_that_met_a_full_disk_is_told_and_heals(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bucket that is probed stayed whole, and the log lay on the full disk itself."""
    monkeypatch.setattr(broker_module, "RESTART_PAUSE_S", 0.0)
    async with running_broker(small_disk, Nats(partitions=1, max_file_bytes=1024**3)) as broker:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 8_000_000)
        broker.watch()
        bus = await broker.admin()
        async with asyncio.timeout(30):
            assert (await health_of(bus)).ready
        with structlog.testing.capture_logs() as logs:
            acked = dict(
                zip(
                    STREAM_SUBJECTS,
                    await asyncio.gather(
                        *(fill(bus, one, 30_000) for one in STREAM_SUBJECTS.values())
                    ),
                    strict=True,
                )
            )
            async with asyncio.timeout(30):
                while (health := await health_of(bus)).ready:
                    pass
            assert "SESSIONS" in health.problems[0]
        said = [entry for entry in logs if entry.get("action") == "broker.says"]
        assert any("no space left" in entry["line"] for entry in said)
        assert "session" in bus.unconfirmed
        ballast.unlink()
        async with asyncio.timeout(30):
            for stream, subject in STREAM_SUBJECTS.items():
                await store_at_last(bus, subject)
                if stream != "KV_CURSORS":  # it keeps the last one only
                    held = {one.seq for one in await bus.read(stream, [subject])}
                    assert set(acked[stream]) <= held or stream == "BOARD"
            while not (await health_of(bus)).ready:
                pass
        assert not bus.unconfirmed
        await bus.close()


async def store_at_last(bus: Bus, subject: str) -> None:
    """Publish until it's confirmed."""
    pause_s = pauses()
    while True:
        try:
            await bus.publish(subject, b"after", timeout=1.0)
            return
        except VigilError:
            await asyncio.sleep(next(pause_s))


async def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    async with running_broker(tmp_path / "one") as one:
        other = Broker(Nats(port=one.port), home=tmp_path / "two")
        with pytest.raises(ConfigError, match="address already in use"):
            await other.start()


async def test_a_kill_right_after_a_restart_is_noticed(tmp_path: Path) -> None:
    """X-5: nobody waits for the streams of a server that is gone already."""
    async with running_broker(tmp_path) as broker:
        spawned = 0

        def kill_the_first() -> None:
            nonlocal spawned
            spawned += 1
            if spawned == 1:
                broker.kill()

        broker.on_spawn = kill_the_first
        broker.watch()
        broker.kill()
        pause_s = pauses()
        while spawned == 0:
            await asyncio.sleep(next(pause_s))
        bus = await broker.admin(wait_s=8.0)  # noticed by a time-out it would take longer
        await bus.close()


async def test_a_watch_that_failed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours in it, and nobody would restart the broker any more."""
    faults = [KeyError("pid")]
    respawn = Broker._respawn

    async def failing(broker: Broker) -> None:
        if faults:
            raise faults.pop()
        await respawn(broker)

    monkeypatch.setattr(Broker, "_respawn", failing)
    async with running_broker(tmp_path) as broker:
        broker.watch()
        pid = broker.pid
        broker.kill()
        pause_s = pauses()
        while broker.pid == pid:
            await asyncio.sleep(next(pause_s))
        bus = await broker.admin(wait_s=8.0)
        await bus.close()
    assert not faults


async def test_stopping_in_the_middle_of_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancellation that is lost on the way must not keep the watch, and the stop, for ever."""
    async with running_broker(tmp_path) as broker:
        begun, lost = asyncio.Event(), asyncio.Event()

        async def provision_and_drop() -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                lost.set()

        monkeypatch.setattr(broker, "_provision", provision_and_drop)
        broker.watch()
        broker.kill()
        async with asyncio.timeout(20):
            await begun.wait()
            await broker.stop()
        assert lost.is_set()
