"""calendar_list, _find, _create, _change, _cancel against a real server: what is shown, changed,
and made once however often it's tried."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from services.executor.builtin import Builtin
from services.executor.calendars import writer
from services.executor.tools.declaration import declared
from services.executor.tools.source import ToolOutput
from tests.support.calendars import LOGIN, PASSWORD, Radicale, calendar, event
from tests.support.hands import NO_SANDBOX, call_of
from tests.support.stack import Stack, running_stack
from vigil.calendars import mirror
from vigil.calendars.dav import Collection
from vigil.calendars.places import CalendarProblem
from vigil.calendars.reader import CalendarReader
from vigil.clock import SystemClock
from vigil.errors import InvalidInput
from vigil.zones.database import zone_named

pytestmark = pytest.mark.usefixtures("forked_readers")

DAY: Final = datetime.now(UTC).date() + timedelta(days=20)
BERLIN: Final = zone_named("Europe/Berlin")
CONFIG: Final[dict[str, Any]] = {
    "person": {"timezone": "Europe/Berlin"},
}


class Person:
    """Calls tools as an executor does for ann, whose calendar was seen."""

    def __init__(self, stack: Stack, radicale: Radicale, bus: Any) -> None:
        self.stack = stack
        self.radicale = radicale
        self.config = stack.settings.config
        self.source = Builtin(stack.settings, SystemClock(), NO_SANDBOX, bus)

    async def see(self) -> None:
        """Look at all calendars, as whoever keeps them does."""
        for name, section in self.config.calendars.items():
            home = self.stack.settings.home
            path = mirror.path_of(home, name, section)
            known = mirror.load(path, mirror.source_of(section))
            mirror.store(path, await CalendarReader(section, home).read(known, datetime.now(UTC)))

    async def call(
        self, name: str, /, *, call_id: str = "", user: str = "ann", **given: Any
    ) -> ToolOutput:
        call = call_of(name, self.config, given, call_id=call_id, user=user)
        return await self.source.run(call)

    async def ids(self, day: date) -> dict[str, str]:
        """Return the id of each event of a day, by its title."""
        lines = (await self.call("calendar_list", day=str(day))).content.splitlines()
        parted = (
            line[2:].partition("  ")[2].rpartition(" [") for line in lines if line[:2] == "- "
        )
        return {title.partition(";")[0]: id_.rstrip("]") for title, _, id_ in parted}


@pytest.fixture
async def ann(tmp_path: Path, radicale: Radicale) -> AsyncIterator[Person]:
    async with running_person(tmp_path, radicale) as person:
        yield person


@contextlib.asynccontextmanager
async def running_person(tmp_path: Path, radicale: Radicale, **work: Any) -> AsyncIterator[Person]:
    async with contextlib.AsyncExitStack() as stack:
        known = {"kind": "caldav", "url": radicale.url, "login": LOGIN, "password": PASSWORD}
        sections = {
            "work": {**known, "user": "ann", "is_writable": True, "timeout_s": 10, **work},
            "seen": {**known, "user": "ann"},
            "other": {**known, "user": "bob"},
        }
        bare = await stack.enter_async_context(
            running_stack(tmp_path / "home", services=(), calendars=sections, **CONFIG)
        )
        person = Person(bare, radicale, await bare.bus("executor"))
        stack.push_async_callback(person.source.close)
        yield person


def at(hour: int, day: date = DAY) -> str:
    return f";TZID=Europe/Berlin:{day:%Y%m%d}T{hour:02}0000"


async def test_what_is_due_is_listed_and_found_as_outside_text(ann: Person) -> None:
    """D-3: days and ranges, words; whose text it is, is said (SPEC X-3)."""
    await ann.radicale.put(
        "a.ics", calendar(event("a", at(15), "DURATION:PT30M", "LOCATION:Room 1", title="Dentist"))
    )
    await ann.radicale.put(
        "b.ics",
        calendar(
            event("b", f";VALUE=DATE:{DAY:%Y%m%d}", "DESCRIPTION:Bring the passport", title="Trip")
        ),
    )
    await ann.see()
    told = await ann.call("calendar_list", day=str(DAY), calendar="work")
    lines = told.content.splitlines()
    assert lines[0] == f"{DAY}, clocks of Europe/Berlin, in work:"
    assert lines[1] == f"{DAY:%Y-%m-%d %A}:"
    assert lines[2].startswith("- all day  Trip [work/")
    assert lines[3].startswith("- 15:00-15:30  Dentist; at Room 1 [work/")
    assert told.is_tainted
    nothing = await ann.call("calendar_list", day="2026-01-01", until="2026-01-01", calendar="work")
    assert (nothing.content, nothing.is_tainted) == ("Nothing is due: 2026-01-01, in work.", False)
    found = await ann.call("calendar_find", words="PASSPORT bring", calendar="work")
    assert "Bring the passport" in found.content
    assert found.is_tainted
    two = await ann.call("calendar_list", day=str(DAY), until=str(DAY + timedelta(days=5)))
    assert two.content.count("Dentist") == 2, "of both of ann's calendars, none of bob's"
    for wrong in ({"day": "soon"}, {"day": "2199-01-01"}, {"calendar": "other"},
                  {"day": "2026-01-02", "until": "2026-01-01"}):  # fmt: skip
        with pytest.raises(InvalidInput):
            await ann.call("calendar_list", **wrong)
    with pytest.raises(InvalidInput, match="this person has none"):
        await ann.call("calendar_list", user="carl")


async def test_times_are_the_persons_whatever_clocks_a_calendar_has(
    tmp_path: Path, radicale: Radicale
) -> None:
    """A calendar's zone is for what says none; and a time with its offset stays that moment."""
    async with running_person(tmp_path, radicale, zone="America/New_York") as ann:
        await ann.see()
        made = await ann.call("calendar_create", title="Lunch", begins=f"{DAY}T12:30")
        assert made.content.startswith(
            f"Made in work: {DAY:%A %Y-%m-%d} 12:30-13:30 (clocks of Europe/Berlin)"
        )
        ids = await ann.ids(DAY)
        moved = await ann.call("calendar_change", event=ids["Lunch"], begins=f"{DAY}T14:00")
        assert f"{DAY} 14:00-15:00" in moved.content
        away = await ann.call("calendar_create", title="Call", begins=f"{DAY}T12:00+00:00")
        noon = datetime(DAY.year, DAY.month, DAY.day, 12, tzinfo=UTC).astimezone(BERLIN)
        assert f"{noon:%H:%M}-" in away.content


