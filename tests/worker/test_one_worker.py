"""One worker: no service pulls, gives back or holds what it pulled on its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
WORKER: Final = ROOT / "shared" / "vigil" / "worker"
BUS: Final = ROOT / "shared" / "vigil" / "bus"
LOOPS: Final = r"\banext\(\s*(self\.)?_?(puller|turns|orders|wakes)\b|\.pull\("
IN_HAND: Final = r"\.in_progress\("
WORKERS: Final = ("delivery", "executor", "memory", "scheduler")


def places(pattern: str, *services: str) -> list[str]:
    """Return the lines outside of the worker and the bus that match."""
    tops = [ROOT / "services" / name for name in services] or [ROOT / "services", ROOT / "shared"]
    return [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for top in tops
        for file in sorted(top.rglob("*.py"))
        if not file.is_relative_to(WORKER) and not file.is_relative_to(BUS)
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_nobody_else_pulls() -> None:
    assert places(LOOPS) == []


@pytest.mark.parametrize("service", WORKERS)
def test_the_effects_of_turns_are_skipped_by_the_worker_alone(service: str) -> None:
    assert places(r"\bEFFECTS_HEADER\b|Vigil-Effects|\bmay_ask\b", service) == []


def test_one_wait_alone_asks_for_more_time() -> None:
    """A send that waits for the one before it: 2 s of an ack wait of 5."""
    (place,) = places(IN_HAND)
    assert place.startswith("services/delivery/handlers.py")
