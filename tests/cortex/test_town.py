"""Random lives in a town whose model obeys whatever it reads (SPEC X-3, `tests.cortex.town`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import pytest

from services.cortex.core import sway
from services.cortex.core.sway import Sway
from tests.cortex.town import WAYS, Violation, any_ways, live
from tests.support.examples import repeats

LIVES: Final = repeats(300, fast=40)
LIVES_MUTATED: Final = 400


@pytest.mark.repeated
def test_nothing_descends_from_an_outsider_without_leave() -> None:
    """X-3: whatever came in, in whatever order, by whatever detour; and the same model does obey
    the person, so what isn't seen is not for want of obedience."""
    counts: Counter[str] = Counter()
    for seed in range(LIVES):
        counts.update(live(seed, list(any_ways(seed))).counts)
    print(dict(counts))
    assert all(counts[way] >= LIVES / 10 for way in WAYS)
    assert counts["ran for the person"] >= LIVES / 3
    assert counts["read"] >= LIVES / 30, "readers went out"
    assert counts["told"] >= LIVES / 10, "ends of jobs were told"
    assert counts["errands"] >= LIVES / 100, "jobs went on without what was accepted later"
    assert counts["heard"] == counts["spoken"] >= LIVES / 30, "what the person says decides, once"
    assert counts["ran by leave"] >= LIVES / 30, "what is accepted runs, once it is accepted"


MUTANTS: Final[dict[str, Callable[..., Sway]]] = {
    "of_decision": lambda state, moment, thinking: Sway.NONE,
    "of_job": lambda job: Sway.NONE,
    "of_event": lambda event: Sway.NONE,
    "of": lambda *records: Sway.NONE,
    "of_writing": lambda turn: Sway.NONE,
}


@pytest.mark.parametrize("part", MUTANTS)
def test_a_core_that_asks_less_is_found_out(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test has teeth: without any one part of the answer some life goes wrong."""
    monkeypatch.setattr(sway, part, MUTANTS[part])
    for seed in range(LIVES_MUTATED):
        try:
            live(seed, list(any_ways(seed)))
        except Violation:
            return
    pytest.fail(f"{LIVES_MUTATED} lives without {part}, and nothing happened")
