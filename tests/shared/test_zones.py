"""Which database of time zones holds, what their names may be, and what a wall clock shows."""

from __future__ import annotations

import ast
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import sources
from tests.support.examples import up_to
from vigil.doctor import zones
from vigil.zones import database
from vigil.zones.database import refusal_of, zone_named
from vigil.zones.day import Day
from vigil.zones.wall import changes, instant_of

NINE: Final = datetime.fromisoformat("2026-12-01T09:00")
CHANGED: Final = {
    "America/Vancouver": 16,
    "America/Edmonton": 15,
    "America/Winnipeg": 14,
    "America/Havana": 13,
    "Africa/Casablanca": 9,
}
"""Zones whose clocks were changed by law in 2026, and the hour of UTC when it is nine there."""


def machine(folder: Path, version: str, **zones_: str) -> database.ZoneDatabase:
    """Return a machine's database: of some names, with the rules of others."""
    packaged = database.of_package()
    assert packaged is not None
    folder.mkdir()
    (folder / "tzdata.zi").write_text(f"# version {version}\nR A 1967 o - O lastSu 2s 0 S\n")
    for name, like in {"UTC": "Etc/UTC", **zones_}.items():
        with packaged.folder.joinpath(*like.split("/")).open("rb") as file:
            (folder / name).write_bytes(file.read())
    found = database.of_machine([str(folder / "nowhere"), str(folder)])
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "hour"), CHANGED.items())
def test_clocks_that_a_law_changed_this_year_are_read_right(name: str, hour: int) -> None:
    """The machine's database may be older than the law: then the package's holds (issue 32)."""
    assert instant_of(NINE, zone_named(name)) == datetime(2026, 12, 1, hour, tzinfo=UTC)
    assert zone_named(name) is zone_named(name)
    assert zone_named(name).key == name


def test_the_newer_database_holds(tmp_path: Path) -> None:
    packaged = database.of_package()
    assert packaged is not None
    old, new = machine(tmp_path / "old", "2025b"), machine(tmp_path / "new", "2999a")
    same = machine(tmp_path / "same", packaged.version)
    assert database.newer(old, packaged) == packaged
    assert database.newer(new, packaged) == new
    assert database.newer(same, packaged) == same
    assert database.newer(old, None) == old
    assert database.newer(None, packaged) == packaged
    assert zones.compared(old, packaged).found == (
        f"{packaged.version}, the package's; the machine's is 2025b"
    )
    assert zones.compared(new, packaged).found == (
        f"2999a, the machine's; the package's is {packaged.version}"
    )
    assert zones.compared(old, None).found == "2025b, the machine's; there is no other"
    assert zones.compared(None, None).state == "fail"


def test_a_database_that_tells_no_version_counts_as_the_older(tmp_path: Path) -> None:
    silent = machine(tmp_path / "silent", "2999a")
    (tmp_path / "silent" / "tzdata.zi").unlink()
    packaged = database.of_package()
    assert database.newer(database.of_folder(silent.folder), packaged) == packaged
    (tmp_path / "silent" / "+VERSION").write_text("2998c\n")
    again = database.of_folder(silent.folder)
    assert again is not None
    assert again.version == "2998c"
    shutil.rmtree(tmp_path / "silent")
    assert database.of_folder(silent.folder) is None


