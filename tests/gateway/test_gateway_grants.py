"""/api/grants: who may allow what, whose it is, and which revision is ended (LOOPS L-8, L-15)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from services.gateway.work import configured_grants
from tests.support.approvals import ID, ask, request
from tests.support.gateway import Gate, assert_problem
from tests.support.goal_records import ANN
from tests.support.races import overtake
from vigil.board.kept import KeptBoard
from vigil.board.kinds.grant import GRANTS, USES
from vigil.contracts import Change, GrantUse
from vigil.erasure.scrub import scrub
from vigil.errors import ConfigError
from vigil.settings import config
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
        ({"row": "f" * 32}, 422, "row"),
        ({"row": "a.b"}, 422, "row"),
        ({"goal": "f" * 32}, 422, "goal"),
        ({"goal": "a.b"}, 422, "goal"),
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


async def test_a_long_list_is_read_by_pages(gate: Gate) -> None:
    """As of every kind of the board: after an id, also one that isn't listed any more."""
    ann = await gate.person("ann")
    made = [(await ann.post(PATH, json=BODY)).json()["id"] for _ in range(5)]
    whole = (await ann.get(PATH)).json()
    assert "next_after" not in whole
    order = [one["id"] for one in whole["grants"]]
    assert sorted(order) == sorted(made)
    found: list[str] = []
    wanted: dict[str, Any] = {"limit": 2}
    while True:
        page = (await ann.get(PATH, params=wanted)).json()
        found += [one["id"] for one in page["grants"]]
        if "next_after" not in page:
            break
        wanted["after"] = page["next_after"]
        await ann.delete(f"{PATH}/{wanted['after']}")
    assert found == order
    assert_problem(await ann.get(PATH, params={"after": "f" * 32}), 422, "after")
    assert_problem(await ann.get("/api/approvals", params={"after": "f" * 32}), 422, "after")
    assert_problem(await ann.get("/api/jobs", params={"after": "a.b"}), 422, "after")


async def test_requests_are_read_by_pages(gate: Gate) -> None:
    """X-2: the newest first, as sessions put them on the board."""
    for n in range(3):
        await ask(gate, request(id_=f"{n}{'a' * 31}"))
    ann = await gate.person("ann")
    whole = [one["id"] for one in (await ann.get("/api/approvals")).json()["approvals"]]
    assert len(whole) == 3
    first = (await ann.get("/api/approvals", params={"limit": 2})).json()
    assert [one["id"] for one in first["approvals"]] == whole[:2]
    rest = await ann.get("/api/approvals", params={"limit": 2, "after": first["next_after"]})
    assert [one["id"] for one in rest.json()["approvals"]] == whole[2:]
    assert "next_after" not in rest.json()


async def test_a_name_is_of_one_grant(gate: Gate) -> None:
    ann = await gate.person("ann")
    first = (await ann.post(PATH, json=BODY | {"name": "disk"})).json()
    assert_problem(await ann.post(PATH, json=BODY | {"name": "disk"}), 409, "name")
    await ann.delete(f"{PATH}/{first['id']}")
    assert (await ann.post(PATH, json=BODY | {"name": "disk"})).status_code == 201
    assert (await ann.post(PATH, json=BODY)).json()["name"] == "g1"


