"""However much there is, a page is small and reads little: ten thousand sessions, long logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.console import Reader, pages, signed_in
from tests.support.console_much import KEY, Much, below, fill
from tests.support.examples import repeats
from tests.support.remembering import running_memories
from vigil.bus.reads import Reads

BYTES_MAX: Final = 200_000
READS_MAX: Final = 260
"""Questions to the broker that a page may take: two for each session of a list."""


class Count:
    """Questions to the broker."""

    def __init__(self) -> None:
        self.reads = 0


@pytest.mark.repeated
async def test_pages_stay_small_and_read_little(tmp_path: Path, monkeypatch: Any) -> None:
    """Each under 200 kB, with few questions to the broker, also where the log is long."""
    async with running_memories(tmp_path) as gate:
        ann = await signed_in(gate, KEY.user)
        much = Much(
            sessions=repeats(10_000, fast=150),
            records=repeats(100_000, fast=2_000),
            memories=repeats(1_000, fast=80),
            slots=repeats(2_000, fast=150),
        )
        row = await fill(gate, await gate.person(KEY.user), much)
        count, ask = Count(), Reads._ask_leader

        async def counted(self: Reads, *given: Any, **more: Any) -> Any:
            count.reads += 1
            return await ask(self, *given, **more)

        monkeypatch.setattr(Reads, "_ask_leader", counted)
        newest = (await gate.stored(str(KEY)))[-1].seq
        large = []
        for path in (*pages(), *below(row, newest)):
            count.reads = 0
            size = await size_of(ann, path)
            if size >= BYTES_MAX or count.reads >= READS_MAX:
                large.append((path, size, count.reads))
        assert not large


async def size_of(reader: Reader, path: str) -> int:
    answer = await reader.client.get(f"/console{path}")
    assert answer.status_code == 200, (path, answer.text[:500])
    return len(answer.content)