async def test_an_event_is_made_changed_and_cancelled(ann: Person) -> None:
    await ann.see()
    made = await ann.call("calendar_create", title="Lunch; with, Bo", begins=f"{DAY}T12:30",
                          ends=f"{DAY}T13:15", place="Café")  # fmt: skip
    assert made.content.startswith(
        f"Made in work: {DAY:%A %Y-%m-%d} 12:30-13:15 (clocks of Europe/Berlin) ["
    )
    assert not made.is_tainted
    ids = await ann.ids(DAY)
    over = DAY - timedelta(days=50)
    slip = await ann.call("calendar_create", title="Slip", begins=f"{over}T09:00")
    assert slip.content.startswith(f"Made in work: {over:%A %Y-%m-%d} 09:00-10:00 (clocks")
    assert re.search(
        r"\]\. That was over (29|30|31) d ago: if a time to come is meant,", slip.content
    )
    assert "That was over" not in made.content
    moved = await ann.call("calendar_change", event=ids["Lunch"], begins=f"{DAY}T14:00", notes="x")
    assert f"{DAY} 14:00-14:45" in moved.content
    late = await ann.call("calendar_change", event=ids["Lunch"], title="Other")
    assert "it was changed since it was listed" in late.content
    assert late.is_error
    gone = await ann.call("calendar_cancel", event=(await ann.ids(DAY))["Lunch"])
    assert gone.content == "It is no more in work."
    assert (await ann.radicale.all()).count("BEGIN:VEVENT") == 1, "of the slip"
    with pytest.raises(InvalidInput, match="only read"):
        await ann.call("calendar_create", calendar="seen", title="x", begins=f"{DAY}T12:30")


async def test_one_instance_or_the_whole_series(ann: Person) -> None:
    await ann.see()
    await ann.call("calendar_create", title="Standup", begins=f"{DAY}T09:00", ends=f"{DAY}T09:15",
                   repeats="FREQ=DAILY;COUNT=4")  # fmt: skip
    days = [DAY + timedelta(days=each) for each in range(4)]
    of_series = (await ann.ids(DAY))["Standup"].rpartition("/")[0]
    with pytest.raises(InvalidInput, match="is a series"):
        await ann.call("calendar_cancel", event=of_series)
    await ann.call("calendar_change", event=(await ann.ids(days[1]))["Standup"], title="Review",
                   begins=f"{days[1]}T11:00")  # fmt: skip
    await ann.call("calendar_cancel", event=(await ann.ids(days[2]))["Standup"])
    assert [list(await ann.ids(day)) for day in days] == [["Standup"], ["Review"], [], ["Standup"]]
    await ann.call("calendar_change", event=(await ann.ids(DAY))["Standup"], whole_series=True,
                   begins=f"{DAY}T10:00")  # fmt: skip
    shown = (
        await ann.call("calendar_list", day=str(DAY), until=str(days[3]), calendar="work")
    ).content
    assert [line[2:13] for line in shown.splitlines() if line[:2] == "- "] == [
        "10:00-10:15", "11:00-11:15", "10:00-10:15",
    ]  # fmt: skip
    await ann.call("calendar_cancel", event=(await ann.ids(DAY))["Standup"], whole_series=True)
    assert "BEGIN:VEVENT" not in await ann.radicale.all()


