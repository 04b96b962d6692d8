"""The clock of the machine was ahead for a while and is set back: nobody waits until that time is
there again (S-6, S-7)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.agent import ask, follow_up
from tests.support.world import ANN, Person, StoppedClock, running_world

DAY_S = 86_400


async def told(person: Person) -> list[str]:
    """Return what the agent said unasked."""
    return [one["text"] for one in await person.transcript() if "tag" in one]


async def test_what_quiet_hours_put_off_by_it_comes_as_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was put off to a morning that is 40 days ahead."""
    clock = StoppedClock(datetime(2027, 1, 14, 21, 30, tzinfo=UTC))
    person = {"quiet_hours": "22:00-07:00"}
    async with running_world(tmp_path, monkeypatch, clock, person=person) as world:
        ann = await world.person(ANN, has_socket=False)
        later = follow_up("call", 22 * 3600, "Call her", keep=True)
        await ann.exchange(ask(follow_up("pill", 3600, "Take the pill", keep=True), later))
        await world.advance(3600)  # in quiet hours: put off to seven
        await world.advance(40 * DAY_S)
        assert await told(ann) == []
        clock.move(-40 * DAY_S)
        await world.advance(1)
        assert await told(ann) == [], "it is night"
        await world.advance(9 * 3600)
        assert await told(ann) == ["Take the pill"], "the other was due by that clock alone"
        await world.advance(12 * 3600 - 60)
        assert await told(ann) == ["Take the pill"]
        await world.advance(120)
        assert await told(ann) == ["Take the pill", "Call her"]


async def test_so_it_does_if_the_scheduler_was_down_as_it_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that starts knows what clock there was by what was planned."""
    clock = StoppedClock(datetime(2027, 1, 14, 21, 30, tzinfo=UTC))
    person = {"quiet_hours": "22:00-07:00"}
    async with running_world(tmp_path, monkeypatch, clock, person=person) as world:
        ann = await world.person(ANN, has_socket=False)
        await ann.exchange(ask(follow_up("pill", 3600, "Take the pill", keep=True)))
        await world.advance(3600)  # in quiet hours: put off to seven
        await world.advance(40 * DAY_S)
        await world.gate.stack.stop("scheduler")
        clock.move(-40 * DAY_S)
        await world.gate.stack.start("scheduler")
        await world.advance(1)
        assert await told(ann) == [], "it is night"
        await world.advance(9 * 3600)
        assert await told(ann) == ["Take the pill"]


async def test_what_was_said_by_it_takes_no_room_from_what_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour's reminders were said by it, and a follow-up: those after it were dropped."""
    clock = StoppedClock()
    autonomy = {"enabled": True, "ordered_per_hour": 2}
    async with running_world(tmp_path, monkeypatch, clock, autonomy=autonomy) as world:
        ann = await world.person(ANN, has_socket=False)
        clock.move(40 * DAY_S)
        ahead = [follow_up(f"r{n}", 60, f"R{n}", keep=True) for n in (1, 2)]
        await ann.exchange(ask(*ahead, follow_up("own", 60, "Own")))
        await world.advance(60)
        assert sorted(await told(ann)) == ["Own", "R1", "R2"]
        clock.move(-40 * DAY_S)
        # A message would begin the cooldown anew: these were planned before.
        await ann.exchange(ask(follow_up("r3", 60, "R3", keep=True)))
        await world.advance(60)
        assert (await told(ann))[3:] == ["R3"]
