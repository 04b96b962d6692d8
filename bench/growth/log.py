"""What a restart and a turn cost by how many records the log has.

One home grows: at each size it is started, killed and started again, and then a turn in it is
measured in turn with one in a new home that runs beside it. A ratio compares what ran side by side.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import system
from bench.growth.records import written
from bench.growth.restart import GIB, TEXT_BYTES, TURNS, started, stored_gib
from bench.numbers import report_rounds
from vigil.settings.sections import Nats
from vigil.subjects import SessionKey

SIZES: Final = (1_000_000, 3_000_000, 10_000_000)
RECORD_BYTES: Final = 1_160
"""Of a record as the broker keeps it (1 GiB are 927,000)."""
SPARE_BYTES: Final = 4 * GIB
ROUNDS_OF_TURNS: Final = 5
REST_S: Final = 1_800.0
SESSIONS, MESSAGES = 20, 20


class Turn(NamedTuple):
    """In the large log, over the same in a new home."""

    turn: float
    """The median."""
    cpu: float
    """Of everything, a message."""
    opening: float
    """The first message of a new session."""


async def measure(home: Path, rounds: int, sizes: Sequence[int] = SIZES) -> None:
    """Report starts, memory, and what a turn costs, at each number of records."""
    place, empty = home / "log", home / "empty"
    file_bytes = max(Nats().max_file_bytes, 2 * max(sizes) * RECORD_BYTES)
    settings = {"VIGIL_NATS__MAX_FILE_BYTES": str(file_bytes)}
    place.mkdir()
    empty.mkdir()
    records = conversations = 0
    for size in sizes:
        if shutil.disk_usage(home).free < (size - records) * RECORD_BYTES + SPARE_BYTES:
            print(f"{size} records are left out: the disk has too little room", file=sys.stderr)
            return
        begun_at = time.monotonic()
        async with written(place, file_bytes) as writer:
            while records + writer.records < size:
                key = SessionKey(f"person-{conversations % 100}", "vigil", f"t{conversations}")
                await writer.converse(key, TURNS, TEXT_BYTES)
                conversations += 1
        records += writer.records
        name, facts = f"log_{size}", {"records": records, "gib": round(stored_gib(place), 2)}
        report_rounds(f"{name}_write_s", [time.monotonic() - begun_at], "s", **facts)
        found = await started(place, rounds, **settings)
        report_rounds(f"{name}_start_s", [one.ready_s for one in found], "s", **facts)
        report_rounds(f"{name}_start_cpu_s", [one.cpu_s for one in found], "s")
        report_rounds(f"{name}_killed_s", [one.killed_s for one in found], "s")
        report_rounds(f"{name}_mb", [one.memory_mb for one in found], "MiB")
        turns = await _turns(place, empty, f"at-{size}", settings)
        report_rounds(f"{name}_turn_ratio", [one.turn for one in turns], "ratio")
        report_rounds(f"{name}_cpu_ratio", [one.cpu for one in turns], "ratio")
        report_rounds(f"{name}_opening_ratio", [one.opening for one in turns], "ratio")


async def _turns(place: Path, empty: Path, name: str, settings: Mapping[str, str]) -> list[Turn]:
    found = []
    async with (
        system.running(place, **settings) as large,
        system.running(empty) as new,
    ):
        for each in (large, new):
            # Signals are derived of each record that was written behind its back.
            await each.until_rest(REST_S)
            await each.talk(SESSIONS, 5, f"warm-{name}")
        for number in range(ROUNDS_OF_TURNS):
            both = {}
            for each in (large, new) if number % 2 else (new, large):
                both[each] = await _load(each, f"{name}-{number}")
            pairs = zip(both[large], both[new], strict=True)
            found.append(Turn(*(one / other for one, other in pairs)))
    return found


async def _load(running: system.System, name: str) -> Turn:
    begun_s = running.cpu_s()
    found = await running.talk(SESSIONS, MESSAGES, name)
    cpu_ms = (running.cpu_s() - begun_s) * 1000 / (SESSIONS * (MESSAGES + 1))
    return Turn(found["p50_ms"], cpu_ms, found["opening_ms"])