async def test_a_call_that_comes_again_does_nothing_twice(ann: Person) -> None:
    """The executor died between the server's answer and its own record, so the call runs again."""
    await ann.see()
    for _ in range(3):
        made = await ann.call("calendar_create", call_id="c1", title="Once", begins=f"{DAY}T10:00")
        assert made.content.startswith("Made in work")
    assert (await ann.radicale.all()).count("BEGIN:VEVENT") == 1
    id_ = (await ann.ids(DAY))["Once"]
    for _ in range(2):
        told = await ann.call("calendar_change", call_id="c2", event=id_, begins=f"{DAY}T11:00")
        assert f"{DAY} 11:00-12:00" in told.content
    assert "SEQUENCE:1" in await ann.radicale.all()
    id_ = (await ann.ids(DAY))["Once"]
    for told in ("It is no more in work.", "It isn't there any more."):
        assert (await ann.call("calendar_cancel", call_id="c3", event=id_)).content == told


async def test_an_answer_that_is_lost_is_looked_for(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stored it, and its answer was lost; or it never got it."""
    await ann.see()
    monkeypatch.setattr(writer, "SETTLE_S", 0.0)
    put = Collection.put

    async def stored(self: Collection, *given: Any, **named: Any) -> None:
        await put(self, *given, **named)
        raise CalendarProblem("its server doesn't answer")

    async def lost(self: Collection, *given: Any, **named: Any) -> None:
        raise CalendarProblem("its server doesn't answer")

    monkeypatch.setattr(Collection, "put", stored)
    made = await ann.call("calendar_create", title="A", begins=f"{DAY}T10:00")
    assert made.content.startswith("Made in work")
    monkeypatch.setattr(Collection, "put", lost)
    failed = await ann.call("calendar_create", title="B", begins=f"{DAY}T10:00")
    assert (failed.content, failed.is_error) == ("Not made: its server doesn't answer.", True)
    assert (await ann.radicale.all()).count("BEGIN:VEVENT") == 1
    get = Collection.get

    async def away(self: Collection, *given: Any, **named: Any) -> Any:
        raise CalendarProblem("its server can't be reached")

    monkeypatch.setattr(Collection, "get", away)
    unclear = await ann.call("calendar_create", title="C", begins=f"{DAY}T10:00")
    assert unclear.content.startswith("It isn't known whether that was done: its server")
    assert unclear.is_error
    monkeypatch.setattr(Collection, "put", put)
    stored = await ann.call("calendar_create", title="D", begins=f"{DAY}T10:00")
    assert stored.content == "Made in work; it can't be listed yet: its server is away."
    monkeypatch.setattr(Collection, "get", get)
    assert (await ann.radicale.all()).count("BEGIN:VEVENT") == 2


async def test_a_change_by_another_at_the_same_moment_is_kept(
    ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our read and our write a phone changes it: 412, and nothing is overwritten."""
    await ann.radicale.put("a.ics", calendar(event("a", at(15), title="Dentist")))
    await ann.see()
    put = Collection.put

    async def raced(self: Collection, *given: Any, **named: Any) -> None:
        await ann.radicale.put("a.ics", calendar(event("a", at(16), title="Dentist later")))
        await put(self, *given, **named)

    monkeypatch.setattr(Collection, "put", raced)
    told = await ann.call("calendar_change", event=(await ann.ids(DAY))["Dentist"], title="Mine")
    assert "somebody else changed it at the same time" in told.content
    assert "Dentist later" in await ann.radicale.all()


async def test_what_has_people_invited_is_left_to_the_person(ann: Person) -> None:
    """FLOW F-8: a server that schedules writes to attendees, whom nobody named here."""
    people = ("ORGANIZER:mailto:ann@a.example", "ATTENDEE:mailto:bo@b.example")
    await ann.radicale.put("a.ics", calendar(event("a", at(15), *people, title="Review")))
    await ann.see()
    id_ = (await ann.ids(DAY))["Review"]
    for name, given in (("calendar_change", {"title": "x"}), ("calendar_cancel", {})):
        with pytest.raises(InvalidInput, match="event: has people invited"):
            await ann.call(name, event=id_, **given)
    assert "SUMMARY:Review" in await ann.radicale.all()


async def test_a_refused_password_isnt_shown_again_by_calls(ann: Person) -> None:
    """Issue 37: a model that tries again and again would have the account locked."""
    await ann.see()
    ann.radicale.set_password("another")
    first = await ann.call("calendar_create", title="A", begins=f"{DAY}T10:00")
    assert first.content == "Not made: 401: its server refused the login and password."
    for _ in range(3):
        again = await ann.call("calendar_create", title="A", begins=f"{DAY}T10:00")
        assert "it isn't asked again with the same ones" in again.content
    assert ann.radicale.log.count("Failed login attempt") == 1


def test_writes_are_external_and_may_run_again() -> None:
    tools = {name: one for name, one in declared().items() if name.startswith("calendar_")}
    assert {name: one.risk for name, one in tools.items()} == {
        "calendar_list": "read", "calendar_find": "read", "calendar_create": "external",
        "calendar_change": "external", "calendar_cancel": "external",
    }  # fmt: skip
    assert all(one.is_idempotent for one in tools.values())
    for one in tools.values():
        assert set(one.aims) == set(one.arguments.__struct_fields__), one.name
