"""The growth table: each figure of this folder at all its sizes."""

from __future__ import annotations

from pathlib import Path

from bench.growth import length, rest, restart, sockets


async def measure(home: Path, rounds: int) -> None:
    """Report what grows with the length of a session, with sessions, with the log, with sockets."""
    for part in (length, rest, restart, sockets):
        place = home / part.__name__.rpartition(".")[2]
        place.mkdir()
        await part.measure_table(place, rounds)
