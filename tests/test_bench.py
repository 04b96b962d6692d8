"""`make bench` and `make chaos` start; the figures themselves are nobody's test."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from bench import __main__ as programs
from bench.growth import restart
from bench.growth.crowd import Crowd
from bench.growth.records import written
from bench.numbers import report_rounds
from bench.peers import comparison
from services.cortex.history import History
from services.cortex.session import log
from tests.support.gateway import Gate
from tests.support.stack import running_stack
from vigil.broker.process import Broker
from vigil.clock import SystemClock
from vigil.observe.metrics import Metrics
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey
from vigil.topology import CONSUMERS


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> str:
    """Ask for that in this process; return how it was refused."""
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        programs._arguments()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_help_names_every_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wants to check finds what there is to measure."""
    monkeypatch.setattr(sys, "argv", ["bench", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(programs.__file__), run_name="__main__")
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for part in (
        "turns",
        "peers",
        "growth",
        "session_20k_turn_ratio",
        "restart_1gib_s",
        "tracing",
        "timers",
        "resting",
        "month",
        "retrieval",
        "memory",
        "upkeep",
        "ageing",
        "--rounds",
    ):
        assert part in shown


def test_a_part_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no such part: turn" in refused(monkeypatch, capsys, "turn")


def test_sizes_are_of_the_parts_that_have_any(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(monkeypatch, capsys, "turns", "--sizes", "3")
    assert "--sizes is of one of crowd, log, people, replicas" in told


def test_rounds_are_told_with_their_spread(capsys: pytest.CaptureFixture[str]) -> None:
    report_rounds("turns_vs_floor", [0.5, 0.25, 0.3], "ratio", aim=">= 0.5")
    assert json.loads(capsys.readouterr().out) == {
        "name": "turns_vs_floor", "value": 0.3, "unit": "ratio",
        "least": 0.25, "most": 0.5, "rounds": 3, "aim": ">= 0.5",
    }  # fmt: skip


def test_peers_are_told_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without their virtual environment it's said how to get it."""
    monkeypatch.setattr(comparison, "PYTHON", Path("/nowhere/python"))
    with pytest.raises(SystemExit, match="make bench ARGS=peers"):
        comparison.check_installed()


async def test_a_written_log_is_one_that_sessions_go_on_from(tmp_path: Path) -> None:
    """What `growth` writes by itself is what a session reads, and nobody has to work it off."""
    keys = [SessionKey("me", "vigil", name) for name in ("a", "b")]
    async with written(tmp_path) as writer:
        ends = [await writer.converse(key, 50) for key in keys]
    broker = Broker(Nats(sync="default"), home=tmp_path)
    await broker.start()
    try:
        bus = await broker.admin()
        for key, end in zip(keys, ends, strict=True):
            loaded = await log.load(bus, key, SystemClock(), Metrics("bench"), History(80, 10_000))
            assert loaded.state.turns == 50
            assert loaded.turn_seq == end - 1
            said = await bus.read(key.stream, [key.out_all])
            assert (len(said), said[-1].seq) == (50, end)
            assert await log.is_settled(bus, key, loaded.state.position)
        layout = await bus.layout()
        for consumer in (each for one in CONSUMERS for each in layout.each(one)):
            info = await bus.api(f"CONSUMER.INFO.{consumer.stream}.{consumer.name}", {})
            assert info["num_pending"] == 0, consumer.name
        await bus.close()
    finally:
        await broker.stop()


async def test_a_written_log_grows(tmp_path: Path) -> None:
    """`log` makes one home larger and larger: what was written before stays where it is."""
    counts = []
    for name in ("a", "b"):
        async with written(tmp_path) as writer:
            counts.append(await writer.converse(SessionKey("me", "vigil", name), 20))
            assert writer.records == 20 * 3
    broker = Broker(Nats(sync="default"), home=tmp_path)
    await broker.start()
    try:
        bus = await broker.admin()
        for name, end in zip("ab", counts, strict=True):
            key = SessionKey("me", "vigil", name)
            assert len(await bus.read(key.stream, [key.turns])) == 20
            assert (await bus.read(key.stream, [key.out_all]))[-1].seq == end
        await bus.close()
    finally:
        await broker.stop()


async def test_a_crowd_speaks_over_connections_that_it_shares(tmp_path: Path) -> None:
    """`crowd`: a socket for each, of several people, and each hears the answer to its own words."""
    async with running_stack(tmp_path / "vigil") as stack:
        gate = Gate(stack, await stack.bus("admin"), await stack.bus("operator"))
        people = [await gate.token("p0"), await gate.token("p1")]
        crowd = Crowd(people, [f"http://127.0.0.1:{gate.port}"])
        opening = await crowd.open(5)
        assert opening["first_tenth_ms"] > 0
        for _ in range(2):
            assert (await crowd.speak())["per_s"] > 0
        crowd.end()
        await gate.close()
        bus = await stack.bus("admin")
        for number in range(5):
            key = SessionKey(f"p{number % 2}", "vigil", f"crowd-{number}")
            assert len(await bus.read(key.stream, [key.out_said("*")])) == 2


def test_a_log_that_does_not_fit_on_the_disk_is_not_written(tmp_path: Path) -> None:
    assert restart.fits(tmp_path, 0.001)
    assert not restart.fits(tmp_path, 1e6)


def test_chaos_finds_what_it_is_asked_for() -> None:
    words = "-m", "tests.chaos", "--collect-only", "--quiet", "-k", "kill_storm"
    # Only so that it imports less.
    words = sys.executable, *words, "--ignore-glob", "*/test_[!k]*.py"
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "tests/chaos/test_kill_storm.py::test_killed_at_random" in done.stdout
