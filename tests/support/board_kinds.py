"""What holds of every kind of the board: over HTTP, in the client, at a terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from tests.support.gateway import Gate, assert_problem
from vigil.board.outside import BoardKind, ServedKind
from vigil.cli.board.kinds import KindCommands
from vigil.sdk.calls.kind import KindCalls
from vigil.sdk.client import Client

NOWHERE: Final = "f" * 32
STALE: Final = {"If-Match": '"4711"'}


async def keeps_the_contract(
    gate: Gate, kind: BoardKind[Any], made: Mapping[str, Any], change: Mapping[str, Any] | None
) -> None:
    """Look at one that is Ann's: others don't see it, an admin does, and who read it too long ago
    changes nothing of it.

    Args:
        made: as it was answered when it came to be.
        change: of it, as only its owner may; None: of a kind that isn't changed.
    """
    ann, bob = await gate.person("ann"), await gate.person("bob")
    root = await gate.person("root", is_admin=True)
    path, one = kind.path, f"{kind.path}/{made['id']}"

    read = await ann.get(one)
    assert (read.json(), read.headers["etag"]) == (made, f'"{made["revision"]}"')
    assert {made["owner"], made["agent_id"]} == {"ann", "vigil"}
    view = {name: value for name, value in made.items() if name != "history"}
    assert (await ann.get(path)).json() == {kind.plural: [view]}
    assert (await root.get(path, params={"user": "ann"})).json() == {kind.plural: [view]}
    assert (await root.get(one)).json() == made
    assert (await bob.get(path)).json() == {kind.plural: []}
    assert_problem(await bob.get(path, params={"user": "ann"}), 403)
    for refused in (await bob.get(one), await ann.get(f"{path}/{NOWHERE}")):
        assert_problem(refused, 404)
    assert_problem(await ann.get(f"{path}/x"), 422, "id")
    assert (kind.changes is None) == (change is None)
    if change is None:
        assert_problem(await ann.patch(one, json={}), 405)
        return
    for refused in (
        await bob.patch(one, json=change),
        await ann.patch(f"{path}/{NOWHERE}", json=change),
    ):
        assert_problem(refused, 404)
    assert_problem(await ann.patch(one, json={**change, "nonsense": 1}), 422)
    as_it_is = {name: made[name] for name in change if name in made}
    assert_problem(await ann.patch(one, json={**as_it_is, "why": "x" * 501}), 422, "why")
    assert_problem(await ann.patch(one, json=change, headers=STALE), 412, "If-Match")
    assert_problem(await root.patch(one, json=change), 403)
    assert (await ann.get(one)).json() == made, "nothing of all that changed it"

    now = {"If-Match": read.headers["etag"]}
    changed = (await ann.patch(one, json=change, headers=now)).json()
    assert changed["revision"] > made["revision"]
    if kind.state is not None:
        assert [step["by"] for step in changed["history"]] == ["ann", "ann"]
        assert changed["history"][:-1] == made["history"]
    assert_problem(await ann.patch(one, json=change, headers=now), 412, "If-Match")


async def ends(gate: Gate, kind: BoardKind[Any], id_: str) -> None:
    """Look at the end of what is Ann's: it's listed no more, and its history stays."""
    ann, bob = await gate.person("ann"), await gate.person("bob")
    one = f"{kind.path}/{id_}"
    before = (await ann.get(one)).json()
    assert_problem(await bob.delete(one), 404)
    assert_problem(await ann.delete(one, headers=STALE), 412, "If-Match")
    ended = await ann.delete(one)
    assert ended.status_code == 200, ended.text
    assert ended.json()["revision"] > before["revision"]
    if kind.state is not None:
        assert ended.json()["history"][:-1] == before["history"]
    assert (await ann.get(kind.path)).json() == {kind.plural: []}
    assert (await ann.get(one)).json() == ended.json()


async def is_read_by_programs_and_people(
    gate: Gate, kind: ServedKind, id_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has what HTTP has, and the commands what the client has."""
    url, token = f"http://127.0.0.1:{gate.port}", await gate.token("ann")
    calls = KindCalls(Client(url, token), kind.plural, kind.own_path)
    listed, shown = await asyncio.to_thread(lambda: (calls.listed(), calls.get(id_)))
    assert [one["id"] for one in listed] == [id_]

    monkeypatch.setenv("VIGIL_URL", url)
    monkeypatch.setenv("VIGIL_TOKEN", token)
    commands = KindCommands(kind).group()

    async def said(*words: str) -> str:
        done = await asyncio.to_thread(CliRunner().invoke, commands, words)
        assert done.exit_code == 0, done.output
        return done.stdout

    assert json.loads(await said("--json")) == {kind.plural: listed}
    assert json.loads(await said("show", id_[:8], "--json")) == shown
    table, (first, *_) = await said(), kind.commands.columns
    assert str(first.value(shown)) in table
    assert str(shown[kind.commands.words or "id"])[:20] in table