def test_what_the_newer_one_leaves_out_is_read_from_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian has names of old in a package of their own."""
    new = machine(tmp_path / "new", "2999a", Zulu="Asia/Tokyo")
    monkeypatch.setattr(database, "current", lambda: new)
    read = zone_named.__wrapped__
    assert instant_of(NINE, read("Zulu")).hour == 0
    assert instant_of(NINE, read("US/Pacific")).hour == 17
    with pytest.raises(KeyError):
        read("Nowhere/There")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("W. Europe Standard Time", "is Windows's name of a zone; write the IANA one"),
        ("localtime", "write its name, as Europe/Berlin"),
        ("posixrules", "write its name, as Europe/Berlin"),
        ("Factory", "write its name, as Europe/Berlin"),
        ("right/Europe/Berlin", "write Europe/Berlin"),
        ("posix/Asia/Tokyo", "write Asia/Tokyo"),
        ("tzdata.zi", "write its name, as Europe/Berlin"),
        ("../../etc/passwd", "write its name, as Europe/Berlin"),
        ("+02:00", "write its name, as Europe/Berlin"),
        ("", "write its name, as Europe/Berlin"),
    ],
)
def test_a_name_that_is_none_is_refused_with_a_hint(name: str, hint: str) -> None:
    assert refusal_of(name).endswith(hint) or hint in refusal_of(name)
    assert repr(name) in refusal_of(name)


def test_what_was_stored_before_such_names_were_refused_is_read_as_what_it_says() -> None:
    """A clock with leap seconds is half a minute off, and `localtime` is whatever a machine is."""
    berlin = instant_of(NINE, zone_named("Europe/Berlin"))
    assert instant_of(NINE, zone_named("right/Europe/Berlin")) == berlin
    assert zone_named("localtime").key == "UTC"


def test_each_known_name_is_taken() -> None:
    packaged = database.of_package()
    assert packaged is not None
    names = (Path(str(packaged.folder)).parent / "zones").read_text("utf-8").split()
    assert len(names) > 400
    assert [name for name in names if refusal_of(name)] == ["Factory"]


@up_to(300)
@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo"]),
    st.integers(0, 2 * 366 * 86_400).map(lambda s: NINE + timedelta(seconds=s)),
)
def test_a_wall_time_is_the_first_instant_that_shows_it_or_a_later_one(
    name: str, wall: datetime
) -> None:
    """Looked for from the other side: each instant of the day around it is asked what it shows."""
    zone = zone_named(name)
    at = instant_of(wall, zone)
    shown = at.astimezone(zone).replace(tzinfo=None)
    assert shown >= wall
    if shown == wall:
        assert at.astimezone(zone).fold == 0
    else:
        before = datetime.fromtimestamp(at.timestamp() - 1, zone).replace(tzinfo=None)
        assert before < wall < shown, "right after the clocks went on"


@pytest.mark.parametrize(
    ("wall", "zone", "instant"),
    [
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00Z"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30Z"),
        ("2026-10-04T02:10", "Australia/Lord_Howe", "2026-10-03T15:30Z"),
        ("2026-03-08T02:00", "America/New_York", "2026-03-08T07:00Z"),
    ],
)
def test_a_wall_time_where_the_clocks_change(wall: str, zone: str, instant: str) -> None:
    found = instant_of(datetime.fromisoformat(wall), zone_named(zone))
    assert found == datetime.fromisoformat(instant)


@pytest.mark.parametrize(
    "name",
    [
        "America/Goose_Bay",  # back at 0:01, until 2011
        "Antarctica/Casey",  # back by three hours at 2:00
        "America/Havana",  # on at midnight, back at 1:00
        "Asia/Beirut",  # on at midnight, back at midnight
        "Pacific/Apia",  # without the 30th of December 2011
        "Australia/Lord_Howe",
    ],
)
def test_a_day_ends_where_the_next_date_begins_for_good(name: str) -> None:
    """An end in the past had a stopped call tried again at once, and again."""
    zone = zone_named(name)
    near = [timedelta(minutes=each) for each in range(-26 * 60, 26 * 60 + 1, 29)]
    for at in changes(zone, datetime(2005, 1, 1, tzinfo=UTC), datetime(2014, 1, 1, tzinfo=UTC)):
        for now in (at + each for each in near):
            day = Day.at(now, name)
            assert day.ends_at > now
            assert Day.at(day.ends_at - timedelta(seconds=1), name) == day
            assert Day.at(day.ends_at, name).date > day.date


def test_nothing_else_asks_for_a_zone_by_its_name() -> None:
    """Or an older database would hold there."""
    asking = [
        path
        for path, node in sources.nodes(ast.Call, where="ZoneInfo")
        if ast.unparse(node.func).endswith("ZoneInfo")
        if not path.startswith("tests/")
    ]
    assert asking == []
