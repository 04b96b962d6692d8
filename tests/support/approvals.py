"""Requests to a person, as the cortex and the executor leave them in the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.support.gateway import Gate
from vigil.contracts import Approval, BoardEntry, State, encode
from vigil.subjects import SessionKey

ANN: Final = SessionKey.parse("ann:vigil:t1")
ID: Final = "a" * 32
DIGEST: Final = "d" * 64


def request(key: SessionKey = ANN, id_: str = ID, **fields: Any) -> Approval:
    now = datetime.now(UTC)
    return Approval(**{
        "id": id_, "session_key": str(key), "tool": "shell", "input": {"command": "rm \x1b[2Jx"},
        "digest": DIGEST, "risk": "destructive", "reason": "it can't be undone", "asked_at": now,
        "expires_at": now + timedelta(hours=1), "caused_by": "m1", **fields,
    })  # fmt: skip


async def ask(gate: Gate, approval: Approval, *, in_state: bool = True) -> None:
    """Put a request into its session's state and on the board, as cortex and executor do."""
    key = SessionKey.parse(approval.session_key)
    approvals = {approval.id: approval} if in_state else {}
    ack = await gate.turn(str(key), State(turns=1, approvals=approvals))
    await list_on_board(gate, approval, ack.seq)


async def list_on_board(gate: Gate, approval: Approval, turn_seq: int = 1) -> None:
    key = SessionKey.parse(approval.session_key)
    entry = BoardEntry(entity=approval, turn_seq=turn_seq, at=approval.asked_at)
    await gate.admin.publish(key.board("approval", approval.id), encode(entry))
