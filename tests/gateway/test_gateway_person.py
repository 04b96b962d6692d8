"""/api/person: what a person sets for themselves, and which revision is changed (LOOPS L-11)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.support.gateway import Gate, assert_problem
from vigil.contracts.base import NEVER
from vigil.errors import ConfigError, InvalidInput
from vigil.marks import agent_pause
from vigil.settings import config, own
from vigil.settings.sections import Person
from vigil.settings.switches import Switches
from vigil.subjects import Scope

PATH: Final = "/api/person"


async def test_a_person_sets_what_holds_for_them_alone(gate: Gate) -> None:
    ann, bob = await gate.person("ann"), await gate.person("bob")
    before = (await ann.get(PATH)).json()
    assert (before["timezone"], before["own"], before["revision"]) == ("UTC", [], 0)
    made = await ann.patch(PATH, json={"timezone": "Asia/Tokyo", "quiet_hours": "22:00-07:00"})
    assert made.status_code == 200, made.text
    one = made.json()
    assert (one["timezone"], one["quiet_hours"], one["digest_at"]) == (
        "Asia/Tokyo", "22:00-07:00", "08:00",
    )  # fmt: skip
    assert (one["own"], one["changed_by"]) == (["timezone", "quiet_hours"], "ann")
    assert made.headers["etag"] == f'"{one["revision"]}"'
    assert (await ann.get(PATH)).json() == one
    assert (await bob.get(PATH)).json()["own"] == []
    again = await ann.patch(PATH, json={"timezone": None, "language": "ja"})
    assert (again.json()["timezone"], again.json()["own"]) == ("UTC", ["language", "quiet_hours"])
    assert_problem(await (await gate.http()).patch(PATH, json={}), 401)


async def test_only_the_revision_that_was_read_is_changed(gate: Gate) -> None:
    """L-15: `If-Match` of yesterday is refused, and what changes nothing is no revision."""
    cat = await gate.person("cat")
    first = await cat.patch(PATH, json={"language": "de"}, headers={"If-Match": '"0"'})
    tag = first.headers["etag"]
    assert_problem(await cat.patch(PATH, json={"language": "it"}, headers={"If-Match": '"0"'}), 412)
    same = await cat.patch(PATH, json={"language": "de"})
    assert same.headers["etag"] == tag
    second = await cat.patch(PATH, json={"language": "it"}, headers={"If-Match": tag})
    assert second.json()["language"] == "it"
    assert_problem(await cat.patch(PATH, json={"language": None}, headers={"If-Match": tag}), 412)


async def test_what_is_set_at_once_without_a_revision_holds_all(gate: Gate) -> None:
    """Of two pages that set different things neither undoes the other's."""
    dot = await gate.person("dot")
    wanted = {"language": "de", "timezone": "Europe/Paris", "quiet_hours": "22:00-07:00"}
    answers = await asyncio.gather(
        *(dot.patch(PATH, json={name: value}) for name, value in wanted.items())
    )
    assert [answer.status_code for answer in answers] == [200] * 3
    now = (await dot.get(PATH)).json()
    assert {name: now[name] for name in wanted} == wanted
    assert len({answer.json()["revision"] for answer in answers}) == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"quiet_hours": "22"}, "quiet_hours"),
        ({"quiet_hours": "22:00-27:00"}, "quiet_hours"),
        ({"quiet_hours": "22:00+01:00-07:00"}, "quiet_hours"),
        ({"quiet_hours": "22:00-07:00Z"}, "quiet_hours"),
        ({"digest_at": "soon"}, "digest_at"),
        ({"channel": "pigeon"}, "channel"),
        ({"language": "German!"}, "language"),
        ({"digest_at": "08:00+02:00"}, "digest_at"),
        ({"pause": "soon"}, "pause"),
        ({"pause": "2020-01-01T00:00Z"}, "pause"),
        ({"user": "bob"}, None),
        ({"home_thread": "x"}, None),
        ({"timezone": 1}, None),
    ],
)
async def test_what_cant_be_used_is_refused_by_its_field(
    gate: Gate, body: dict[str, Any], field: str | None
) -> None:
    dan = await gate.person("dan")
    refused = await dan.patch(PATH, json=body)
    assert refused.status_code == 422
    if field is not None:
        assert_problem(refused, 422, field)
    assert (await own.find(gate.admin, "dan")).revision == 0