async def test_one_for_a_goal_names_one_of_its_makers(gate: Gate) -> None:
    """L-8: and neither a conversation nor a row beside it."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    body = {"description": "Keep the disk from filling up", "check_interval_secs": 3600}
    goal = (await ann.post("/api/goals", json=body)).json()["id"]
    one = (await ann.post(PATH, json=BODY | {"goal": goal})).json()
    assert (one["goal"], one["row"], one["session_key"]) == (goal, "", "")
    assert_problem(await bob.post(PATH, json=BODY | {"goal": goal}), 422, "goal")
    both = BODY | {"goal": goal, "session_key": "ann:vigil:t1"}
    assert_problem(await ann.post(PATH, json=both), 422, "goal")


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


# ---------------------------------------------------------------- by configuration

SECTION: Final = """
[[grants]]
name = "disk"
user = "ann"
tool = "shell"
constraints = [{kind = "argv", argv = ["df", "-h"]}]
"""


async def test_the_configuration_gives_leave_until_it_is_removed_there(
    gate: Gate, tmp_path: Path
) -> None:
    """L-8: made once, however many gateways start; no request ends it; it may come again."""
    ann = await gate.person("ann")
    bus = await gate.stack.bus("gateway")

    async def start(text: str) -> list[dict[str, Any]]:
        (tmp_path / "vigil.toml").write_text(text)
        found = config.load({}, home=tmp_path).config
        now = datetime.now(UTC)
        await configured_grants.keep(bus, found, now, lambda _: False)
        shown: list[dict[str, Any]] = (await ann.get(PATH)).json()["grants"]
        return shown

    own = (await ann.post(PATH, json=BODY)).json()
    (one,) = [grant for grant in await start(SECTION) if grant["id"] != own["id"]]
    assert (one["name"], one["owner"], one["made_by"]) == ("disk", "ann", "configuration")
    assert [grant["revision"] for grant in await start(SECTION)] == [
        grant["revision"] for grant in (await ann.get(PATH)).json()["grants"]
    ]
    path = f"{PATH}/{one['id']}"
    answer = await ann.delete(path)
    assert_problem(answer, 409)
    assert "vigil.toml" in answer.text
    assert [grant["id"] for grant in await start("")] == [own["id"]]
    assert (await ann.get(path)).json()["ended"] == "it was revoked"
    assert one["id"] in [grant["id"] for grant in await start(SECTION)]
    changed = await start(SECTION.replace("df", "du"))
    assert [grant["constraints"][0]["argv"][0] for grant in changed if grant["name"] == "disk"] == [
        "du"
    ]


async def test_what_is_removed_there_is_ended_while_somebody_is_erased(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-8: an erasure stores the whole board anew, and each record has another revision then. The
    grant held until the next start."""
    bus, now = await gate.stack.bus("gateway"), datetime.now(UTC)

    async def start(text: str) -> list[str]:
        """Begin a gateway with that configuration, as the board is stored anew."""
        (tmp_path / "vigil.toml").write_text(text)
        found = config.load({}, home=tmp_path).config
        overtake(monkeypatch, bus, lambda: scrub(gate.admin, "BOARD", lambda *_: None))
        await configured_grants.keep(bus, found, now, lambda _: False)
        board = KeptBoard(gate.admin, GRANTS)
        return [one.entity.name for one in await board.all(ANN) if GRANTS.is_open(one.entity, now)]

    assert [await start(text) for text in (SECTION, "", SECTION)] == [["disk"], [], ["disk"]]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('tool = "shell"', 'tool = "*"', "'disk': tool: must be one tool"),
        ('["df", "-h"]', '["sh", "-c", "df"]', "'disk': argv: 'sh' runs code"),
        ("constraints", "#", "'disk': constraints: shell is granted only with 'argv'"),
        ('shell"\nconstraints = [{kind = "argv", argv = ["df", "-h"]',
         'http_get"\nconstraints = [{kind = "url", host = "*.example.org", port = 443',
         "'disk': host: must be one host"),
        ('"ann"', '"a.b"', "'disk': user: "),
        ('"ann"', '"team"', "'disk': user: "),
        ("user", "owner", "unknown field `owner`"),
        ("[[grants]]", "[grants]", "grants: must be written as [[grants]]"),
        ("[[grants]]", f"{SECTION}\n[[grants]]", "'disk': ann has another of that name"),
        ('name = "disk"', 'name = "disk"\nmade_by = "person"', "unknown field `made_by`"),
    ],
)  # fmt: skip
def test_one_that_is_too_wide_stops_the_start(
    old: str, new: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "vigil.toml").write_text(SECTION.replace(old, new, 1))
    with pytest.raises(ConfigError) as error:
        config.load({}, home=tmp_path)
    assert reason in str(error.value)


def test_one_that_ended_meanwhile_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "vigil.toml").write_text(f"{SECTION}expires_at = 2020-01-01T00:00:00Z\n")
    assert config.load({}, home=tmp_path).config.grants[0].expires_at is not None
