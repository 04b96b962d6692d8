"""Every kind of the board keeps one contract, whoever asks and by whatever way (LOOPS L-15)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.support.board_kinds import ends, is_read_by_programs_and_people, keeps_the_contract
from tests.support.gateway import Gate
from tests.support.goal_records import action_of
from vigil.board.kept import KeptBoard
from vigil.board.kinds.action import ACTIONS
from vigil.board.outside import BoardKind, kinds
from vigil.contracts import Change
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
