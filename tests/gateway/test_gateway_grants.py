"""/api/grants: who may allow what, whose it is, and which revision is ended (LOOPS L-8, L-15)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from tests.support.approvals import ID, ask, request
from tests.support.gateway import Gate, assert_problem
from vigil.board.kept import GRANTS, USES, KeptBoard
from vigil.contracts import Change, GrantUse
from vigil.subjects import Scope

PATH: Final = "/api/grants"
DF: Final[dict[str, Any]] = {"kind": "argv", "argv": ["df", "-h"]}
BODY: Final[dict[str, Any]] = {"tool": "shell", "constraints": [DF]}


async def test_a_grant_is_its_makers_alone(gate: Gate) -> None:
    """L-8, X-4: an admin may look and end; nobody gives leave for another."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    made = await ann.post(PATH, json=BODY | {"why": "the disk", "uses_max": 3})
    assert made.status_code == 201, made.text
    one = made.json()
    assert (one["name"], one["owner"], one["made_by"], one["state"]) == (
        "g1", "ann", "person", "standing",
    )  # fmt: skip
    assert made.headers["etag"] == f'"{one["revision"]}"'
    assert (await ann.get(f"{PATH}/{one['id']}")).json() == one
    assert (await ann.get(PATH)).json() == {"grants": [one]}
    assert (await bob.get(PATH)).json() == {"grants": []}
    for method in ("get", "delete"):
        assert_problem(await getattr(bob, method)(f"{PATH}/{one['id']}"), 404)
    assert_problem(await bob.get(f"{PATH}?user=ann"), 403, "user")
    assert_problem(await bob.post(PATH, json=BODY | {"owner": "ann"}), 422)
    assert_problem(await (await gate.http()).post(PATH, json=BODY), 401)
    admin = await gate.person("root", is_admin=True)
    assert [found["id"] for found in (await admin.get(PATH)).json()["grants"]] == [one["id"]]
    assert (await admin.delete(f"{PATH}/{one['id']}")).json()["ended"] == "it was revoked"
    found = await KeptBoard(gate.admin, GRANTS).find([Scope("*", "ann")], one["id"])
    assert found is not None
    assert (found.change.by, found.change.why) == ("root", "revoked")


async def test_the_revision_that_was_read_is_ended_or_none(gate: Gate) -> None:
    """L-15: If-Match of yesterday is 412, and changes nothing."""
    ann = await gate.person("ann")
    one = (await ann.post(PATH, json=BODY)).json()
    path = f"{PATH}/{one['id']}"
    yesterday = {"If-Match": f'"{one["revision"] - 1}"'}
    assert_problem(await ann.delete(path, headers=yesterday), 412, "If-Match")
    assert_problem(await ann.delete(path, headers={"If-Match": "abc"}), 422, "If-Match")
    assert (await ann.get(path)).json()["state"] == "standing"
    ended = await ann.delete(path, headers={"If-Match": f'"{one["revision"]}"'})
    assert ended.json()["state"] == "ended"
    assert (await ann.delete(path)).json() == ended.json()
    assert (await ann.get(PATH)).json() == {"grants": []}
    assert len((await ann.get(f"{PATH}?state=all")).json()["grants"]) == 1


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"tool": "*"}, 422, "tool"),
        ({"constraints": []}, 422, "constraints"),
        ({"constraints": [{"kind": "argv", "argv": ["sh", "-c", "df"]}]}, 422, "argv"),
        ({"constraints": [DF | {"mroe": "x"}]}, 422, None),
        (
            {"tool": "http_get",
             "constraints": [{"kind": "url", "host": "*.example.org", "port": 443}]},
            422,
            "host",
        ),
        ({"why": "a" * 1_000_000}, 413, None),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 422, "expires_at"),
        ({"session_key": "bob:vigil:t1"}, 422, "session_key"),
        ({"approval_id": "f" * 32}, 422, "approval_id"),
        ({"approval_id": "a.b"}, 422, "approval_id"),
        ({"more": 1}, 422, None),
    ],
)  # fmt: skip
async def test_what_would_allow_too_much_is_refused(
    gate: Gate, changes: dict[str, Any], status: int, field: str | None
) -> None:
    """X-6: naming field and reason; nothing is stored."""
    ann = await gate.person("ann")
    problem = assert_problem(await ann.post(PATH, json=BODY | changes), status)
    assert field is None or problem["field"] == field
    assert (await ann.get(f"{PATH}?state=all")).json() == {"grants": []}


async def test_a_name_is_of_one_grant(gate: Gate) -> None:
    ann = await gate.person("ann")
    first = (await ann.post(PATH, json=BODY | {"name": "disk"})).json()
    assert_problem(await ann.post(PATH, json=BODY | {"name": "disk"}), 409, "name")
    await ann.delete(f"{PATH}/{first['id']}")
    assert (await ann.post(PATH, json=BODY | {"name": "disk"})).status_code == 201
    assert (await ann.post(PATH, json=BODY)).json()["name"] == "g1"


async def test_one_made_of_a_request_names_it(gate: Gate) -> None:
    await ask(gate, request())
    ann, bob = await gate.person("ann"), await gate.person("bob")
    one = (await ann.post(PATH, json=BODY | {"approval_id": ID})).json()
    assert (one["made_by"], one["cause"]) == ("approval", ID)
    assert_problem(await bob.post(PATH, json=BODY | {"approval_id": ID}), 422, "approval_id")


async def test_an_unused_one_is_marked_after_thirty_days(gate: Gate) -> None:
    ann, board = await gate.person("ann"), KeptBoard(gate.admin, GRANTS)
    one = (await ann.post(PATH, json=BODY)).json()
    assert not one["is_unused"]
    found = await board.find([Scope("*", "ann")], one["id"])
    assert found is not None
    old = datetime.now(UTC) - timedelta(days=31)
    before = msgspec.structs.replace(found.entity, made_at=old)
    await board.replace(found.number, before, Change(by="ann"), old)
    assert (await ann.get(f"{PATH}/{one['id']}")).json()["is_unused"]
    use = GrantUse(id=one["id"], owner="ann", agent="vigil", uses=1, tool="shell",
                   last_used_at=datetime.now(UTC), session_key="ann:vigil:t1")  # fmt: skip
    await KeptBoard(gate.admin, USES).replace(0, use, Change(by="executor"), old)
    shown = (await ann.get(f"{PATH}/{one['id']}")).json()
    assert (shown["is_unused"], shown["uses"]) == (False, 1)
