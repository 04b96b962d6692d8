"""/api/person: what a person sets for themselves, and which revision is changed (LOOPS L-11)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.gateway import Gate, assert_problem
from vigil.settings import own

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


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"timezone": "../etc/passwd"}, "timezone"),
        ({"quiet_hours": "22"}, "quiet_hours"),
        ({"quiet_hours": "22:00-27:00"}, "quiet_hours"),
        ({"digest_at": "soon"}, "digest_at"),
        ({"channel": "pigeon"}, "channel"),
        ({"language": "German!"}, "language"),
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