async def test_a_pause_is_told_in_the_zone_it_was_meant_in(gate: Gate) -> None:
    """L-5: one's own, until an instant or until it is taken back; bob goes on."""
    gus, bob = await gate.person("gus"), await gate.person("bob")
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(tzinfo=None).isoformat()
    in_tokyo = {"pause": until, "timezone": "Asia/Tokyo"}
    assert_problem(await gus.patch(PATH, json=in_tokyo), 422, "pause")  # nine hours ago there
    made = await gus.patch(PATH, json=in_tokyo | {"timezone": "UTC"})
    assert (made.json()["pause"], made.json()["own"]) == (until, ["timezone", "pause"])
    assert (await gus.patch(PATH, json={"pause": "on"})).json()["pause"] == "on"
    assert (await gus.patch(PATH, json={"pause": ""})).json()["pause"] == ""
    kept = (await gus.patch(PATH, json={"language": "de"})).json()
    assert (kept["pause"], kept["own"]) == ("", ["timezone", "language", "pause"])
    assert (await bob.get(PATH)).json()["pause"] == ""


async def test_each_change_is_later_than_the_one_before(gate: Gate) -> None:
    """Who has seen a newer one takes no older one for it, whatever the clocks say."""
    hal = await gate.person("hal")
    for language in ("de", "it", "fr"):
        assert (await hal.patch(PATH, json={"language": language})).status_code == 200
    found = await own.find(gate.admin, "hal")
    assert found.own is not None
    past = datetime(2020, 1, 1, tzinfo=UTC)
    changed = own.changed(found, {"language": "ja"}, past, "hal", Person(), ())
    assert changed.at > found.own.at
    switches = await Switches.watch(gate.admin)
    await own.put(gate.admin, "hal", changed, expect=found.revision)
    await switches.refresh(Scope("vigil", "hal"))
    assert switches.person("hal", Person()).language == "ja"
    key = own.PREFIX + own.hash_of("hal")
    switches._on_change(key, msgspec.json.encode(found.own))
    assert switches.person("hal", Person()).language == "ja"
    assert switches.changed_at(Scope("vigil", "bob")) == NEVER
    await agent_pause.put(gate.admin, "vigil", None, is_on=True, at=past, by="root")
    later = await agent_pause.put(gate.admin, "vigil", None, is_on=False, at=past, by="root")
    await switches.refresh(Scope("vigil", "bob"))
    assert switches.changed_at(Scope("vigil", "bob")) == later.at > past
    assert switches.person("bob", Person(), "vigil").pause == ""
    await agent_pause.put(gate.admin, "vigil", "hal", is_on=True, at=past, by="hal")
    await agent_pause.put(gate.admin, "scout", None, is_on=True, at=past, by="hal")
    await agent_pause.forget(gate.admin, "hal")
    entries = await gate.admin.read("KV_CONFIG", ["$KV.CONFIG.agent.>"])
    left = {one.subject: one.data for one in entries if one.data}
    assert sorted(left) == ["$KV.CONFIG.agent.scout.all", "$KV.CONFIG.agent.vigil.all"]
    assert b"hal" not in b"".join(left.values())
    await agent_pause.put(gate.admin, "scout", None, is_on=False, at=past, by="root")
    await switches.refresh(Scope("scout", "bob"))
    switches._on_change("agent.vigil.all", b"?")
    assert switches.person("bob", Person(), "vigil").pause == "on"
    assert switches.person("bob", Person(), "scout").pause == ""
    await switches.close()


@pytest.mark.parametrize("line", ["quiet_hours = '22:00Z-07:00'", "pause = 'soon'"])
def test_what_cant_be_used_stops_the_start_too(line: str, tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text(f"[people.ann]\n{line}\n")
    with pytest.raises(ConfigError, match=line.partition(" ")[0]):
        config.load({}, home=tmp_path)


def test_a_channel_that_was_taken_out_stands_in_the_way_of_nothing_else() -> None:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    found = own.StoredSettings(own=own.OwnSettings(channel="ops", at=now, by="ann"), revision=1)
    then = own.changed(found, {"timezone": "Asia/Tokyo"}, now, "ann", Person(), ("push",))
    assert (then.timezone, then.channel) == ("Asia/Tokyo", "ops")
    with pytest.raises(InvalidInput, match="channel: must be one of socket, push"):
        own.changed(found, {"channel": "ops"}, now, "ann", Person(), ("push",))
