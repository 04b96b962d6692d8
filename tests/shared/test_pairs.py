"""Whose an address is, in whatever channel: pure decisions (SPEC X-4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.support.stack import running_stack
from vigil.channels import pairs
from vigil.channels.pairs import ChannelPerson, PairCode, PairedAddress

NOW: Final = datetime(2026, 11, 28, 12, tzinfo=UTC)
CODE: Final = "ABCDE-23456"


def waiting(user: str, address: str, *paired: str) -> ChannelPerson:
    return ChannelPerson(
        user=user,
        channel="net",
        addresses=tuple(PairedAddress(address=one, at=NOW) for one in paired),
        code=PairCode(address=address, hash=pairs.hash_of(CODE), until=NOW + timedelta(hours=1)),
    )


def test_a_code_for_one_id_is_taken_from_no_other_not_even_of_another_case() -> None:
    """Ids of Matrix tell the case of letters apart, and two people may have such a pair."""
    people = [waiting("ann", "@ann:a.example")]
    assert pairs.paired_by(people, "@Ann:a.example", CODE, NOW) is None
    assert pairs.paired_by(people, "@ann:a.example", "ABCDE-23457", NOW) is None
    assert pairs.paired_by(people, "@ann:a.example", CODE, NOW + timedelta(hours=1)) is None
    found = pairs.paired_by(people, "@ann:a.example", f"it's {CODE.lower()}", NOW, room="!r")
    assert found is not None
    assert (found.user, found.addresses[-1].room, found.code) == ("ann", "!r", None)


def test_a_code_for_whoever_brings_it_gives_nobody_what_is_anothers_already() -> None:
    people = [waiting("ann", ""), ChannelPerson(user="bob", channel="net")]
    assert pairs.has_open_code(people, "12", NOW)
    found = pairs.paired_by(people, "12", CODE, NOW)
    assert found is not None
    assert [one.address for one in found.addresses] == ["12"]
    of_bob = ChannelPerson(
        user="bob", channel="net", addresses=(PairedAddress(address="12", at=NOW),)
    )
    assert pairs.paired_by([waiting("ann", ""), of_bob], "12", CODE, NOW) is None


async def test_a_code_is_good_once_and_not_after_it_was_taken_back(tmp_path: Path) -> None:
    """Also to who read of it before: another replica, or a message that came meanwhile."""
    async with running_stack(tmp_path, services=()) as stack:
        bus = await stack.bus("admin")
        await pairs.ask_for(bus, "net", "ann", "", CODE, NOW)
        seen = await pairs.people_of(bus, "net")
        assert await pairs.pair(bus, seen, "12", CODE, NOW, "!r") == "ann"
        assert await pairs.pair(bus, seen, "13", CODE, NOW) is None
        found = await pairs.find(bus, "net", "ann")
        assert found is not None
        assert [(one.address, one.room) for one in found.addresses] == [("12", "!r")]
        await pairs.ask_for(bus, "net", "ann", "", CODE, NOW)
        seen = await pairs.people_of(bus, "net")
        assert await pairs.take_back(bus, "net", "ann", "12")
        assert await pairs.pair(bus, seen, "12", CODE, NOW) is None, "nor by an open code"
        assert pairs.user_of(await pairs.people_of(bus, "net"), "12") is None


def test_a_person_is_reached_where_they_wrote_from_else_where_they_paired_last() -> None:
    ann = waiting("ann", "", "1", "2")
    assert pairs.address_for(ann, "1") == "1"
    assert pairs.address_for(ann, "9") == pairs.address_for(ann) == "2"
    assert pairs.address_for(None) is None
