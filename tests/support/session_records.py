"""Samples of what a conversation begins with, for the golden files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from vigil import contracts
from vigil.contracts import Control, ControlPayload, Tool, UserMessage, UserMessagePayload
from vigil.contracts.calls.caller import CallerResult, CallerTools
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
    "event.results": (
        contracts.decode_event,
        Control(
            id="e1",
            session_key="ann:vigil:t1",
            created_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            payload=ControlPayload(
                op="results", results=(CallerResult(call_id=32 * "c", content="21 degrees"),)
            ),
        ),
    ),
    "event.user_message.caller": (
        contracts.decode_event,
        UserMessage(
            id="e1",
            session_key="ann:vigil:t1",
            created_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            payload=UserMessagePayload(
                text="How warm is it?",
                caller=CallerTools(
                    tools=(
                        Tool(
                            name="caller__weather",
                            description="The weather of a town",
                            input_schema={"type": "object"},
                            risk="external",
                        ),
                    ),
                    is_one_by_one=True,
                ),
            ),
        ),
    ),
}
