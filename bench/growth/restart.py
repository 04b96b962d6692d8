"""How long a restarted `up` takes to answer, and what it takes of memory, by the size of its log.

The log holds conversations of 100 turns. Beside it the start of a new home is measured, so that the
log's part can be told; and a start after a kill, when the broker reads its files to know what is in
them.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import system
from bench.growth.records import written
from bench.numbers import report_rounds
from vigil.subjects import SessionKey

GIB: Final = 1024**3
SIZES_GIB: Final = (0.1, 1.0, 5.0)
TURNS: Final = 100
TEXT_BYTES: Final = 400
SPARE: Final = 2.0
"""How many times a log must fit on the disk for it to be written."""


class Start(NamedTuple):
    ready_s: float
    memory_mb: float
    """Of everything, once it answers."""
    killed_s: float
    """Until it answers after a kill of everything."""
    cpu_s: float
    """CPU of everything until it answers, of the start that isn't after a kill."""


async def measure(home: Path, rounds: int) -> None:
    """Report `restart_1gib_s`."""
    await _measure(home, rounds, (1.0,))


async def measure_table(home: Path, rounds: int) -> None:
    """Report each size that fits on the disk."""
    await _measure(home, rounds, SIZES_GIB)


async def _measure(home: Path, rounds: int, sizes_gib: Sequence[float]) -> None:
    _report("restart_empty", await started(home / "empty", rounds), 0, 0)
    for size_gib in sizes_gib:
        if not fits(home, size_gib):
            print(f"{size_gib:g} GiB are left out: the disk has too little room", file=sys.stderr)
            continue
        place = home / f"{size_gib:g}"
        records = await _write(place, size_gib)
        size = stored_gib(place)
        _report(f"restart_{size_gib:g}gib", await started(place, rounds), size, records)
        shutil.rmtree(place)


def fits(home: Path, size_gib: float) -> bool:
    """Whether the disk has room for a log of that size."""
    return shutil.disk_usage(home).free > SPARE * size_gib * GIB


def _report(name: str, starts: Sequence[Start], size_gib: float, records: int) -> None:
    more = {"gib": round(size_gib, 2), "records": records}
    report_rounds(f"{name}_s", [one.ready_s for one in starts], "s", **more)
    report_rounds(f"{name}_killed_s", [one.killed_s for one in starts], "s")
    report_rounds(f"{name}_mb", [one.memory_mb for one in starts], "MiB")


async def _write(home: Path, size_gib: float) -> int:
    """Write conversations until their records have that size; return how many records."""
    async with written(home) as writer:
        number = 0
        while writer.bytes < size_gib * GIB:
            key = SessionKey(f"person-{number % 100}", "vigil", f"t{number}")
            await writer.converse(key, TURNS, TEXT_BYTES)
            number += 1
    return writer.records


def stored_gib(home: Path) -> float:
    """Return what the broker's blocks of a home take."""
    return sum(file.stat().st_size for file in home.rglob("*.blk")) / GIB


async def started(home: Path, rounds: int, **settings: str) -> list[Start]:
    """Start a home and start it after a kill, so many times."""
    home.mkdir(exist_ok=True)
    async with system.running(home, **settings):
        """The first start of a home makes keys, streams and consumers."""
    found = []
    for _ in range(rounds):
        begun_at = time.monotonic()
        async with system.running(home, **settings) as running:
            ready_s = time.monotonic() - begun_at
            memory_mb, cpu_s = running.rss_mb(), running.cpu_s()
            running.end(signal.SIGKILL)
        begun_at = time.monotonic()
        async with system.running(home, **settings):
            found.append(Start(ready_s, memory_mb, time.monotonic() - begun_at, cpu_s))
    return found
