"""Every kind of the board keeps one contract, whoever asks and by whatever way (LOOPS L-15)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.support.approvals import ask, request
from tests.support.board_kinds import (
    NOWHERE,
    ends,
    is_read_by_programs_and_people,
    keeps_the_contract,
)
from tests.support.gateway import Gate, assert_problem
from tests.support.goal_records import action_of
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.mirrored import MirroredKind
from vigil.board.outside import BoardKind, kinds, served_kinds
from vigil.contracts import BoardEntry, Change, Job, encode
from vigil.subjects import SessionKey
from vigil.teams import holding

CHANGES: Final[dict[str, dict[str, Any] | None]] = {
    "actions": {"is_good": False, "text": "ask first"},
    "goals": {"priority": 4},
    "grants": None,
    "preferences": {"is_confirmed": True},
    "rows": {"jitter_s": 5},
    "tasks": {"priority": "critical"},
}


async def _made(gate: Gate, kind: BoardKind[Any]) -> dict[str, Any]:
    """Return something of Ann's as it is shown: the last example of how one is made, if any is."""
    ann = await gate.person("ann")
    if kind.makes is None:
        board, among = KeptBoard(gate.admin, ACTIONS), holding("ann", "vigil")
        done = action_of()
        await board.create(lambda _: done, among, Change(by="ann"), datetime.now(UTC))
        return dict((await ann.get(f"{kind.path}/{done.id}")).json())
    *_, body = kind.examples[kind.makes.body].values()
    made = await ann.post(kind.path, json=body)
    assert made.status_code == 201, made.text
    return dict(made.json())


@pytest.mark.parametrize("plural", sorted(kinds()))
async def test_it_is_its_owners_and_changes_as_it_was_read(
    gate: Gate, plural: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = kinds()[plural]
    made = await _made(gate, kind)
    await keeps_the_contract(gate, kind, made, CHANGES[plural])
    await is_read_by_programs_and_people(gate, kind, made["id"], monkeypatch)
    if kind.ends is not None:
        await ends(gate, kind, made["id"])


MIRRORED: Final = {one.plural: one for one in served_kinds() if isinstance(one, MirroredKind)}
MADE: Final = "ab" + 28 * "0" + "cd"


async def _put(gate: Gate, kind: MirroredKind[Any]) -> None:
    """Put one of Ann's onto the board, as the turn of a session does."""
    if kind.record is not Job:
        await ask(gate, request(id_=MADE))
        return
    key, now = SessionKey("ann", "vigil", f"_planner-{MADE}"), datetime.now(UTC)
    job = Job(id=MADE, session_key=str(key), goal="Water", status="failed", created_at=now)
    entry = BoardEntry(entity=job, turn_seq=1, at=now)
    await gate.admin.publish(key.board("job", MADE), encode(entry))


@pytest.mark.parametrize("plural", sorted(MIRRORED))
async def test_what_sessions_decide_is_read_as_all_else_and_takes_orders(
    gate: Gate, plural: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-2, J-1: others don't see it, an admin does, and its owner's order is stored."""
    kind = MIRRORED[plural]
    await _put(gate, kind)
    ann, bob = await gate.person("ann"), await gate.person("bob")
    root = await gate.person("root", is_admin=True)
    path, one = kind.path, f"{kind.path}/{MADE}"
    *_, order = kind.examples[kind.changes.body].values()

    (listed,), shown = (await ann.get(path)).json()[plural], (await ann.get(one)).json()
    assert listed.items() <= shown.items()
    assert (await root.get(one)).json() == shown
    assert (await root.get(path)).json() == {plural: [listed]}
    assert (await bob.get(path)).json() == {plural: []}
    for refused in (
        await bob.get(one),
        await bob.patch(one, json=order),
        await ann.get(f"{path}/{NOWHERE}"),
        await ann.patch(f"{path}/{NOWHERE}", json=order),
    ):
        assert_problem(refused, 404)
    assert_problem(await ann.get(f"{path}/x"), 422, "id")
    assert_problem(await ann.patch(one, json={**order, "nonsense": 1}), 422)
    assert_problem(await ann.delete(one), 405)
    assert (await ann.get(one)).json() == shown, "nothing of all that changed it"
    await is_read_by_programs_and_people(gate, kind, MADE, monkeypatch)

    accepted = await ann.patch(one, json=order)
    assert accepted.status_code == 202, accepted.text
    session = SessionKey.parse(shown["session_key"])
    (stored,) = await gate.admin.read(session.stream, [session.in_event("control")])
    assert stored.seq == accepted.json()["seq"]
