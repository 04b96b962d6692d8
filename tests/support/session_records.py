"""Samples of what a conversation begins with, for the golden files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from vigil import contracts
from vigil.contracts import Control, ControlPayload
from vigil.contracts.events import Fork

SAMPLES: Final[dict[str, tuple[Any, Any]]] = {
    "event.fork": (
        contracts.decode_event,
        Control(
            id="e1",
            session_key="ann:vigil:t1",
            created_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            payload=ControlPayload(op="fork", fork=Fork(session="ann:vigil:t0", turn=8)),
        ),
    ),
}
